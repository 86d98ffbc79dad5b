#include "analysis/rows/load.h"

#include "base/records/lenient_json.h"

namespace assay {

LoadOfStudy load_of_study(const Bundle& bundle) {
  LoadOfStudy found;
  const Json& load = member(member(bundle.manifest, "study"), "load");
  if (auto slo = record_from_json<ServiceBounds>(member(load, "slo"), "slo")) found.slo = *slo;
  const Json& offered = member(load, "offered");
  if (!offered.is_object()) return found;
  for (const auto& [scenario, json] : offered.items()) {
    auto one = record_from_json<OfferedLoad>(json, "offered");
    // A trace stays with its study; what is needed of it here are its requests.
    if (one && (one->point.speed || wrong_load(*one).empty()))
      found.offered[scenario] = *std::move(one);
  }
  return found;
}

std::map<std::pair<std::string, int64_t>, std::vector<SentRequest>> requests_by_run(
    const Bundle& bundle) {
  std::map<std::pair<std::string, int64_t>, std::vector<SentRequest>> runs;
  for (const LoadedRequest& one : bundle.requests)
    runs[{one.cell_id, one.run}].push_back(one.request);
  return runs;
}

}  // namespace assay
