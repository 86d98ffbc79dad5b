// The members of evidence.json, in their order.
#include "harness/cell_evidence.h"

#include <algorithm>

namespace assay {
namespace {

constexpr const char* kUnproven = "unproven";

// A member of a process's entry; null: none.
Json member_of(const Json& entry, const char* key) {
  const auto at = entry.find(key);
  return at == entry.end() ? Json() : *at;
}

bool lost(const Json& entry) {
  return member_of(entry, "lost") == true;
}

// How much a process's verdict claims; one that isn't known proves nothing.
int claim_of(const Json& entry) {
  const Json verdict = member_of(entry, "compiler_real");
  if (verdict == "label_only") return 0;
  if (verdict == "fallback") return 1;
  return verdict == "yes" || verdict == "not_applicable" ? 3 : 2;
}

// Of the processes that came through; of all where none did.
Json weakest_verdict(const Json& processes) {
  const auto weaker = [](const Json& a, const Json& b) {
    return std::pair(lost(a), claim_of(a)) < std::pair(lost(b), claim_of(b));
  };
  return member_of(*std::ranges::min_element(processes, weaker), "compiler_real");
}

// Whether the report of `one` takes the place of that of `other`.
bool outweighs(const Json& one, const Json& other) {
  if (lost(one) != lost(other)) return lost(other);
  return claim_of(one) <= claim_of(other);
}

}  // namespace

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
              {"compiler_real", kUnproven},
              {"worker", nullptr},
              {"reported", nullptr},
              {"reported_by", nullptr},
              {"processes", Json::array()},
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

Json& CellEvidence::process_of(size_t cell, int64_t process) {
  Json& processes = of(cell)["processes"];
  const auto known = std::ranges::find_if(
      processes, [&](const Json& entry) { return member_of(entry, "process") == process; });
  if (known != processes.end()) return *known;
  processes.push_back({{"process", process},
                       {"load_seconds", nullptr},
                       {"prepare_seconds", nullptr},
                       {"compiler_real", kUnproven},
                       {"counters", nullptr},
                       {"lost", false}});
  return processes.back();
}

void CellEvidence::add_process(size_t cell, int64_t process, const LiveWorker& live) {
  Json& entry = process_of(cell, process);
  entry["load_seconds"] = live.loaded.seconds;
  if (live.prepared_cell == cell) entry["prepare_seconds"] = live.prepared.seconds;
}

ClientResult<void> CellEvidence::add_report(size_t cell, int64_t process, WorkerClient& client,
                                            WirePhase phase, double timeout_s, bool last_words) {
  auto reply = client.evidence({phase}, timeout_s);
  if (!reply) return std::unexpected(std::move(reply).error());
  Json& said = reply->evidence;
  Json& entry = process_of(cell, process);
  entry["compiler_real"] = said.value("compiler_real", Json(kUnproven));
  entry["counters"] = said.value("counters", Json());
  entry["lost"] = last_words;
  Json& evidence = of(cell);
  evidence["compiler_real"] = weakest_verdict(evidence["processes"]);
  const Json by = evidence["reported_by"];
  if (!by.is_number_integer() || by == process || outweighs(entry, process_of(cell, by))) {
    evidence["reported"] = std::move(said);
    evidence["reported_by"] = process;
  }
  return {};
}

void CellEvidence::add_failure(size_t cell, int64_t unit, int64_t repetition,
                               const RowOutcome& outcome, const std::string& message) {
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
