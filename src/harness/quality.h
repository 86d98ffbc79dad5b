// The distance of weights that aren't the model's own from it, measured once the model's arms are
// timed.
#pragma once

#include "artifact/bundle.h"
#include "harness/cell_evidence.h"
#include "harness/context.h"

namespace assay {

// Cells of these arms that have no quality in their evidence get one; arms with the same weights
// share a measurement. One that fails is a `problem` there, and no error. False: interrupted, and
// what isn't recorded is left to the next sitting.
Result<bool> measure_quality(const Study& study, const Plan& plan, size_t model,
                             BundleWriter& bundle, RunContext& context, Workers& workers,
                             CellEvidence& evidence);

}  // namespace assay
