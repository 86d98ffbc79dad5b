// Findings on a machine's fitness for measuring, each limit with the reason and the fix.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "identity/build_info.h"
#include "identity/host.h"
#include "identity/monitor.h"

namespace assay {

enum class CheckStatus { kOk, kLimited, kMissing };
std::string_view check_status_name(CheckStatus status);  // ok | limited | missing

struct Check {
  std::string name;
  CheckStatus status = CheckStatus::kOk;
  std::string finding;  // the value found, or why there is none
  std::string fix{};    // an action for the user; empty: nothing to do, or nothing that helps
};

// Threads, memory, huge pages, clock source, load and steal, and the build that runs.
std::vector<Check> machine_checks(const Host& host, const BuildInfo& build);

// Frequency, temperature and power from the sample; `files` tells why one is missing.
std::vector<Check> sensor_checks(const MachineFiles& files, const Host& host,
                                 const MachineSample& sample);

// Free space for bundles and models, where the program was started.
Check disk_check(Result<double> free_bytes);

}  // namespace assay
