// Holds a server's own times against those of the client that asked it.
#include <algorithm>
#include <cmath>
#include <vector>

#include "analysis/named/named.h"
#include "base/text/counts.h"
#include "base/text/text.h"

namespace assay {
namespace {

// A client sees what the network, the tokenizer and the queue add to the server's own time.
constexpr double kClockShare = 0.05;
constexpr double kLeastClockMs = 1;

double middle_of(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

void find_clocks(const Samples& samples, std::vector<Finding>& findings) {
  for (const Group& group : samples.groups) {
    std::vector<double> own, clients;
    std::vector<const Row*> rows;
    for (const Row* const row : group.rows) {
      // Rows of schema versions before 8 have the server's time as their latency, if it told any.
      const std::optional<double>& server_ms = row->server_ms ? row->server_ms : row->latency_ms;
      if (row->status != RowStatus::kOk || row->cold || !row->client_ms || !server_ms) continue;
      own.push_back(*server_ms);
      clients.push_back(*row->client_ms);
      rows.push_back(row);
    }
    if (rows.empty()) continue;
    const double server_ms = middle_of(std::move(own)), client_ms = middle_of(std::move(clients));
    const double gap_ms = std::abs(client_ms - server_ms);
    if (gap_ms < kLeastClockMs || gap_ms < kClockShare * server_ms) continue;
    const bool of_client = *rows.front()->latency_ms == *rows.front()->client_ms;
    Finding finding = about("clocks_disagree", Severity::kWarning, samples, group);
    finding.size = client_ms / server_ms - 1;
    add_rows(finding, rows);
    finding.text = fmt::format(
        "the server says that {} took {} ms (median of {}), and its client saw {} ms: a user waits "
        "for the client's time, and figures here are the {}",
        phase_name(samples.strata[group.stratum].phase), format_significant(server_ms, 3),
        counted(std::ssize(rows), "warm row"), format_significant(client_ms, 3),
        of_client ? "client's" : "server's");
    findings.push_back(std::move(finding));
  }
}

}  // namespace assay
