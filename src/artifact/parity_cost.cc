// The member `cost` of parity.json in both directions.
#include "artifact/parity_cost.h"

#include "base/records/lenient_json.h"
#include "base/records/record.h"

namespace assay {

template <>
struct Record<ParityCost> {
  using T = ParityCost;
  static constexpr auto kMembers =
      std::tuple(field("seconds", &T::seconds), field("compile_seconds", &T::compile_seconds),
                 field("own_process", &T::own_process));
};

Json parity_cost_to_json(const ParityCost& cost) {
  return record_to_json(cost);
}

std::optional<ParityCost> parity_cost_of(const Json& parity) {
  const Json& cost = member(parity, kParityCost);
  if (!cost.is_object()) return std::nullopt;
  auto read = record_from_json<ParityCost>(cost, kParityCost);
  if (!read) return std::nullopt;
  return *std::move(read);
}

}  // namespace assay
