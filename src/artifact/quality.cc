// A quality's JSON in both directions.
#include "artifact/quality.h"

#include <cmath>

#include "artifact/quality_record.h"

namespace assay {

QualityFigure exp_of(const QualityFigure& nats) {
  QualityFigure figure{.value = std::exp(nats.value)};
  if (nats.interval) {
    figure.interval = {std::exp(nats.interval->low), std::exp(nats.interval->high)};
  }
  return figure;
}

Json quality_to_json(const ModelQuality& quality) {
  return record_to_json(quality);
}

Result<ModelQuality> quality_from_json(const Json& json, std::string_view object) {
  return record_from_json<ModelQuality>(json, object);
}

}  // namespace assay
