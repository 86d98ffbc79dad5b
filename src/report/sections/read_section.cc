// The section on the memory's limit: the share of it that decoding reads.
#include "base/text/text.h"
#include "report/sections/sections.h"

namespace assay {

ReportSection read_section(const Findings& findings) {
  ReportSection section{"Share of the memory's read bandwidth", {}, {}};
  section.figures = {"bandwidth"};
  section.lines.emplace_back(
      "kv_decode, medians of warm rows. GB/s: the bytes of weights and cache that the steps must "
      "read, divided by the time of the steps. limit: measured by summing a buffer larger than any "
      "cache; the memory may be faster than this probe, so a share can exceed 100 %.");
  Table table{
      "",
      {{"stratum", Align::kLeft}, {"arm", Align::kLeft}, {"GB/s"}, {"limit_GB/s"}, {"share"}},
      {}};
  for (const ReadShare& share : findings.read_shares) {
    table.rows.push_back({TableCell::of(stratum_label(findings, share.stratum)),
                          TableCell::of(share.arm), TableCell::of(share.bytes_per_s / 1e9, 3),
                          TableCell::of(share.limit_bytes_per_s / 1e9, 3),
                          percent_cell(share.share())});
  }
  section.tables.push_back(std::move(table));
  return section;
}

}  // namespace assay
