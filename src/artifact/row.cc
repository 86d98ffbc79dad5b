// Rows to fields and back: one list of the columns serves both directions.
#include "artifact/row.h"

#include <array>
#include <charconv>
#include <cmath>
#include <type_traits>

#include "base/count_limits.h"

namespace assay {
namespace {

// Number of columns by schema version, from the oldest on; the newest has all.
constexpr std::array<size_t, 4> kColumnsOfOlderVersions = {39, 46, 47, 49};
static_assert(kOldestBundleSchemaVersion + kColumnsOfOlderVersions.size() == kBundleSchemaVersion);

constexpr std::array kStatuses = {RowStatus::kOk,      RowStatus::kError, RowStatus::kCrash,
                                  RowStatus::kTimeout, RowStatus::kOom,   RowStatus::kFalseSuccess};

std::string column_name(const char* name) {
  return name;
}
std::string column_name(Counter counter) {
  return fmt::format("{}_delta", counter_name(counter));
}

// The columns: f(name, member) in the order of the schema, where the name is one for
// column_name(). R is Row or const Row.
template <typename R, typename F>
void for_each_column(R& row, F&& f) {
  const auto count = [&](Counter counter) { f(counter, row.counts[counter]); };
  f("cell_id", row.cell_id);
  f("backend", row.backend);
  f("arm", row.arm);
  f("model", row.model);
  f("dtype", row.dtype);
  f("quantization", row.quantization);
  f("cache", row.cache);
  f("compile_mode", row.compile_mode);
  f("dynamic", row.dynamic);
  f("padding", row.padding);
  f("phase", row.phase);
  f("scenario", row.scenario);
  f("prompt_id", row.prompt_id);
  f("batch", row.batch);
  f("prompt_tokens", row.prompt_tokens);
  f("padded_tokens", row.padded_tokens);
  f("new_tokens", row.new_tokens);
  f("repetition", row.repetition);
  f("block", row.block);
  f("order_index", row.order_index);
  f("status", row.status);
  f("error_class", row.error_class);
  f("cold", row.cold);
  f("latency_ms", row.latency_ms);
  f("device_ms", row.device_ms);
  f("ttft_ms", row.ttft_ms);
  f("tokens", row.tokens);
  f("tokens_per_s", row.tokens_per_s);
  count(Counter::kUniqueGraphs);
  count(Counter::kRecompiles);
  count(Counter::kKernelsCompiled);
  count(Counter::kGraphReplays);
  count(Counter::kFallbacks);
  f("sm_clock_mhz", row.sm_clock_mhz);
  f("temperature_c", row.temperature_c);
  f("power_w", row.power_w);
  f("throttled", row.throttled);
  f("output_hash", row.output_hash);
  f("started_at_ns", row.started_at_ns);
  count(Counter::kGraphBreaks);
  count(Counter::kRecompileLimitHits);
  count(Counter::kCudagraphCaptures);
  count(Counter::kCudagraphSkips);
  count(Counter::kFxCacheHits);
  f("compile_ms_delta", row.compile_ms_delta);
  f("fresh_cache", row.fresh_cache);
  f("process", row.process);
  count(Counter::kKernelsLoaded);
  f("energy_j", row.energy_j);
  f("yardstick_lookups_us", row.yardstick_lookups_us);
  f("yardstick_multiplies_us", row.yardstick_multiplies_us);
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
  if (!phase) return "prefill, kv_decode or e2e_kv";
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
  for (const auto& [name, value] :
       {std::pair<const char*, double>{"latency_ms", row.latency_ms.value_or(0)},
        {"device_ms", row.device_ms.value_or(0)},
        {"ttft_ms", row.ttft_ms.value_or(0)},
        {"compile_ms_delta", row.compile_ms_delta.value_or(0)},
        {"energy_j", row.energy_j.value_or(0)},
        {"yardstick_lookups_us", row.yardstick_lookups_us.value_or(0)},
        {"yardstick_multiplies_us", row.yardstick_multiplies_us.value_or(0)},
        {"tokens_per_s", row.tokens_per_s.value_or(0)}}) {
    if (value < 0) {
      return bad_input("{} column {}: expected no negative number, found {}", object, name, value);
    }
  }
  return {};
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
  static const std::vector<std::string> columns = [] {
    std::vector<std::string> names;
    Row row;
    for_each_column(row, [&](auto name, const auto&) { names.push_back(column_name(name)); });
    return names;
  }();
  const std::span all(columns);
  const auto older = static_cast<size_t>(schema_version - kOldestBundleSchemaVersion);
  return older < kColumnsOfOlderVersions.size() ? all.first(kColumnsOfOlderVersions[older]) : all;
}

std::vector<std::string> row_to_fields(const Row& row) {
  std::vector<std::string> fields;
  fields.reserve(row_columns().size());
  for_each_column(row, [&](auto, const auto& value) { fields.push_back(to_field(value)); });
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
  for_each_column(row, [&](auto name, auto&& value) {
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
