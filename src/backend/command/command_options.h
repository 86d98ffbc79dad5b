// Options of a command's worker at load: the arm's keys, and facts that the harness found out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "backend/command/invocation.h"
#include "base/records/json.h"
#include "base/result.h"
#include "base/text/text_pattern.h"
#include "study/command_arm.h"

namespace assay {

// The revision that an arm runs, checked out.
struct CheckedOut {
  std::string folder;  // empty: the arm names none
  std::string sha;     // "-dirty" behind it if files were changed
};

// Texts as the study has them, with their placeholders.
struct CommandOptions {
  std::vector<std::string> argv;  // with `shell` the one text
  bool shell = false;
  std::string workdir;  // empty: the checkout, or else where assay runs
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<TextPattern> patterns;
  int64_t samples = 1;  // that an invocation has to print
  CheckedOut checkout;
  double timeout_s = 0;  // of an invocation; 0: none
  std::string seed;
  std::string side;  // of `compare --run`
};

// Options that the harness adds and the worker reads back.
inline constexpr const char* kCheckedOutOption = "checked_out";  // {"folder", "sha"}
inline constexpr const char* kSeedOption = "seed";

// bad_input that names the option.
Result<CommandOptions> command_options(const Json& options);

// The invocation for these values of placeholders; those of `checkout`, `seed`, `samples` and
// `side` are added. A relative folder is one of the checkout, if there is one. Its time-out is a
// second shorter, or a twentieth, than the harness's, so that the worker can end everything that it
// started.
InvocationSpec fill_command(const CommandOptions& options,
                            std::map<std::string, std::string> values);

}  // namespace assay
