// Prompts in the order of the study; answers against the baseline's.
#include "harness/parity_check.h"

#include <algorithm>
#include <ranges>

#include "artifact/evidence.h"
#include "base/add_once.h"
#include "base/clock.h"
#include "study/study_quality.h"

namespace assay {

ParityCheck::ParityCheck(const Study& study, const Plan& plan, size_t model, BundleWriter& bundle,
                         RunObserver& observer, std::set<size_t>& recorded)
    : study_(study),
      plan_(plan),
      model_(model),
      bundle_(bundle),
      observer_(observer),
      recorded_(recorded) {
  for (size_t arm = 0; arm < study.arms.size(); ++arm) {
    reference_.push_back(parity_reference(study, arm));
  }
  for (const Cell& cell : plan.cells) {
    // Every request under load has a prompt of its own.
    if (cell.model != model || cell.phase == Phase::kLoad) continue;
    const ParityKey key{cell.scenario, cell.batch};
    keys_.insert(key);
    longest_[key] = std::max(longest_[key], cell.new_tokens);
  }
}

bool ParityCheck::wanted(size_t arm, const ParityKey& key, const ParityReach& reach) const {
  const std::optional<int64_t> expected = reach(reference_[arm]);
  if (asked(arm, key) != nullptr || !expected) return false;
  const auto lacks_record = [&](size_t one) {
    const std::optional<int64_t> own = reach(one);
    return own && std::ranges::any_of(unrecorded(one, key), [&](size_t cell) {
             return plan_.cells[cell].new_tokens <= std::min(*own, *expected);
           });
  };
  if (!is_reference(arm)) return lacks_record(arm);
  return std::ranges::any_of(std::views::iota(size_t{0}, study_.arms.size()), [&](size_t one) {
    return reference_[one] == arm && lacks_record(one);
  });
}

ParityAnswer ParityCheck::ask(WorkerClient& client, const ModelPrompts& prompts,
                              const ParityKey& key, int64_t new_tokens) const {
  ParityTokens found;
  const int64_t start_ns = monotonic_now_ns();
  const auto& lengths = prompts.lengths(key.scenario);
  for (size_t prompt = 0; prompt < lengths.size(); ++prompt) {
    ParityRequest request;
    request.prompt = prompts.prompt(key.scenario, prompt, key.batch);
    // The shape has as many positions as the cell, so that a static cache is the one measured: the
    // last token is chosen and not fed.
    request.shape = {Phase::kKvDecode, key.batch, generated_tokens(new_tokens),
                     cache_capacity(lengths, new_tokens)};
    // The code for the sequence may still have to be compiled.
    auto reply = client.parity(request, study_.timeout_s + study_.compile_timeout_s);
    if (!reply) return std::unexpected(std::move(reply).error());
    for (auto& row : reply->tokens) found.rows.push_back(std::move(row));
    for (Json& stats : reply->logit_stats) found.logit_stats.push_back(std::move(stats));
    for (const int32_t id : reply->ends) add_once(found.ends, id);
  }
  found.cost = ParityCost{.seconds = static_cast<double>(monotonic_now_ns() - start_ns) * 1e-9,
                          .own_process = study_.parity == ParityTime::kBefore};
  return found;
}

ClientResult<std::optional<double>> ParityCheck::compiler_seconds(WorkerClient& client) const {
  auto reply = client.evidence({Phase::kKvDecode}, study_.timeout_s);
  if (!reply) return std::unexpected(std::move(reply).error());
  return worker_report(std::move(reply->evidence)).process_compile_seconds;
}

Status ParityCheck::set(size_t arm, const ParityKey& key, int64_t new_tokens, ParityAnswer answer) {
  asked_[arm].insert_or_assign(key, Asked{new_tokens, std::move(answer)});
  for (size_t one = 0; one < study_.arms.size(); ++one) {
    if (one == arm || reference_[one] == arm) ASSAY_CHECK(compare(one, key));
  }
  return bundle_.commit_cells();
}

Status ParityCheck::set_unasked(size_t arm, const ParityKey& key, std::optional<int64_t> reach,
                                const WorkerFailure& why) {
  for (const size_t cell : unrecorded(arm, key)) {
    const int64_t new_tokens = plan_.cells[cell].new_tokens;
    if (reach && new_tokens <= *reach) continue;
    ASSAY_CHECK(record(cell, unasked_parity(study_.arms[arm].name, reference_name(arm), why,
                                            generated_tokens(new_tokens))));
  }
  return bundle_.commit_cells();
}

Status ParityCheck::set_uncompared() {
  for (const auto& [arm, answers] : asked_) {
    for (const auto& [key, found] : answers) {
      if (asked(reference_[arm], key) == nullptr) continue;
      for (const size_t cell : unrecorded(arm, key)) {
        if (plan_.cells[cell].new_tokens > found.new_tokens) continue;
        ASSAY_CHECK(record(cell, compared(cell, found)));
      }
    }
  }
  return bundle_.commit_cells();
}

const WorkerFailure& ParityCheck::not_asked() {
  static const WorkerFailure failure{FailureKind::kError, "not_asked",
                                     "the parity request could not be sent to the worker"};
  return failure;
}

const ParityCheck::Asked* ParityCheck::asked(size_t arm, const ParityKey& key) const {
  const auto of_arm = asked_.find(arm);
  if (of_arm == asked_.end()) return nullptr;
  const auto found = of_arm->second.find(key);
  return found == of_arm->second.end() ? nullptr : &found->second;
}

std::vector<size_t> ParityCheck::unrecorded(size_t arm, const ParityKey& key) const {
  std::vector<size_t> cells;
  for (size_t index = 0; index < plan_.cells.size(); ++index) {
    const Cell& cell = plan_.cells[index];
    if (cell.model == model_ && cell.arm == arm && cell.scenario == key.scenario &&
        cell.batch == key.batch && !recorded_.contains(index)) {
      cells.push_back(index);
    }
  }
  return cells;
}

Status ParityCheck::record(size_t cell, const Json& result) {
  ASSAY_CHECK(bundle_.write_cell_json(plan_.cells[cell].id, "parity.json", result));
  recorded_.insert(cell);
  return {};
}

Json ParityCheck::compared(size_t cell, const Asked& found) const {
  const Cell& of = plan_.cells[cell];
  const std::string& arm = study_.arms[of.arm].name;
  const int64_t generated = generated_tokens(of.new_tokens);
  // A reference is compared with no other arm: without an answer its record has only the reason.
  if (is_reference(of.arm) && !found.answer) {
    return unasked_parity(arm, arm, found.answer.error(), generated);
  }
  const ParityAnswer unasked = std::unexpected(not_asked());
  const Asked* expected = asked(reference_[of.arm], {of.scenario, of.batch});
  const bool has_expected = expected != nullptr && of.new_tokens <= expected->new_tokens;
  return compare_parity(arm, found.answer, reference_name(of.arm),
                        has_expected ? expected->answer : unasked, generated);
}

Status ParityCheck::compare(size_t arm, const ParityKey& key) {
  const Asked* found = asked(arm, key);
  if (found == nullptr) return {};
  bool failed = false;
  for (const size_t cell : unrecorded(arm, key)) {
    if (plan_.cells[cell].new_tokens > found->new_tokens) continue;
    const Json result = compared(cell, *found);
    if (!is_reference(arm) && result["passed"].is_null()) continue;
    ASSAY_CHECK(record(cell, result));
    failed |= is_reference(arm) ? !found->answer : result["passed"] == false;
  }
  if (failed && is_reference(arm) && told_.insert(arm).second) {
    observer_.on_note(fmt::format(
        "arm \"{}\"{} gives no tokens with which to compare the others on model \"{}\": {}",
        study_.arms[arm].name, study_.arms[arm].name == study_.baseline ? ", the baseline," : "",
        study_.models[model_].name, found->answer.error().message));
    return {};
  }
  if (failed && told_.insert(arm).second) {
    observer_.on_note(fmt::format("arm \"{}\" fails parity with \"{}\" on model \"{}\"",
                                  study_.arms[arm].name, reference_name(arm),
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
