// Makes the identity tuple and collects its long form.
#include "identity/identity.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/process/thread_pool.h"
#include "base/records/lenient_json.h"
#include "base/text/text.h"
#include "identity/libraries.h"
#include "identity/long_form.h"

namespace assay {
namespace {

constexpr int kEnvironmentSchema = 1;

std::vector<std::string> process_environment() {
  std::vector<std::string> variables;
  for (char** variable = ::environ; variable && *variable; ++variable) {
    variables.emplace_back(*variable);
  }
  return variables;
}

std::string device_name(const Host& host, size_t cpus) {
  std::string name = host.cpu_model.value_or("unknown processor");
  if (host.cpu_family && host.cpu_model_number && host.cpu_stepping) {
    name += fmt::format(" (family {} model {} stepping {})", *host.cpu_family,
                        *host.cpu_model_number, *host.cpu_stepping);
  }
  return name + fmt::format(" x {}", cpus);
}

std::string framework_name(const BuildInfo& build) {
  std::string name =
      fmt::format("assay {} {} {}", build.version,
                  build.sha ? build.sha->substr(0, 12) : "unknown commit", build.build_type);
  return build.sanitizers.empty() ? name : name + " " + build.sanitizers;
}

}  // namespace

Identity make_identity(const Host& host, const BuildInfo& build) {
  Identity identity;
  identity.device =
      device_name(host, host.cpus_allowed.empty() ? available_cpus() : host.cpus_allowed.size());
  identity.code_generator = build.compiler;
  identity.code_sha = build.code();
  identity.framework_build = framework_name(build);
  return identity;
}

Identity identity_in(const Json& environment) {
  const Json& cpu = member(member(environment, "host"), "cpu");
  const Json& built = member(environment, "build");
  Identity identity;
  Host host;
  if (cpu.contains("model")) host.cpu_model = text_member(cpu, "model");
  host.cpu_family = whole_member(cpu, "family");
  host.cpu_model_number = whole_member(cpu, "model_number");
  host.cpu_stepping = whole_member(cpu, "stepping");
  const Json& affinity = member(cpu, "affinity");
  if (affinity.is_array() && !affinity.empty()) {
    identity.device = device_name(host, affinity.size());
  }
  if (!built.is_object()) return identity;
  BuildInfo build;
  build.version = text_member(built, "version");
  if (built.contains("code_sha")) build.sha = text_member(built, "code_sha");
  build.dirty = member(built, "code_dirty") == true;
  build.build_type = text_member(built, "build_type");
  build.sanitizers = text_member(built, "sanitizers");
  identity.code_generator = text_member(built, "compiler");
  identity.code_sha = build.code();
  identity.framework_build = framework_name(build);
  return identity;
}

Json identity_to_json(const Identity& identity, std::span<const ArmIdentity> arms) {
  Json json = {{"device", identity.device},
               {"code_generator", identity.code_generator},
               {"framework_build", identity.framework_build}};
  if (identity.code_sha) json["code_sha"] = *identity.code_sha;
  json["arms"] = Json::object();
  for (const ArmIdentity& arm : arms) {
    Json& axes = json["arms"][arm.arm];
    axes = {{"cache", arm.cache}, {"compile_mode", arm.compile_mode}};
    if (!arm.device.empty()) axes["device"] = arm.device;
    if (!arm.code_generator.empty()) axes["code_generator"] = arm.code_generator;
    if (!arm.framework_build.empty()) axes["framework_build"] = arm.framework_build;
    if (!arm.code_sha.empty()) axes["code_sha"] = arm.code_sha;
  }
  return json;
}

std::vector<std::string> build_warnings(const BuildInfo& build) {
  std::vector<std::string> warnings;
  if (!build.optimized || build.build_type == "Debug") {
    warnings.push_back(fmt::format(
        "debug build ({}): its figures say nothing about a release build", build.build_type));
  }
  if (!build.sanitizers.empty()) {
    warnings.push_back(fmt::format(
        "sanitised build ({}): its figures say nothing about a release build", build.sanitizers));
  }
  return warnings;
}

namespace {

// A name behind which people keep what nobody else may know.
bool names_a_secret(std::string name) {
  std::ranges::transform(name, name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  const auto ends = [&](const char* word) { return name.ends_with(word); };
  return ends("KEY") || ends("TOKEN") || ends("SECRET") || ends("PASSWORD");
}

}  // namespace

Json relevant_variables(std::span<const std::string> environ) {
  constexpr std::array<std::string_view, 21> kPrefixes = {
      "OMP_",       "GOMP_",           "KMP_",
      "DNNL_",      "ONEDNN_",         "MKL_",
      "OPENBLAS_",  "MALLOC_",         "GLIBC_TUNABLES",
      "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_BIND_NOW",
      "HWY_",       "ASSAY_",          "TORCH",
      "PYTORCH_",   "TRITON_",         "CUDA_",
      "CUBLAS_",    "NVIDIA_",         "CXX"};
  Json variables = Json::object();
  for (const std::string& variable : environ) {
    const size_t equals = variable.find('=');
    if (equals == std::string::npos) continue;
    const std::string name = variable.substr(0, equals);
    if (names_a_secret(name)) continue;
    if (std::ranges::any_of(kPrefixes, [&](std::string_view p) { return name.starts_with(p); })) {
      variables[name] = variable.substr(equals + 1);
    }
  }
  return variables;
}

Json collect_environment(const MachineFiles& files, int64_t threads) {
  const Host host = read_host(files);
  const BuildInfo build = build_info();
  Json json;
  json["schema"] = kEnvironmentSchema;
  json["host"] = host_to_json(host);
  json["build"] = build_info_to_json(build);
  if (const auto hash = program_sha256()) json["program_sha256"] = *hash;
  json["libraries"] = libraries_to_json(loaded_libraries());
  json["threads"] = threads > 0 ? threads : static_cast<int64_t>(available_cpus());
  json["environment_variables"] = relevant_variables(process_environment());
  std::vector<std::string> warnings = build_warnings(build);
  std::ranges::move(host_warnings(host, threads), std::back_inserter(warnings));
  json["warnings"] = warnings;
  return json;
}

}  // namespace assay
