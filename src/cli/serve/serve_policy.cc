// Axes of the policy's identity that a server can look at, held against this process.
#include "cli/serve/serve_policy.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <set>
#include <utility>
#include <vector>

#include "backend/native/native_gpu.h"
#include "base/clock.h"
#include "base/files/descriptor.h"
#include "base/files/file_io.h"
#include "base/tables/csv.h"
#include "base/text/text.h"
#include "identity/identity.h"

namespace assay::cli {
namespace {

using Axes = std::vector<std::pair<std::string, std::string>>;

Axes axes_here(const ServedUnderPolicy& served) {
  const Identity here = make_identity(read_host(MachineFiles()), build_info());
  return {{"device", here.device},
          {"code_generator", here.code_generator},
          {"framework_build", here.framework_build},
          {"code_sha", here.code_sha.value_or("")},
          {"threads", fmt::format("{}", served.threads)},
          {fmt::format("model_sha256.{}", served.model), served.content_hash}};
}

// A policy has to state each axis that can be looked at here.
Status check_identity(const Policy& policy, const ServedUnderPolicy& served) {
  for (const auto& [axis, found] : axes_here(served)) {
    const std::string expected = policy.stated(axis);
    if (expected != found) {
      return bad_input("policy: {}: expected {} (measured), found {}", axis,
                       expected.empty() ? "nothing" : quoted_excerpt(expected),
                       quoted_excerpt(found));
    }
  }
  return {};
}

// An arm on a GPU states it; an arm on the processor states none of its own.
Status check_devices(const Policy& policy, const std::vector<std::string>& arms,
                     const ServedUnderPolicy& served) {
  const std::string found = served.gpu ? NativeGpus().readiness(*served.gpu).device : "";
  for (const std::string& arm : arms) {
    const std::string expected = policy.stated(fmt::format("arms.{}.device", arm));
    if (expected != found) {
      const auto shown = [](const std::string& device) {
        return device.empty() ? "the processor" : quoted_excerpt(device);
      };
      return bad_input("policy: arm {}: device: expected {} (measured), found {}",
                       quoted_excerpt(arm), shown(expected), shown(found));
    }
  }
  return {};
}

// The heading first where the file is new.
Status append_row(const std::filesystem::path& path, const std::vector<std::string>& row) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (file.get() < 0) return unwritable(path);
  std::string text;
  if (::lseek(file.get(), 0, SEEK_END) == 0) {
    text = csv_line({"at", "rule", "shape", "from", "to", "trigger", "requests"});
  }
  if (!row.empty()) text += csv_line(row);
  return write_all(file.get(), text, path);
}

void tell_switch(const server::RouteSwitch& made, const std::filesystem::path& log) {
  const std::string at = format_utc(system_clock().wall_ns());
  const std::string_view trigger = trigger_name(made.trigger);
  fmt::print(stderr, "policy   rule {} ({}) gives way after {}: {} -> {}, by {}\n", made.rule,
             made.shape, counted(made.requests, "request"), made.from, made.to, trigger);
  if (log.empty()) return;
  const Status done =
      append_row(log, {at, fmt::format("{}", made.rule), made.shape, made.from, made.to,
                       std::string(trigger), fmt::format("{}", made.requests)});
  if (!done) fmt::print(stderr, "policy   {}\n", done.error().message);
}

}  // namespace

Result<server::PolicyRoutes> open_served_policy(const std::filesystem::path& path,
                                                const ServedUnderPolicy& served,
                                                const std::filesystem::path& log) {
  ASSAY_TRY(Policy policy, read_policy(path));
  const Policy stated = policy;
  ASSAY_TRY(server::PolicyRoutes routes,
            server::PolicyRoutes::make(
                std::move(policy), served.model, served.dtype,
                [log](const server::RouteSwitch& made) { tell_switch(made, log); }));
  ASSAY_CHECK(check_devices(stated, routes.arms(), served));
  ASSAY_CHECK(check_identity(stated, served));
  if (!log.empty())
    ASSAY_CHECK(append_row(log, {}));  // a place that can't be written to is said now
  return routes;
}

}  // namespace assay::cli
