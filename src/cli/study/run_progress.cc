// Progress by cost, not by rows: a decode of 128 tokens isn't a prefill.
#include "cli/study/run_progress.h"

#include <algorithm>

#include "cli/command.h"
#include "study/estimate.h"

namespace assay::cli {

RunProgress::RunProgress(const Study& study, const Plan& plan, std::vector<uint64_t> weight_bytes,
                         Clock& clock, Progress& progress)
    : study_(study),
      plan_(plan),
      weight_bytes_(std::move(weight_bytes)),
      clock_(clock),
      progress_(progress) {}

double RunProgress::cost(const Cell& cell) const {
  // A model of unknown size counts as a small one: its cells still weigh against one another.
  constexpr double kSmallBytes = 1e8;
  const auto bytes = static_cast<double>(weight_bytes_[cell.model]);
  return repetition_seconds(study_, cell, {.bytes = bytes > 0 ? bytes : kSmallBytes},
                            kAssumedReadBytesPerS);
}

void RunProgress::on_start(int64_t rows_done, int64_t rows_planned,
                           const std::vector<const Unit*>& units_left) {
  last_ns_ = clock_.monotonic_ns();
  const bool parity_first = study_.parity == ParityTime::kBefore;
  state_ = {rows_done, rows_planned, parity_first ? "checking parity" : "starting workers", {}};
  for (const Unit* unit : units_left) {
    left_.plan(unit->cell, unit->warmups > 0, unit->rows(), cost(plan_.cells[unit->cell]));
  }
  progress_.update(state_);
}

void RunProgress::on_unit(const Cell& cell, const Unit& unit) {
  cell_ = &cell;
  unit_ = &unit;
  starting_ = unit.warmups > 0;
  // Work before a start, such as the check of parity, isn't part of it.
  if (starting_) last_ns_ = clock_.monotonic_ns();
  show(unit.warmups > 0 ? unit.first_warmup : unit.first_repetition);
}

void RunProgress::on_row(const Row& row) {
  ++state_.done;
  if (row.status != RowStatus::kOk) {
    state_.alert = fmt::format("{} lost", ++lost_);
    losers_.insert({cell_->condition, cell_->arm});
  }
  if (row.status == RowStatus::kOk && !row.cold && row.latency_ms) {
    Mean& mean = means_[{cell_->condition, cell_->arm}];
    mean.latency_ms += *row.latency_ms;
    ++mean.rows;
  }
  state_.total = std::max(state_.total, state_.done);  // optional stopping adds rows
  const int64_t now_ns = clock_.monotonic_ns();
  left_.row(unit_->cell, starting_, cost(*cell_), static_cast<double>(now_ns - last_ns_) * 1e-9);
  last_ns_ = now_ns;
  starting_ = false;
  show(row.repetition);
}

void RunProgress::on_dropped(const Cell& cell, const Unit& unit) {
  state_.total = std::max(state_.total - unit.rows(), state_.done);
  left_.drop(unit.cell, unit.warmups > 0, unit.rows(), cost(cell));
}

std::string RunProgress::leader(const Cell& cell) const {
  const Mean* best = nullptr;
  const Mean* baseline = nullptr;
  std::string name;
  size_t arms = 0;
  for (size_t arm = 0; arm < study_.arms.size(); ++arm) {
    const auto found = means_.find({cell.condition, arm});
    if (found == means_.end() || losers_.contains(found->first)) continue;
    ++arms;
    if (study_.arms[arm].name == study_.baseline) baseline = &found->second;
    if (best != nullptr && best->of_row() <= found->second.of_row()) continue;
    best = &found->second;
    name = study_.arms[arm].name;
  }
  if (arms < 2) return "";
  if (baseline == nullptr || baseline == best) return name + " leads";
  return fmt::format("{} leads, {:.2f} of {}", name, best->of_row() / baseline->of_row(),
                     study_.baseline);
}

void RunProgress::show(int64_t repetition) {
  const std::string which =
      repetition < 0 ? "warm-up"
                     : fmt::format("repetition {}/{}", repetition + 1, study_.repetitions);
  const std::string leading = leader(*cell_);
  state_.what = fmt::format("{}{}unit {}/{}  {}  {}", leading, leading.empty() ? "" : "  ",
                            unit_->index + 1, plan_.units.size(), which, cell_->id);
  state_.left_s = left_.seconds();
  progress_.update(state_);
}

void RunProgress::on_warning(const std::string& text) {
  progress_.clear();
  print_remark("warning", text);
}

void RunProgress::on_note(const std::string& text) {
  progress_.clear();
  print_remark("note", text);
}

}  // namespace assay::cli
