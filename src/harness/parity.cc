// Token by token.
#include "harness/parity.h"

#include <algorithm>

namespace assay {
namespace {

Json error_of(const std::string& arm, const WorkerFailure& failure) {
  return {{"arm", arm}, {"class", failure.error_class}, {"message", failure.message}};
}

// A token or nothing, as JSON.
Json token_at(const std::vector<std::vector<int32_t>>& rows, size_t sequence, size_t position) {
  if (sequence >= rows.size() || position >= rows[sequence].size()) return nullptr;
  return rows[sequence][position];
}

}  // namespace

Json compare_parity(const std::string& arm, const ParityAnswer& answer,
                    const std::string& baseline_arm, const ParityAnswer& baseline) {
  Json result = {{"passed", nullptr},
                 {"baseline_arm", baseline_arm},
                 {"compared_tokens", 0},
                 {"first_difference", nullptr},
                 {"error", nullptr}};
  if (!answer) {
    result["passed"] = false;
    result["error"] = error_of(arm, answer.error());
    return result;
  }
  if (!baseline) {
    result["error"] = error_of(baseline_arm, baseline.error());
    return result;
  }
  int64_t compared = 0;
  Json difference;
  const size_t sequences = std::max(answer->rows.size(), baseline->rows.size());
  for (size_t sequence = 0; sequence < sequences && difference.is_null(); ++sequence) {
    const size_t expected_size =
        sequence < baseline->rows.size() ? baseline->rows[sequence].size() : size_t{0};
    const size_t found_size =
        sequence < answer->rows.size() ? answer->rows[sequence].size() : size_t{0};
    for (size_t position = 0; position < std::max(expected_size, found_size); ++position) {
      const Json expected = token_at(baseline->rows, sequence, position);
      const Json found = token_at(answer->rows, sequence, position);
      ++compared;
      if (expected == found) continue;
      difference = {
          {"sequence", sequence}, {"position", position}, {"expected", expected}, {"found", found}};
      break;
    }
  }
  result["passed"] = difference.is_null();
  result["compared_tokens"] = compared;
  result["first_difference"] = std::move(difference);
  if (!answer->logit_stats.empty()) result["logit_stats"][arm] = answer->logit_stats;
  if (!baseline->logit_stats.empty()) {
    result["logit_stats"][baseline_arm] = baseline->logit_stats;
  }
  return result;
}

}  // namespace assay
