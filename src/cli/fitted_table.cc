#include "cli/fitted_table.h"

#include <algorithm>
#include <set>

#include "base/text/fit_text.h"
#include "base/text/text.h"
#include "report/screen/fitter.h"

namespace assay::cli {
namespace {

bool is_shared(const Table& table, size_t column) {
  return std::ranges::all_of(table.rows, [&](const auto& row) {
    return cell_text(row[column]) == cell_text(table.rows.front()[column]);
  });
}

void number_rows(Table& table) {
  std::set<std::string> numbers;
  for (const auto& row : table.rows) numbers.insert(split(cell_text(row[0]), '-').front());
  if (numbers.size() != table.rows.size()) return;
  for (auto& row : table.rows) row[0] = TableCell(split(cell_text(row[0]), '-').front());
}

}  // namespace

Table fitted(Table table, size_t columns) {
  if (table.rows.size() < 2 || table_width(table) <= columns) return table;
  number_rows(table);
  Table narrow{table.title, {}, std::vector<std::vector<TableCell>>(table.rows.size())};
  std::vector<std::string> shared;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    if (is_shared(table, i)) {
      const TableCell& cell = table.rows.front()[i];
      if (!cell.value.is_null()) {
        shared.push_back(fmt::format("{} {}", table.columns[i].name, cell_text(cell)));
      }
      continue;
    }
    narrow.columns.push_back(table.columns[i]);
    for (size_t r = 0; r < table.rows.size(); ++r) narrow.rows[r].push_back(table.rows[r][i]);
  }
  if (!shared.empty()) narrow.title += ", each with " + join(shared, ", ");
  return narrow;
}

}  // namespace assay::cli
