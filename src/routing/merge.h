// Several runs of one study as one bundle: each run's worker processes are further processes.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "artifact/bundle.h"
#include "base/result.h"

namespace assay {

// Rows one run behind the other, with processes, repetitions, blocks and places in the order
// counted on, so that the runs' processes stand beside one another as those of one run do. A cell
// gets the weaker verdict of its runs' evidence, and a parity that failed in one run. One bundle
// stays as it is. bad_input: no bundle, another study (plan, arms or baseline) or another identity
// than the first's; the axis is named.
Result<Bundle> merge_runs(std::vector<Bundle> bundles);

// Bundles, or kept rows, read several at a time and merged. bad_input: also a folder that is named
// twice.
Result<Bundle> read_runs(const std::vector<std::string>& folders);

// Axis and value of the measured program: the manifest's identity and its models' hashes, threads,
// environment variables, libraries and host as the environment states them ("libraries.NAME"), and
// below "arms.NAME" each arm's arm_facts(): its axes, and the parts of them that its worker or the
// environment state ("framework_build.torch"). In the manifest's order, then by arm.
std::vector<std::pair<std::string, std::string>> policy_identity(const Bundle& bundle);

}  // namespace assay
