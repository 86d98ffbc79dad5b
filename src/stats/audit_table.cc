// The audit's CSV, checked field by field.
#include "stats/audit_table.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/csv.h"
#include "base/text.h"

namespace assay::stats {
namespace {

struct Header {
  std::vector<std::optional<Figure>> figures;  // by column; absent for the label
};

Result<Header> parse_header(const std::vector<std::string>& fields, const std::string& object) {
  std::vector<std::string> known = {"label"};
  for (const FigureColumn& column : figure_columns()) known.emplace_back(column.name);
  Header header;
  for (size_t i = 0; i < fields.size(); ++i) {
    const std::string& name = fields[i];
    if (std::ranges::find(known, name) == known.end()) {
      return bad_input("{} line 1: expected a column of {}, found {}{}", object, join(known, ", "),
                       quoted_excerpt(name), nearest_hint(name, known));
    }
    if (std::ranges::count(fields, name) > 1) {
      return bad_input("{} line 1: expected each column once, found {} more often", object,
                       quoted_excerpt(name));
    }
    const auto columns = figure_columns();
    const auto column = std::ranges::find(columns, name, &FigureColumn::name);
    header.figures.push_back(column == columns.end() ? std::nullopt
                                                     : std::optional(column->figure));
  }
  return header;
}

// What the figure must be beyond a number; null if it is.
const char* requirement(Figure figure, const PrintedNumber& number) {
  const double x = number.value;
  switch (figure) {
    case Figure::kNA:
    case Figure::kNB:
      return x >= 1 && x <= 1e15 && x == std::floor(x) ? nullptr : "a whole number of at least 1";
    case Figure::kSdA:
    case Figure::kSdB:
    case Figure::kSe:
      return x >= 0 ? nullptr : "a number of at least 0";
    case Figure::kDf:
    case Figure::kDf1:
    case Figure::kDf2:
    case Figure::kMargin:
      return x > 0 ? nullptr : "a number above 0";
    case Figure::kConfidence:
      return x > 0 && x < 100 ? nullptr : "a percentage between 0 and 100";
    case Figure::kP:
    case Figure::kTostP:
      return x >= 0 && x <= 1 ? nullptr : "a probability";
    case Figure::kEtaSquared:
      return x >= 0 && x <= 1 ? nullptr : "a share between 0 and 1";
    case Figure::kF:
      return x >= 0 ? nullptr : "a number of at least 0";
    default:
      return nullptr;
  }
}

bool is_claim(Figure figure) {
  return std::ranges::find(figure_columns(), figure, &FigureColumn::figure)->is_claim;
}

bool is_exact(Figure figure) {
  using enum Figure;
  return figure == kNA || figure == kNB || figure == kConfidence || figure == kMargin ||
         figure == kDf1;
}

Result<PrintedNumber> parse_figure(Figure figure, const std::string& field,
                                   const std::string& where) {
  auto number = parse_printed(field);
  if (!number) return with_context(where, number.error());
  if (const char* expected = requirement(figure, *number)) {
    return bad_input("{}: expected {}, found {}", where, expected, quoted_excerpt(field));
  }
  if (number->is_bound && figure != Figure::kP && figure != Figure::kTostP) {
    return bad_input("{}: expected a number without \"<\", found {}", where, quoted_excerpt(field));
  }
  if (is_exact(figure)) number->low = number->high = number->value;
  const bool is_never_negative = requirement(figure, PrintedNumber::exact(-1)) != nullptr;
  if (is_never_negative) number->low = std::max(number->low, std::min(0.0, number->value));
  if (figure == Figure::kP || figure == Figure::kTostP) number->low = std::max(number->low, 0.0);
  return number;
}

}  // namespace

Result<PublishedTable> parse_published_table(std::string_view text, const std::string& object) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // a byte order mark
  if (text.empty()) return bad_input("{}: expected a header line, found an empty file", object);
  std::string ended;
  if (!text.ends_with('\n')) {  // written by hand
    ended = std::string(text) + "\n";
    text = ended;
  }
  CsvReader reader(text, object);
  ASSAY_TRY(const std::vector<std::string> names, reader.next());
  ASSAY_TRY(const Header header, parse_header(names, object));
  PublishedTable table;
  bool claims = false;
  while (!reader.done()) {
    ASSAY_TRY(const std::vector<std::string> fields, reader.next());
    if (fields.size() == 1 && fields[0].empty()) continue;  // an empty line
    if (fields.size() != names.size()) {
      return bad_input("{} line {}: expected {} fields, found {}", object, reader.line(),
                       names.size(), fields.size());
    }
    PublishedTable::Row row;
    row.line = reader.line();
    for (size_t i = 0; i < fields.size(); ++i) {
      if (!header.figures[i]) {
        row.label = fields[i];
        continue;
      }
      if (fields[i].empty() || fields[i] == "-") continue;
      const std::string where = fmt::format("{} line {} column {}", object, row.line, names[i]);
      ASSAY_TRY(const PrintedNumber number, parse_figure(*header.figures[i], fields[i], where));
      row.figures.emplace(*header.figures[i], number);
    }
    claims = claims || std::ranges::any_of(row.figures,
                                           [](const auto& entry) { return is_claim(entry.first); });
    table.rows.push_back(std::move(row));
  }
  if (!claims) {
    return bad_input("{}: expected at least one claimed figure (t, p, d, ...), found none", object);
  }
  return table;
}

}  // namespace assay::stats
