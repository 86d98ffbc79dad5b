// Load of the machine while a bundle was measured, by its environment and its commits.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "artifact/bundle.h"

namespace assay {

// Load as a run recorded it: that of the busiest sitting, if there are several. Absent: not
// recorded.
struct MachineLoad {
  std::optional<double> cpus;        // that the program may use
  std::optional<double> start_load;  // load average of a minute when the run began
  std::optional<double> mean_load;   // over units, of each one's highest
  std::optional<double> worst_load;
  std::optional<double> boot_steal;  // share of all CPU time that the hypervisor took, since boot
  std::optional<double> mean_steal;  // over units, of each one's highest between two repetitions
  std::optional<double> worst_steal;
};
MachineLoad machine_load(const Bundle& bundle);

// "load average 0.4 at the start, 1.1 in the mean, 1.3 at most, on 2 CPUs; steal 0.1 % ..."; empty:
// nothing was recorded.
std::string load_text(const MachineLoad& load);

// One sentence for each figure by which one run had clearly more company than the other: mean (else
// starting) load by more than a quarter of the CPUs, mean (else the boot's) steal by more than one
// point.
std::vector<std::string> load_differences(const MachineLoad& base, const MachineLoad& cand);

}  // namespace assay
