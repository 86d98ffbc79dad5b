// assay stats anova TABLE.csv: two factors, rows of values or cells of figures.
#include <algorithm>
#include <map>

#include "base/files/files.h"
#include "base/tables/csv.h"
#include "base/text/text.h"
#include "cli/stats/stats_table.h"
#include "stats/hypotheses/anova.h"

namespace assay::cli {
namespace {

struct AnovaInput {
  std::string path;
  std::string factor_a;
  std::string factor_b;
  std::string response;  // empty: columns mean, sd, n
};

// Names of levels, numbered as they come.
class Levels {
 public:
  size_t index(const std::string& name) {
    return indices_.emplace(name, indices_.size()).first->second;
  }

 private:
  std::map<std::string, size_t> indices_;
};

struct Columns {
  size_t a = 0;
  size_t b = 0;
  size_t response = 0;  // or the mean, with sd and n behind it
  size_t sd = 0;
  size_t n = 0;
};

Result<size_t> column_of(const std::vector<std::string>& names, const std::string& name,
                         const std::string& path) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) {
    return bad_input("{} line 1: expected a column {}, found {}", path, quoted_excerpt(name),
                     excerpt(join(names, ", ")));
  }
  return static_cast<size_t>(found - names.begin());
}

Result<Columns> factor_columns(const std::vector<std::string>& names, const AnovaInput& in) {
  Columns columns;
  ASSAY_TRY(columns.a, column_of(names, in.factor_a, in.path));
  ASSAY_TRY(columns.b, column_of(names, in.factor_b, in.path));
  ASSAY_TRY(columns.response,
            column_of(names, in.response.empty() ? "mean" : in.response, in.path));
  if (in.response.empty()) {
    ASSAY_TRY(columns.sd, column_of(names, "sd", in.path));
    ASSAY_TRY(columns.n, column_of(names, "n", in.path));
  }
  return columns;
}

Result<std::vector<stats::AnovaCell>> read_cells(const AnovaInput& in) {
  ASSAY_TRY(std::string text, read_file(in.path));
  if (text.empty()) return bad_input("{}: expected a header line, found an empty file", in.path);
  if (!text.ends_with('\n')) text += '\n';
  CsvReader reader(text, in.path);
  ASSAY_TRY(const std::vector<std::string> names, reader.next());
  ASSAY_TRY(const Columns columns, factor_columns(names, in));
  Levels levels_a;
  Levels levels_b;
  std::vector<size_t> a;
  std::vector<size_t> b;
  std::vector<double> y;
  std::vector<stats::AnovaCell> cells;
  while (!reader.done()) {
    ASSAY_TRY(const std::vector<std::string> fields, reader.next());
    if (fields.size() == 1 && fields[0].empty()) continue;
    if (fields.size() != names.size()) {
      return bad_input("{} line {}: expected {} fields, found {}", in.path, reader.line(),
                       names.size(), fields.size());
    }
    const std::string where = fmt::format("{} line {}", in.path, reader.line());
    a.push_back(levels_a.index(fields[columns.a]));
    b.push_back(levels_b.index(fields[columns.b]));
    if (in.response.empty()) {
      ASSAY_TRY(const stats::Moments figures,
                parse_moments(where, fields[columns.response] + "," + fields[columns.sd] + "," +
                                         fields[columns.n]));
      cells.push_back({a.back(), b.back(), figures});
    } else {
      ASSAY_TRY(const double value, parse_number(where, fields[columns.response]));
      y.push_back(value);
    }
  }
  if (in.response.empty()) return cells;
  auto of_rows = stats::anova_cells(a, b, y);
  if (!of_rows) {
    return bad_input(
        "{} column {}: expected values whose variance in each combination of levels is a number "
        "that a double holds, found values too far apart or too close",
        in.path, in.response);
  }
  return std::move(*of_rows);
}

void append_term(Table& table, const std::string& name, const stats::AnovaTerm& term) {
  FigureRow row;
  row.add_text("term", name).add("sum_of_squares", term.sum_of_squares).add("df", term.df, 8);
  row.add("F", term.f);
  std::optional<stats::TestResult> test;
  if (term.p) test = stats::TestResult{0, std::nullopt, *term.p, *term.log_p};
  row.add_p(test)
      .add("eta_squared", term.eta_squared)
      .add("partial_eta_squared", term.partial_eta_squared)
      .append_to(table);
}

Result<StatsAnswer> anova(Given& given) {
  const AnovaInput in{given.text("table"), given.text("a"), given.text("b"),
                      given.text("response")};
  const bool is_second = given.text("type") == "2";
  ASSAY_TRY(const std::vector<stats::AnovaCell> cells, read_cells(in));
  const auto type = is_second ? stats::SumsOfSquares::kTypeII : stats::SumsOfSquares::kTypeIII;
  if (stats::anova_is_too_large(cells)) {
    return bad_input(
        "{}: expected at most 1,500 levels of {} or of {} (4e9 multiplications), found more levels "
        "of both in {} cells",
        in.path, in.factor_a, in.factor_b, cells.size());
  }
  const auto found = stats::two_way_anova(cells, type);
  if (!found) {
    return bad_input(
        "{}: expected at least 2 levels of {} and of {}, each combination at most once, and enough "
        "of them "
        "to separate the effects{}; found {}",
        in.path, in.factor_a, in.factor_b,
        is_second ? "" : " (with type 3, values in all combinations)",
        counted(std::ssize(cells), "combination"));
  }
  Table table;
  append_term(table, in.factor_a, found->a);
  append_term(table, in.factor_b, found->b);
  append_term(table, in.factor_a + ":" + in.factor_b, found->interaction);
  stats::AnovaTerm residual;
  residual.sum_of_squares = found->residual_sum_of_squares;
  residual.df = found->residual_df;
  append_term(table, "residual", residual);
  Facts facts = given.facts(
      fmt::format("two-way analysis of variance with interaction, sums of squares of type {}",
                  is_second ? "II" : "III"));
  facts.sides("upper tail of F").input("table", in.path).input("a", in.factor_a);
  facts.input("b", in.factor_b)
      .input("response", in.response.empty() ? "mean, sd, n" : in.response);
  return StatsAnswer(std::move(table), std::move(facts));
}

}  // namespace

StatsSubcommand stats_of_two_factors() {
  const auto text = [](const char* name, const char* meaning, bool needed) {
    return Parameter{
        .kind = Parameter::Kind::kText, .name = name, .meaning = meaning, .needed = needed};
  };
  Parameter table = text("table", "rows of values, or cells with mean, sd and n", true);
  table.type = "TABLE.csv";
  Parameter type = text("type", "sums of squares: 2 or 3", false);
  type.fallback = "2";
  type.words = {"2", "3"};
  return {
      "anova",
      "two-way analysis of variance with interaction, cells of any size",
      {table, text("a", "column of the first factor", true),
       text("b", "column of the second factor", true),
       text("response", "column of the values; without it, columns mean, sd and n", false), type},
      anova};
}

}  // namespace assay::cli
