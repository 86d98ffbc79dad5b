// The machine as environment.json has it: a member that is absent has no key.
#include "identity/host.h"

namespace assay {
namespace {

template <typename T>
void put(Json& json, const char* key, const std::optional<T>& value) {
  if (value) json[key] = *value;
}

template <typename T>
void put(Json& json, const char* key, const std::vector<T>& values) {
  if (!values.empty()) json[key] = values;
}

}  // namespace

Json host_to_json(const Host& host) {
  Json cpu = Json::object();
  put(cpu, "model", host.cpu_model);
  put(cpu, "family", host.cpu_family);
  put(cpu, "model_number", host.cpu_model_number);
  put(cpu, "stepping", host.cpu_stepping);
  put(cpu, "microcode", host.microcode);
  put(cpu, "simd", simd_flags(host.cpu_flags));
  put(cpu, "flags", host.cpu_flags);
  put(cpu, "online", host.cpus_online);
  put(cpu, "affinity", host.cpus_allowed);
  put(cpu, "quota_cpus", host.cpu_quota);
  put(cpu, "sockets", host.sockets);
  put(cpu, "smt_active", host.smt_active);
  put(cpu, "governor", host.governor);
  put(cpu, "last_level_cache", host.last_level_cache);
  Json memory = Json::object();
  put(memory, "total_bytes", host.memory_bytes);
  put(memory, "available_bytes", host.memory_available_bytes);
  put(memory, "numa_nodes", host.numa_nodes);
  put(memory, "transparent_huge_pages", host.transparent_huge_pages);
  Json system = Json::object();
  put(system, "hypervisor", host.hypervisor);
  put(system, "kernel", host.kernel);
  put(system, "boot_id", host.boot_id);
  put(system, "distribution", host.distribution);
  system["c_library"] = host.c_library;
  put(system, "clocksource", host.clocksource);
  put(system, "load_1min", host.load_1min);
  put(system, "steal_share", host.steal_share);
  return {{"cpu", std::move(cpu)}, {"memory", std::move(memory)}, {"system", std::move(system)}};
}

}  // namespace assay
