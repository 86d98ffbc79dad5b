// Rows out of a metrics file's text.
#include "artifact/metrics_file.h"

#include <unistd.h>

#include <algorithm>

#include "base/tables/csv.h"
#include "base/text/text.h"

namespace assay {

uint64_t max_metrics_bytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), page_bytes = ::sysconf(_SC_PAGESIZE);
  constexpr uint64_t kUnknown = uint64_t{1} << 32;
  return pages > 0 && page_bytes > 0
             ? static_cast<uint64_t>(pages) / 2 * static_cast<uint64_t>(page_bytes)
             : kUnknown;
}

Status for_each_row(std::string_view text, Phase phase, int64_t schema_version,
                    const std::string& object, const std::function<void(Result<Row>)>& each) {
  CsvReader reader(text, object);
  if (reader.done()) return {};
  ASSAY_TRY(const std::vector<std::string> header, reader.next());
  if (!std::ranges::equal(header, row_columns(schema_version))) {
    return bad_input("{} line 1: expected the {} columns of schema version {}, found {}: \"{}\"",
                     object, row_columns(schema_version).size(), schema_version, header.size(),
                     join(header, ",").substr(0, 80));
  }
  TextPool texts;
  std::vector<std::string_view> fields;
  while (!reader.done()) {
    ASSAY_CHECK(reader.next(fields));
    Result<Row> row = row_from_fields(fields, texts, "", schema_version);
    if (row && row->phase == phase) {
      each(std::move(row));
      continue;
    }
    const std::string name = fmt::format("{} line {}", object, reader.line());
    if (row) {
      row = bad_input("{} column phase: expected {}, found {}", name, phase_name(phase),
                      phase_name(row->phase));
    } else {
      row = row_from_fields(fields, texts, name, schema_version);  // the error again, with its name
    }
    each(std::move(row));
  }
  return {};
}

}  // namespace assay
