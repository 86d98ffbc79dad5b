// Puts the reports of processes together cell by cell.
#include "harness/cell_evidence.h"

#include <algorithm>

#include "base/records/lenient_json.h"
#include "identity/placement.h"

namespace assay {
namespace {

// Weakest verdict of the processes that came through; of all if none did.
CompilerReal weakest_verdict(const std::vector<EvidenceProcess>& processes) {
  return std::ranges::min_element(processes, {},
                                  [](const EvidenceProcess& one) {
                                    return std::pair(one.lost, claim_rank(one.compiler_real));
                                  })
      ->compiler_real;
}

// True if the report of `one` takes the place of that of `other`.
bool outweighs(const EvidenceProcess& one, const EvidenceProcess& other) {
  if (one.lost != other.lost) return other.lost;
  return claim_rank(one.compiler_real) <= claim_rank(other.compiler_real);
}

// A sitting adds so many bytes to a cell's log; beyond them each part leaves less of itself.
constexpr uint64_t kMostLogBytes = 8 * WorkerLog::kMostBytes;
constexpr uint64_t kLeastPartBytes = uint64_t{64} << 10;

}  // namespace

Evidence& CellEvidence::of(size_t index) {
  const auto [at, fresh] = by_cell_.try_emplace(index);
  Evidence& evidence = at->second;
  if (!fresh) return evidence;
  const Cell& cell = plan_.cells[index];
  const StudyArm& arm = study_.arms[cell.arm];
  evidence.cell_id = cell.id;
  evidence.phase = cell.phase;
  evidence.requested = {
      arm.backend, arm.mode,   arm.cache, arm.dynamic, study_.models[cell.model].dtype,
      arm.threads, arm.options};
  if (const auto readiness = readiness_.find(cell.arm); readiness != readiness_.end())
    evidence.gate = readiness->second;
  return evidence;
}

void CellEvidence::set_readiness(size_t arm, const ArmReadiness& readiness) {
  readiness_[arm] = {std::string(readiness_name(readiness.verdict)), readiness.reason,
                     readiness.fix, readiness.fallback, readiness.error_class};
}

void CellEvidence::add_worker(size_t cell, const LiveWorker& live) {
  const HelloReply& hello = live.client->hello();
  const LoadedReply& loaded = live.loaded;
  EvidenceWorker& worker = of(cell).worker.emplace();
  worker.name = hello.worker;
  worker.version = hello.version;
  worker.protocol = hello.protocol;
  worker.capabilities = hello.capabilities;
  worker.dtype = loaded.dtype;
  worker.quantization = loaded.quantization;
  worker.load_seconds = loaded.seconds;
  worker.weight_bytes = loaded.weight_bytes;
  worker.threads = loaded.threads;
  if (live.prepared_cell == cell) {  // else its figures are another cell's, or none
    worker.prepare_seconds = live.prepared.seconds;
    worker.prepare_evidence = live.prepared.evidence;
  }
}

EvidenceProcess& CellEvidence::process_of(size_t cell, int64_t process) {
  std::vector<EvidenceProcess>& processes = of(cell).processes;
  const auto known = std::ranges::find(processes, process, &EvidenceProcess::process);
  if (known != processes.end()) return *known;
  EvidenceProcess& fresh = processes.emplace_back();
  fresh.process = process;
  return fresh;
}

void CellEvidence::add_process(size_t cell, int64_t process, const LiveWorker& live) {
  EvidenceProcess& entry = process_of(cell, process);
  entry.load_seconds = live.loaded.seconds;
  if (live.prepared_cell == cell) entry.prepare_seconds = live.prepared.seconds;
}

void CellEvidence::add_placement(size_t cell, int64_t process, int64_t pid) {
  const Placement placement = read_placement(MachineFiles(), pid);
  if (placement.last_cpu) process_of(cell, process).placement = placement;
}

ClientResult<Json> CellEvidence::add_report(size_t cell, int64_t process, WorkerClient& client,
                                            Phase phase, double timeout_s, bool last_words) {
  auto reply = client.evidence({phase}, timeout_s);
  if (!reply) return std::unexpected(std::move(reply).error());
  Json said = reply->evidence;
  EvidenceProcess& entry = process_of(cell, process);
  entry.compiler_real = compiler_real_of(member(said, "compiler_real"));
  entry.counters.reset();
  if (const Json& counters = member(said, "counters"); counters.is_object()) {
    entry.counters = counts_from_json(counters);
  }
  entry.memory = memory_from_json(member(said, "memory"));
  entry.lost = last_words;
  Evidence& evidence = of(cell);
  evidence.compiler_real = weakest_verdict(evidence.processes);
  const EvidenceProcess own = entry;  // the list of processes may move
  const auto by = evidence.reported_by;
  if (!by || by == process || outweighs(own, process_of(cell, *by))) {
    evidence.reported = worker_report(std::move(said));
    evidence.reported_by = process;
  }
  return std::move(reply->evidence);
}

void CellEvidence::add_failure(size_t cell, int64_t unit, int64_t repetition,
                               const RowOutcome& outcome, const std::string& message) {
  of(cell).failures.push_back({unit, repetition, std::string(row_status_name(outcome.status)),
                               outcome.error_class, message});
}

Status CellEvidence::keep_log(size_t cell, WorkerLog& log, BundleWriter& bundle) {
  uint64_t& kept = log_bytes_[cell];
  const uint64_t room = kMostLogBytes - std::min(kMostLogBytes, kept);
  ASSAY_TRY(const uint64_t dropped, log.move_to(
                                        [&](std::string_view bytes) {
                                          kept += bytes.size();
                                          return bundle.append_log(plan_.cells[cell].id, bytes);
                                        },
                                        std::clamp(room, kLeastPartBytes, WorkerLog::kMostBytes)));
  if (dropped == 0) return {};
  Evidence& evidence = of(cell);
  evidence.log_dropped_bytes =
      evidence.log_dropped_bytes.value_or(0) + static_cast<int64_t>(dropped);
  return write(cell, bundle);
}

Status CellEvidence::write(size_t cell, BundleWriter& bundle) {
  return bundle.write_cell_json(plan_.cells[cell].id, "evidence.json", evidence_to_json(of(cell)));
}

}  // namespace assay
