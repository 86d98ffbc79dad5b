// The fields of a CSV or of a text's Markdown tables, before anything is known of their columns.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay::stats {

struct PublishedRecord {
  size_t line = 0;
  std::vector<std::string> fields;
};
struct PublishedRecords {
  PublishedRecord header;
  std::vector<PublishedRecord> rows;
};

// CSV gives one table, Markdown those that `is_wanted` by their header.
Result<std::vector<PublishedRecords>> read_published_records(
    std::string_view text, const std::string& object,
    const std::function<bool(const PublishedRecord& header)>& is_wanted);

}  // namespace assay::stats
