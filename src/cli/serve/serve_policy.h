// --policy of `assay serve`: a policy for exactly this program, machine and model, and where its
// switches are told.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"
#include "server/policy_routes.h"

namespace assay::cli {

struct ServedUnderPolicy {
  std::string model;         // its name in the policy's rules
  std::string content_hash;  // of its checkpoint
  std::string dtype;         // "bf16"
  std::optional<int> gpu = {};
  size_t threads = 1;
};

// bad_input: no policy; one whose identity isn't that of this program, machine and model (device,
// compiler, build, commit, threads, weights, and what its arms were); arms that a server can't be.
// Each switch is a line on the error output, and a row at the end of `log` (empty: none).
Result<server::PolicyRoutes> open_served_policy(const std::filesystem::path& path,
                                                const ServedUnderPolicy& served,
                                                const std::filesystem::path& log);

}  // namespace assay::cli
