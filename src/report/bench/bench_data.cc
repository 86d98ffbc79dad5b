// One list of fields, four ways of writing them.
#include "report/bench/bench_data.h"

#include <cmath>

#include "base/records/json.h"
#include "base/tables/csv.h"
#include "base/text/text.h"

namespace assay {
namespace {

struct DataField {
  std::string name;
  const char* sql_type;
  Json value;  // null: absent
};

Json number(std::optional<double> value) {
  return value ? Json(*value) : Json();
}

Json nanoseconds(std::optional<double> ms) {
  return ms ? Json(std::llround(*ms * 1e6)) : Json();
}

Json text(const std::string& value) {
  return value.empty() ? Json() : Json(value);
}

void add_subject(const Bench& bench, const BenchRow& row, std::vector<DataField>& fields) {
  const Speed& speed = row.speed;
  fields.push_back({"build_commit", "TEXT", text(bench.commit)});
  fields.push_back({"host", "TEXT", text(bench.host)});
  fields.push_back({"backend", "TEXT", text(speed.backend)});
  fields.push_back({"device", "TEXT", speed.device.empty() ? "cpu" : speed.device});
  fields.push_back({"model", "TEXT", row.model.name});
  fields.push_back({"model_filename", "TEXT", row.model.path});
  fields.push_back({"model_size", "INTEGER", row.model.size_bytes});
  fields.push_back({"model_n_params", "INTEGER", row.model.parameters});
  fields.push_back({"dtype", "TEXT", text(speed.dtype)});
  fields.push_back({"n_threads", "INTEGER", speed.threads ? Json(*speed.threads) : Json()});
  fields.push_back({"arm", "TEXT", speed.arm});
  fields.push_back({"test", "TEXT", row.test});
  const bool decoding = decodes(row.stratum.phase);
  fields.push_back({"n_prompt", "INTEGER", decoding ? 0 : speed.prompt_tokens});
  fields.push_back({"n_gen", "INTEGER", row.stratum.new_tokens});
  fields.push_back({"n_depth", "INTEGER", decoding ? speed.prompt_tokens : 0});
  fields.push_back({"batch", "INTEGER", row.stratum.batch});
  fields.push_back({"test_time", "TEXT", text(bench.started_at)});
}

void add_figures(const Bench& bench, const BenchRow& row, std::vector<DataField>& fields) {
  const Speed& speed = row.speed;
  using Ends = std::optional<stats::Interval>;
  const auto add_ms = [&](const char* low, const char* high, const Ends& ms) {
    fields.push_back({low, "INTEGER", ms ? nanoseconds(ms->low) : Json()});
    fields.push_back({high, "INTEGER", ms ? nanoseconds(ms->high) : Json()});
  };
  const auto add_ends = [&](const char* low, const char* high, const Ends& ends) {
    fields.push_back({low, "REAL", ends ? Json(ends->low) : Json()});
    fields.push_back({high, "REAL", ends ? Json(ends->high) : Json()});
  };
  fields.push_back({"rows", "INTEGER", speed.latencies_ms.size()});
  fields.push_back({"lost", "INTEGER", speed.lost});
  fields.push_back({"avg_ns", "INTEGER", nanoseconds(row.mean_ms)});
  add_ms("avg_low_ns", "avg_high_ns", row.mean_interval_ms);
  add_ms("avg_process_low_ns", "avg_process_high_ns", row.mean_process_range_ms);
  fields.push_back({"stddev_ns", "INTEGER", nanoseconds(row.sd_ms)});
  fields.push_back({"avg_ts", "REAL", number(row.tokens_per_s)});
  fields.push_back({"stddev_ts", "REAL", number(speed.sd_tokens_per_s)});
  fields.push_back({"read_bytes_per_s", "REAL", number(speed.bytes_per_s)});
  fields.push_back({"limit_bytes_per_s", "REAL", number(row.limit_bytes_per_s)});
  fields.push_back({"limit_share", "REAL", number(limit_share(row))});
  fields.push_back({"operations_per_s", "REAL", number(row.operations_per_s)});
  fields.push_back({"limit_operations_per_s", "REAL", number(row.limit_operations_per_s)});
  fields.push_back({"joules_per_token", "REAL", number(row.joules_per_token)});
  add_ends("joules_per_token_low", "joules_per_token_high", row.joules_interval);
  fields.push_back({"baseline", "TEXT", bench.baseline});
  fields.push_back({"ratio", "REAL", number(row.ratio)});
  add_ends("ratio_low", "ratio_high", row.ratio_interval);
  add_ends("ratio_process_low", "ratio_process_high", row.ratio_process_range);
  fields.push_back({"verdict", "TEXT", text(row.verdict)});
}

std::vector<DataField> fields_of(const Bench& bench, const BenchRow& row) {
  std::vector<DataField> fields;
  add_subject(bench, row, fields);
  add_figures(bench, row, fields);
  return fields;
}

// The row's object with its repetitions, for users who want other figures.
Json object_of(const Bench& bench, const BenchRow& row) {
  Json object = Json::object();
  for (DataField& field : fields_of(bench, row)) object[field.name] = std::move(field.value);
  object["samples_ns"] = Json::array();
  for (const double ms : row.speed.latencies_ms) object["samples_ns"].push_back(nanoseconds(ms));
  object["samples_ts"] = row.speed.tokens_per_s;
  return object;
}

std::string plain(const Json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>() : to_json_line(value);
}

std::string sql_literal(const Json& value) {
  if (value.is_null()) return "NULL";
  if (!value.is_string()) return to_json_line(value);
  std::string literal = "'";
  for (const char c : value.get<std::string>()) literal += c == '\'' ? "''" : std::string(1, c);
  return literal + "'";
}

}  // namespace

std::optional<double> limit_share(const BenchRow& row) {
  if (!row.speed.bytes_per_s || !row.limit_bytes_per_s) return std::nullopt;
  return *row.speed.bytes_per_s / *row.limit_bytes_per_s;
}

std::string bench_json(const Bench& bench) {
  Json rows = Json::array();
  for (const BenchRow& row : bench.rows) rows.push_back(object_of(bench, row));
  return to_json_text(rows);
}

std::string bench_jsonl(const Bench& bench) {
  std::string lines;
  for (const BenchRow& row : bench.rows) lines += to_json_line(object_of(bench, row)) + "\n";
  return lines;
}

std::string bench_csv(const Bench& bench) {
  std::string lines;
  for (const BenchRow& row : bench.rows) {
    std::vector<std::string> names;
    std::vector<std::string> values;
    for (const DataField& field : fields_of(bench, row)) {
      names.push_back(field.name);
      values.push_back(plain(field.value));
    }
    if (lines.empty()) lines = shown_csv_line(names);
    lines += shown_csv_line(values);
  }
  return lines;
}

std::string bench_sql(const Bench& bench) {
  std::string text;
  for (const BenchRow& row : bench.rows) {
    std::vector<std::string> names;
    std::vector<std::string> columns;
    std::vector<std::string> values;
    for (const DataField& field : fields_of(bench, row)) {
      names.push_back(field.name);
      columns.push_back(fmt::format("  {} {}", field.name, field.sql_type));
      values.push_back(sql_literal(field.value));
    }
    if (text.empty()) {
      text =
          fmt::format("CREATE TABLE IF NOT EXISTS assay_bench (\n{}\n);\n\n", join(columns, ",\n"));
    }
    text += fmt::format("INSERT INTO assay_bench ({}) VALUES ({});\n", join(names, ", "),
                        join(values, ", "));
  }
  return text;
}

}  // namespace assay
