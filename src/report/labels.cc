// Texts of strata, intervals, p-values and shares in the report.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/add_once.h"
#include "base/text/text.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

// True if the phase's strata all have this one's value of a member.
template <typename Member>
bool is_shared(std::span<const Stratum> strata, const Stratum& of, const Member& member) {
  return std::ranges::all_of(strata, [&](const Stratum& other) {
    return other.phase != of.phase || other.*member == of.*member;
  });
}

std::string sizes_label(std::span<const Stratum> strata, const Stratum& of) {
  std::string label;
  if (!is_shared(strata, of, &Stratum::new_tokens)) label += fmt::format(" n{}", of.new_tokens);
  if (!is_shared(strata, of, &Stratum::batch)) label += fmt::format(" b{}", of.batch);
  return label;
}

bool as_labelled(Execution execution) {
  return execution == Execution::kEager || execution == Execution::kCompiled;
}

}  // namespace

std::string whole_tokens(double tokens) {
  return fmt::format("{:.0f}", std::ceil(tokens));
}

std::string new_tokens_text(double from, double to) {
  const std::string least = whole_tokens(from);
  const std::string most = whole_tokens(to);
  const std::string range = least == most ? least : fmt::format("{} to {}", least, most);
  return range + (most == "1" ? " new token" : " new tokens");
}

std::string stratum_label(std::span<const Stratum> strata, size_t stratum) {
  const Stratum& of = strata[stratum];
  std::string label;
  if (!is_shared(strata, of, &Stratum::model)) label += of.model + " ";
  return label + prompt_name(of) + sizes_label(strata, of);
}

std::string stratum_label(const Findings& findings, size_t stratum) {
  return stratum_label(findings.strata, stratum);
}

std::string condition_label(const Findings& findings, size_t stratum) {
  const Stratum& of = findings.strata[stratum];
  std::string label = is_shared(findings.strata, of, &Stratum::model) ? "" : of.model;
  label += sizes_label(findings.strata, of);
  return label.starts_with(' ') ? label.substr(1) : label;
}

std::string arm_label(const Findings& findings, const std::string& arm, size_t stratum) {
  std::vector<std::string> remarks;
  const std::string& model = findings.strata[stratum].model;
  if (const ModelQuality* quality = quality_of(findings.qualities, model, arm)) {
    remarks.push_back(quality_text(*quality));
  }
  // Both lists are in the order of the strata.
  for (const Latency& latency :
       std::ranges::equal_range(findings.latencies, stratum, {}, &Latency::stratum)) {
    if (latency.arm == arm && latency.parity_failed) {
      remarks.emplace_back("parity failed");
    }
  }
  for (const Tail& tail : std::ranges::equal_range(findings.tails, stratum, {}, &Tail::stratum)) {
    if (tail.arm == arm && !as_labelled(tail.execution)) {
      remarks.emplace_back(execution_name(tail.execution));
    }
  }
  return remarks.empty() ? arm : fmt::format("{} ({})", arm, join(remarks, ", "));
}

std::string arm_label(const Findings& findings, const std::string& arm, Phase phase) {
  std::vector<std::string> remarks;
  const ModelQuality* farthest = nullptr;  // of the phase's models
  for (const Stratum& stratum : findings.strata) {
    if (stratum.phase != phase) continue;
    const ModelQuality* quality = quality_of(findings.qualities, stratum.model, arm);
    if (quality == nullptr) continue;
    if (farthest == nullptr || quality->kl_mean.value > farthest->kl_mean.value) farthest = quality;
  }
  if (farthest != nullptr) remarks.push_back(quality_text(*farthest));
  for (const Tail& tail : findings.tails) {
    if (findings.strata[tail.stratum].phase != phase || tail.arm != arm) continue;
    if (!as_labelled(tail.execution)) {
      add_once(remarks, std::string(execution_name(tail.execution)));
    }
  }
  return remarks.empty() ? arm : fmt::format("{} ({})", arm, join(remarks, ", "));
}

std::string size_place(const Findings& findings, const SizeAnalysis& size) {
  const auto stratum = std::ranges::find_if(findings.strata, [&](const Stratum& of) {
    return of.phase == size.phase && of.scenario == size.scenario &&
           of.new_tokens == size.new_tokens && of.batch == size.batch;
  });
  std::string text =
      fmt::format("{} {}", phase_name(size.phase),
                  stratum == findings.strata.end() ? size.scenario : prompt_name(*stratum));
  if (size.new_tokens > 0) text += fmt::format(" n{}", size.new_tokens);
  if (size.batch != 1) text += fmt::format(" b{}", size.batch);
  return text;
}

std::string shared_label(const Findings& findings, Phase phase) {
  const auto any = std::ranges::find(findings.strata, phase, &Stratum::phase);
  if (any == findings.strata.end()) return "";
  std::vector<std::string> parts;
  if (is_shared(findings.strata, *any, &Stratum::model)) parts.push_back("model " + any->model);
  if (is_shared(findings.strata, *any, &Stratum::new_tokens) && any->new_tokens > 0) {
    parts.push_back(counted(any->new_tokens, "new token"));
  }
  if (is_shared(findings.strata, *any, &Stratum::batch)) {
    parts.push_back(fmt::format("batch {}", any->batch));
  }
  return join(parts, ", ");
}

bool has_phase(const Findings& findings, Phase phase) {
  return std::ranges::any_of(findings.strata, [&](const auto& s) { return s.phase == phase; });
}

TableCell interval_cell(const std::optional<stats::Interval>& interval, int digits) {
  if (!interval) return TableCell::absent();
  return {Json::array({interval->low, interval->high}),
          fmt::format("[{}, {}]", format_significant(interval->low, digits),
                      format_significant(interval->high, digits))};
}

TableCell spread_cell(const std::optional<stats::Interval>& interval,
                      const std::optional<stats::Interval>& process_range) {
  if (!process_range) return interval_cell(interval);
  return TableCell(fmt::format("range {}-{}", format_significant(process_range->low, 4),
                               format_significant(process_range->high, 4)));
}

TableCell spread_cell(const std::optional<SpreadRatio>& ratio) {
  return ratio ? spread_cell(ratio->interval, ratio->process_range) : TableCell::absent();
}

TableCell low_cell(const std::optional<stats::Interval>& interval) {
  return cell_of(interval, &stats::Interval::low);
}

TableCell high_cell(const std::optional<stats::Interval>& interval) {
  return cell_of(interval, &stats::Interval::high);
}

TableCell p_cell(double p, double log_p) {
  if (p > 0) return {p, format_significant(p, 2)};
  const double exponent = log_p / std::numbers::ln10;
  return {p, fmt::format("1e{:.0f}", exponent)};
}

TableCell p_holm_cell(const std::optional<double>& p_holm) {
  if (!p_holm) return TableCell::absent();
  return *p_holm > 0 ? TableCell(*p_holm, 2) : TableCell{0.0, "<1e-300"};
}

TableCell percent_cell(std::optional<double> share) {
  if (!share) return TableCell::absent();
  return {*share, fmt::format("{:.1f} %", *share * 100)};
}

}  // namespace assay
