// Compares statements that a bundle makes twice. Hashes show that files are those that were sealed;
// this shows that they can be of one run. A change of one of two places, sealed anew, is found
// here; a change of both isn't, and takes a signature to show (artifact/signature.h).
#pragma once

#include <span>
#include <vector>

#include "artifact/bundle.h"
#include "artifact/read_bundle.h"
#include "base/result.h"

namespace assay {

// Compared in a sealed bundle: study.yaml and the plan's hash; the plan and the
// rows (cells, order, repetitions, prompt tokens); manifest and rows (status counts, times that run
// forward); the identity and the environments, the study's arms and the identity's; rows and
// evidence (phase, backend, mode, cache, type, processes, counters, failures, model); a parity
// record and its difference. Empty: they agree, or the run hasn't ended, or rows alone were kept.
// Members that an older program didn't write are compared with nothing.
std::vector<VerifyProblem> cross_check(const Bundle& bundle, std::span<const CommittedUnit> units);

// Everything that `assay verify` says of a bundle that was read: verify_bundle() and cross_check().
Result<std::vector<VerifyProblem>> check_bundle(const Bundle& read,
                                                std::span<const CommittedUnit> units);

}  // namespace assay
