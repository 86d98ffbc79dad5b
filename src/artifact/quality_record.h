// Members of a quality's JSON, for records that hold one.
#pragma once

#include "artifact/quality.h"
#include "base/records/record.h"

namespace assay {

template <>
struct Record<EvidenceInterval> {
  using T = EvidenceInterval;
  static constexpr bool kIsArray = true;
  static constexpr auto kMembers = std::tuple(field("low", &T::low), field("high", &T::high));
};

template <>
struct Record<QualityFigure> {
  using T = QualityFigure;
  static constexpr auto kMembers =
      std::tuple(field("value", &T::value), field_may_lack("interval", &T::interval));
};

template <>
struct Record<ModelQuality> {
  using T = ModelQuality;
  static constexpr auto kMembers = std::tuple(
      field("model", &T::model), field("reference", &T::reference), field("text", &T::text),
      field("window", &T::window), field("windows", &T::windows), field("positions", &T::positions),
      field("kl_mean", &T::kl_mean), field("kl_p99", &T::kl_p99),
      field("same_choice", &T::same_choice), field("nll", &T::nll),
      field("reference_nll", &T::reference_nll), field("nll_change", &T::nll_change),
      field_if_known("problem", &T::problem));
};

}  // namespace assay
