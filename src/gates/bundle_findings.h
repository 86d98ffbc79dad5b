// A bundle's findings: those that an analysis left in it if they agree with its rows, else made
// anew.
#pragma once

#include <string>

#include "analysis/findings/findings.h"
#include "analysis/rows/samples.h"
#include "artifact/bundle.h"
#include "base/process/thread_pool.h"

namespace assay {

struct BundleFindings {
  Findings findings;
  bool from_file = false;
  std::string why_anew = {};  // why analysis/findings.json wasn't taken; empty: it was
};

// Takes analysis/findings.json if this program reads its version and it agrees with the bundle on
// study, identity, strata, and on the attempts, losses, number, least, largest and mean of every
// arm's rows. Nothing is written. The errors of analyze().
Result<BundleFindings> findings_of_bundle(const Bundle& bundle, const Samples& samples,
                                          ThreadPool* pool);

// The first point in which the findings disagree with the rows; empty: they are of this bundle.
std::string disagreement(const Findings& findings, const Bundle& bundle, const Samples& samples);

// analyze_contrasts() of one phase with `arm` as the baseline, so that it is contrasted with every
// other arm; all phases if `phase` is absent. They are never taken from a file.
Result<Findings> findings_against(Bundle bundle, const std::string& arm,
                                  const std::optional<Phase>& phase, ThreadPool* pool);

}  // namespace assay
