// The identities of two bundles, axis by axis: may they be compared?
#pragma once

#include <string>
#include <vector>

#include "artifact/bundle.h"

namespace assay {

struct AxisDifference {
  std::string axis;   // as --vary names it
  std::string about;  // the arm, model or member that differs; empty: the whole bundle
  std::string base;   // empty: not recorded
  std::string cand;
};

// True if the difference is about one of these arms or the model; one about the whole bundle, or
// about a member of its machine, is.
bool concerns(const AxisDifference& difference, const std::vector<std::string>& arms,
              const std::string& model);

// The axes that bundles in general have. An identity with further members (a third party's worker)
// has an axis for each of them.
//
// device (alias gpu), code_generator, framework_build, code_sha: of the manifest's identity, and of
// each arm's own where it has one (a GPU, PyTorch's version, a checkout); also the parts of them
// that a worker reports and that both bundles state (arm_facts.h). backend, dtype, quantization,
// cache, compile_mode, dynamic, padding: of the arm's rows. model: hash of its weights. threads,
// environment_variables, libraries, host (governor, quota, SMT, caches, huge pages, hypervisor,
// memory): of environment.json.
const std::vector<std::string>& identity_axes();

// Every difference, in the order of the axes; arms and models that only one bundle has are left to
// the comparison of their strata. The commit inside framework_build is code_sha's matter.
std::vector<AxisDifference> identity_differences(const Bundle& base, const Bundle& cand);

// An axis of an arm that the bundle names as unknown (identity.arms.ARM.unknown, as `assay import`
// writes it). Two bundles that don't state an axis are not known to agree on it.
struct UnstatedAxis {
  std::string axis;
  std::string arm;
};
std::vector<UnstatedAxis> unstated_axes(const Bundle& bundle);
// Those that one of the two, or both, don't state of some arm, each once.
std::vector<std::string> unstated_between(const Bundle& base, const Bundle& cand);

// The part of a bundle that identity_differences() reads: its environment, its manifest without the
// hashes of its files, the first row of each cell, and of the evidence the workers' names and
// toolchains.
Bundle identity_part(const Bundle& bundle);

// The axis that a user's word means: "gpu" is device. bad_input for a word that neither is an axis
// nor names a member of one of the bundles' identities.
Result<std::string> parse_axis(const std::string& word, const Bundle& base, const Bundle& cand);

}  // namespace assay
