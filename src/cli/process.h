// The program's duties to its surroundings before and after a command: open descriptors, failed
// writes as errors, exceptions as one line.
#pragma once

#include <string_view>

namespace assay::cli {

inline constexpr int kExitBadInput = 2;
inline constexpr int kExitEnvironment = 3;

// First of all in main:
// - descriptors 0 to 2 are open, so that no file of ours gets their numbers and the program's
//   output; a closed one is replaced by one on which reading (0) or writing (1, 2) fails;
// - a closed pipe and a limit on files' sizes fail a write and send no signal;
// - a mapped file that is cut short ends the program with its name (base/files/mapped_file.h);
// - an exception that leaves a thread ends it as report_exception() has it, not by SIGABRT.
void prepare_process();

// Writes to stderr. Nobody can be told if that fails, and no work is stopped for it.
void tell(std::string_view text);

// In a handler: one line on stderr for the exception, and the exit status: 3 if memory, threads or
// the like ran out, 2 else, since only an input that no check knows leads there.
int report_exception();

// At the end: the program's output has been written, or the exit status is 3 and stderr says why.
// Else `status`. If nobody reads stdout any more ("| head -1"), the program ends by SIGPIPE as
// others do, and says nothing: its other work is done by then.
int close_output(int status);

}  // namespace assay::cli
