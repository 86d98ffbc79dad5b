// assay stats audit TABLE: every claimed figure of a published table held against the others.
#include <map>

#include "base/files/files.h"
#include "base/text/text.h"
#include "cli/stats/stats_input.h"
#include "stats/audit/audit.h"
#include "stats/audit/published_table.h"

namespace assay::cli {
namespace {

using stats::AuditedFigure;
using stats::Verdict;

struct AuditInput {
  std::string path;
  bool wants_template = false;
  std::string method;
  std::string sides;
};

// All of them for machines, the first for people.
TableCell also_cell(const std::vector<std::string>& names) {
  if (names.empty()) return {Json::array(), "-"};
  constexpr size_t kShown = 2;
  std::string text = join(std::span(names).first(std::min(names.size(), kShown)), "; ");
  if (names.size() > kShown) text += fmt::format("; {} more", names.size() - kShown);
  return {Json(names), text};
}

void append_figure(Table& table, const stats::PublishedTable::Row& row,
                   const AuditedFigure& figure) {
  const auto end = [&](double stats::Interval::*which) {
    return figure.range ? TableCell((*figure.range).*which, 5) : TableCell::absent();
  };
  const auto text = [](const std::string& words) { return TableCell::if_any(words); };
  std::string name(stats::figure_name(figure.figure));
  if (figure.element) name += fmt::format("[{}]", *figure.element);
  table.rows.push_back({static_cast<int64_t>(row.line), text(row.label), name, figure.claimed,
                        stats::verdict_name(figure.verdict), TableCell(figure.recomputed, 5),
                        end(&stats::Interval::low), end(&stats::Interval::high), text(figure.from),
                        text(figure.as), also_cell(figure.also)});
}

// Members behind the columns of a row, for machines; null if the figure has no such fact.
Json facts_of(const AuditedFigure& figure) {
  Json facts = {{"method", nullptr}, {"sides", nullptr}, {"confidence", nullptr}};
  facts["conventions"] = Json::object();
  if (figure.confidence) facts["confidence"] = *figure.confidence;
  for (const auto& [axis, option] : figure.conventions) {
    if (axis == stats::Axis::kTest || axis == stats::Axis::kSides) {
      facts[stats::axis_of(axis).name] = option;
    } else {
      facts["conventions"][stats::axis_of(axis).name] = option;
    }
  }
  return facts;
}

Result<stats::Declared> declared_by(const AuditInput& in) {
  stats::Declared declared;
  const auto declare = [&](const char* option, stats::Axis axis,
                           const std::string& word) -> Status {
    if (word.empty()) return {};
    if (auto done = declared.declare(stats::axis_of(axis), word); !done) {
      return with_context(option, done.error());
    }
    return {};
  };
  ASSAY_CHECK(declare("--method", stats::Axis::kTest, in.method));
  ASSAY_CHECK(declare("--sides", stats::Axis::kSides, in.sides));
  return declared;
}

Result<int> audit(const AuditInput& in, OutputFormat format) {
  if (in.wants_template) {
    if (!in.path.empty() || !in.method.empty() || !in.sides.empty()) {
      return bad_input("--template: expected no TABLE, --method or --sides beside it, found {}",
                       quoted_excerpt(in.path + in.method + in.sides));
    }
    fmt::print("{}", stats::published_table_template());
    return 0;
  }
  if (in.path.empty()) return bad_input("audit: expected a TABLE or --template, found neither");
  ASSAY_TRY(const stats::Declared declared, declared_by(in));
  ASSAY_TRY(const std::string text, read_file(in.path));
  ASSAY_TRY(stats::PublishedTable published, stats::parse_published_table(text, in.path));
  Table table;
  table.columns = columns_of(
      "line|<label|<figure|claimed|<verdict|recomputed|low|high|<from|<as|"
      "<also");
  std::map<Verdict, size_t> counts;
  std::vector<Json> facts;
  for (auto& row : published.rows) {
    row.figures.declared.default_to(declared);
    for (const AuditedFigure& figure : stats::audit_row(row.figures)) {
      ++counts[figure.verdict];
      append_figure(table, row, figure);
      facts.push_back(facts_of(figure));
    }
  }
  table.title = fmt::format("{}: {} consistent, {} inconsistent, {} not determined", in.path,
                            counts[Verdict::kConsistent], counts[Verdict::kInconsistent],
                            counts[Verdict::kNotDetermined]);
  if (format == OutputFormat::kJson) {
    Json rows = table.to_json();
    for (size_t i = 0; i < rows.size(); ++i) rows[i].update(facts[i]);
    fmt::print("{}", to_json_text(rows));
  } else {
    print_table(table, format);
  }
  return counts[Verdict::kInconsistent] > 0 ? 1 : 0;
}

}  // namespace

void add_stats_audit(CLI::App& parent, Selected& selected) {
  CLI::App* command = parent.add_subcommand(
      "audit",
      "recompute the claimed figures of a published table; exit 1 if a row is inconsistent");
  command->footer(
      "--template says what each column means:\n  assay stats audit --template > table.csv\n");
  const auto in = std::make_shared<AuditInput>();
  command->add_option("table", in->path, "table of published figures, CSV or Markdown")
      ->type_name("TABLE");
  command->add_flag("--template", in->wants_template, "write a commented CSV to fill in");
  command->add_option("--method", in->method,
                      "test that every row has to fit: welch, student, paired, z, ...");
  command->add_option("--sides", in->sides,
                      "sides that every row has to fit: two, one, greater or less");
  const auto format = add_output_format(*command);
  command->callback([=, &selected] { selected.body = [=] { return audit(*in, *format); }; });
}

}  // namespace assay::cli
