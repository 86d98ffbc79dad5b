// Prompts in the order of the study; answers against the baseline's.
#include "harness/parity_check.h"

#include <algorithm>

namespace assay {

ParityCheck::ParityCheck(const Study& study, const Plan& plan, size_t model)
    : study_(study), plan_(plan), model_(model) {
  for (const Cell& cell : plan.cells) {
    if (cell.model != model) continue;
    keys_.insert({cell.scenario, cell.batch});
    tokens_ = std::max(tokens_, cell.new_tokens);
  }
  tokens_ = std::clamp<int64_t>(tokens_, 1, kMostParityTokens);
}

ParityAnswer ParityCheck::ask(WorkerClient& client, const ModelPrompts& prompts,
                              const ParityKey& key) const {
  ParityTokens found;
  const auto& lengths = prompts.lengths(key.scenario);
  for (size_t prompt = 0; prompt < lengths.size(); ++prompt) {
    ParityRequest request;
    request.prompt = prompts.prompt(key.scenario, prompt, key.batch);
    // As many positions as the scenario's cells have, so that a static cache is the one measured.
    request.shape = {WirePhase::kKvDecode, key.batch, tokens_, cache_capacity(lengths, tokens_)};
    // What the sequence needs may still have to be compiled.
    auto reply = client.parity(request, study_.timeout_s + study_.compile_timeout_s);
    if (!reply) return std::unexpected(std::move(reply).error());
    for (auto& row : reply->tokens) found.rows.push_back(std::move(row));
    for (Json& stats : reply->logit_stats) found.logit_stats.push_back(std::move(stats));
  }
  return found;
}

void ParityCheck::set(size_t arm, const ParityKey& key, ParityAnswer answer) {
  answers_[arm].insert_or_assign(key, std::move(answer));
}

const WorkerFailure& ParityCheck::not_asked() {
  static const WorkerFailure failure{FailureKind::kError, "not_asked",
                                     "the worker could not be asked"};
  return failure;
}

const ParityAnswer* ParityCheck::answer(size_t arm, const ParityKey& key) const {
  const auto answers = answers_.find(arm);
  if (answers == answers_.end()) return nullptr;
  const auto found = answers->second.find(key);
  return found == answers->second.end() ? nullptr : &found->second;
}

Status ParityCheck::write(BundleWriter& bundle, RunObserver& observer) const {
  const size_t baseline = arms_baseline_first(study_).front();
  const ParityAnswer unasked = std::unexpected(not_asked());
  std::set<size_t> failed;
  for (const Cell& cell : plan_.cells) {
    if (cell.model != model_) continue;
    const ParityKey key{cell.scenario, cell.batch};
    const ParityAnswer* found = answer(cell.arm, key);
    const ParityAnswer* expected = answer(baseline, key);
    if (!found) continue;
    const Json result = compare_parity(study_.arms[cell.arm].name, *found, study_.baseline,
                                       expected ? *expected : unasked);
    if (result["passed"].is_null()) continue;
    ASSAY_CHECK(bundle.write_cell_json(cell.id, "parity.json", result));
    if (result["passed"] == false) failed.insert(cell.arm);
  }
  for (const size_t arm : failed) {
    observer.on_note(fmt::format("arm \"{}\" fails parity with \"{}\" on model \"{}\"",
                                 study_.arms[arm].name, study_.baseline,
                                 study_.models[model_].name));
  }
  return {};
}

std::vector<size_t> arms_baseline_first(const Study& study) {
  std::vector<size_t> arms;
  for (size_t arm = 0; arm < study.arms.size(); ++arm) arms.push_back(arm);
  std::ranges::stable_partition(arms,
                                [&](size_t arm) { return study.arms[arm].name == study.baseline; });
  return arms;
}

}  // namespace assay
