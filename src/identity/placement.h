// Where the kernel has put a process, read from /proc.
#pragma once

#include <cstdint>

#include "base/placement.h"
#include "identity/machine_files.h"

namespace assay {

// Of a living process; takes the kernel a walk over its memory map, so never beside a timed region.
Placement read_placement(const MachineFiles& files, int64_t pid);

}  // namespace assay
