// The bounds, the offered load and the requests that a bundle has of servers under load.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "artifact/bundle.h"
#include "load/offered_load.h"
#include "load/sent_request.h"

namespace assay {

// The bounds that the bundle's study sets, and the load that it offers by the scenario's name.
struct LoadOfStudy {
  ServiceBounds slo = {};
  std::map<std::string, OfferedLoad> offered = {};
};
// As the manifest has it; members that aren't there, or don't fit, are left out.
LoadOfStudy load_of_study(const Bundle& bundle);

// The requests of a run, by cell and repetition; in the bundle.
std::map<std::pair<std::string, int64_t>, std::vector<SentRequest>> requests_by_run(
    const Bundle& bundle);

}  // namespace assay
