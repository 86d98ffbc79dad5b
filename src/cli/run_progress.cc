// Progress by cost, not by rows: a decode of 128 tokens isn't a prefill.
#include "cli/run_progress.h"

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
  started_ns_ = clock_.monotonic_ns();
  const bool parity_first = study_.parity == ParityTime::kBefore;
  state_ = {rows_done, rows_planned, parity_first ? "checking parity" : "starting workers", {}};
  for (const Unit* unit : units_left) {
    cost_left_ += static_cast<double>(unit->rows()) * cost(plan_.cells[unit->cell]);
  }
  progress_.update(state_);
}

void RunProgress::on_unit(const Cell& cell, const Unit& unit) {
  cell_ = &cell;
  unit_ = &unit;
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
  cost_done_ += cost(*cell_);
  cost_left_ = std::max(cost_left_ - cost(*cell_), 0.0);
  show(row.repetition);
}

void RunProgress::on_dropped(const Cell& cell, const Unit& unit) {
  state_.total = std::max(state_.total - unit.rows(), state_.done);
  cost_left_ = std::max(cost_left_ - static_cast<double>(unit.rows()) * cost(cell), 0.0);
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
  if (cost_done_ > 0) {
    const double elapsed_s = static_cast<double>(clock_.monotonic_ns() - started_ns_) * 1e-9;
    state_.left_s = elapsed_s * cost_left_ / cost_done_;
  }
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
