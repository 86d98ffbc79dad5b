// Facts of a bundle with the mark of its run, for judgements of several bundles.
#pragma once

#include <optional>
#include <string>

#include "artifact/each_once.h"
#include "gates/facts.h"

namespace assay {

// Like read_facts(); `mark` becomes the mark by which a copy of the bundle is known.
Result<BundleFacts> read_facts(const std::string& name, const std::optional<SpeedClaim>& claim,
                               ThreadPool* pool, RunMark& mark);

}  // namespace assay
