// Parity: each record by itself, and that no cell lacks the one that its neighbours have.
#include <algorithm>
#include <tuple>

#include "base/records/lenient_json.h"
#include "base/text/text.h"
#include "crosscheck/checks.h"
#include "study/arm_options.h"

namespace assay::crosscheck {
namespace {

std::string record_name(const std::string& cell) {
  return fmt::format("cells/{}/parity.json", cell);
}

// The verdict beside the difference or the error that decides it.
void check_verdict(const std::string& object, const Json& record, Problems& problems) {
  const Json& passed = member(record, "passed");
  const bool differs = !member(record, "first_difference").is_null();
  const bool failed = !member(record, "error").is_null();
  if (passed == true && differs) {
    problems.add(object, "expected no first_difference of a parity that passed, found one");
  }
  if (passed == true && failed) {
    problems.add(object, "expected no error of a parity that passed, found one");
  }
  if (passed == false && !differs && !failed) {
    problems.add(object,
                 "expected a first_difference or an error of a parity that failed, found "
                 "neither");
  }
}

void check_difference(const std::string& object, const Json& record, Problems& problems) {
  const Json& difference = member(record, "first_difference");
  if (!difference.is_object()) return;
  const Json& expected = member(difference, "expected");
  if (!expected.is_null() && expected == member(difference, "found")) {
    problems.add(object, "expected two tokens that differ at first_difference, found one twice");
  }
  const auto generated = whole_member(record, "generated_tokens");
  const auto position = whole_member(difference, "position");
  if (generated && position && (*position < 0 || *position >= *generated)) {
    problems.add(object, fmt::format("expected first_difference within {}, found position {}",
                                     counted(*generated, "generated token"), *position));
  }
}

// A sequence has the prefill's token and one a decode step.
void check_tokens(const std::string& object, const Json& record, const Row& row,
                  Problems& problems) {
  const auto generated = whole_member(record, "generated_tokens");
  if (generated && *generated != row.new_tokens + 1) {
    problems.add(object, fmt::format("expected {} of a cell of {}, found {}",
                                     counted(row.new_tokens + 1, "generated token"),
                                     counted(row.new_tokens, "new token"), *generated));
  }
}

// The arm with whose tokens each arm's are compared, as the study's parity_reference() has it.
std::map<std::string, std::string> references(const Json& study) {
  const std::string baseline = text_member(study, "baseline");
  std::map<std::string, std::string> first, weights, all;  // first: arm, by its weights
  const Json& arms = member(study, "arms");
  for (const Json& arm : arms.is_array() ? arms : Json::array()) {
    const std::string name = text_member(arm, "name");
    weights[name] = text_member(member(arm, "options"), kQuantizationOption);
    first.emplace(weights[name], name);
  }
  if (const auto own = weights.find(baseline); own != weights.end()) first[own->second] = baseline;
  for (const auto& [name, of] : weights) all[name] = first[of];
  return all;
}

// Cells that are asked with one answer of the arm with this name.
auto asked_together(const Row& row, const std::string& reference) {
  return std::tuple(row.model, row.scenario, row.phase, row.batch, row.new_tokens, reference);
}

// True if the record can't have been made without the baseline's answer: without it the other arms
// have no record, as where the baseline's worker died of its parity request.
bool shows_baselines_answer(const Json& record) {
  return member(record, "passed").is_boolean() && member(record, "error").is_null();
}

// Parity needs an arm that ran: where every row was lost there is nothing to compare.
bool has_output(const CellRows& cell) {
  return std::ranges::any_of(cell.rows,
                             [](const Row* row) { return row->status == RowStatus::kOk; });
}

}  // namespace

void check_parity(const Checked& checked, Problems& problems) {
  const Bundle& bundle = checked.bundle;
  std::map<std::string, std::string> reference = references(member(bundle.manifest, "study"));
  std::map<decltype(asked_together(bundle.rows.front(), "")), const CellRows*> compared;
  for (const CellRows& cell : checked.cells) {
    const auto record = bundle.parity.find(cell.id);
    if (record == bundle.parity.end()) continue;
    const Row& row = *cell.rows.front();
    const std::string object = record_name(cell.id);
    check_verdict(object, record->second, problems);
    check_difference(object, record->second, problems);
    if (!checked.is_known_run()) continue;
    check_tokens(object, record->second, row, problems);
    if (const std::string beside = text_member(record->second, "baseline_arm"); !beside.empty()) {
      problems.hold(object, "baseline_arm of the study,", reference[row.arm.str()], beside);
    }
    if (shows_baselines_answer(record->second))
      compared.emplace(asked_together(row, reference[row.arm.str()]), &cell);
  }
  if (!checked.is_known_run()) return;
  for (const CellRows& cell : checked.cells) {
    if (bundle.parity.contains(cell.id) || !has_output(cell)) continue;
    const auto beside =
        compared.find(asked_together(*cell.rows.front(), reference[cell.rows.front()->arm.str()]));
    if (beside == compared.end()) continue;
    problems.add(record_name(cell.id),
                 fmt::format("missing, and {} has one", record_name(beside->second->id)));
  }
}

}  // namespace assay::crosscheck
