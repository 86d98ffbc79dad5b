// Findings where a few samples decide which of two arms is faster.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/contrast/row_statistics.h"
#include "analysis/named/named.h"
#include "base/text/text.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

constexpr double kShareCutEachSide = 0.05;

// Rows left out of both arms, by place among a group's rows in the order of `warm` or by size.
struct Variant {
  std::string name;
  bool by_size = true;
  size_t low = 0;   // left out at the beginning
  size_t high = 0;  // and at the end
};

std::vector<Variant> variants(const Group& a, const Group& b) {
  std::vector<Variant> all;
  const size_t rows = std::min(a.warm.size(), b.warm.size());
  if (rows < 4) return all;
  all.push_back({"the first sample", false, 1, 0});
  all.push_back({"the largest", true, 0, 1});
  all.push_back({"the smallest", true, 1, 0});
  if (rows >= 11) {
    all.push_back({"the five largest", true, 0, 5});
    all.push_back({"the five smallest", true, 5, 0});
  }
  if (static_cast<double>(rows) * kShareCutEachSide >= 1) {
    const auto cut = static_cast<size_t>(static_cast<double>(rows) * kShareCutEachSide);
    all.push_back({"5 % at each end", true, cut, cut});
  }
  return all;
}

std::span<const double> left_of(const Group& group, const Variant& variant) {
  const std::span<const double> all = variant.by_size ? group.sorted_ms : group.warm_ms;
  return all.subspan(variant.low, all.size() - variant.low - variant.high);
}

// All rows but those.
KeptRows kept_by(const Group& group, const Variant& variant) {
  std::vector<size_t> places(group.warm.size());
  std::iota(places.begin(), places.end(), size_t{0});
  if (variant.by_size) {
    std::ranges::stable_sort(places, {}, [&](size_t place) { return group.warm_ms[place]; });
  }
  KeptRows kept(places.size(), true);
  for (size_t i = 0; i < variant.low; ++i) kept[places[i]] = false;
  for (size_t i = places.size() - variant.high; i < places.size(); ++i) kept[places[i]] = false;
  return kept;
}

void add_left_out(Finding& finding, const Group& group, const Variant& variant) {
  std::vector<const Row*> rows = group.warm;
  if (variant.by_size) {
    std::ranges::stable_sort(rows, {}, [](const Row* row) { return *row->latency_ms; });
  }
  std::vector<const Row*> out(rows.begin(), rows.begin() + static_cast<ptrdiff_t>(variant.low));
  out.insert(out.end(), rows.end() - static_cast<ptrdiff_t>(variant.high), rows.end());
  std::ranges::sort(out, {}, &Row::order_index);
  add_rows(finding, out);
}

// A flip is told where the ranking without those rows is more than chance: means of arms that are
// the same change places with any row.
void compare(const ContrastInputs& in, const Group& a, const Group& b,
             std::vector<Finding>& findings) {
  const Samples& samples = in.samples;
  const AnalysisOptions& options = in.options;
  const GroupPair pair{samples.index_of(a), samples.index_of(b)};
  if (a.warm.empty() || b.warm.empty()) return;
  const double mean_a = *stats::mean(a.warm_ms);
  const double mean_b = *stats::mean(b.warm_ms);
  const double before = mean_a / mean_b - 1;
  std::vector<std::string> flips;
  std::optional<Variant> least;  // that leaves out the fewest rows
  std::optional<stats::Widening> widening;
  double size = 0;
  const std::vector<Variant> all = variants(a, b);
  // Each variant is another chance of a flip by chance (Bonferroni).
  const double alpha = options.alpha / static_cast<double>(std::max<size_t>(1, all.size()));
  for (const Variant& variant : all) {
    const auto left_a = left_of(a, variant);
    const auto left_b = left_of(b, variant);
    const double without_a = *stats::mean(left_a);
    const double without_b = *stats::mean(left_b);
    const double after = without_a / without_b - 1;
    const double moved = std::max(std::abs(before), std::abs(after));
    if (before * after >= 0 || moved < options.notable) continue;
    if (!widening) widening = pair_widening(in, pair);
    const auto test = test_of_rows(in, pair, kept_by(a, variant), kept_by(b, variant), *widening);
    if (!test || test->p >= alpha || test->statistic * after <= 0) continue;
    size = std::max(size, moved);
    flips.push_back(fmt::format("{} ({} against {} ms)", variant.name,
                                format_significant(without_a), format_significant(without_b)));
    if (!least || variant.low + variant.high < least->low + least->high) least = variant;
  }
  if (!least) return;
  Finding finding = about("ranking_sensitive", Severity::kWarning, samples, a);
  finding.size = size;
  const bool faster = mean_a < mean_b;
  finding.text = fmt::format("{} than {} by the mean ({} against {} ms), but {} without {}",
                             faster ? "faster" : "slower", samples.arms[b.arm],
                             format_significant(mean_a), format_significant(mean_b),
                             faster ? "slower" : "faster", join(flips, ", and without "));
  add_left_out(finding, a, *least);
  add_left_out(finding, b, *least);
  findings.push_back(std::move(finding));
}

}  // namespace

void find_sensitive_rankings(const ContrastInputs& in, std::vector<Finding>& findings) {
  for_each_pair(in.samples, [&](const Group& a, const Group& b) { compare(in, a, b, findings); });
}

}  // namespace assay
