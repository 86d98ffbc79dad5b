// assay stats: counts, as of crashes, and families of p-values.
#include <cmath>

#include "base/text/text.h"
#include "cli/stats/stats_table.h"
#include "stats/estimates/clustered_share.h"
#include "stats/hypotheses/multiple.h"

namespace assay::cli {
namespace {

using Kind = Parameter::Kind;
using stats::Proportion;
using stats::Side;

double share_of(const Proportion& x) {
  return static_cast<double>(x.successes) / static_cast<double>(x.n);
}

Result<StatsAnswer> wilson(Given& in) {
  ASSAY_TRY(const Proportion a, in.count("a"));
  FigureRow row;
  row.add("share", share_of(a))
      .add("", stats::wilson_interval(a.successes, a.n, in.number("confidence")));
  return StatsAnswer(row, in.facts("Wilson's score interval, no continuity correction"));
}

Result<StatsAnswer> clusters(Given& in) {
  std::vector<stats::ClusterCount> counts;
  Proportion all{0, 0};
  Json inputs = Json::array();
  for (const std::string& part : split(in.text("a"), ',')) {  // "3/40,0/40"
    ASSAY_TRY(const Proportion x, parse_proportion("--a", part));
    counts.push_back({x.successes, x.n});
    all.successes += x.successes;
    all.n += x.n;
    inputs.push_back(count_json(x));
  }
  // If the clusters can't show it, there is no interval either: not that of the rows.
  const auto effect = stats::design_effect(counts);
  const auto n = static_cast<double>(all.n);
  FigureRow row;
  row.add("share", share_of(all))
      .add_count("n", all.n)
      .add_count("clusters", std::ssize(counts))
      .add("design_effect", effect)
      .add("effective_n", effect.transform([&](double d) { return n / d; }))
      .add("", effect ? stats::clustered_wilson_interval(all.successes, all.n, *effect,
                                                         in.number("confidence"))
                      : std::nullopt);
  Facts facts =
      in.facts("Wilson's score interval at the effective n of the ratio estimator over clusters");
  return StatsAnswer(row, facts.input("a", std::move(inputs)));
}

Side side_of(const Given& in) {
  const std::string& side = in.text("alternative");
  return side == "greater" ? Side::kGreater : side == "less" ? Side::kLess : Side::kTwo;
}

Facts sided_facts(const Given& in, const char* method) {
  return in.facts(method).sides(in.text("alternative")).sign("greater: a's share is the larger");
}

Result<StatsAnswer> fisher(Given& in) {
  ASSAY_TRY(const Proportion a, in.count("a"));
  ASSAY_TRY(const Proportion b, in.count("b"));
  const auto test = stats::fisher_exact(a, b, side_of(in));
  FigureRow row;
  row.add("odds_ratio", test->odds_ratio).add_p(test->p, test->log_p);
  return StatsAnswer(row, sided_facts(in, "Fisher's exact test"));
}

using Unconditional = std::optional<stats::UnconditionalTest>(const Proportion&, const Proportion&,
                                                              Side);

StatsSubcommand unconditional(const char* name, const char* owner, Unconditional* run,
                              std::vector<Parameter> parameters) {
  const auto answer = [=](Given& in) -> Result<StatsAnswer> {
    ASSAY_TRY(const Proportion a, in.count("a"));
    ASSAY_TRY(const Proportion b, in.count("b"));
    const auto test = run(a, b, side_of(in));
    if (!test) {
      return bad_input(
          "{}: expected totals whose product is at most 4e6 and counts that aren't all "
          "or none, found {} and {}",
          name, in.text("a"), in.text("b"));
    }
    FigureRow row;
    row.add("statistic", test->statistic).add_p(test->p, std::log(test->p)).add("at", test->at);
    return StatsAnswer(row, sided_facts(in, fmt::format("{} exact test", owner).c_str()));
  };
  return {name, fmt::format("{} unconditional exact test of two proportions", owner),
          std::move(parameters), answer};
}

Result<StatsAnswer> newcombe(Given& in) {
  ASSAY_TRY(const Proportion a, in.count("a"));
  ASSAY_TRY(const Proportion b, in.count("b"));
  FigureRow row;
  row.add("difference", share_of(a) - share_of(b))
      .add("", stats::newcombe_interval(a, b, in.number("confidence")));
  return StatsAnswer(row, in.facts("Newcombe's hybrid score interval").sign("a - b"));
}

StatsSubcommand adjustment(const char* name, const char* summary,
                           std::vector<double> (*adjust)(std::span<const double>)) {
  const auto answer = [=](Given& in) -> Result<StatsAnswer> {
    ASSAY_TRY(const std::vector<double> values, parse_values("--p", in.text("p")));
    for (const double value : values) {
      if (!(value >= 0 && value <= 1)) {
        return bad_input("--p: expected numbers from 0 to 1, found {}", value);
      }
    }
    const std::vector<double> adjusted = adjust(values);
    Table table;
    for (size_t i = 0; i < values.size(); ++i) {
      FigureRow().add("p", values[i]).add("adjusted_p", adjusted[i]).append_to(table);
    }
    Facts facts = in.facts(summary);
    return StatsAnswer(std::move(table), facts.input("family", std::ssize(values)));
  };
  const Parameter p = {.kind = Kind::kText,
                       .name = "p",
                       .meaning = "p-values, a list or a file",
                       .type = "P,Q,...|FILE",
                       .needed = true};
  return {name, summary, {p}, answer};
}

}  // namespace

std::vector<StatsSubcommand> stats_of_counts() {
  const Parameter a = counted_share("a");
  const Parameter b = counted_share("b");
  const Parameter of_interval = confidence("confidence of the interval");
  const Parameter counts = {.kind = Kind::kText,
                            .name = "a",
                            .meaning = "a count for each cluster (process)",
                            .type = "X/N,X/N,...",
                            .needed = true};
  const Parameter side = {.kind = Kind::kText,
                          .name = "alternative",
                          .meaning = "two-sided, greater or less: the share of a against that of b",
                          .fallback = "two-sided",
                          .words = {"two-sided", "greater", "less"}};
  return {
      {"wilson", "score interval of a proportion", {a, of_interval}, wilson},
      {"clusters",
       "design effect and score interval of a proportion counted in clusters",
       {counts, of_interval},
       clusters},
      {"fisher", "Fisher's exact test of two proportions", {a, b, side}, fisher},
      unconditional("barnard", "Barnard's", stats::barnard_exact, {a, b, side}),
      unconditional("boschloo", "Boschloo's", stats::boschloo_exact, {a, b, side}),
      {"newcombe", "interval of the difference of two proportions", {a, b, of_interval}, newcombe},
      adjustment("holm", "Holm's adjustment of a family of p", stats::holm),
      adjustment("bonferroni", "Bonferroni's adjustment", stats::bonferroni),
      adjustment("bh", "Benjamini and Hochberg's adjustment", stats::benjamini_hochberg)};
}

}  // namespace assay::cli
