// Several bundles on one page: a bundle stands in these figures in an arm's place.
#include <algorithm>
#include <map>
#include <set>

#include "base/add_once.h"
#include "base/text/text.h"
#include "report/answers.h"
#include "report/figures/parts.h"
#include "report/html/document_page.h"
#include "report/html/elements.h"
#include "report/html/page.h"
#include "report/html/page_parts.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

// Findings for the functions that figures share: strata of all bundles, and bundles in place of
// arms.
Findings joined(const std::vector<NamedFindings>& bundles) {
  Findings all;
  for (const NamedFindings& bundle : bundles) {
    all.study.arms.push_back(bundle.name);
    add_each_once(all.strata, bundle.findings.strata);
  }
  std::ranges::stable_sort(all.strata, {}, &Stratum::phase);
  return all;
}

std::vector<std::string> arms_of(const std::vector<NamedFindings>& bundles) {
  std::vector<std::string> arms;
  for (const NamedFindings& bundle : bundles) add_each_once(arms, bundle.findings.study.arms);
  return arms;
}

std::optional<size_t> place_of(const Findings& findings, const Stratum& stratum) {
  const auto at = std::ranges::find(findings.strata, stratum);
  if (at == findings.strata.end()) return std::nullopt;
  return static_cast<size_t>(at - findings.strata.begin());
}

constexpr double kWidestMean = 10;  // times its lower end, of a mean's interval

// A bundle's figure of one arm on one stratum; absent: it has none.
using LineOf = std::optional<plot::RowLine> (*)(const Findings& findings, size_t stratum,
                                                const std::string& arm);

std::optional<plot::RowLine> mean_line(const Findings& findings, size_t stratum,
                                       const std::string& arm) {
  const Latency* latency = entry_of(findings.latencies, stratum, arm);
  if (latency == nullptr || !latency->mean) return std::nullopt;
  plot::RowLine line;
  line.value = latency->mean;
  line.text = format_significant(*latency->mean, 3);
  if (const auto& interval = latency->mean_interval) {
    // The interval of too few processes would only stretch the axis.
    const bool too_few = interval->high > kWidestMean * interval->low;
    if (!too_few) line.interval = span_of(*interval);
    line.text += " " + (too_few ? std::string(kTooFew)
                                : fmt::format("[{}, {}]", format_significant(interval->low, 3),
                                              format_significant(interval->high, 3)));
  }
  line.text += spread_text(std::nullopt, latency->mean_process_range,
                           [](double ms) { return format_significant(ms, 3); });
  line.text = line_text(line.text);
  line.tip = counted(latency->n, "row");
  return line;
}

std::optional<plot::RowLine> ratio_line(const Findings& findings, size_t stratum,
                                        const std::string& arm) {
  const Contrast* contrast = entry_of(findings.contrasts, stratum, arm);
  if (contrast == nullptr) return std::nullopt;
  plot::RowLine line;
  line.value = contrast->ratio;
  line.interval = ratio_span(contrast->ratio_interval);
  line.text = line_text(ratio_text(*contrast));
  line.tip = std::string(verdict_name(contrast->verdict));
  return line;
}

std::optional<plot::RowLine> loss_line(const Findings& findings, size_t stratum,
                                       const std::string& arm) {
  const OutcomeCounts* outcome = entry_of(findings.outcomes, stratum, arm);
  if (outcome == nullptr) return std::nullopt;
  plot::RowLine line;
  const auto attempted = static_cast<double>(std::max<int64_t>(1, outcome->attempted));
  line.value = 100 * static_cast<double>(outcome->failed) / attempted;
  if (const auto& interval = outcome->failed_interval) {
    line.interval = plot::Span{interval->low * 100, interval->high * 100};
  }
  line.text = line_text(fmt::format("{} of {}", outcome->failed, outcome->attempted));
  line.tip = line.text;
  return line;
}

// One row a stratum and arm, one line a bundle, and the same as a table.
struct Beside {
  RowsFigure rows;
  Table table{.columns = columns_of("<stratum|<arm")};
  size_t in_all = 0;  // rows that every bundle has
};

Beside beside(const std::vector<NamedFindings>& bundles, const Findings& all, Phase phase,
              LineOf line_of) {
  Beside out;
  out.rows.phase = phase_name(phase);
  for (const NamedFindings& bundle : bundles) out.table.columns.push_back({bundle.name});
  for (size_t s = 0; s < all.strata.size(); ++s) {
    if (all.strata[s].phase != phase) continue;
    for (const std::string& arm : arms_of(bundles)) {
      const std::string label = stratum_label(all, s);
      StratumRow row{s, {row_label(fmt::format("{} {}", label, arm)), {}}};
      std::vector<TableCell> cells = {label, arm};
      for (const NamedFindings& bundle : bundles) {
        const auto place = place_of(bundle.findings, all.strata[s]);
        auto line = place ? line_of(bundle.findings, *place, arm) : std::nullopt;
        cells.push_back(line ? TableCell(line->text) : TableCell::absent());
        if (!line) continue;
        line->style = arm_style(all, bundle.name);
        line->tip = fmt::format("{}, {}, {}: {}", bundle.name, label, arm, line->tip);
        row.row.lines.push_back(*std::move(line));
      }
      if (row.row.lines.empty()) continue;
      out.in_all += row.row.lines.size() == bundles.size() ? 1 : 0;
      out.table.rows.push_back(std::move(cells));
      out.rows.rows.push_back(std::move(row));
    }
  }
  return out;
}

// Two bundles whose intervals have nothing in common on a row: those that are furthest apart.
struct Difference {
  const StratumRow* row = nullptr;
  const plot::RowLine* low = nullptr;
  const plot::RowLine* high = nullptr;
  double times() const {
    constexpr double kLeast = 1e-9;  // in place of 0, of which nothing is a multiple
    return std::max(*high->value, kLeast) / std::max(*low->value, kLeast);
  }
};

std::optional<Difference> difference_on(const StratumRow& row) {
  std::optional<Difference> widest;
  for (const plot::RowLine& low : row.row.lines) {
    for (const plot::RowLine& high : row.row.lines) {
      if (!low.interval || !high.interval || low.interval->high >= high.interval->low) continue;
      const Difference found{&row, &low, &high};
      if (!widest || found.times() > widest->times()) widest = found;
    }
  }
  return widest;
}

// "prefill: mean times differ most for s000 compiled, 1.20 [1.10, 1.30] in A and 2.40 [...] in B".
std::string finding_of(const Findings& all, const Beside& beside, const std::string& what) {
  std::optional<Difference> widest;
  size_t apart = 0;
  size_t in_two = 0;
  size_t comparable = 0;
  for (const StratumRow& row : beside.rows.rows) {
    in_two += row.row.lines.size() > 1 ? 1 : 0;
    const auto told = std::ranges::count_if(
        row.row.lines, [](const plot::RowLine& line) { return line.interval.has_value(); });
    comparable += told > 1 ? 1 : 0;
    const auto found = difference_on(row);
    if (!found) continue;
    ++apart;
    if (!widest || found->times() > widest->times()) widest = found;
  }
  const std::string& phase = beside.rows.phase;
  if (in_two == 0) return fmt::format("{}: no two bundles have an arm on one stratum", phase);
  if (comparable == 0) {
    return fmt::format("{}: too few processes or rows ran to compare {}", phase, what);
  }
  if (!widest) {
    return fmt::format("{}: {} are not shown to differ: intervals overlap on {}{}", phase, what,
                       comparable == 1 ? "" : "all ", counted(comparable, "row"));
  }
  const auto in_bundle = [&](const plot::RowLine& line) {
    return fmt::format("{} in {}", line.text, all.study.arms[line.style.number]);
  };
  return fmt::format("{}: {} differ most for {}, {} and {}; intervals are apart on {} of {}", phase,
                     what, widest->row->row.label, in_bundle(*widest->low),
                     in_bundle(*widest->high), apart, counted(comparable, "row"));
}

Figure figure_of(const Findings& all, Beside beside, const std::string& id, const std::string& what,
                 const std::string& caption) {
  Figure figure;
  figure.id = fmt::format("{}-{}", beside.rows.phase, id);
  figure.finding = finding_of(all, beside, what);
  const bool too_few = std::ranges::any_of(beside.rows.rows, [](const StratumRow& row) {
    return std::ranges::any_of(row.row.lines, [](const plot::RowLine& line) {
      return std::string_view(line.text).ends_with(kTooFew);
    });
  });
  figure.caption = fmt::format(
      "{} Every bundle has {} of the {}.{}", caption, beside.in_all,
      counted(beside.rows.rows.size(), "row"),
      too_few ? " \"too few to tell\": the interval, wider than tenfold, is that of so few "
                "processes or rows that it shows nothing and isn't drawn."
              : "");
  figure.legend = arm_legend(all, all.study.arms, false);
  draw_rows(all, beside.rows, what, figure);
  figure.tables.push_back(std::move(beside.table));
  return figure;
}

bool any_lost(const std::vector<NamedFindings>& bundles, Phase phase) {
  return std::ranges::any_of(bundles, [&](const NamedFindings& bundle) {
    return std::ranges::any_of(bundle.findings.outcomes, [&](const OutcomeCounts& outcome) {
      return outcome.phase == phase && outcome.failed > 0;
    });
  });
}

std::string section_of(Phase phase, const std::string& content) {
  return fmt::format("<section id=\"{0}\">{1}{2}</section>\n", phase_name(phase),
                     element("h2", phase_name(phase)), content);
}

std::string phase_html(const std::vector<NamedFindings>& bundles, const Findings& all,
                       Phase phase) {
  std::string out;
  Beside means = beside(bundles, all, phase, mean_line);
  means.rows.x_label = "ms, mean of warm rows";
  if (means.rows.rows.empty()) return "";
  out += figure_html(figure_of(
      all, std::move(means), "means", "mean times in ms",
      "Each mark is a bundle's mean of an arm on a stratum. Intervals that don't overlap "
      "show a difference between the runs. Its cause may be the machine, the build or the "
      "model: the identities below show which of them differ, and assay compare tests the "
      "difference."));
  Beside ratios = beside(bundles, all, phase, ratio_line);
  ratios.rows.x_label = "ratio to the bundle's own baseline";
  ratios.rows.rule = plot::RuleAt{1, "as long as the baseline"};
  if (!ratios.rows.rows.empty()) {
    out += figure_html(figure_of(
        all, std::move(ratios), "ratios", "ratios to each bundle's own baseline",
        "Each mark is an arm's ratio to the baseline of its own bundle. A verdict holds for "
        "all bundles if its marks stay on one side of 1."));
  }
  if (!any_lost(bundles, phase)) {
    out += element("p", fmt::format("No row of {} was lost in any bundle.", phase_name(phase)));
    return section_of(phase, out);
  }
  Beside losses = beside(bundles, all, phase, loss_line);
  losses.rows.x_label = "% of the attempted rows";
  losses.rows.start = plot::Scale::Start::kZero;
  out += figure_html(
      figure_of(all, std::move(losses), "losses", "lost rows",
                "Shares of the attempted rows that were lost, with Wilson's intervals."));
  return section_of(phase, out);
}

std::string identity_table_html(const std::vector<NamedFindings>& bundles) {
  std::vector<std::string> names;
  std::vector<std::map<std::string, std::string>> values;
  for (const NamedFindings& bundle : bundles) {
    values.emplace_back(bundle.findings.identity.begin(), bundle.findings.identity.end());
    values.back()["(hash of all below)"] = identity_hash(bundle.findings);
    for (const auto& [name, value] : bundle.findings.identity) add_once(names, name);
  }
  names.insert(names.begin(), "(hash of all below)");
  Table table{.columns = columns_of("<what|<same")};
  for (const NamedFindings& bundle : bundles) table.columns.push_back({bundle.name, Align::kLeft});
  for (const std::string& name : names) {
    std::set<std::string> different;
    for (const auto& of_bundle : values) {
      const auto at = of_bundle.find(name);
      different.insert(at == of_bundle.end() ? "" : at->second);
    }
    std::vector<TableCell> row = {name, different.size() > 1 ? "DIFFERS" : "same"};
    for (const auto& of_bundle : values) {
      const auto at = of_bundle.find(name);
      row.push_back(at == of_bundle.end() ? TableCell::absent() : TableCell(at->second));
    }
    table.rows.push_back(std::move(row));
  }
  return "<section id=identity>" + element("h2", "Identity") + "<div class=identity>" +
         table_html(table, "identity") + "</div></section>\n";
}

}  // namespace

std::string render_side_by_side(const std::vector<NamedFindings>& bundles,
                                const JudgedBeside& judged) {
  const std::string title = fmt::format("{} bundles side by side", bundles.size());
  const Findings all = joined(bundles);
  std::string content = "<header>" + element("h1", title) + "</header>\n<main>\n";
  content += "<section id=verdict aria-label=Verdicts>\n";
  for (const NamedFindings& bundle : bundles) {
    content += element("h2", bundle.name) + short_verdict_html(bundle.findings);
  }
  content += "</section>\n";
  for (const Phase phase : kPhases) content += phase_html(bundles, all, phase);
  content +=
      sections_html(judged.sections, judged.figures) + identity_table_html(bundles) + "</main>\n";
  return page_html(title, content);
}

}  // namespace assay
