// Rows to fields and back: one list of the columns serves both directions.
#include "artifact/row.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <type_traits>
#include <utility>

#include "base/records/count_limits.h"

namespace assay {
namespace {

constexpr std::array kStatuses = {RowStatus::kOk,      RowStatus::kError, RowStatus::kCrash,
                                  RowStatus::kTimeout, RowStatus::kOom,   RowStatus::kFalseSuccess};

std::string column_name(std::string_view name) {
  return std::string(name);
}
std::string column_name(Counter counter) {
  return fmt::format("{}_delta", counter_name(counter));
}

// Counts and measured figures that came with a version, in the order of their tables.
template <int64_t kVersion, typename R, typename F>
void for_counts(R& row, F&& f) {
  [&]<size_t... I>(std::index_sequence<I...>) {
    const auto each = [&]<size_t kAt>() {
      constexpr CounterEntry kEntry = kCounterTable[kAt];
      if constexpr (kEntry.schema_version == kVersion) {
        f(kEntry.counter, row.counts[kEntry.counter], kVersion);
      }
    };
    (each.template operator()<I>(), ...);
  }
  (std::make_index_sequence<kCounters>());
}
template <int64_t kVersion, typename R, typename F>
void for_measured(R& row, F&& f) {
  [&]<size_t... I>(std::index_sequence<I...>) {
    const auto each = [&]<size_t kAt>() {
      constexpr MeasuredColumn kEntry = kMeasuredColumns[kAt];
      if constexpr (kEntry.schema_version == kVersion) {
        f(kEntry.column, row.*kEntry.value, kVersion);
      }
    };
    (each.template operator()<I>(), ...);
  }
  (std::make_index_sequence<std::size(kMeasuredColumns)>());
}

// The columns: f(name, member, schema version) in the order of the schema, where the name is one
// for column_name(). R is Row or const Row. Versions from 4 on added nothing but counts and
// figures.
template <typename R, typename F>
void for_each_column(R& row, F&& f) {
  const auto first = [&](const char* name, auto& member) { f(name, member, int64_t{1}); };
  first("cell_id", row.cell_id);
  first("backend", row.backend);
  first("arm", row.arm);
  first("model", row.model);
  first("dtype", row.dtype);
  first("quantization", row.quantization);
  first("cache", row.cache);
  first("compile_mode", row.compile_mode);
  first("dynamic", row.dynamic);
  first("padding", row.padding);
  first("phase", row.phase);
  first("scenario", row.scenario);
  first("prompt_id", row.prompt_id);
  first("batch", row.batch);
  first("prompt_tokens", row.prompt_tokens);
  first("padded_tokens", row.padded_tokens);
  first("new_tokens", row.new_tokens);
  first("repetition", row.repetition);
  first("block", row.block);
  first("order_index", row.order_index);
  first("status", row.status);
  first("error_class", row.error_class);
  first("cold", row.cold);
  for_measured<1>(row, f);
  first("tokens", row.tokens);
  first("tokens_per_s", row.tokens_per_s);
  for_counts<1>(row, f);
  first("sm_clock_mhz", row.sm_clock_mhz);
  first("temperature_c", row.temperature_c);
  first("power_w", row.power_w);
  first("throttled", row.throttled);
  first("output_hash", row.output_hash);
  first("started_at_ns", row.started_at_ns);
  for_counts<2>(row, f);
  f("compile_ms_delta", row.compile_ms_delta, int64_t{2});
  f("fresh_cache", row.fresh_cache, int64_t{2});
  f("process", row.process, int64_t{3});
  [&]<int64_t... V>(std::integer_sequence<int64_t, V...>) {
    ((for_counts<4 + V>(row, f), for_measured<4 + V>(row, f)), ...);
  }
  (std::make_integer_sequence<int64_t, kBundleSchemaVersion - 3>());
}

std::string to_field(const SharedText& value) {
  return value.str();
}
std::string to_field(Phase value) {
  return std::string(phase_name(value));
}
std::string to_field(RowStatus value) {
  return std::string(row_status_name(value));
}
std::string to_field(bool value) {
  return value ? "true" : "false";
}
std::string to_field(int64_t value) {
  return fmt::format("{}", value);
}
std::string to_field(OptionalCount value) {
  return value ? to_field(*value) : "";
}
std::string to_field(double value) {
  // fmt's plain form is the shortest that reads back as the same number.
  return std::isfinite(value) ? fmt::format("{}", value) : "";
}
template <typename T>
std::string to_field(const std::optional<T>& value) {
  return value ? to_field(*value) : "";
}

// The from_field functions give the expectation that the text doesn't fit, or none if it fits.
using Expected = std::optional<std::string_view>;

Expected from_field(std::string_view text, Phase& value) {
  const auto phase = parse_phase(text);
  if (!phase) return "prefill, kv_decode, e2e_kv or load";
  value = *phase;
  return std::nullopt;
}

Expected from_field(std::string_view text, RowStatus& value) {
  const auto status = parse_row_status(text);
  if (!status) return "ok, error, crash, timeout, oom or false_success";
  value = *status;
  return std::nullopt;
}

Expected from_field(std::string_view text, bool& value) {
  if (text != "true" && text != "false") return "true or false";
  value = text == "true";
  return std::nullopt;
}

template <typename T>
requires std::is_same_v<T, int64_t> || std::is_same_v<T, double> Expected
from_field(std::string_view text, T& value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  const bool whole = error == std::errc() && stop == end;
  if constexpr (std::is_same_v<T, double>) {
    if (!whole || !std::isfinite(value)) return "a finite number";
  } else {
    if (!whole) return "an integer";
  }
  return std::nullopt;
}

Expected from_field(std::string_view text, OptionalCount& value) {
  value.reset();
  if (text.empty()) return std::nullopt;
  int64_t count = 0;
  if (from_field(text, count) || count < 0 || count > kMostCounted) {
    return "a count of at most 1e15";
  }
  value = count;
  return std::nullopt;
}

template <typename T>
Expected from_field(std::string_view text, std::optional<T>& value) {
  value.reset();
  if (text.empty()) return std::nullopt;
  return from_field(text, value.emplace());
}

// Checks the rules for every row, whatever became of the repetition.
Status check_row(const Row& row, std::string_view object) {
  for (const auto& [name, text] :
       {std::pair<const char*, const SharedText&>{"cell_id", row.cell_id},
        {"backend", row.backend},
        {"arm", row.arm},
        {"model", row.model},
        {"scenario", row.scenario}}) {
    if (text.empty())
      return bad_input("{} column {}: expected a name, found nothing", object, name);
  }
  for (const auto& [name, value, least, most] :
       {std::tuple<const char*, int64_t, int64_t, int64_t>{"batch", row.batch, 1,
                                                           kMostTokensOfACall},
        {"prompt_tokens", row.prompt_tokens, 0, kMostTokensOfACall},
        {"padded_tokens", row.padded_tokens, 0, kMostTokensOfACall},
        {"new_tokens", row.new_tokens, 0, kMostTokensOfACall},
        {"repetition", row.repetition, -kMostCounted, kMostCounted},
        {"block", row.block, 0, kMostCounted},
        {"order_index", row.order_index, 0, kMostCounted},
        {"tokens", row.tokens.value_or(0), 0, INT64_MAX}}) {
    if (value < least) {
      return bad_input("{} column {}: expected at least {}, found {}", object, name, least, value);
    }
    if (value > most) {
      return bad_input("{} column {}: expected at most {}, found {}", object, name, most, value);
    }
  }
  const auto not_negative = [&](std::string_view name, std::optional<double> value) -> Status {
    if (value.value_or(0) >= 0) return {};
    return bad_input("{} column {}: expected no negative number, found {}", object, name, *value);
  };
  for (const MeasuredColumn& column : kMeasuredColumns) {
    ASSAY_CHECK(not_negative(column.column, row.*column.value));
  }
  ASSAY_CHECK(not_negative("compile_ms_delta", row.compile_ms_delta));
  return not_negative("tokens_per_s", row.tokens_per_s);
}

}  // namespace

std::string_view row_status_name(RowStatus status) {
  switch (status) {
    case RowStatus::kOk:
      return "ok";
    case RowStatus::kError:
      return "error";
    case RowStatus::kCrash:
      return "crash";
    case RowStatus::kTimeout:
      return "timeout";
    case RowStatus::kOom:
      return "oom";
    case RowStatus::kFalseSuccess:
      break;
  }
  return "false_success";
}

std::optional<RowStatus> parse_row_status(std::string_view name) {
  for (RowStatus status : kStatuses) {
    if (row_status_name(status) == name) return status;
  }
  return std::nullopt;
}

void put_count(Row& row, Counter counter, int64_t count) {
  if (static_cast<size_t>(counter) < kDeltaColumns) {
    row.counts[counter] = count;
  } else if (counter == Counter::kCompileNs) {
    row.compile_ms_delta = static_cast<double>(count) / 1e6;
  } else if (counter == Counter::kFreshCache) {
    row.fresh_cache = count != 0;
  }
}

std::span<const std::string> row_columns(int64_t schema_version) {
  struct Columns {
    std::vector<std::string> names;
    std::array<size_t, kBundleSchemaVersion + 1> count{};  // by version
  };
  static const Columns columns = [] {
    Columns made;
    const Row row;
    for_each_column(row, [&](auto name, const auto&, int64_t version) {
      made.names.push_back(column_name(name));
      made.count[static_cast<size_t>(version)] = made.names.size();
    });
    // A version may change other files alone.
    for (size_t i = 1; i < made.count.size(); ++i)
      made.count[i] = std::max(made.count[i], made.count[i - 1]);
    return made;
  }();
  const int64_t known = std::clamp<int64_t>(schema_version, 1, kBundleSchemaVersion);
  return std::span(columns.names).first(columns.count[static_cast<size_t>(known)]);
}

std::vector<std::string> row_to_fields(const Row& row) {
  std::vector<std::string> fields;
  fields.reserve(row_columns().size());
  for_each_column(row,
                  [&](auto, const auto& value, int64_t) { fields.push_back(to_field(value)); });
  return fields;
}

Result<Row> row_from_fields(std::span<const std::string_view> fields, TextPool& texts,
                            std::string_view object, int64_t schema_version) {
  const size_t columns = row_columns(schema_version).size();
  if (fields.size() != columns) {
    return bad_input("{}: expected {} columns, found {}", object, columns, fields.size());
  }
  Row row;
  Status status;
  size_t index = 0;
  for_each_column(row, [&](auto name, auto&& value, int64_t) {
    if (index == columns) return;  // the rest is of a later version
    const std::string_view text = fields[index++];
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, SharedText>) {
      value = texts.share(text, index);
    } else {
      const Expected expected = from_field(text, value);
      if (expected && status) {
        status = bad_input("{} column {}: expected {}, found \"{}\"", object, column_name(name),
                           *expected, text.substr(0, 80));
      }
    }
  });
  ASSAY_CHECK(std::move(status));
  ASSAY_CHECK(check_row(row, object));
  return row;
}

Result<Row> row_from_fields(const std::vector<std::string>& fields, std::string_view object) {
  TextPool texts;
  const std::vector<std::string_view> views(fields.begin(), fields.end());
  return row_from_fields(views, texts, object);
}

}  // namespace assay
