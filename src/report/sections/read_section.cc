// The section on the device's limits: the share of them that an arm uses.
#include <algorithm>

#include "base/text/text.h"
#include "report/sections/sections.h"

namespace assay {

namespace {

bool has_prompts(const Findings& findings) {
  return std::ranges::any_of(findings.read_shares, [&](const ReadShare& share) {
    return findings.strata[share.stratum].phase != Phase::kKvDecode;
  });
}

TableCell tera_cell(std::optional<double> per_s) {
  return per_s ? TableCell(*per_s / 1e12, 3) : TableCell::absent();
}

}  // namespace

ReportSection read_section(const Findings& findings) {
  const bool prompts = has_prompts(findings);
  ReportSection section{"Share of the memory's read bandwidth", {}, {}};
  section.figures = {"bandwidth"};
  section.lines.push_back(
      fmt::format("{}, medians of warm rows. GB/s: the bytes of weights and cache that the {} must "
                  "read, divided by {} time. limit: measured by summing a buffer larger than any "
                  "cache; the memory may be faster than this probe, so a share can exceed 100 %.",
                  prompts ? "kv_decode, and on a GPU every phase" : "kv_decode",
                  prompts ? "work" : "steps", prompts ? "its" : "the steps'"));
  if (prompts) {
    section.lines.emplace_back(
        "TFLOP/s: multiplications and additions of a prompt's products and attention, divided by "
        "its time. Its limit: the best of some products of 8192 rows through the GPU's library.");
  }
  Table table{.columns = columns_of(
                  "<stratum|<arm|GB/s|limit_GB/s|share|TFLOP/s|limit_TFLOP/s|share of it")};
  for (const ReadShare& share : findings.read_shares) {
    table.rows.push_back(
        {stratum_label(findings, share.stratum), share.arm, TableCell(share.bytes_per_s / 1e9, 3),
         TableCell(share.limit_bytes_per_s / 1e9, 3), percent_cell(share.share()),
         tera_cell(share.operations_per_s), tera_cell(share.limit_operations_per_s),
         percent_cell(share.operations_share())});
  }
  if (!prompts) {
    for (const char* name : {"TFLOP/s", "limit_TFLOP/s", "share of it"}) drop_column(name, table);
  }
  section.tables.push_back(std::move(table));
  return section;
}

}  // namespace assay
