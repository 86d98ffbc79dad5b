// A model's predictions beside a reference's on one text: what `assay model quality -o json`
// prints, and the member `quality` of evidence.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/records/json.h"
#include "base/result.h"

namespace assay {

struct EvidenceInterval {
  double low = 0;
  double high = 0;
  friend bool operator==(const EvidenceInterval&, const EvidenceInterval&) = default;
};

// A mean over positions. Positions of one window see the same text, so windows are the units of its
// 95 % interval, which is absent for fewer than three, or where it can't be had.
struct QualityFigure {
  double value = 0;
  std::optional<EvidenceInterval> interval = {};
  friend bool operator==(const QualityFigure&, const QualityFigure&) = default;
};

// exp of a figure in nats: of a difference of negative log-likelihoods, the ratio of perplexities.
QualityFigure exp_of(const QualityFigure& nats);

struct ModelQuality {
  std::string model;      // path, as it was asked for
  std::string reference;  // likewise
  std::string text;       // where it is from
  int64_t window = 0;     // tokens, the second half of which is predicted
  int64_t windows = 0;
  int64_t positions = 0;
  QualityFigure kl_mean = {};      // of the reference's distribution from the model's, nats a token
  QualityFigure kl_p99 = {};       // the 99th percentile over all positions
  QualityFigure same_choice = {};  // share of positions where both would choose one token
  QualityFigure nll = {};          // negative log-likelihood, nats a token
  QualityFigure reference_nll = {};
  QualityFigure nll_change = {};
  std::string problem = {};  // in one line why there are no figures; empty: there are

  friend bool operator==(const ModelQuality&, const ModelQuality&) = default;
};

Json quality_to_json(const ModelQuality& quality);
// bad_input that names `object`, member, expected and found.
Result<ModelQuality> quality_from_json(const Json& json, std::string_view object);

}  // namespace assay
