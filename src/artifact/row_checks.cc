// Checks rows one after the other, against the numbers seen in those before.
#include "artifact/row_checks.h"

#include <algorithm>

#include "artifact/commit_log.h"
#include "artifact/row_rule.h"
#include "base/text/text.h"

namespace assay {
namespace {

// The problem of a row whose status and error_class don't fit one another; absent: they fit.
std::optional<std::string> status_problem(const Row& row) {
  const bool ok = row.status == RowStatus::kOk;
  if (!ok && row.error_class.empty()) return "expected an error_class, found none";
  if (ok && !row.error_class.empty()) {
    return fmt::format("expected no error_class on an ok row, found \"{}\"", row.error_class);
  }
  return std::nullopt;
}

}  // namespace

VerifyProblem problem_of(const Error& error) {
  const size_t split = error.message.find(": expected");
  if (split == std::string::npos) return {"", error.message};
  return {error.message.substr(0, split), error.message.substr(split + 2)};
}

bool SeenNumbers::add(int64_t number) {
  if (ascending_.empty() || number > ascending_.back()) {
    ascending_.push_back(number);
    return true;
  }
  if (std::ranges::binary_search(ascending_, number)) return false;
  return others_.insert(number).second;
}

void RowChecks::report(OfFile& file, const VerifyProblem& problem) {
  if (++file.found <= kMostRowProblems) file.problems.push_back(problem);
}

RowChecks::OfCell& RowChecks::cell_of(const Row& row) {
  const auto [at, fresh] = cells_.try_emplace(row.cell_id);
  if (fresh) {
    const auto evidence = heading_.evidence.find(row.cell_id);
    if (evidence != heading_.evidence.end()) at->second.evidence = &evidence->second;
  }
  return at->second;
}

std::optional<std::string> RowChecks::fault_problem(const Row& row, const OfCell& cell) {
  if (auto problem = status_problem(row)) return problem;
  const auto demand =
      cell.evidence == nullptr ? ReadDemand{} : read_demand(*cell.evidence, row.padded_tokens);
  const auto fault = fault_of(row, demand);
  if (!fault) return std::nullopt;
  return fmt::format("{} ({})", fault->problem, fault->error_class);
}

std::optional<std::string> RowChecks::process_problem(const Row& row, OfCell& cell) {
  if (!row.process) return std::nullopt;
  int64_t& known = cell.processes;
  const int64_t last = std::max<int64_t>(known - 1, 0);
  if (*row.process < last || *row.process > known) {
    return fmt::format("expected process {}{}, found {}", last,
                       known > last ? fmt::format(" or {}", known) : "", *row.process);
  }
  known = *row.process + 1;
  return std::nullopt;
}

void RowChecks::add(const Row& row) {
  OfFile& file = files_[row.phase];
  ++file.rows;
  ++rows_;
  const auto hold = [&](const std::optional<std::string>& problem) {
    if (!problem) return;
    report(file, {fmt::format("{} row {}", metrics_name(row.phase), file.rows), *problem});
  };
  OfCell& cell = cell_of(row);
  hold(fault_problem(row, cell));
  hold(process_problem(row, cell));
  if (!cell.repetitions.add(row.repetition)) {
    hold(fmt::format("expected each repetition of a cell once, found {} of {} again",
                     row.repetition, row.cell_id));
  }
}

void RowChecks::add_unreadable(Phase phase, const Error& error) {
  OfFile& file = files_[phase];
  ++file.rows;
  ++rows_;
  report(file, problem_of(error));
}

std::vector<VerifyProblem> RowChecks::problems() const {
  std::vector<VerifyProblem> all;
  for (const auto& [phase, file] : files_) {
    all.insert(all.end(), file.problems.begin(), file.problems.end());
    if (file.found <= kMostRowProblems) continue;
    const auto more = static_cast<int64_t>(file.found - kMostRowProblems);
    all.push_back(
        {metrics_name(phase), fmt::format("{} with problems", counted(more, "more row"))});
  }
  return all;
}

}  // namespace assay
