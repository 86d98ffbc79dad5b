// Joins the findings' entries on a stratum and arm.
#include "report/bench/bench_rows.h"

#include <algorithm>

#include "base/text/text.h"
#include "report/phase_answers.h"
#include "report/screen/parts.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

std::string identity_of(const Findings& findings, const std::string& key) {
  const auto at = std::ranges::find(findings.identity, key,
                                    [](const auto& line) { return std::string_view(line.first); });
  return at == findings.identity.end() ? "" : at->second;
}

// The test's name as llama-bench writes it. One token has to be in the cache before any is decoded,
// so a depth of one goes without saying.
std::string test_name(const Stratum& stratum, int64_t prompt_tokens) {
  std::string name;
  if (!decodes(stratum.phase)) {
    name = fmt::format("pp{}", prompt_tokens);
  } else {
    name = fmt::format("tg{}", stratum.new_tokens);
    if (prompt_tokens > 1) name += fmt::format(" @ d{}", prompt_tokens);
  }
  if (stratum.batch > 1) name += fmt::format(" b{}", stratum.batch);
  return name;
}

void add_times(const Latency& latency, BenchRow& row) {
  row.mean_ms = latency.mean;
  row.mean_interval_ms = latency.mean_interval;
  row.mean_process_range_ms = latency.mean_process_range;
  row.sd_ms = latency.sd;
  row.joules_per_token = latency.joules_per_token;
  row.joules_interval = latency.joules_interval;
  const auto tokens = static_cast<double>(row.speed.tokens);
  if (tokens > 0 && latency.mean) row.tokens_per_s = tokens / *latency.mean * 1e3;
}

void add_ratio(const Findings& findings, BenchRow& row) {
  if (row.speed.arm == findings.study.baseline) return;
  const Contrast* contrast = entry_of(findings.contrasts, row.speed.stratum, row.speed.arm);
  row.verdict = "not comparable";
  if (contrast == nullptr) return;
  row.ratio = contrast->ratio;
  row.ratio_interval = contrast->ratio_interval;
  row.ratio_process_range = contrast->ratio_process_range;
  row.one_process = contrast->one_process;
  row.verdict = verdict_name(contrast->verdict);
}

std::vector<std::string> remarks_of(const Findings& findings) {
  std::vector<std::string> remarks;
  for (const NotComparable& one : findings.not_comparable) {
    const std::string test =
        test_name(findings.strata[one.stratum], findings.prompts[one.stratum].shortest);
    remarks.push_back(
        fmt::format("{}, {}: not comparable: {}", one.arm, test, join(one.reasons, "; ")));
  }
  for (std::string& line : warning_lines(findings)) remarks.push_back(std::move(line));
  return remarks;
}

}  // namespace

Bench make_bench(const Findings& findings, const std::vector<Speed>& speeds,
                 const std::vector<BenchedModel>& models) {
  Bench bench{.host = identity_of(findings, "device"),
              .commit = identity_of(findings, "code_sha"),
              .baseline = findings.study.baseline,
              .started_at = findings.study.started_at,
              .rows = {},
              .sentences = {},
              .remarks = remarks_of(findings)};
  // Whoever asks for several sizes looks for the growth first.
  for (PhaseAnswer& answer : phase_answers(findings)) {
    if (!answer.growth.empty()) bench.sentences.push_back(std::move(answer.growth));
    bench.sentences.push_back(std::move(answer.sentence));
  }
  for (const BenchedModel& model : models) {
    for (const Speed& speed : speeds) {
      const Stratum& stratum = findings.strata[speed.stratum];
      if (stratum.model != model.name) continue;
      BenchRow& row = bench.rows.emplace_back();
      row.model = model;
      row.speed = speed;
      row.stratum = stratum;
      row.test = test_name(stratum, speed.prompt_tokens);
      if (const Latency* latency = entry_of(findings.latencies, speed.stratum, speed.arm))
        add_times(*latency, row);
      if (const ReadShare* share = entry_of(findings.read_shares, speed.stratum, speed.arm)) {
        row.limit_bytes_per_s = share->limit_bytes_per_s;
        row.operations_per_s = share->operations_per_s;
        row.limit_operations_per_s = share->limit_operations_per_s;
      }
      add_ratio(findings, row);
    }
  }
  return bench;
}

}  // namespace assay
