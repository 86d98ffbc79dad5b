// The estimators as JSON lines: one request a line in, one reply a line out, absent as null.
#include <fmt/format.h>

#include <iostream>
#include <string>
#include <vector>

#include "base/records/json.h"
#include "stats/audit/published_table.h"
#include "stats/estimates/clustered_share.h"
#include "stats/estimates/ratio.h"
#include "stats/hypotheses/anova.h"
#include "stats/hypotheses/effect.h"
#include "stats/hypotheses/multiple.h"
#include "stats/hypotheses/proportions.h"
#include "stats/hypotheses/tests.h"
#include "stats/power/power.h"
#include "stats/samples/ecdf.h"
#include "stats/samples/series.h"
#include "stats/samples/summary.h"
#include "stats/samples/trend.h"
#include "stats/sequential/confidence_sequence.h"

namespace assay {
namespace {

using stats::Moments;
using Sample = std::vector<double>;

Json value(const std::optional<double>& x) {
  return x ? Json(*x) : Json();
}

Json value(const std::optional<stats::Interval>& x) {
  return x ? Json{x->low, x->high} : Json();
}

Json value(const std::optional<stats::TestResult>& x) {
  if (!x) return nullptr;
  return {{"t", x->statistic}, {"df", value(x->df)}, {"p", x->p}, {"log_p", x->log_p}};
}

Json value(const std::optional<stats::FTest>& x) {
  if (!x) return nullptr;
  return {{"f", x->f}, {"df1", x->df1}, {"df2", x->df2}, {"p", x->p}, {"log_p", x->log_p}};
}

Json value(const std::optional<stats::TailArea>& x) {
  return x ? Json{{"p", x->p}, {"log_p", x->log_p}} : Json();
}

Json one_sample(const Json& request) {
  const auto x = request.at("a").get<Sample>();
  const Sample order = stats::sorted(x);
  Json reply = {{"mean", value(stats::mean(x))},
                {"sd", value(stats::standard_deviation(x))},
                {"variance", value(stats::variance(x))},
                {"median", value(stats::median(order))},
                {"mad", value(stats::median_absolute_deviation(order))},
                {"trimmed", value(stats::trimmed_mean(order, 0.1))}};
  for (const double p : {0.05, 0.25, 0.9, 0.99}) {
    reply["quantiles"].push_back(value(stats::quantile(order, p)));
    reply["unsorted"].push_back(value(stats::quantile_unsorted(x, p)));
  }
  const auto fences = stats::tukey_fences(order);
  reply["fences"] = fences ? Json{fences->low, fences->high} : Json();
  for (const double at : request.at("at").get<Sample>()) {
    reply["ecdf"].push_back(value(stats::ecdf(order, at)));
  }
  return reply;
}

Json two_samples(const Json& request) {
  const auto a = request.at("a").get<Sample>();
  const auto b = request.at("b").get<Sample>();
  const double margin = request.at("margin").get<double>();
  Json reply;
  const auto rank = stats::mann_whitney(a, b);
  if (rank) {
    reply["mann_whitney"] = {{"u", rank->u},
                             {"a", rank->a},
                             {"p", rank->p},
                             {"exact", rank->exact},
                             {"log_p", rank->log_p}};
  }
  const auto superiority = stats::vargha_delaney(a, b);
  if (superiority) reply["superiority"] = {superiority->a, value(superiority->interval)};
  reply["levene"] = value(stats::levene(std::vector{a, b}, stats::Centre::kMedian));
  reply["levene_mean"] = value(stats::levene(std::vector{a, b}, stats::Centre::kMean));
  const auto of_a = stats::moments(a);
  const auto of_b = stats::moments(b);
  if (!of_a || !of_b) return reply;
  const auto error = stats::welch_standard_error(*of_a, *of_b);
  reply["welch"] = value(error ? stats::t_test(of_a->mean - of_b->mean, *error) : std::nullopt);
  reply["student"] = value(stats::student_t(*of_a, *of_b));
  reply["tost_ratio"] = value(stats::tost_ratio(*of_a, *of_b, 0.8, 1.25));
  const auto d = stats::cohen_d(*of_a, *of_b);
  reply["d"] = value(d);
  reply["g"] = value(stats::hedges_g(*of_a, *of_b));
  reply["d_interval"] = d ? value(stats::cohen_d_interval(*d, of_a->n, of_b->n)) : Json();
  reply["tost"] =
      error ? value(stats::tost(of_a->mean - of_b->mean, *error, -margin, margin)) : Json();
  if (error) {
    reply["interval"] = value(stats::t_interval(of_a->mean - of_b->mean, *error));
  }
  reply["anova"] = value(stats::one_way_anova(std::vector{*of_a, *of_b}));
  return reply;
}

Json paired(const Json& request) {
  const auto a = request.at("a").get<Sample>();
  const auto b = request.at("b").get<Sample>();
  const auto of_a = stats::moments(a);
  const auto of_b = stats::moments(b);
  if (!of_a || !of_b) return Json::object();
  stats::StratumMoments pair{*of_a, *of_b};
  pair.covariance = stats::covariance(a, b);
  const double difference = of_a->mean - of_b->mean;
  const auto error = stats::difference_error(pair);
  return {{"t", error ? value(stats::t_test(difference, *error)) : Json()},
          {"interval", error ? value(stats::t_interval(difference, *error)) : Json()},
          {"tost_ratio", value(stats::tost_ratio(pair, 0.8, 1.25))}};
}

Json series(const Json& request) {
  const auto x = request.at("a").get<Sample>();
  Json reply;
  const auto lags = request.at("lags").get<size_t>();
  const auto r = stats::autocorrelation(x, lags);
  reply["acf"] = r ? Json(*r) : Json();
  const auto box = stats::ljung_box(x, lags);
  reply["ljung_box"] = box ? Json{box->q, box->p} : Json();
  const auto size = stats::effective_sample_size(x);
  reply["size"] = size ? Json(size->size) : Json();
  const auto trend = stats::mann_kendall(x);
  reply["mann_kendall"] = trend ? Json{trend->s, trend->p} : Json();
  Sample order;
  for (size_t i = 0; i < x.size(); ++i) order.push_back(static_cast<double>(i));
  const auto line = stats::theil_sen(order, x);
  reply["theil_sen"] = line ? Json{line->slope, line->intercept, value(line->interval)} : Json();
  reply["anytime"] = value(stats::anytime_interval(x, 0.05));
  const auto change = stats::pettitt(x);
  reply["pettitt"] = change ? Json{change->index, change->k, change->p} : Json();
  return reply;
}

Json table(const Json& request) {
  const stats::Proportion a{request.at("a").at(0), request.at("a").at(1)};
  const stats::Proportion b{request.at("b").at(0), request.at("b").at(1)};
  Json reply;
  for (const auto& [name, side] : {std::pair{"two-sided", stats::Side::kTwo},
                                   {"greater", stats::Side::kGreater},
                                   {"less", stats::Side::kLess}}) {
    const auto fisher = stats::fisher_exact(a, b, side);
    if (fisher) {
      reply["fisher"][name] = {
          {"p", fisher->p}, {"log_p", fisher->log_p}, {"odds", value(fisher->odds_ratio)}};
    }
    if (!request.value("unconditional", false)) continue;
    const auto barnard = stats::barnard_exact(a, b, side);
    reply["barnard"][name] = barnard ? Json{barnard->statistic, barnard->p} : Json();
    const auto boschloo = stats::boschloo_exact(a, b, side);
    reply["boschloo"][name] = boschloo ? Json{boschloo->statistic, boschloo->p} : Json();
  }
  reply["wilson"] = value(stats::wilson_interval(a.successes, a.n));
  reply["newcombe"] = value(stats::newcombe_interval(a, b));
  return reply;
}

Json clusters(const Json& request) {
  std::vector<stats::ClusterCount> counts;
  int64_t successes = 0;
  int64_t n = 0;
  for (const Json& cluster : request.at("clusters")) {
    counts.push_back({cluster.at(0), cluster.at(1)});
    successes += counts.back().successes;
    n += counts.back().n;
  }
  const auto effect = stats::design_effect(counts);
  Json reply = {{"design_effect", value(effect)}, {"interval", nullptr}};
  if (effect) reply["interval"] = value(stats::clustered_wilson_interval(successes, n, *effect));
  return reply;
}

Json anova_term(const stats::AnovaTerm& term) {
  return {{"ss", term.sum_of_squares},
          {"df", term.df},
          {"f", value(term.f)},
          {"p", value(term.p)},
          {"log_p", value(term.log_p)}};
}

Json anova(const Json& request) {
  const auto cells =
      stats::anova_cells(request.at("a").get<std::vector<size_t>>(),
                         request.at("b").get<std::vector<size_t>>(), request.at("y").get<Sample>());
  Json reply;
  if (!cells) return reply;
  for (const auto& [name, type] :
       {std::pair{"2", stats::SumsOfSquares::kTypeII}, {"3", stats::SumsOfSquares::kTypeIII}}) {
    const auto found = stats::two_way_anova(*cells, type);
    reply[name] = nullptr;
    if (!found) continue;
    reply[name] = {{"a", anova_term(found->a)},
                   {"b", anova_term(found->b)},
                   {"ab", anova_term(found->interaction)},
                   {"residual", found->residual_sum_of_squares},
                   {"residual_df", found->residual_df}};
  }
  return reply;
}

Json adjust(const Json& request) {
  const auto p = request.at("p").get<Sample>();
  return {{"holm", stats::holm(p)},
          {"bonferroni", stats::bonferroni(p)},
          {"bh", stats::benjamini_hochberg(p)},
          {"hochberg", stats::hochberg(p)},
          {"hommel", stats::hommel(p)},
          {"sidak", stats::sidak(p)},
          {"holm_sidak", stats::holm_sidak(p)},
          {"by", stats::benjamini_yekutieli(p)}};
}

Json power(const Json& request) {
  const auto n_a = request.at("n").at(0).get<double>();
  const auto n_b = request.at("n").at(1).get<double>();
  const auto d = request.at("d").get<double>();
  const auto alpha = request.at("alpha").get<double>();
  const stats::StandardError error{std::sqrt(1 / n_a + 1 / n_b), n_a + n_b - 2};
  const auto needed = stats::repetitions_needed(d, alpha, 0.8);
  return {{"power", value(stats::t_test_power(d, error, alpha))},
          {"mde", value(stats::minimum_detectable_difference(error, alpha, 0.8))},
          {"needed", needed ? Json(*needed) : Json()}};
}

Json tails(const Json& request) {
  const auto x = request.at("x").get<double>();
  const auto df1 = request.at("df1").get<double>();
  const auto df2 = request.at("df2").get<double>();
  return {{"t", value(stats::student_t_upper(x, df1))},
          {"f", value(stats::f_upper(x, df1, df2))},
          {"chi2", value(stats::chi_square_upper(x, df1))},
          {"z", value(stats::normal_upper(x))}};
}

Json audit(const Json& request) {
  const auto table = stats::parse_published_table(request.at("csv").get<std::string>(), "csv");
  if (!table) return {{"error", table.error().message}};
  Json rows = Json::array();
  for (const auto& row : table->rows) {
    Json figures = Json::object();
    for (const stats::AuditedFigure& figure : stats::audit_row(row.figures)) {
      figures[std::string(stats::figure_name(figure.figure))] = stats::verdict_name(figure.verdict);
    }
    rows.push_back(std::move(figures));
  }
  return {{"rows", rows}};
}

Json answer(const Json& request) {
  const auto op = request.at("op").get<std::string>();
  if (op == "one") return one_sample(request);
  if (op == "two") return two_samples(request);
  if (op == "paired") return paired(request);
  if (op == "series") return series(request);
  if (op == "table") return table(request);
  if (op == "clusters") return clusters(request);
  if (op == "anova") return anova(request);
  if (op == "adjust") return adjust(request);
  if (op == "power") return power(request);
  if (op == "audit") return audit(request);
  return tails(request);
}

}  // namespace
}  // namespace assay

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    fmt::print("{}\n", assay::answer(assay::Json::parse(line)).dump());
  }
}
