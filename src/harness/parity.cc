// Token by token.
#include "harness/parity.h"

#include <algorithm>
#include <cmath>

namespace assay {
namespace {

constexpr double kFp32Eps = 1.2e-7;

Json error_of(const std::string& arm, const WorkerFailure& failure) {
  return {{"arm", arm}, {"class", failure.error_class}, {"message", failure.message}};
}

// A token or nothing, as JSON.
Json token_at(const std::vector<std::vector<int32_t>>& rows, size_t sequence, size_t position) {
  if (sequence >= rows.size() || position >= rows[sequence].size()) return nullptr;
  return rows[sequence][position];
}

// The worker's value at a position, or for a token among those next to the chosen one; null: there
// is none.
Json item_at(const Json& lists, const char* key, size_t position) {
  const auto list = lists.find(key);
  if (list == lists.end() || !list->is_array() || position >= list->size()) return nullptr;
  return (*list)[position];
}

// The chosen token's logit less `token`'s, if that was among the next ones.
std::optional<double> margin_over(const Json& steps, size_t position, const Json& token) {
  const Json others = item_at(steps, "others", position);
  const Json margins = item_at(steps, "margins", position);
  if (!others.is_array() || !margins.is_array()) return std::nullopt;
  const auto place = static_cast<size_t>(std::ranges::find(others, token) - others.begin());
  if (place >= std::min(others.size(), margins.size()) || !margins[place].is_number()) {
    return std::nullopt;
  }
  return margins[place].get<double>();
}

// The tie at a position where the baseline's own token led the one found by no more than the type
// rounds away; null: there is none. fp32 is held to the token.
Json rounding_tie(const ParityTokens& baseline, size_t sequence, size_t position,
                  const Json& found) {
  if (sequence >= baseline.logit_stats.size() || found.is_null()) return nullptr;
  const Json& stats = baseline.logit_stats[sequence];
  const auto steps = stats.find("steps");
  const auto eps = stats.find("eps");
  if (steps == stats.end() || !steps->is_object() || eps == stats.end() || !eps->is_number()) {
    return nullptr;
  }
  const double rounding = eps->get<double>();
  const auto margin = margin_over(*steps, position, found);
  const Json logit = item_at(*steps, "logit", position);
  if (rounding <= kFp32Eps || !margin || !logit.is_number()) return nullptr;
  const double tolerance = kTieRoundings * rounding * std::max(1.0, std::abs(logit.get<double>()));
  if (std::abs(*margin) > tolerance) return nullptr;
  return {{"sequence", sequence},
          {"position", position},
          {"found", found},
          {"margin", *margin},
          {"tolerance", tolerance}};
}

struct TokenComparison {
  int64_t compared = 0;
  Json difference;  // null: none yet
  Json ties = Json::array();
  Json ended = Json::array();
};

// True if the sequence has no token behind this one because it ends the text.
bool ends_at(const ParityTokens& tokens, size_t sequence, size_t position) {
  if (sequence >= tokens.rows.size() || position + 1 != tokens.rows[sequence].size()) return false;
  const int32_t last = tokens.rows[sequence].back();
  return std::ranges::find(tokens.ends, last) != tokens.ends.end();
}

// Compares the first `generated` tokens, up to the first difference, tie or end of a text: behind
// any of them the sequences are about other texts.
void compare_sequence(const ParityTokens& answer, const ParityTokens& baseline, size_t sequence,
                      size_t generated, TokenComparison& comparison) {
  const auto size_of = [&](const ParityTokens& tokens) {
    return sequence < tokens.rows.size() ? tokens.rows[sequence].size() : size_t{0};
  };
  const size_t positions = std::min(generated, std::max(size_of(baseline), size_of(answer)));
  for (size_t position = 0; position < positions; ++position) {
    const Json expected = token_at(baseline.rows, sequence, position);
    const Json found = token_at(answer.rows, sequence, position);
    ++comparison.compared;
    if (expected == found) {
      const bool ends =
          ends_at(answer, sequence, position) || ends_at(baseline, sequence, position);
      if (!ends || position + 1 == generated) continue;
      comparison.ended.push_back(
          {{"sequence", sequence}, {"position", position}, {"token", found}});
      return;
    }
    if (Json tie = rounding_tie(baseline, sequence, position, found); !tie.is_null()) {
      comparison.ties.push_back(std::move(tie));
      return;
    }
    comparison.difference = {
        {"sequence", sequence}, {"position", position}, {"expected", expected}, {"found", found}};
    return;
  }
}

// The worker's values for the tokens that count.
Json first_of_each(std::vector<Json> logit_stats, size_t generated) {
  for (Json& stats : logit_stats) {
    if (!stats.is_object() || !stats.contains("steps") || !stats["steps"].is_object()) continue;
    for (Json& list : stats["steps"]) {
      if (!list.is_array() || list.size() <= generated) continue;
      list.erase(list.begin() + static_cast<Json::difference_type>(generated), list.end());
    }
  }
  return logit_stats;
}

Json nothing_said(const std::string& baseline_arm, int64_t generated) {
  return {{"passed", nullptr},    {"baseline_arm", baseline_arm}, {"generated_tokens", generated},
          {"compared_tokens", 0}, {"first_difference", nullptr},  {"error", nullptr}};
}

}  // namespace

Json unasked_parity(const std::string& arm, const std::string& baseline_arm,
                    const WorkerFailure& why, int64_t generated) {
  Json result = nothing_said(baseline_arm, generated);
  result["error"] = error_of(arm, why);
  return result;
}

Json compare_parity(const std::string& arm, const ParityAnswer& answer,
                    const std::string& baseline_arm, const ParityAnswer& baseline,
                    int64_t generated) {
  Json result = nothing_said(baseline_arm, generated);
  if (!answer && answer.error().error_class == kNoIds)
    return unasked_parity(arm, baseline_arm, answer.error(), generated);
  if (!answer) {
    result["passed"] = false;
    result["error"] = error_of(arm, answer.error());
    return result;
  }
  if (answer->cost) result[kParityCost] = parity_cost_to_json(*answer->cost);
  if (!baseline) {
    result["error"] = error_of(baseline_arm, baseline.error());
    return result;
  }
  TokenComparison comparison;
  const auto most = static_cast<size_t>(generated);
  const size_t sequences = std::max(answer->rows.size(), baseline->rows.size());
  for (size_t i = 0; i < sequences && comparison.difference.is_null(); ++i) {
    compare_sequence(*answer, *baseline, i, most, comparison);
  }
  if (comparison.compared == 0) {
    result["error"] = error_of(arm, {FailureKind::kError, "nothing_compared",
                                     "neither arm gave a token that could be compared"});
    return result;
  }
  result["passed"] = comparison.difference.is_null();
  result["compared_tokens"] = comparison.compared;
  result["first_difference"] = std::move(comparison.difference);
  if (!comparison.ended.empty()) result["ended"] = std::move(comparison.ended);
  if (!comparison.ties.empty()) result["ties"] = std::move(comparison.ties);
  if (!answer->logit_stats.empty()) {
    result["logit_stats"][arm] = first_of_each(answer->logit_stats, most);
  }
  if (!baseline->logit_stats.empty()) {
    result["logit_stats"][baseline_arm] = first_of_each(baseline->logit_stats, most);
  }
  return result;
}

}  // namespace assay
