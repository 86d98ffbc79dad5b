// Prefill and decode put together: the worth of a faster prefill end to end.
#include "base/text/text.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

constexpr int64_t kShown[] = {1, 32, 512};

std::string tokens_text(const std::optional<double>& tokens, const std::optional<Reach>& reach) {
  if (!tokens) return "";
  const auto bound = [](const std::optional<double>& end, const char* none) {
    return end ? whole_tokens(*end) : std::string(none);
  };
  std::string text = whole_tokens(*tokens);
  if (reach) text += fmt::format(" [{}, {}]", bound(reach->low, "0"), bound(reach->high, "never"));
  return text;
}

TableCell share_cell(const PhaseSplit& split, int64_t tokens) {
  for (const SplitAt& at : split.at) {
    if (at.new_tokens != tokens) continue;
    std::string text = fmt::format("{:+.1f} %", at.prefill_share * 100);
    if (at.extrapolated) text += "*";
    return {at.prefill_share, std::move(text)};
  }
  return TableCell::absent();
}

}  // namespace

ReportSection split_section(const Findings& findings) {
  ReportSection section{"Prefill and decode together", {}, {}};
  section.figures = {"phase-split"};
  section.lines.push_back(
      fmt::format("The time that an arm's prefill saves, as a share of {}'s time for prefill and n "
                  "decoded tokens (*: longer than the longest decode measured). stops: from this n "
                  "on, the share is below {:.3g} %. even: from this n on, slower decoding has used "
                  "up the gain. [95 % bootstrap interval].",
                  findings.study.baseline, findings.options.margin * 100));
  Table table{.columns = columns_of("<stratum|<arm|gain_ms|95% interval")};
  for (const int64_t tokens : kShown) table.columns.push_back({fmt::format("n={}", tokens)});
  table.columns.insert(table.columns.end(), {{"stops"}, {"even"}});
  for (const PhaseSplit& split : findings.splits) {
    std::vector<TableCell> row = {stratum_label(findings, split.prefill_stratum), split.arm,
                                  split.gain_ms,
                                  spread_cell(split.gain_interval, split.gain_process_range)};
    for (const int64_t tokens : kShown) row.push_back(share_cell(split, tokens));
    row.push_back(TableCell::if_any(tokens_text(split.stops_mattering, split.stops_interval)));
    row.push_back(TableCell::if_any(tokens_text(split.breaks_even, split.even_interval)));
    table.rows.push_back(std::move(row));
  }
  section.tables.push_back(std::move(table));
  return section;
}

}  // namespace assay
