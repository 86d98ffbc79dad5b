// Starts a program with chosen descriptors: the base of subprocess.cc.
#pragma once

#include <sys/types.h>

#include "base/process/subprocess.h"
#include "base/result.h"

namespace assay {

// Descriptors of this process that the child gets as 0, 1, 2, spec.request_fd and spec.reply_fd.
// The last two may be -1. A kept child has no requests: its keeper reads them.
struct ChildDescriptors {
  int in = -1;
  int out = -1;
  int err = -1;
  int requests = -1;
  int replies = -1;
};

// Returns once the program runs (exec has succeeded), with default signal handling; the number is
// the keeper's if there is one. Errors as Spawner::spawn; nothing is left to reap then.
Result<pid_t> launch_process(const ChildSpec& spec, const ChildDescriptors& descriptors);

}  // namespace assay
