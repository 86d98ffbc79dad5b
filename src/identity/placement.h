// The kernel's placement of a process, read from /proc.
#pragma once

#include <cstdint>

#include "base/process/placement.h"
#include "identity/machine_files.h"

namespace assay {

// Placement of a living process. The kernel walks over its memory map for it, so never call it
// beside a timed region.
Placement read_placement(const MachineFiles& files, int64_t pid);

}  // namespace assay
