// Findings about rows that don't count or shouldn't: lost, wrong, too few, throttled.
#include <set>

#include "analysis/named/named.h"
#include "analysis/rows/gpu_neighbours.h"
#include "analysis/rows/quality.h"
#include "base/text/counts.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

std::string counts_text(const std::map<std::string, int64_t>& counts) {
  std::vector<std::string> parts;
  for (const auto& [name, count] : counts) parts.push_back(fmt::format("{} {}", count, name));
  return join(parts, ", ");
}

// Causes of the lost rows with their counts: "3 crash (SIGSEGV)".
std::map<std::string, int64_t> causes(const std::vector<const Row*>& rows) {
  std::map<std::string, int64_t> counts;
  for (const Row* row : rows) {
    if (row->status == RowStatus::kOk) continue;
    std::string cause(row_status_name(row->status));
    if (!row->error_class.empty()) cause += fmt::format(" ({})", row->error_class);
    ++counts[cause];
  }
  return counts;
}

void add_lost(const Group& group, Finding& finding) {
  for (const Row* row : group.rows) {
    if (row->status != RowStatus::kOk) add_row(finding, *row);
  }
}

}  // namespace

Finding about(std::string kind, Severity severity, const Samples& samples, const Group& group) {
  Finding finding;
  finding.kind = std::move(kind);
  finding.severity = severity;
  finding.phase = samples.strata[group.stratum].phase;
  finding.stratum = group.stratum;
  finding.arm = samples.arms[group.arm];
  return finding;
}

Finding about_phase(std::string kind, Severity severity, Phase phase) {
  Finding finding;
  finding.kind = std::move(kind);
  finding.severity = severity;
  finding.phase = phase;
  return finding;
}

void find_lost_rows(const Samples& samples, std::vector<Finding>& findings) {
  for (const Group& group : samples.groups) {
    const int64_t failed = group.failed();
    if (failed == 0) continue;
    Finding crash = about("crash", Severity::kWarning, samples, group);
    crash.size = static_cast<double>(failed) / static_cast<double>(group.rows.size());
    crash.text = fmt::format("{} of {} {} lost: {}", failed, counted(group.rows.size(), "row"),
                             failed == 1 ? "was" : "were", counts_text(causes(group.rows)));
    add_lost(group, crash);
    findings.push_back(crash);
    if (!group.timed.empty()) {
      Finding survivors = about("survivorship", Severity::kWarning, samples, group);
      survivors.size = crash.size;
      survivors.text = fmt::format(
          "the latencies describe only the {} of {} that survived, so they are reported but never "
          "contrasted",
          group.timed.size(), counted(group.rows.size(), "row"));
      survivors.rows = std::move(crash.rows);
      findings.push_back(std::move(survivors));
    }
  }
}

void find_false_oks(const Bundle& bundle, const Samples& samples, std::vector<Finding>& findings) {
  std::set<const Row*> false_oks;
  for (const size_t place : bundle.false_oks) false_oks.insert(&bundle.rows[place]);
  if (false_oks.empty()) return;
  for (const Group& group : samples.groups) {
    std::vector<const Row*> rows;
    std::ranges::copy_if(group.rows, std::back_inserter(rows),
                         [&](const Row* row) { return false_oks.contains(row); });
    if (rows.empty()) continue;
    Finding finding = about("false_ok", Severity::kWarning, samples, group);
    finding.size = static_cast<double>(rows.size()) / static_cast<double>(group.rows.size());
    finding.text = fmt::format(
        "{} of {} {} recorded as ok but cannot have been ({}), so {} as lost; no run writes such a "
        "bundle (see assay verify)",
        rows.size(), counted(group.rows.size(), "row"), rows.size() == 1 ? "is" : "are",
        counts_text(causes(rows)), rows.size() == 1 ? "it counts" : "they count");
    add_rows(finding, rows);
    findings.push_back(std::move(finding));
  }
}

void find_lost_strata(const Samples& samples, const std::vector<Contrast>& combined,
                      std::vector<Finding>& findings) {
  for (const Contrast& contrast : combined) {
    if (contrast.lost_strata == 0) continue;
    const size_t arm = samples.place_of(contrast.arm);
    Finding finding;
    finding.kind = "survivorship";
    finding.severity = Severity::kWarning;
    finding.phase = contrast.phase;
    finding.arm = contrast.arm;
    const int64_t strata = contrast.strata + contrast.lost_strata;
    finding.size = static_cast<double>(contrast.lost_strata) / static_cast<double>(strata);
    finding.text = fmt::format(
        "the combined figures cover {} of {}, because on {} this arm or {} lost rows or gave other "
        "output; they describe only the surviving rows and have no verdict",
        contrast.strata, counted(strata, "stratum", "strata"),
        contrast.lost_strata == 1 ? "the other one"
                                  : fmt::format("the other {}", contrast.lost_strata),
        contrast.baseline);
    for (size_t stratum = 0; stratum < samples.strata.size(); ++stratum) {
      if (samples.strata[stratum].phase != contrast.phase) continue;
      if (!is_lost(samples, stratum, arm)) continue;
      for (const size_t which : {arm, size_t{0}}) {
        const Group& group = *samples.find(stratum, which);
        add_lost(group, finding);
        if (group.parity_failed) add_rows(finding, group.timed);
      }
    }
    findings.push_back(std::move(finding));
  }
}

void find_parity(const Samples& samples, std::vector<Finding>& findings) {
  for (const Group& group : samples.groups) {
    const Group* base = samples.find(group.stratum, size_t{0});
    const bool own =
        base == nullptr ? !own_weights(group).empty() : own_weights(group) != own_weights(*base);
    const char* const expected =
        own ? "that of the first arm with the same weights" : "the baseline's";
    if (group.parity_failed) {
      Finding finding = about("parity_failure", Severity::kWarning, samples, group);
      finding.size = 1;
      finding.text = fmt::format("{}, so the latencies are reported but never contrasted",
                                 group.parity_error.empty()
                                     ? fmt::format("the output differs from {}", expected)
                                     : fmt::format("no tokens came to hold against {} ({})",
                                                   expected, group.parity_error));
      add_rows(finding, group.timed);
      findings.push_back(std::move(finding));
    } else if (!group.parity_checked && group.arm != 0 && !group.timed.empty()) {
      Finding finding = about("parity_unchecked", Severity::kNote, samples, group);
      finding.text = group.parity_unchecked_why.empty()
                         ? fmt::format(
                               "there is no parity record, so this arm's output was not "
                               "compared with {}",
                               expected)
                         : fmt::format("this arm's output was not compared with {}: {}", expected,
                                       group.parity_unchecked_why);
      findings.push_back(std::move(finding));
    }
  }
}

void find_varying_outputs(const Samples& samples, std::vector<Finding>& findings) {
  for (const Group& group : samples.groups) {
    const auto outputs = most_varied_outputs(group);
    if (!outputs || outputs->rows.size() < 2) continue;
    const auto usual = std::ranges::max_element(
        outputs->rows, {}, [](const auto& output) { return output.second.size(); });
    Finding finding = about("output_varies", Severity::kWarning, samples, group);
    size_t attempts = 0;
    for (const auto& output : outputs->rows) {
      attempts += output.second.size();
      if (output.first != usual->first) add_rows(finding, output.second);
    }
    finding.size = static_cast<double>(outputs->rows.size());
    finding.text = fmt::format(
        "one prompt got {} different outputs in {} repetitions, the most frequent one {}: the arm "
        "is not deterministic, and its parity check covers one answer only",
        outputs->rows.size(), attempts, counted(usual->second.size(), "time"));
    findings.push_back(std::move(finding));
  }
}

void find_too_few(const Samples& samples, const AnalysisOptions& options,
                  std::vector<Finding>& findings) {
  for (const Group& group : samples.groups) {
    const auto n = static_cast<int64_t>(group.warm.size());
    if (n >= options.minimum_rows || group.timed.empty()) continue;
    Finding finding = about("too_few_samples", Severity::kWarning, samples, group);
    finding.size = static_cast<double>(options.minimum_rows - n);
    finding.text = fmt::format("the cell has {}, but a contrast needs {}",
                               counted(n, "warm ok row"), options.minimum_rows);
    add_rows(finding, group.warm);
    findings.push_back(std::move(finding));
  }
}

void find_throttled(const Samples& samples, std::vector<Finding>& findings) {
  for (const Group& group : samples.groups) {
    std::vector<double> rest;
    Finding finding = about("throttled", Severity::kWarning, samples, group);
    size_t count = 0;
    for (const Row* row : group.warm) {
      if (row->throttled.value_or(false)) {
        add_row(finding, *row);
        ++count;
      } else {
        rest.push_back(*row->latency_ms);
      }
    }
    if (count == 0) continue;
    finding.size = static_cast<double>(count) / static_cast<double>(group.warm.size());
    finding.text =
        fmt::format("{} of {} ran throttled", count, counted(std::ssize(group.warm), "warm row"));
    if (group.evidence != nullptr && !group.evidence->throttle_reasons.empty()) {
      finding.text += fmt::format(" ({})", join(group.evidence->throttle_reasons, ", "));
    }
    if (const auto mean = stats::mean(rest)) {
      finding.text +=
          fmt::format("; mean {} ms without them, {} ms with", format_significant(*mean),
                      format_significant(*stats::mean(group.warm_ms)));
    }
    findings.push_back(std::move(finding));
  }
}

void find_gpu_neighbours(const Samples& samples, std::vector<Finding>& findings) {
  for (const Group& group : samples.groups) {
    for (const RowsBeside& beside : rows_beside(group)) {
      Finding finding = about(
          "gpu_shared", beside.computed() ? Severity::kWarning : Severity::kNote, samples, group);
      const std::string name = beside.process.empty() ? "another program" : beside.process;
      const std::string held =
          beside.memory_bytes ? fmt::format("{} of its memory",
                                            format_bytes(static_cast<double>(*beside.memory_bytes)))
                              : "memory";
      finding.text = fmt::format("{} (process {}) held {} during {} of {}", name, beside.pid, held,
                                 beside.rows.size(), counted(std::ssize(group.warm), "warm row"));
      finding.text +=
          beside.computed()
              ? fmt::format(
                    " and computed for {:.0f} % of the GPU's time: their times are of a GPU "
                    "that is shared",
                    100 * beside.share)
              : " and computed nothing";
      finding.size = beside.share;
      add_rows(finding, beside.rows);
      findings.push_back(std::move(finding));
    }
  }
}

}  // namespace assay
