// assay stats: counts, as of crashes, and families of p-values.
#include <cmath>

#include "base/text/text.h"
#include "cli/stats/stats_input.h"
#include "stats/estimates/clustered_share.h"
#include "stats/hypotheses/multiple.h"

namespace assay::cli {
namespace {

using stats::Proportion;
using stats::Side;

Json count_json(const Proportion& x) {
  return {{"count", x.successes}, {"n", x.n}};
}

void add_wilson(CLI::App& parent, Selected& selected) {
  CLI::App* command = parent.add_subcommand("wilson", "score interval of a proportion");
  const auto a = std::make_shared<std::string>();
  command->add_option("--a", *a, "count out of a total")->type_name("X/N")->required();
  const auto confidence = add_level(*command, "--confidence", 0.95, "confidence of the interval");
  set_body(*command, selected, [=](OutputFormat format) -> Result<int> {
    ASSAY_TRY(const Proportion x, parse_proportion("--a", *a));
    FigureRow row;
    row.add("share", static_cast<double>(x.successes) / static_cast<double>(x.n))
        .add("", stats::wilson_interval(x.successes, x.n, *confidence));
    Facts facts("Wilson's score interval, no continuity correction");
    return row.print(format, facts.confidence(*confidence).input("a", count_json(x)));
  });
}

// "3/40,0/40": a count for each cluster.
Result<std::vector<stats::ClusterCount>> parse_clusters(const std::string& option,
                                                        const std::string& text) {
  std::vector<stats::ClusterCount> clusters;
  for (const std::string& part : split(text, ',')) {
    ASSAY_TRY(const Proportion x, parse_proportion(option, part));
    clusters.push_back({x.successes, x.n});
  }
  return clusters;
}

void add_clusters(CLI::App& parent, Selected& selected) {
  CLI::App* command = parent.add_subcommand(
      "clusters", "design effect and score interval of a proportion counted in clusters");
  const auto a = std::make_shared<std::string>();
  command->add_option("--a", *a, "a count for each cluster (process)")
      ->type_name("X/N,X/N,...")
      ->required();
  const auto confidence = add_level(*command, "--confidence", 0.95, "confidence of the interval");
  set_body(*command, selected, [=](OutputFormat format) -> Result<int> {
    ASSAY_TRY(const std::vector<stats::ClusterCount> clusters, parse_clusters("--a", *a));
    Proportion all{0, 0};
    Json counts = Json::array();
    for (const stats::ClusterCount& cluster : clusters) {
      all.successes += cluster.successes;
      all.n += cluster.n;
      counts.push_back(count_json({cluster.successes, cluster.n}));
    }
    // If the clusters can't show it, there is no interval either: not that of the rows.
    const auto effect = stats::design_effect(clusters);
    const auto n = static_cast<double>(all.n);
    FigureRow row;
    row.add("share", static_cast<double>(all.successes) / n)
        .add_count("n", all.n)
        .add_count("clusters", std::ssize(clusters))
        .add("design_effect", effect)
        .add("effective_n", effect.transform([&](double d) { return n / d; }))
        .add("", effect
                     ? stats::clustered_wilson_interval(all.successes, all.n, *effect, *confidence)
                     : std::nullopt);
    Facts facts("Wilson's score interval at the effective n of the ratio estimator over clusters");
    return row.print(format, facts.confidence(*confidence).input("a", std::move(counts)));
  });
}

struct TwoCounts {
  std::string a;
  std::string b;
  std::string side = "two-sided";
};

std::shared_ptr<TwoCounts> add_two_counts(CLI::App& command, bool sided) {
  auto counts = std::make_shared<TwoCounts>();
  command.add_option("--a", counts->a, "count out of a total")->type_name("X/N")->required();
  command.add_option("--b", counts->b, "count out of a total")->type_name("X/N")->required();
  if (sided) {
    command
        .add_option("--alternative", counts->side,
                    "two-sided (default), greater or less: the share of a against that of b")
        ->check(CLI::IsMember({"two-sided", "greater", "less"}));
  }
  return counts;
}

Side side_of(const TwoCounts& counts) {
  return counts.side == "greater" ? Side::kGreater
         : counts.side == "less"  ? Side::kLess
                                  : Side::kTwo;
}

Facts& described(Facts& facts, const TwoCounts& counts, const Proportion& a, const Proportion& b) {
  facts.sides(counts.side).sign("greater: a's share is the larger");
  return facts.input("a", count_json(a)).input("b", count_json(b));
}

void add_fisher(CLI::App& parent, Selected& selected) {
  CLI::App* command = parent.add_subcommand("fisher", "Fisher's exact test of two proportions");
  const auto counts = add_two_counts(*command, true);
  set_body(*command, selected, [=](OutputFormat format) -> Result<int> {
    ASSAY_TRY(const Proportion a, parse_proportion("--a", counts->a));
    ASSAY_TRY(const Proportion b, parse_proportion("--b", counts->b));
    const auto test = stats::fisher_exact(a, b, side_of(*counts));
    FigureRow row;
    row.add("odds_ratio", test->odds_ratio).add_p(test->p, test->log_p);
    Facts facts("Fisher's exact test");
    return row.print(format, described(facts, *counts, a, b));
  });
}

void add_unconditional(CLI::App& parent, const std::string& name, const std::string& summary,
                       std::optional<stats::UnconditionalTest> (*run)(const Proportion&,
                                                                      const Proportion&, Side),
                       Selected& selected) {
  CLI::App* command = parent.add_subcommand(name, summary);
  const auto counts = add_two_counts(*command, true);
  set_body(*command, selected, [=](OutputFormat format) -> Result<int> {
    ASSAY_TRY(const Proportion a, parse_proportion("--a", counts->a));
    ASSAY_TRY(const Proportion b, parse_proportion("--b", counts->b));
    const auto test = run(a, b, side_of(*counts));
    if (!test) {
      return bad_input(
          "{}: expected totals whose product is at most 4e6 and counts that aren't all "
          "or none, found {} and {}",
          name, counts->a, counts->b);
    }
    FigureRow row;
    row.add("statistic", test->statistic).add_p(test->p, std::log(test->p)).add("at", test->at);
    Facts facts(name == "barnard" ? "Barnard's exact test" : "Boschloo's exact test");
    return row.print(format, described(facts, *counts, a, b));
  });
}

void add_newcombe(CLI::App& parent, Selected& selected) {
  CLI::App* command =
      parent.add_subcommand("newcombe", "interval of the difference of two proportions");
  const auto counts = add_two_counts(*command, false);
  const auto confidence = add_level(*command, "--confidence", 0.95, "confidence of the interval");
  set_body(*command, selected, [=](OutputFormat format) -> Result<int> {
    ASSAY_TRY(const Proportion a, parse_proportion("--a", counts->a));
    ASSAY_TRY(const Proportion b, parse_proportion("--b", counts->b));
    const auto share = [](const Proportion& x) {
      return static_cast<double>(x.successes) / static_cast<double>(x.n);
    };
    FigureRow row;
    row.add("difference", share(a) - share(b)).add("", stats::newcombe_interval(a, b, *confidence));
    Facts facts("Newcombe's hybrid score interval");
    facts.confidence(*confidence).sign("a - b");
    return row.print(format, facts.input("a", count_json(a)).input("b", count_json(b)));
  });
}

void add_adjustment(CLI::App& parent, const std::string& name, const std::string& summary,
                    std::vector<double> (*adjust)(std::span<const double>), Selected& selected) {
  CLI::App* command = parent.add_subcommand(name, summary);
  const auto p = std::make_shared<std::string>();
  command->add_option("--p", *p, "p-values, a list or a file")
      ->type_name("P,Q,...|FILE")
      ->required();
  set_body(*command, selected, [=](OutputFormat format) -> Result<int> {
    ASSAY_TRY(const std::vector<double> values, parse_values("--p", *p));
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
    Facts facts(summary);
    return print_rows(table, facts.input("family", static_cast<int64_t>(values.size())), format);
  });
}

}  // namespace

void add_stats_counts(CLI::App& parent, Selected& selected) {
  add_wilson(parent, selected);
  add_clusters(parent, selected);
  add_fisher(parent, selected);
  add_unconditional(parent, "barnard", "Barnard's unconditional exact test of two proportions",
                    stats::barnard_exact, selected);
  add_unconditional(parent, "boschloo", "Boschloo's unconditional exact test of two proportions",
                    stats::boschloo_exact, selected);
  add_newcombe(parent, selected);
  add_adjustment(parent, "holm", "Holm's adjustment of a family of p", stats::holm, selected);
  add_adjustment(parent, "bonferroni", "Bonferroni's adjustment", stats::bonferroni, selected);
  add_adjustment(parent, "bh", "Benjamini and Hochberg's adjustment", stats::benjamini_hochberg,
                 selected);
}

}  // namespace assay::cli
