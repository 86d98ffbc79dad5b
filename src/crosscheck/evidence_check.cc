// Rows beside the evidence of their cell: each states the request and its outcome.
#include <algorithm>
#include <optional>
#include <set>

#include "base/records/lenient_json.h"
#include "base/text/text.h"
#include "crosscheck/checks.h"

namespace assay::crosscheck {
namespace {

std::string evidence_name(const std::string& cell) {
  return fmt::format("cells/{}/evidence.json", cell);
}

// Checks the evidence of one cell.
class EvidenceCheck {
 public:
  EvidenceCheck(const Checked& checked, const CellRows& cell, const Evidence& evidence,
                Problems& problems)
      : checked_(checked),
        cell_(cell),
        evidence_(evidence),
        problems_(problems),
        object_(evidence_name(cell.id)) {}

  void run() {
    hold("cell_id", cell_.id, evidence_.cell_id);
    if (evidence_.phase) {
      hold("phase", phase_name(cell_.rows.front()->phase), phase_name(*evidence_.phase));
    }
    check_requested();
    check_worker();
    check_model();
    check_processes();
    check_failures();
    check_counters();
  }

 private:
  // Compares the evidence's member `name` with the rows' value; an empty one says nothing.
  void hold(std::string_view name, std::string_view of_rows, std::string_view found) {
    if (!found.empty()) {
      problems_.hold(object_, fmt::format("{} as its rows have it,", name), of_rows, found);
    }
  }
  void hold_each(std::string_view name, const SharedText Row::*column, const std::string& found) {
    const auto other =
        std::ranges::find_if(cell_.rows, [&](const Row* row) { return !(row->*column == found); });
    if (other != cell_.rows.end()) hold(name, ((*other)->*column).str(), found);
  }

  void check_requested() {
    const RequestedArm& asked = evidence_.requested;
    hold_each("requested.backend", &Row::backend, asked.backend);
    hold_each("requested.mode", &Row::compile_mode, asked.mode);
    hold_each("requested.cache", &Row::cache, asked.cache);
    hold_each("requested.dynamic", &Row::dynamic, asked.dynamic);
  }

  // Rows must agree with the last worker's statement about the model that it had loaded; rows that
  // no worker served agree with the study.
  void check_worker() {
    if (!evidence_.worker) return;
    for (const Row* row : cell_.rows) {
      if (!row->process || !row->latency_ms) continue;
      hold("worker.dtype", row->dtype.str(), evidence_.worker->dtype);
      hold("worker.quantization", row->quantization.str(), evidence_.worker->quantization);
      return;
    }
  }

  void check_model() {
    const Json& hashes = member(member(checked_.bundle.manifest, "completion"), "model_sha256");
    const std::string known = text_member(hashes, cell_.rows.front()->model.str());
    if (known.empty() || evidence_.model_hash.empty()) return;
    problems_.hold(object_, "model_hash of the manifest's completion,", known,
                   evidence_.model_hash);
  }

  void check_processes() {
    if (evidence_.processes.empty()) return;
    std::set<int64_t> known;
    for (const EvidenceProcess& one : evidence_.processes) known.insert(one.process);
    std::set<int64_t> of_rows;
    for (const Row* row : cell_.rows) {
      if (row->process) of_rows.insert(*row->process);
    }
    for (const int64_t process : of_rows) {
      if (known.contains(process)) continue;
      problems_.add(object_, fmt::format("expected process {} of its rows among its processes, "
                                         "found none",
                                         process));
    }
    check_verdicts();
  }

  // The cell's verdict is that of a process, and the report that of the process it names.
  void check_verdicts() {
    const auto of = [&](int64_t number) {
      return std::ranges::find(evidence_.processes, number, &EvidenceProcess::process);
    };
    const bool someone = std::ranges::any_of(evidence_.processes, [&](const EvidenceProcess& one) {
      return one.compiler_real == evidence_.compiler_real;
    });
    if (checked_.is_known_run() && !someone) {
      problems_.add(object_, fmt::format("expected compiler_real of one of its processes, found {}",
                                         compiler_real_name(evidence_.compiler_real)));
    }
    if (!evidence_.reported || !evidence_.reported_by) return;
    const Json& said = member(evidence_.reported->whole, "compiler_real");
    const auto by = of(*evidence_.reported_by);
    if (by == evidence_.processes.end() || said.is_null()) return;
    hold_verdict(by->process, by->compiler_real, compiler_real_of(said));
  }

  void hold_verdict(int64_t process, CompilerReal expected, CompilerReal found) {
    if (expected == found) return;
    problems_.add(object_,
                  fmt::format("expected reported.compiler_real {} as of process {}, "
                              "found {}",
                              compiler_real_name(expected), process, compiler_real_name(found)));
  }

  // A failure that the evidence tells is a row's that was lost.
  void check_failures() {
    for (const EvidenceFailure& failure : evidence_.failures) {
      const auto row = std::ranges::find(cell_.rows, failure.repetition,
                                         [](const Row* one) { return one->repetition; });
      const std::string told = fmt::format("{} ({})", failure.status, failure.error_class);
      if (row == cell_.rows.end()) {
        problems_.add(object_, fmt::format("expected failures of its rows, found {} of repetition "
                                           "{}, which isn't there",
                                           told, failure.repetition));
        continue;
      }
      const std::string found =
          fmt::format("{} ({})", row_status_name((*row)->status), (*row)->error_class);
      if (found != told) {
        problems_.add(object_, fmt::format("expected {} of repetition {} as its row says, found {}",
                                           found, failure.repetition, told));
      }
    }
  }

  // A process counts from its start on: its rows can't have added more than it has counted. If a
  // process was lost, or a run was killed, its last report may be older than its last rows.
  void check_counters() {
    if (!checked_.is_known_run() || checked_.bundle.sittings.size() != 1) return;
    for (const EvidenceProcess& process : evidence_.processes) {
      if (!process.counters || process.lost) continue;
      RowCounts added;
      bool whole = true;
      for (const Row* row : cell_.rows) {
        if (!row->process || *row->process != process.process) continue;
        whole = whole && row->status == RowStatus::kOk;
        for (size_t i = 0; i < kDeltaColumns; ++i) {
          const auto counter = static_cast<Counter>(i);
          if (row->counts[counter]) {
            added[counter] = added[counter].value_or(0) + *row->counts[counter];
          }
        }
      }
      if (whole) hold_counts(process, added);
    }
  }

  void hold_counts(const EvidenceProcess& process, const RowCounts& added) {
    for (size_t i = 0; i < kDeltaColumns; ++i) {
      const auto counter = static_cast<Counter>(i);
      const auto total = count_of(*process.counters, counter);
      if (!total || !added[counter] || *added[counter] <= *total) continue;
      problems_.add(object_,
                    fmt::format("expected {} of process {} to be at least {}, which its rows "
                                "added, found {}",
                                counter_name(counter), process.process, *added[counter], *total));
    }
  }

  const Checked& checked_;
  const CellRows& cell_;
  const Evidence& evidence_;
  Problems& problems_;
  std::string object_;
};

}  // namespace

void check_evidence(const Checked& checked, Problems& problems) {
  for (const CellRows& cell : checked.cells) {
    const auto evidence = checked.bundle.evidence.find(cell.id);
    if (evidence != checked.bundle.evidence.end()) {
      EvidenceCheck(checked, cell, evidence->second, problems).run();
    } else if (checked.is_known_run()) {
      problems.add(evidence_name(cell.id), "missing, and its cell has rows");
    }
  }
}

}  // namespace assay::crosscheck
