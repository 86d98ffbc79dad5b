// A probe's invocations and figures as a table, lines and JSON.
#include <algorithm>
#include <cstdio>

#include "analysis/findings/options.h"
#include "base/records/json.h"
#include "base/text/shown_text.h"
#include "base/text/text.h"
#include "cli/command.h"
#include "cli/probe/probe.h"

namespace assay::cli {
namespace {

constexpr int kProbeSchemaVersion = 2;  // of the document that -o json prints

std::string value_name(const ProbeOptions& options) {
  return options.unit.empty() ? "value" : options.unit;
}

Table invocation_table(const ProbeOptions& options, const ProbeResult& result) {
  Table table;
  table.columns = {{"invocation"},
                   {"warmup", Align::kLeft},
                   {"seconds"},
                   {"samples"},
                   {value_name(options)},
                   {"status", Align::kLeft},
                   {"error_class", Align::kLeft}};
  for (size_t i = 0; i < result.invocations.size(); ++i) {
    const Probed& one = result.invocations[i];
    table.rows.push_back({static_cast<int64_t>(i), one.warmup ? "yes" : "no",
                          TableCell(one.seconds, 3), std::ssize(one.values),
                          TableCell(one.mean(), 5), one.status,
                          TableCell::if_any(one.error_class)});
  }
  return table;
}

std::string between(const std::optional<stats::Interval>& interval, int digits) {
  if (!interval) return "absent (it needs two invocations that differ)";
  return fmt::format("[{}, {}]", format_significant(interval->low, digits),
                     format_significant(interval->high, digits));
}

std::string band_line(const ProbeOptions& options) {
  const auto percent = [](double share) { return fmt::format("{:g}", share * 100); };
  return fmt::format(
      "bands: strong_match within {} % of the target, match {} %, weak {} %, else none",
      percent(options.bands.strong), percent(options.bands.match), percent(options.bands.weak));
}

// The summary of the means, and remarks that the table lacks.
std::string summary_text(const ProbeOptions& options, const ProbeResult& result) {
  const std::string unit = options.unit.empty() ? "" : " " + options.unit;
  std::string text;
  if (const auto mean = stats::mean(result.means)) {
    text += fmt::format("mean of {}: {}{}, 95 % interval {}; median {}\n",
                        counted(std::ssize(result.means), "invocation"),
                        format_significant(*mean, 5), unit, between(result.interval, 5),
                        format_significant(*stats::median(stats::sorted(result.means)), 5));
  }
  if (result.lost > 0) {
    const auto first = std::ranges::find_if(
        result.invocations, [](const Probed& one) { return !one.warmup && one.values.empty(); });
    text += fmt::format("lost: {} of {}; the first: {}\n", result.lost, options.repetitions,
                        shown_line(first->message));
  }
  if (!options.target) return text;
  const stats::Reproduction& found = result.reproduction;
  text += fmt::format("target: {}{}", format_significant(*options.target, 6), unit);
  if (found.ratio) {
    text += fmt::format("; measured / target: {}, 95 % interval {}",
                        format_significant(*found.ratio), between(found.interval, 4));
  }
  text += fmt::format("\nreproduction: {}", stats::band_name(found.band));
  if (found.best != found.worst) {
    text += fmt::format(" (the interval allows {} to {})", stats::band_name(found.best),
                        stats::band_name(found.worst));
  }
  return text + "\n" + band_line(options) + "\n";
}

Json interval_json(const std::optional<stats::Interval>& interval) {
  if (!interval) return nullptr;
  return {{"low", interval->low}, {"high", interval->high}, {"confidence", kConfidence}};
}

Json probe_json(const ProbeOptions& options, const std::string& pattern,
                const ProbeResult& result) {
  const auto number = [](std::optional<double> value) { return value ? Json(*value) : Json(); };
  Json invocations = Json::array();
  for (const Probed& one : result.invocations) {
    invocations.push_back({{"warmup", one.warmup},
                           {"seconds", number(one.seconds)},
                           {"values", one.values},
                           {"mean", number(one.mean())},
                           {"status", one.status},
                           {"error_class", one.error_class},
                           {"message", one.message}});
  }
  Json json = {{"schema_version", kProbeSchemaVersion},
               {"command", options.command},
               {"pattern", pattern.empty() ? Json() : Json(pattern)},
               {"unit", options.unit},
               {"invocations", std::move(invocations)},
               {"n", result.means.size()},
               {"lost", result.lost},
               {"mean", number(stats::mean(result.means))},
               {"interval", interval_json(result.interval)},
               {"median", number(stats::median(stats::sorted(result.means)))},
               {"sd", number(stats::standard_deviation(result.means))}};
  if (!options.save.bundle.empty()) json["bundle"] = options.save.bundle;
  if (!options.target) return json;
  const stats::Reproduction& found = result.reproduction;
  json["target"] = *options.target;
  json["ratio"] = number(found.ratio);
  json["ratio_interval"] = interval_json(found.interval);
  json["band"] = stats::band_name(found.band);
  json["best_band"] = stats::band_name(found.best);
  json["worst_band"] = stats::band_name(found.worst);
  json["bands"] = {{"strong_match", options.bands.strong},
                   {"match", options.bands.match},
                   {"weak", options.bands.weak}};
  return json;
}

}  // namespace

void show_probe(const ProbeOptions& options, const std::string& pattern, const ProbeResult& result,
                OutputFormat format) {
  if (format == OutputFormat::kJson) {
    fmt::print("{}", to_json_text(probe_json(options, pattern, result)));
    return;
  }
  if (format != OutputFormat::kCsv) fmt::print("{}\n", summary_text(options, result));
  print_table(invocation_table(options, result), format);
}

}  // namespace assay::cli
