// What a reader should take from it: the best arm on each stratum, or that there is no difference.
#include "base/text.h"
#include "report/sections.h"

namespace assay {
namespace {

std::string reading(const Decision& d) {
  std::vector<std::string> together = {d.arm};
  together.insert(together.end(), d.tied.begin(), d.tied.end());
  switch (d.kind) {
    case Decision::Kind::kBest:
      return d.arm + " is fastest";
    case Decision::Kind::kNoDifference:
      return "no difference: " + join(together, ", ");
    case Decision::Kind::kUndecided:
      return "undecided: " + join(together, ", ");
    case Decision::Kind::kOnlyOne:
      return "no comparison: only " + d.arm;
    case Decision::Kind::kNone:
      break;
  }
  return "no comparison: no arm qualifies";
}

}  // namespace

ReportSection decision_section(const Findings& findings) {
  ReportSection section{"Decision", {}, {}};
  section.lines.push_back(fmt::format(
      "The arm with the lowest mean against every other comparable arm of the stratum, as the "
      "contrasts are tested (Holm over a phase, alpha {}); \"no difference\": equivalent within "
      "{:.0f} %.",
      findings.options.alpha, findings.options.margin * 100));
  Table table{"",
              {{"phase", Align::kLeft},
               {"stratum", Align::kLeft},
               {"decision", Align::kLeft},
               {"ratio of", Align::kLeft},
               {"ratio"},
               {"95% interval"},
               {"left out", Align::kLeft}},
              {}};
  const auto text = [](const std::string& value) {
    return value.empty() ? TableCell::absent() : TableCell::of(value);
  };
  for (const Decision& d : findings.decisions) {
    table.rows.push_back(
        {TableCell::of(std::string(phase_name(findings.strata[d.stratum].phase))),
         TableCell::of(stratum_label(findings, d.stratum)), TableCell::of(reading(d)),
         text(d.runner_up.empty() ? "" : d.arm + "/" + d.runner_up), TableCell::of(d.ratio),
         interval_cell(d.ratio_interval), text(join(d.left_out, ", "))});
  }
  section.tables.push_back(std::move(table));
  return section;
}

}  // namespace assay
