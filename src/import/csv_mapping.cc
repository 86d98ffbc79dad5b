// A mapping file to its parts.
#include "import/csv_mapping.h"

#include <algorithm>
#include <array>

#include "base/text/text.h"
#include "study/yaml_reader.h"

namespace assay {
namespace {

constexpr std::array<std::string_view, kCsvFigures> kFigureColumns = {
    "latency", "latencies", "tokens_per_s", "ttft",       "device_time", "tokens",
    "status",  "error",     "prompt_id",    "started_at", "series"};

struct TimeUnit {
  const char* name;
  double ms;
};
constexpr std::array<TimeUnit, 4> kTimeUnits = {
    {{"ns", 1e-6}, {"us", 1e-3}, {"ms", 1}, {"s", 1e3}}};

const std::vector<std::string>& time_unit_names() {
  static const std::vector<std::string> names = {"ns", "us", "ms", "s"};
  return names;
}

bool is_time(CsvFigure figure) {
  return figure == CsvFigure::kLatency || figure == CsvFigure::kLatencies ||
         figure == CsvFigure::kTtft || figure == CsvFigure::kDeviceTime;
}

std::optional<CsvFigure> parse_figure(std::string_view name) {
  const auto at = std::ranges::find(kFigureColumns, name);
  if (at == kFigureColumns.end()) return std::nullopt;
  return static_cast<CsvFigure>(at - kFigureColumns.begin());
}

// Names that the key `columns` may have.
std::vector<std::string> column_keys() {
  std::vector<std::string> keys(kFigureColumns.begin(), kFigureColumns.end());
  const auto& fields = import_field_names();
  keys.insert(keys.end(), fields.begin(), fields.end());
  return keys;
}

Status read_columns(const YamlValue& value, CsvMapping& mapping) {
  ASSAY_TRY(const YamlMap map, value.map(column_keys()));
  for (const std::string& key : map.keys()) {
    ASSAY_TRY(const YamlValue column, map.require(key));
    ASSAY_TRY(std::string name, column.text());
    if (const auto figure = parse_figure(key)) {
      mapping.figure_columns[*figure] = std::move(name);
    } else {
      mapping.field_columns[*parse_import_field(key)] = std::move(name);
    }
  }
  int latencies = 0;
  for (const CsvFigure figure :
       {CsvFigure::kLatency, CsvFigure::kLatencies, CsvFigure::kTokensPerS}) {
    latencies += mapping.figure_columns.contains(figure) ? 1 : 0;
  }
  if (latencies == 1) return {};
  return value.error("one of latency, latencies and tokens_per_s", fmt::format("{}", latencies));
}

// "_ms" at the end of a column's name is its unit.
std::optional<double> unit_in_name(const std::string& column) {
  for (const TimeUnit& unit : kTimeUnits) {
    if (column.ends_with(fmt::format("_{}", unit.name))) return unit.ms;
  }
  return std::nullopt;
}

Status read_units(const std::optional<YamlValue>& value, const YamlValue& columns,
                  CsvMapping& mapping) {
  static const std::vector<std::string> kTimes = {"latency", "latencies", "ttft", "device_time"};
  if (value) {
    ASSAY_TRY(const YamlMap map, value->map(kTimes));
    for (const std::string& key : map.keys()) {
      ASSAY_TRY(const YamlValue unit, map.require(key));
      ASSAY_TRY(const size_t index, unit.one_of(time_unit_names()));
      mapping.to_ms[*parse_figure(key)] = kTimeUnits[index].ms;
    }
  }
  for (const auto& [figure, column] : mapping.figure_columns) {
    if (!is_time(figure) || mapping.to_ms.contains(figure)) continue;
    const auto unit = unit_in_name(column);
    if (!unit) {
      return columns.error(
          fmt::format("a unit of {} in the key units, or at the end of the column's name "
                      "(_ns, _us, _ms, _s)",
                      csv_figure_name(figure)),
          quoted_excerpt(column));
    }
    mapping.to_ms[figure] = *unit;
  }
  return {};
}

Status read_constants(const YamlValue& value, CsvMapping& mapping) {
  ASSAY_TRY(const YamlMap map, value.map(import_field_names()));
  for (const std::string& key : map.keys()) {
    const ImportField field = *parse_import_field(key);
    ASSAY_TRY(const YamlValue constant, map.require(key));
    ASSAY_TRY(std::string text, constant.text());
    RunFacts check;
    ASSAY_CHECK(check.state(field, text, constant.where()));
    if (mapping.field_columns.contains(field)) {
      return constant.error(
          "a constant of a field that has no column",
          fmt::format("the column {}", quoted_excerpt(mapping.field_columns.at(field))));
    }
    mapping.constants[field] = std::move(text);
  }
  return {};
}

Status read_words(const YamlValue& value, CsvMapping& mapping) {
  ASSAY_TRY(const YamlMap map, value.map(import_field_names()));
  for (const std::string& key : map.keys()) {
    const ImportField field = *parse_import_field(key);
    ASSAY_TRY(const YamlValue table, map.require(key));
    ASSAY_TRY(const auto entries, table.entries());
    for (const auto& [theirs, ours] : entries) {
      ASSAY_TRY(std::string word, ours.any_text());
      RunFacts check;
      ASSAY_CHECK(check.state(field, word, ours.where()));
      mapping.words[field][theirs] = std::move(word);
    }
  }
  return {};
}

Status read_statuses(const YamlValue& value, CsvMapping& mapping) {
  static const std::vector<std::string> kStatusNames = {"ok",      "error", "crash",
                                                        "timeout", "oom",   "false_success"};
  std::vector<std::string> keys = kStatusNames;
  keys.emplace_back("other");
  ASSAY_TRY(const YamlMap map, value.map(keys));
  for (const std::string& key : map.keys()) {
    ASSAY_TRY(const YamlValue rule, map.require(key));
    if (key == "other") {
      ASSAY_TRY(const size_t index, rule.one_of(kStatusNames));
      mapping.other_status = parse_row_status(kStatusNames[index]);
      continue;
    }
    ASSAY_TRY(const std::vector<YamlValue> words, rule.items());
    for (const YamlValue& word : words) {
      ASSAY_TRY(std::string theirs, word.any_text());
      const auto [at, fresh] = mapping.statuses.try_emplace(theirs, *parse_row_status(key));
      if (!fresh) return word.error("each word under one status", quoted_excerpt(theirs));
    }
  }
  return {};
}

Status read_compiler(const YamlValue& value, CsvMapping& mapping) {
  static const std::vector<std::string> kKeys = {"arm", "verdict", "reason"};
  static const std::vector<std::string> kVerdictWords = {"label_only", "fallback", "unproven"};
  ASSAY_TRY(const std::vector<YamlValue> rules, value.items());
  for (const YamlValue& rule : rules) {
    ASSAY_TRY(const YamlMap map, rule.map(kKeys));
    ASSAY_TRY(const YamlValue arm, map.require("arm"));
    ASSAY_TRY(const YamlValue verdict, map.require("verdict"));
    ASSAY_TRY(const YamlValue reason, map.require("reason"));
    CsvCompilerRule read;
    ASSAY_TRY(read.arm, arm.text());
    ASSAY_TRY(const size_t index, verdict.one_of(kVerdictWords));
    read.word.verdict = compiler_real_of(kVerdictWords[index]);
    ASSAY_TRY(read.word.reason, reason.text());
    mapping.compiler.push_back(std::move(read));
  }
  return {};
}

// Names of columns that no other key names.
Status read_names(const YamlValue& value, const CsvMapping& mapping,
                  std::vector<std::string>& names) {
  ASSAY_TRY(const std::vector<YamlValue> items, value.items());
  for (const YamlValue& item : items) {
    ASSAY_TRY(std::string name, item.any_text());
    const auto is_name = [&](const auto& entry) { return entry.second == name; };
    if (std::ranges::any_of(mapping.field_columns, is_name) ||
        std::ranges::any_of(mapping.figure_columns, is_name) ||
        std::ranges::find(mapping.settings, name) != mapping.settings.end() ||
        std::ranges::find(names, name) != names.end()) {
      return item.error("a column that is named once", quoted_excerpt(name));
    }
    names.push_back(std::move(name));
  }
  return {};
}

Status read_scalars(const YamlMap& map, CsvMapping& mapping) {
  static const std::vector<std::string> kDelimiters = {",", ";", "|", "tab"};
  static const std::vector<std::string> kOrders = {"sequential", "shuffled", "interleaved"};
  static const std::vector<std::string> kBooleans = {"false", "true"};
  if (const auto name = map.find("name")) {
    ASSAY_TRY(mapping.name, name->text());
  }
  if (const auto baseline = map.find("baseline")) {
    ASSAY_TRY(mapping.baseline, baseline->text());
  }
  if (const auto order = map.find("order")) {
    ASSAY_TRY(const size_t index, order->one_of(kOrders));
    mapping.order = kOrders[index];
  }
  if (const auto delimiter = map.find("delimiter")) {
    ASSAY_TRY(const size_t index, delimiter->one_of(kDelimiters));
    mapping.delimiter = index == 3 ? '\t' : kDelimiters[index][0];
  }
  if (const auto warmed_up = map.find("warmed_up")) {
    ASSAY_TRY(const size_t index, warmed_up->one_of(kBooleans));
    mapping.warmed_up = index == 1;
  }
  return {};
}

}  // namespace

std::string_view csv_figure_name(CsvFigure figure) {
  return kFigureColumns[static_cast<size_t>(figure)];
}

Result<CsvMapping> parse_csv_mapping(std::string_view text, std::string_view object) {
  static const std::vector<std::string> kKeys = {
      "name",      "baseline", "order",  "delimiter", "warmed_up", "columns", "units",
      "constants", "words",    "status", "compiler",  "settings",  "ignored"};
  ASSAY_TRY(const YamlNode tree, parse_yaml(text, object));
  const YamlValue whole(tree, object, "");
  ASSAY_TRY(const YamlMap map, whole.map(kKeys));
  CsvMapping mapping;
  mapping.text = text;
  ASSAY_CHECK(read_scalars(map, mapping));
  ASSAY_TRY(const YamlValue columns, map.require("columns"));
  ASSAY_CHECK(read_columns(columns, mapping));
  ASSAY_CHECK(read_units(map.find("units"), columns, mapping));
  if (const auto constants = map.find("constants")) {
    ASSAY_CHECK(read_constants(*constants, mapping));
  }
  if (const auto words = map.find("words")) ASSAY_CHECK(read_words(*words, mapping));
  if (const auto status = map.find("status")) ASSAY_CHECK(read_statuses(*status, mapping));
  if (const auto compiler = map.find("compiler")) ASSAY_CHECK(read_compiler(*compiler, mapping));
  if (const auto settings = map.find("settings")) {
    ASSAY_CHECK(read_names(*settings, mapping, mapping.settings));
  }
  if (const auto ignored = map.find("ignored")) {
    ASSAY_CHECK(read_names(*ignored, mapping, mapping.ignored));
  }
  return mapping;
}

}  // namespace assay
