// evidence.json in both directions, by one description; a worker's report is read leniently.
#include "artifact/evidence.h"

#include <algorithm>
#include <array>

#include "artifact/quality_record.h"
#include "base/records/lenient_json.h"
#include "base/records/record.h"

namespace assay {
namespace {

constexpr std::array<std::pair<CompilerReal, std::string_view>, 5> kVerdicts = {
    {{CompilerReal::kNotApplicable, "not_applicable"},
     {CompilerReal::kYes, "yes"},
     {CompilerReal::kFallback, "fallback"},
     {CompilerReal::kLabelOnly, "label_only"},
     {CompilerReal::kUnproven, "unproven"}}};

std::vector<Recompile> recompiles_in(const Json& list) {
  std::vector<Recompile> all;
  if (!list.is_array()) return all;
  for (const Json& entry : list) {
    Recompile recompile{shown_text(member(entry, "guard")), shown_text(member(entry, "expected")),
                        shown_text(member(entry, "found")), number_member(entry, "seconds")};
    if (!recompile.guard.empty()) all.push_back(std::move(recompile));
  }
  return all;
}

// A worker's verdict, which may be any text.
template <typename T>
struct VerdictMember {
  static constexpr size_t kCovers = 1;
  const char* name;
  CompilerReal T::*pointer;

  void write(const T& of, Json& object, const NoContext&) const {
    object[name] = compiler_real_name(of.*pointer);
  }
  Fit read(const Json& object, T& of, const NoContext&) const {
    of.*pointer = compiler_real_of(member(object, name));
    return std::nullopt;
  }
};

// A process's counters: those that this program knows, each a number from 0 on. Earlier programs
// kept the other members of the worker's object beside them.
struct ProcessCounters {
  static constexpr size_t kCovers = 1;
  const char* name = "counters";

  void write(const EvidenceProcess& of, Json& object, const NoContext&) const {
    object[name] = of.counters ? counts_to_json(*of.counters) : Json();
  }
  Fit read(const Json& object, EvidenceProcess& of, const NoContext&) const {
    const Json& sent = member(object, name);
    if (sent.is_null()) return std::nullopt;
    if (!sent.is_object()) return within(name, misfit("an object", sent));
    Counts& counts = of.counters.emplace(counts_from_json(sent));
    for (const auto& [key, count] : sent.items()) {
      const auto counter = parse_counter(key);
      if (!counter || count.is_null() || counts.contains(*counter)) continue;
      return within(name, within(key, misfit("a whole number from 0 on", count)));
    }
    return std::nullopt;
  }
};

// A worker's evidence as it sent it.
struct Reported {
  static constexpr size_t kCovers = 1;
  const char* name = "reported";

  void write(const Evidence& of, Json& object, const NoContext&) const {
    object[name] = of.reported ? of.reported->whole : Json();
  }
  Fit read(const Json& object, Evidence& of, const NoContext&) const {
    const Json& whole = member(object, name);
    if (whole.is_object()) of.reported = worker_report(whole);
    return std::nullopt;
  }
};

}  // namespace

template <>
struct Record<RequestedArm> {
  using T = RequestedArm;
  static constexpr auto kMembers =
      std::tuple(field_may_lack("backend", &T::backend), field_may_lack("mode", &T::mode),
                 field_may_lack("cache", &T::cache), field_may_lack("dynamic", &T::dynamic),
                 field_may_lack("dtype", &T::dtype), field_may_lack("threads", &T::threads),
                 field_may_lack("options", &T::options));
};

template <>
struct Record<EvidenceWorker> {
  using T = EvidenceWorker;
  static constexpr auto kMembers = std::tuple(
      field_may_lack("name", &T::name), field_may_lack("version", &T::version),
      field_may_lack("protocol", &T::protocol), field_may_lack("capabilities", &T::capabilities),
      field_may_lack("dtype", &T::dtype), field_may_lack("quantization", &T::quantization),
      field_may_lack("load_seconds", &T::load_seconds),
      field_may_lack("prepare_seconds", &T::prepare_seconds),
      field_may_lack("prepare_evidence", &T::prepare_evidence),
      field_if_known("weight_bytes", &T::weight_bytes), field_if_known("threads", &T::threads));
};

template <>
struct Record<AddressOffsets> {
  using T = AddressOffsets;
  static constexpr auto kMembers = std::tuple(
      field_may_lack("program", &T::program), field_may_lack("heap", &T::heap),
      field_may_lack("stack", &T::stack), field_may_lack("largest_file", &T::largest_file),
      field_may_lack("largest_memory", &T::largest_memory));
};

template <>
struct Record<TimedFaults> {
  using T = TimedFaults;
  static constexpr auto kMembers =
      std::tuple(field_may_lack("rows", &T::rows), field_may_lack("minor", &T::minor),
                 field_may_lack("major", &T::major));
};

template <>
struct Record<EvidenceMemory> {
  using T = EvidenceMemory;
  static constexpr auto kMembers =
      std::tuple(field_may_lack("cold_faults", &T::cold), field_may_lack("warm_faults", &T::warm));
};

template <>
struct Record<Placement> {
  using T = Placement;
  static constexpr auto kMembers = std::tuple(
      field_may_lack("cpus_allowed", &T::cpus_allowed), field_may_lack("last_cpu", &T::last_cpu),
      field_may_lack("numa_node", &T::numa_node),
      field_may_lack("resident_bytes", &T::resident_bytes),
      field_may_lack("huge_page_bytes", &T::huge_page_bytes),
      field_may_lack("addresses_random", &T::addresses_random),
      field_may_lack("address_randomisation", &T::address_randomisation),
      field_may_lack("locked_bytes", &T::locked_bytes), field_may_lack("offsets", &T::offsets));
};

template <>
struct Record<EvidenceProcess> {
  using T = EvidenceProcess;
  static constexpr auto kMembers =
      std::tuple(field("process", &T::process), field_may_lack("load_seconds", &T::load_seconds),
                 field_may_lack("prepare_seconds", &T::prepare_seconds),
                 VerdictMember<T>{"compiler_real", &T::compiler_real}, ProcessCounters{},
                 field_may_lack("placement", &T::placement), field_may_lack("memory", &T::memory),
                 field_may_lack("lost", &T::lost));
};

template <>
struct Record<EvidenceGate> {
  using T = EvidenceGate;
  static constexpr auto kMembers =
      std::tuple(field_may_lack("verdict", &T::verdict), field_if_known("reason", &T::reason),
                 field_if_known("fix", &T::fix), field_if_known("fallback", &T::fallback),
                 field_if_known("error_class", &T::error_class));
};

template <>
struct Record<EvidenceReadLimit> {
  using T = EvidenceReadLimit;
  static constexpr auto kMembers = std::tuple(field_may_lack("bytes_per_s", &T::bytes_per_s),
                                              field_may_lack("cache_bytes", &T::cache_bytes),
                                              field_if_known("tolerance", &T::tolerance));
};

template <>
struct Record<EvidenceNeighbour> {
  using T = EvidenceNeighbour;
  static constexpr auto kMembers = std::tuple(
      field_may_lack("unit", &T::unit), field_may_lack("first_row", &T::first_row),
      field_may_lack("rows", &T::rows), field_may_lack("pid", &T::pid),
      field_may_lack("process", &T::process), field_if_known("memory_bytes", &T::memory_bytes),
      field_may_lack("share", &T::share));
};

template <>
struct Record<EvidenceFailure> {
  using T = EvidenceFailure;
  static constexpr auto kMembers =
      std::tuple(field_may_lack("unit", &T::unit), field_may_lack("repetition", &T::repetition),
                 field_may_lack("status", &T::status), field_may_lack("class", &T::error_class),
                 field_may_lack("message", &T::message));
};

template <>
struct Record<EvidenceError> {
  using T = EvidenceError;
  static constexpr auto kMembers =
      std::tuple(field_may_lack("class", &T::error_class), field_may_lack("message", &T::message));
};

template <>
struct Record<EvidenceProfile> {
  using T = EvidenceProfile;
  static constexpr auto kMembers =
      std::tuple(field_if_known("summary", &T::summary), field_if_known("skipped", &T::skipped),
                 field_if_known("error", &T::error));
};

template <>
struct Record<StoppingPair> {
  using T = StoppingPair;
  static constexpr auto kMembers =
      std::tuple(field_may_lack("arm", &T::arm), field_may_lack("ratio", &T::ratio),
                 field_may_lack("interval", &T::interval), field_may_lack("verdict", &T::verdict));
};

template <>
struct Record<EvidenceStopping> {
  using T = EvidenceStopping;
  static constexpr auto kMembers =
      std::tuple(field_may_lack("rounds", &T::rounds), field_may_lack("decided", &T::decided),
                 field_may_lack("leader", &T::leader), field_if_known("margin", &T::margin),
                 field_may_lack("pairs", &T::pairs));
};

template <>
struct Record<Evidence> {
  using T = Evidence;
  static constexpr auto kMembers = std::tuple(
      field_may_lack("cell_id", &T::cell_id), field_may_lack("phase", &T::phase),
      field_may_lack("requested", &T::requested), field_may_lack("model_hash", &T::model_hash),
      VerdictMember<T>{"compiler_real", &T::compiler_real}, field_may_lack("worker", &T::worker),
      Reported{}, field_may_lack("reported_by", &T::reported_by),
      field_may_lack("processes", &T::processes), field_may_lack("read_limit", &T::read_limit),
      field_if_known("gpu_neighbours", &T::gpu_neighbours),
      field_if_known("throttle_reasons", &T::throttle_reasons),
      field_may_lack("failures", &T::failures), field_if_known("stopping", &T::stopping),
      field_if_known("quality", &T::quality), field_if_known("gate", &T::gate),
      field_if_known("read_bytes", &T::read_bytes), field_if_known("operations", &T::operations),
      field_if_known("matrix_limit", &T::matrix_limit), field_if_known("profile", &T::profile),
      field_if_known("log_dropped_bytes", &T::log_dropped_bytes));
};

std::string_view compiler_real_name(CompilerReal real) {
  return kVerdicts[static_cast<size_t>(real)].second;
}

int claim_rank(CompilerReal real) {
  switch (real) {
    case CompilerReal::kLabelOnly:
      return 0;
    case CompilerReal::kFallback:
      return 1;
    case CompilerReal::kUnproven:
      return 2;
    case CompilerReal::kYes:
    case CompilerReal::kNotApplicable:
      break;
  }
  return 3;
}

CompilerReal compiler_real_of(const Json& verdict) {
  for (const auto& [real, name] : kVerdicts) {
    if (verdict == name) return real;
  }
  return CompilerReal::kUnproven;
}

WorkerReport worker_report(Json whole) {
  WorkerReport report;
  if (const Json& reasons = member(whole, "reasons"); reasons.is_array()) {
    for (const Json& reason : reasons) report.reasons.push_back(shown_text(reason));
  }
  report.fallback = text_member(whole, "fallback");
  report.fallback_error = shown_text(member(whole, "fallback_error"));
  report.counts = counts_from_json(member(whole, "counters"));
  report.recompiles = recompiles_in(member(whole, "recompiles"));
  if (const Json& names = member(whole, "became_symbols"); names.is_array()) {
    for (const Json& name : names) report.became_symbols.push_back(shown_text(name));
  }
  if (const Json& breaks = member(whole, "graph_breaks"); breaks.is_array() && !breaks.empty()) {
    report.first_graph_break = text_member(breaks[0], "text");
  }
  report.device = text_member(member(whole, "actual"), "device");
  const Json& toolchain = member(whole, "toolchain");
  if (const std::string name = shown_text(member(toolchain, "name")); !name.empty()) {
    report.code_generator = name + " " + shown_text(member(toolchain, "version"));
  }
  report.triton_version = text_member(member(toolchain, "triton"), "version");
  report.compile_seconds = number_member(member(whole, "kernels"), "compile_seconds");
  const auto in_all_ns =
      count_of(counts_from_json(member(whole, "counters_of_process")), Counter::kCompileNs);
  report.process_compile_seconds =
      in_all_ns ? std::optional(static_cast<double>(*in_all_ns) / 1e9) : report.compile_seconds;
  report.read_bytes_per_s = number_member(member(whole, "read_bandwidth"), "bytes_per_s");
  report.least_energy_ms = number_member(member(whole, "energy_counter"), "least_region_ms");
  report.whole = std::move(whole);
  return report;
}

std::optional<int64_t> Evidence::count(Counter counter) const {
  return reported ? count_of(reported->counts, counter) : std::nullopt;
}

std::optional<int64_t> Evidence::most_counted(Counter counter) const {
  std::optional<int64_t> most = count(counter);
  for (const EvidenceProcess& process : processes) {
    if (process.counters) most = std::max(most, count_of(*process.counters, counter));
  }
  return most;
}

CompilerReal Evidence::verdict_of(std::optional<int64_t> process) const {
  const auto own = std::ranges::find_if(
      processes, [&](const EvidenceProcess& one) { return one.process == process; });
  return own == processes.end() ? compiler_real : own->compiler_real;
}

std::string first_line(const std::string& message) {
  const std::string line = message.substr(0, message.find('\n'));
  return line.substr(0, line.find(" Stack trace: "));
}

std::optional<EvidenceMemory> memory_from_json(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  const auto count = [](const Json& object, const char* name) -> std::optional<int64_t> {
    const auto found = whole_member(object, name);
    return found && *found >= 0 ? found : std::nullopt;
  };
  const auto faults = [&](const char* name) -> std::optional<TimedFaults> {
    const Json& object = member(json, name);
    const auto rows = count(object, "rows");
    const auto minor = count(object, "minor");
    const auto major = count(object, "major");
    if (!rows || !minor || !major) return std::nullopt;
    return TimedFaults{*rows, *minor, *major};
  };
  return EvidenceMemory{faults("cold_faults"), faults("warm_faults")};
}

Json evidence_to_json(const Evidence& evidence) {
  return record_to_json(evidence);
}

Result<Evidence> evidence_from_json(const Json& json, std::string_view object) {
  return record_from_json<Evidence>(json, object);
}

}  // namespace assay
