// The audit's table, checked field by field.
#include "stats/audit/published_table.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>

#include "base/add_once.h"
#include "base/text/text.h"
#include "stats/audit/published_records.h"

namespace assay::stats {
namespace {

// Meaning of one column of the table; all null: the label.
struct ColumnUse {
  const FigureColumn* figure = nullptr;
  const PairColumn* pair = nullptr;
  const ConventionAxis* axis = nullptr;
};

// "`Mean_A`" and "mean a" are mean_a.
std::string column_name(std::string_view printed) {
  std::string name;
  for (const char c : trim(printed)) {
    if (c == '`' || c == '*') continue;
    name += c == ' ' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return name;
}

std::optional<ColumnUse> use_of(const std::string& name) {
  if (name == "label") return ColumnUse{};
  for (const FigureColumn& column : figure_columns()) {
    if (column.name == name) return ColumnUse{&column, nullptr, nullptr};
  }
  for (const PairColumn& column : pair_columns()) {
    if (column.name == name) return ColumnUse{nullptr, &column, nullptr};
  }
  for (const ConventionAxis& axis : convention_axes()) {
    if (axis.can_be_declared && axis.name == name) return ColumnUse{nullptr, nullptr, &axis};
  }
  return std::nullopt;
}

std::vector<std::string> known_columns() {
  std::vector<std::string> known = {"label"};
  for (const FigureColumn& column : figure_columns()) known.emplace_back(column.name);
  for (const PairColumn& column : pair_columns()) known.emplace_back(column.name);
  for (const ConventionAxis& axis : convention_axes()) {
    if (axis.can_be_declared) known.emplace_back(axis.name);
  }
  return known;
}

Result<std::vector<ColumnUse>> parse_header(const PublishedRecord& header,
                                            const std::string& object) {
  std::vector<ColumnUse> columns;
  std::vector<std::string> names;
  for (const std::string& field : header.fields) {
    const std::string name = column_name(field);
    const auto use = use_of(name);
    if (!use) {
      const std::vector<std::string> known = known_columns();
      return bad_input("{} line {}: expected a column of {}, found {}{}", object, header.line,
                       join(known, ", "), quoted_excerpt(field), nearest_hint(name, known));
    }
    if (std::ranges::find(names, name) != names.end()) {
      return bad_input("{} line {}: expected each column once, found {} more often", object,
                       header.line, quoted_excerpt(field));
    }
    names.push_back(name);
    columns.push_back(*use);
  }
  return columns;
}

bool is_whole(double x) {
  return x <= 1e15 && x == std::floor(x);
}

// Requirement that a number of the column breaks; null if it breaks none.
const char* requirement(const FigureColumn& column, const PrintedNumber& number) {
  const double x = number.value;
  switch (column.quantity) {
    case Quantity::kNumber:
      return nullptr;
    case Quantity::kNonNegative:
      return x >= 0 ? nullptr : "a number of at least 0";
    case Quantity::kPositive:
      return x > 0 ? nullptr : "a number above 0";
    case Quantity::kCount:
      return x >= 1 && is_whole(x) && !number.is_approximate ? nullptr
                                                             : "a whole number of at least 1";
    case Quantity::kTally:
      return x >= 0 && is_whole(x) && !number.is_approximate ? nullptr
                                                             : "a whole number of at least 0";
    case Quantity::kProbability:
      return x >= 0 && x <= 1 ? nullptr : "a probability";
    case Quantity::kShare:
      return x >= 0 && x <= 1 ? nullptr : "a share between 0 and 1";
    case Quantity::kRate:
      return x >= 0 && x <= 100 ? nullptr : "a share, or a percentage up to 100";
    case Quantity::kLevel:
      return x > 0 && x < 1 ? nullptr : "a percentage between 0 and 100, or a share of 1";
    case Quantity::kCoefficient:
      return x >= -1 && x <= 1 ? nullptr : "a correlation between -1 and 1";
  }
  return nullptr;
}

Result<PrintedNumber> parse_figure(const FigureColumn& column, const std::string& field,
                                   const std::string& where) {
  auto number = parse_printed(field);
  if (!number) return with_context(where, number.error());
  const Quantity quantity = column.quantity;
  const bool is_share = quantity == Quantity::kProbability || quantity == Quantity::kShare ||
                        quantity == Quantity::kRate || quantity == Quantity::kLevel;
  const bool is_level_in_percent = quantity == Quantity::kLevel && number->value > 1;
  if (is_share && (number->is_percent || is_level_in_percent)) number->scale(0.01);
  if (const char* expected = requirement(column, *number)) {
    return bad_input("{}: expected {}, found {}", where, expected, quoted_excerpt(field));
  }
  if (number->is_bound()) {
    const bool may_be = column.role == Role::kClaim;
    if (may_be) return number;
    return bad_input("{}: expected a number without \"<\" or \">\", found {}", where,
                     quoted_excerpt(field));
  }
  const bool is_count = quantity == Quantity::kCount || quantity == Quantity::kTally;
  if (column.is_exact || is_count) number->low = number->high = number->value;
  // "p = 0" and "p ~ 0" round to nothing; they aren't a p below a half.
  if (quantity == Quantity::kProbability && number->value == 0 && number->high > 0.05) {
    number->high = 0.0005;
  }
  const bool is_signed = quantity == Quantity::kNumber || quantity == Quantity::kCoefficient;
  if (!is_signed) number->low = std::max(number->low, std::min(0.0, number->value));
  if (quantity == Quantity::kProbability || quantity == Quantity::kShare) {
    number->high = std::min(number->high, 1.0);
  }
  if (quantity == Quantity::kCoefficient) {
    number->low = std::max(number->low, -1.0);
    number->high = std::min(number->high, 1.0);
  }
  return number;
}

// "[4.2, 5.3]", "4.2 to 5.3", "4.2;5.3", "4.2–5.3"; "75-84 %" is a percentage at both ends.
std::optional<std::pair<std::string, std::string>> split_pair(std::string_view field) {
  field = trim(field);
  while (!field.empty() && std::string_view("[(").contains(field.front())) field.remove_prefix(1);
  while (!field.empty() && std::string_view("])").contains(field.back())) field.remove_suffix(1);
  for (const std::string_view separator : {";", " to ", ", ", ",", "\xE2\x80\x93"}) {
    // A dash at the very front is a sign.
    const size_t from = separator == "\xE2\x80\x93" ? std::min<size_t>(1, field.size()) : 0;
    const size_t at = field.find(separator, from);
    if (at == std::string_view::npos) continue;
    std::string first(trim(field.substr(0, at)));
    std::string second(trim(field.substr(at + separator.size())));
    if (second.ends_with('%') && !first.ends_with('%')) first += '%';
    return std::pair(std::move(first), std::move(second));
  }
  return std::nullopt;
}

// "240 of 300", "240/300".
std::optional<std::pair<std::string, std::string>> split_count(std::string_view field) {
  for (const std::string_view separator : {" of ", "/"}) {
    const size_t at = field.find(separator);
    if (at == std::string_view::npos) continue;
    return std::pair(std::string(trim(field.substr(0, at))),
                     std::string(trim(field.substr(at + separator.size()))));
  }
  return std::nullopt;
}

class RowReader {
 public:
  RowReader(PublishedRow& row, const std::string& object, size_t line)
      : row_(row), object_(object), line_(line) {}

  Status read(const ColumnUse& use, const std::string& field) {
    if (use.axis) return declare(*use.axis, field);
    if (use.pair) {
      const auto ends = split_pair(field);
      if (!ends) {
        return bad_input("{}: expected an interval [low, high], found {}", where(use.pair->name),
                         quoted_excerpt(field));
      }
      ASSAY_CHECK(add(column_of(use.pair->first), ends->first));
      return add(column_of(use.pair->second), ends->second);
    }
    const FigureColumn& column = *use.figure;
    if (column.is_list) return add_list(column, field);
    if (column.figure == Figure::kCountA || column.figure == Figure::kCountB) {
      if (const auto parts = split_count(field)) {
        const bool of_a = column.figure == Figure::kCountA;
        ASSAY_CHECK(add(column, parts->first));
        return add(column_of(of_a ? Figure::kTotalA : Figure::kTotalB), parts->second);
      }
    }
    return add(column, field);
  }

  // Checks each row's figures against one another.
  Status check() const {
    ASSAY_CHECK(check_count(Figure::kCountA, Figure::kTotalA));
    ASSAY_CHECK(check_count(Figure::kCountB, Figure::kTotalB));
    ASSAY_CHECK(check_lengths(Figure::kPList, Figure::kPAdjusted));
    return check_lengths(Figure::kPartMeans, Figure::kPartNs);
  }

 private:
  std::string where(std::string_view column) const {
    return fmt::format("{} line {} column {}", object_, line_, column);
  }

  Status declare(const ConventionAxis& axis, const std::string& field) {
    if (auto done = row_.declared.declare(axis, field); !done) {
      return with_context(where(axis.name), done.error());
    }
    return {};
  }

  Status add(const FigureColumn& column, const std::string& field) {
    ASSAY_TRY(const PrintedNumber number, parse_figure(column, field, where(column.name)));
    if (!row_.numbers.emplace(column.figure, number).second) {
      return bad_input("{}: expected one figure, found a second, {}", where(column.name),
                       quoted_excerpt(field));
    }
    return {};
  }

  Status add_list(const FigureColumn& column, const std::string& field) {
    std::vector<PrintedNumber>& list = row_.lists[column.figure];
    constexpr size_t kMost = 300;  // Hommel's adjustment is quadratic, and asked for each
    for (const std::string& part : split(field, ';')) {
      ASSAY_TRY(const PrintedNumber number, parse_figure(column, part, where(column.name)));
      list.push_back(number);
      if (list.size() > kMost) {
        return bad_input("{}: expected at most {} numbers, found more", where(column.name), kMost);
      }
    }
    return {};
  }

  Status check_count(Figure count, Figure total) const {
    const auto k = row_.numbers.find(count);
    const auto n = row_.numbers.find(total);
    if (k == row_.numbers.end() || n == row_.numbers.end()) return {};
    if (k->second.value <= n->second.value) return {};
    return bad_input("{}: expected at most {} of {}, found {}", where(figure_name(count)),
                     n->second.text, figure_name(total), k->second.text);
  }

  Status check_lengths(Figure first, Figure second) const {
    const auto a = row_.lists.find(first);
    const auto b = row_.lists.find(second);
    if (a == row_.lists.end() || b == row_.lists.end()) return {};
    if (a->second.size() == b->second.size()) return {};
    return bad_input("{}: expected {} numbers as in {}, found {}", where(figure_name(second)),
                     a->second.size(), figure_name(first), b->second.size());
  }

  PublishedRow& row_;
  const std::string& object_;
  size_t line_;
};

// Values with a step make claims of their means and deviations.
bool has_claim(const PublishedRow& row) {
  if (row.numbers.contains(Figure::kStep)) return true;
  const auto is_claim = [](Figure figure) { return column_of(figure).role == Role::kClaim; };
  return std::ranges::any_of(row.numbers, [&](const auto& x) { return is_claim(x.first); }) ||
         std::ranges::any_of(row.lists, [&](const auto& x) { return is_claim(x.first); });
}

Result<PublishedTable::Row> read_row(const PublishedRecord& record,
                                     std::span<const ColumnUse> columns,
                                     const std::string& object) {
  if (record.fields.size() != columns.size()) {
    return bad_input("{} line {}: expected {} fields, found {}", object, record.line,
                     columns.size(), record.fields.size());
  }
  PublishedTable::Row row;
  row.line = record.line;
  RowReader reader(row.figures, object, record.line);
  for (size_t i = 0; i < columns.size(); ++i) {
    const std::string& field = record.fields[i];
    if (!columns[i].figure && !columns[i].pair && !columns[i].axis) {
      row.label = field;
    } else if (!is_unprinted(field)) {
      ASSAY_CHECK(reader.read(columns[i], field));
    }
  }
  ASSAY_CHECK(reader.check());
  return row;
}

}  // namespace

Result<PublishedTable> parse_published_table(std::string_view text, const std::string& object) {
  const auto is_wanted = [](const PublishedRecord& header) {
    return std::ranges::any_of(header.fields, [](const std::string& field) {
      const auto use = use_of(column_name(field));
      return use && (use->figure || use->pair);
    });
  };
  ASSAY_TRY(const std::vector<PublishedRecords> tables,
            read_published_records(text, object, is_wanted));
  PublishedTable published;
  bool claims = false;
  for (const PublishedRecords& table : tables) {
    ASSAY_TRY(const std::vector<ColumnUse> columns, parse_header(table.header, object));
    for (const PublishedRecord& record : table.rows) {
      ASSAY_TRY(PublishedTable::Row row, read_row(record, columns, object));
      claims = claims || has_claim(row.figures);
      published.rows.push_back(std::move(row));
    }
  }
  if (!claims) {
    return bad_input("{}: expected at least one claimed figure (t, p, d, ...), found none", object);
  }
  return published;
}

std::string published_table_template() {
  std::string text =
      "# A table for `assay stats audit`: a row of published figures a line, as they are printed.\n"
      "# Leave a field empty where nothing was printed, delete columns and add others. Numbers "
      "may\n"
      "# be \"1,620\" (in quotes), 2.59 x 10^-11, <0.001, 85 %; lists have \";\" between them.\n"
      "# What a row declares (method, sides, ...) is binding; without it every convention is "
      "tried.\n"
      "#\n# label: a name for the row\n";
  for (const FigureColumn& column : figure_columns()) {
    text +=
        fmt::format("# {}: {}{}\n", column.name, column.meaning, column.is_list ? " (a list)" : "");
  }
  for (const PairColumn& column : pair_columns()) {
    text += fmt::format("# {}: {}\n", column.name, column.meaning);
  }
  for (const ConventionAxis& axis : convention_axes()) {
    if (!axis.can_be_declared) continue;
    std::vector<std::string> words;
    for (const ConventionOption& option : axis.options) {
      std::string word = split(option.keywords, ' ')[0];
      add_once(words, std::move(word));
    }
    text += fmt::format("# {}: {}\n", axis.name, join(words, ", "));
  }
  text +=
      "#\n"
      "label,method,sides,mean_a,sd_a,n_a,mean_b,sd_b,n_b,delta,ci,t,df,p,d\n"
      "an example,student,two,11.87,9.19,\"1,620\",7.12,6.73,\"1,620\",4.75,\"[4.20, 5.30]\","
      "16.78,3238,1.1 x 10^-60,0.59\n";
  return text;
}

}  // namespace assay::stats
