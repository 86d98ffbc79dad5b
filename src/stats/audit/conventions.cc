// The table of conventions.
#include "stats/audit/conventions.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "base/add_once.h"
#include "base/text/text.h"

namespace assay::stats {
namespace {

using Option = ConventionOption;

constexpr Option kOtherOption = {
    .name = "other", .keywords = "other", .only_declared = true, .is_other = true};

constexpr Option kSidesOptions[] = {{"two-sided", "two two-sided both"},
                                    {"one-sided, a > b", "greater one one-sided"},
                                    {"one-sided, a < b", "less one one-sided"}};
constexpr Option kTestOptions[] = {{"Welch", "welch"},
                                   {"Student", "student pooled t"},
                                   {"paired", "paired"},
                                   {"one sample", "one-sample"},
                                   {"z", "z"},
                                   {"z of the pooled sd", "z-pooled"},
                                   {"Fisher", "fisher"},
                                   {"chi-square", "chi-square chi2"},
                                   {"chi-square, Yates", "yates"},
                                   {"z of the shares", "z-shares"},
                                   {"z of the log odds ratio", "woolf log-odds"},
                                   {"Boschloo", "boschloo"},
                                   {"Barnard", "barnard"},
                                   {"G-test", "g g-test"},
                                   {"G-test, Yates", "g-yates"},
                                   {"G-test, Williams", "g-williams"},
                                   kOtherOption};
constexpr Option kDeviationsOptions[] = {{"", "n-1 sample"}, {"sd by n", "n population"}};
constexpr Option kDfRoundingOptions[] = {
    {"", "none"}, {"df printed rounded down", "printed"}, {"df rounded down", "used"}};
constexpr Option kIntervalOptions[] = {{"t interval", "t"}, {"z interval", "z"}, kOtherOption};
constexpr Option kEffectOptions[] = {
    {"pooled sd", "pooled cohen"},          {"mean of variances", "mean-variance"},
    {"sd of b (Glass)", "sd_b glass"},      {"sd of a (Glass)", "sd_a glass"},
    {"t sqrt(1/n_a + 1/n_b)", "t"},         {"2 t / sqrt(df)", "t-df"},
    {"sd of differences", "dz differences"}};
constexpr Option kSignOptions[] = {{"", "a-b"}, {"b - a", "b-a"}};
constexpr Option kCorrectionOptions[] = {{"exact correction", "exact"},
                                         {"1 - 3 / (4 m - 1)", "approximate"}};
constexpr Option kPoolingOptions[] = {
    {"weighted by n - 1", "df"}, {"mean of variances", "mean"}, {"weighted by n", "n"}};
constexpr Option kPowerOptions[] = {
    {"noncentral t", "noncentral"}, {"sum of t quantiles", "quantiles"}, {"normal", "normal"}};
constexpr Option kMarginOptions[] = {{"margin of mean_b", "b"},
                                     {"margin of mean_a", "a"},
                                     {"ratio 1 - m to 1 + m", "ratio"},
                                     {"ratio 1 / (1 + m) to 1 + m", "ratio-inverse"}};
constexpr Option kRatioOptions[] = {{"a / b", "a/b"}, {"b / a", "b/a"}};
constexpr Option kPercentOptions[] = {{"of b", "b a-b-of-b"},
                                      {"b - a, of a", "a b-a-of-a"},
                                      {"b - a, of b", "b b-a-of-b"},
                                      {"of a", "a a-b-of-a"},
                                      {"of both means' mean", "mean both"},
                                      {"b - a, of both means' mean", "mean both"},
                                      {"100 ln(a / b)", "log ln"},
                                      {"100 ln(b / a)", "log ln"},
                                      kOtherOption};
constexpr Option kEtaOptions[] = {{"partial or of one factor", "partial one-way"},
                                  {"of the total", "classical"}};
constexpr Option kSumsOptions[] = {
    {"Type I or equal cells", "1 i balanced"},
    {"Type II or III", "2 3 ii iii"},
    {.name = "one factor", .keywords = "one-way", .only_declared = true}};
constexpr Option kUnitOptions[] = {{"", "share"}, {"percent", "percent"}};
constexpr Option kRateOptions[] = {{"Wilson", "wilson"},
                                   {"Wald", "wald normal"},
                                   {"Clopper-Pearson", "clopper-pearson exact"},
                                   {"Agresti-Coull", "agresti-coull"},
                                   {"Jeffreys", "jeffreys"},
                                   {"Wilson, continuity correction", "wilson-cc"},
                                   {"mid-p", "mid-p midp"},
                                   kOtherOption};
constexpr Option kOddsOptions[] = {
    {"Woolf", "woolf logit"}, {"Woolf, halves added", "haldane anscombe"}, kOtherOption};
constexpr Option kWeightsOptions[] = {{"weighted by n", "n"}, {"unweighted", "equal"}};
constexpr Option kAdjustmentOptions[] = {{"Holm", "holm"},
                                         {"Bonferroni", "bonferroni"},
                                         {"Benjamini-Hochberg", "bh fdr"},
                                         {"Hochberg", "hochberg"},
                                         {"Hommel", "hommel"},
                                         {"Sidak", "sidak"},
                                         {"Holm-Sidak", "holm-sidak"},
                                         {"Benjamini-Yekutieli", "by"},
                                         kOtherOption};

constexpr ConventionAxis kTable[] = {
    {Axis::kSides, "sides", kSidesOptions},
    {Axis::kTest, "method", kTestOptions},
    {Axis::kDeviations, "deviations", kDeviationsOptions},
    {Axis::kDfRounding, "df_rounding", kDfRoundingOptions, false},
    {Axis::kInterval, "interval", kIntervalOptions},
    {Axis::kEffect, "effect", kEffectOptions},
    {Axis::kSignT, "sign_of_t", kSignOptions, false},
    {Axis::kSignD, "sign_of_d", kSignOptions, false},
    {Axis::kSignDelta, "sign_of_delta", kSignOptions, false},
    {Axis::kCorrection, "correction", kCorrectionOptions, false},
    {Axis::kPooling, "pooling", kPoolingOptions, false},
    {Axis::kPowerBy, "power_by", kPowerOptions},
    {Axis::kMarginOf, "margin_of", kMarginOptions},
    {Axis::kRatioOf, "ratio_of", kRatioOptions, false},
    {Axis::kPercentOf, "percent_by", kPercentOptions},
    {Axis::kGainOf, "gain_by", kPercentOptions},
    {Axis::kEta, "eta", kEtaOptions},
    {Axis::kSumsOfSquares, "ss_type", kSumsOptions},
    {Axis::kRateUnit, "rate_unit", kUnitOptions},
    {Axis::kRateInterval, "rate_interval", kRateOptions},
    {Axis::kOddsOf, "odds_of", kRatioOptions, false},
    {Axis::kOddsBy, "odds_by", kOddsOptions},
    {Axis::kWeights, "weights", kWeightsOptions},
    {Axis::kAdjustment, "adjustment", kAdjustmentOptions},
};
static_assert(std::size(kTable) == kAxes);

// "Two Sided", "two_sided" and "two-sided" are one keyword, and so are "Welch's" and "welch".
std::string normalised(std::string_view keyword) {
  std::string text;
  for (const char c : keyword) {
    text += c == ' ' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  if (text.ends_with("'s")) text.resize(text.size() - 2);
  if (text.ends_with("-t") || text.ends_with("-t-test")) text.resize(text.rfind("-t"));
  return text;
}

bool is_keyword(const ConventionOption& option, const std::string& keyword) {
  const std::vector<std::string> known = split(option.keywords, ' ');
  return std::ranges::any_of(known, [&](std::string word) {
    if (word == keyword) return true;
    std::ranges::replace(word, '_', '-');
    std::string other = keyword;
    std::ranges::replace(other, '_', '-');
    return word == other;
  });
}

}  // namespace

std::span<const ConventionAxis> convention_axes() {
  return kTable;
}

const ConventionAxis& axis_of(Axis axis) {
  return kTable[static_cast<size_t>(axis)];
}

bool Declared::allows(Axis axis, uint8_t option) const {
  const uint32_t mask = allowed_[static_cast<size_t>(axis)];
  if (mask != 0) return (mask >> option & 1) != 0;
  return !axis_of(axis).options[option].only_declared;
}

bool Declared::is_other(Axis axis) const {
  if (!is_declared(axis)) return false;
  const auto options = axis_of(axis).options;
  for (uint8_t i = 0; i < options.size(); ++i) {
    if (allows(axis, i) && options[i].is_other) return true;
  }
  return false;
}

Status Declared::declare(const ConventionAxis& axis, std::string_view keyword) {
  const std::string wanted = normalised(keyword);
  uint32_t mask = 0;
  std::vector<std::string> known;
  for (size_t i = 0; i < axis.options.size(); ++i) {
    if (is_keyword(axis.options[i], wanted)) mask |= uint32_t{1} << i;
    for (std::string& word : split(axis.options[i].keywords, ' ')) {
      add_once(known, std::move(word));
    }
  }
  if (mask == 0) {
    return bad_input("expected {}, found {}{}", join(known, ", "), quoted_excerpt(keyword),
                     nearest_hint(wanted, known));
  }
  allowed_[static_cast<size_t>(axis.axis)] = mask;
  return {};
}

void Declared::default_to(const Declared& other) {
  for (size_t i = 0; i < kAxes; ++i) {
    if (allowed_[i] == 0) allowed_[i] = other.allowed_[i];
  }
}

}  // namespace assay::stats
