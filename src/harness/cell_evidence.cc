// The members of evidence.json, in their order.
#include "harness/cell_evidence.h"

namespace assay {

Json& CellEvidence::of(size_t index) {
  Json& evidence = by_cell_[index];
  if (!evidence.is_null()) return evidence;
  const Cell& cell = plan_.cells[index];
  const StudyArm& arm = study_.arms[cell.arm];
  evidence = {{"cell_id", cell.id},
              {"phase", cell.phase},
              {"requested",
               {{"backend", arm.backend},
                {"mode", arm.mode},
                {"cache", arm.cache},
                {"dynamic", arm.dynamic},
                {"dtype", study_.models[cell.model].dtype},
                {"threads", arm.threads},
                {"options", arm.options}}},
              {"model_hash", ""},
              {"compiler_real", "unproven"},
              {"worker", nullptr},
              {"reported", nullptr},
              {"read_limit", nullptr},
              {"failures", Json::array()}};
  if (const auto gate = gates_.find(cell.arm); gate != gates_.end()) {
    evidence["gate"] = gate->second;
  }
  return evidence;
}

void CellEvidence::set_gate(size_t arm, const ArmGate& gate) {
  gates_[arm] = gate_to_json(gate);
}

void CellEvidence::add_worker(size_t cell, const LiveWorker& live) {
  const HelloReply& hello = live.client->hello();
  const LoadedReply& loaded = live.loaded;
  Json& worker = of(cell)["worker"];
  worker = {{"name", hello.worker},           {"version", hello.version},
            {"protocol", hello.protocol},     {"capabilities", hello.capabilities},
            {"dtype", loaded.dtype},          {"quantization", loaded.quantization},
            {"load_seconds", loaded.seconds}, {"prepare_seconds", nullptr},
            {"prepare_evidence", nullptr}};
  if (live.prepared_cell == cell) {  // else what it has is another cell's, or nothing
    worker["prepare_seconds"] = live.prepared.seconds;
    worker["prepare_evidence"] = live.prepared.evidence;
  }
  if (loaded.weight_bytes) worker["weight_bytes"] = *loaded.weight_bytes;
  if (loaded.threads) worker["threads"] = *loaded.threads;
}

ClientResult<void> CellEvidence::add_report(size_t cell, WorkerClient& client, WirePhase phase,
                                            double timeout_s) {
  auto reply = client.evidence({phase}, timeout_s);
  if (!reply) return std::unexpected(std::move(reply).error());
  Json& evidence = of(cell);
  const auto verdict = reply->evidence.find("compiler_real");
  if (verdict != reply->evidence.end()) evidence["compiler_real"] = *verdict;
  evidence["reported"] = std::move(reply->evidence);
  return {};
}

void CellEvidence::add_failure(size_t cell, int64_t unit, int64_t repetition,
                               const Outcome& outcome, const std::string& message) {
  of(cell)["failures"].push_back({{"unit", unit},
                                  {"repetition", repetition},
                                  {"status", row_status_name(outcome.status)},
                                  {"class", outcome.error_class},
                                  {"message", message}});
}

Status CellEvidence::write(size_t cell, BundleWriter& bundle) {
  return bundle.write_cell_json(plan_.cells[cell].id, "evidence.json", of(cell));
}

}  // namespace assay
