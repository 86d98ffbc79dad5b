// The checks in their order, and the view of a bundle that they share.
#include "crosscheck/crosscheck.h"

#include <unordered_map>

#include "base/records/lenient_json.h"
#include "base/text/text.h"
#include "crosscheck/checks.h"

namespace assay {
namespace crosscheck {

void Problems::add(const std::string& object, std::string problem) {
  if (++of_object_[object] <= kMostOfObject) all_.push_back({object, std::move(problem)});
}

void Problems::hold(const std::string& object, std::string_view what, std::string_view expected,
                    std::string_view found) {
  if (expected == found) return;
  add(object, fmt::format("expected {} {}, found {}", what, quoted_excerpt(expected),
                          quoted_excerpt(found)));
}

std::vector<VerifyProblem> Problems::take() && {
  for (const auto& [object, count] : of_object_) {
    if (count <= kMostOfObject) continue;
    all_.push_back({object, counted(count - kMostOfObject, "further problem")});
  }
  return std::move(all_);
}

std::string row_object(const Row& row) {
  return fmt::format("{}/metrics.csv: cell {}, repetition {}", phase_name(row.phase), row.cell_id,
                     row.repetition);
}

}  // namespace crosscheck

namespace {

std::vector<crosscheck::CellRows> cells_of(const Bundle& bundle) {
  std::vector<crosscheck::CellRows> cells;
  std::unordered_map<std::string_view, size_t> known;
  for (const Row& row : bundle.rows) {
    const auto [at, fresh] = known.try_emplace(row.cell_id.str(), cells.size());
    if (fresh) cells.push_back({row.cell_id.str(), {}});
    cells[at->second].rows.push_back(&row);
  }
  return cells;
}

}  // namespace

std::vector<VerifyProblem> cross_check(const Bundle& bundle, std::span<const CommittedUnit> units) {
  if (!bundle.complete || bundle.rows_alone) return {};
  const crosscheck::Checked checked{
      .bundle = bundle,
      .units = units,
      .cells = cells_of(bundle),
      .imported = member(bundle.manifest, "identity").contains("imported_from"),
      .schema_version = whole_member(bundle.manifest, "schema_version").value_or(0)};
  crosscheck::Problems problems;
  check_study(checked, problems);
  check_identity(checked, problems);
  check_evidence(checked, problems);
  check_parity(checked, problems);
  check_course(checked, problems);
  return std::move(problems).take();
}

Result<std::vector<VerifyProblem>> check_bundle(const Bundle& read,
                                                std::span<const CommittedUnit> units) {
  ASSAY_TRY(std::vector<VerifyProblem> problems, verify_bundle(read));
  std::vector<VerifyProblem> between = cross_check(read, units);
  problems.insert(problems.end(), std::make_move_iterator(between.begin()),
                  std::make_move_iterator(between.end()));
  return problems;
}

}  // namespace assay
