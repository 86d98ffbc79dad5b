// A bundle's statements on each arm for the axes of the identity: by its rows, its own members of
// the manifest's identity, its worker's report and the environment's entry on its program.
#pragma once

#include <map>
#include <set>
#include <string>

#include "artifact/bundle.h"

namespace assay {

// Axis to values; those of several cells are joined.
using AxisValues = std::map<std::string, std::set<std::string>>;

struct ArmFacts {
  // Held against another bundle even if that one states nothing.
  AxisValues axes;
  // Axis to member to values, of parts of the axis that the identity abbreviates: the versions of
  // torch, transformers and the worker, the hash of a command's program, the revision of its
  // checkout, the GPU that the worker computed on. Kept rows and older bundles have fewer, so they
  // are held only against the same member of the other bundle.
  std::map<std::string, AxisValues> parts;
};

// The facts by the arm's name. A native arm's framework and commit are the program's, which the
// bundle's own identity states; side by side (`compare --run`) they are compared themselves.
std::map<std::string, ArmFacts> arm_facts(const Bundle& bundle);

}  // namespace assay
