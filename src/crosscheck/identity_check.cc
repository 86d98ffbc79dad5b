// The identity beside the environments that it is the short form of, and its arms beside the
// study's.
#include <algorithm>
#include <set>

#include "artifact/manifest.h"
#include "artifact/sittings.h"
#include "base/records/lenient_json.h"
#include "base/text/text.h"
#include "crosscheck/checks.h"
#include "identity/long_form.h"

namespace assay::crosscheck {
namespace {

// An axis that one of the two doesn't state stands against nothing.
void hold_axis(const std::string& axis, const std::string& expected, const std::string& found,
               const std::string& environment, Problems& problems) {
  if (expected.empty() || expected == found) return;
  problems.add(kManifestName,
               fmt::format("expected identity.{} {} of {}, found {}", axis,
                           quoted_excerpt(expected), environment, quoted_excerpt(found)));
}

void check_program(const Json& identity, const Json& environment, const std::string& name,
                   Problems& problems) {
  const Identity of = identity_in(environment);
  hold_axis("device", of.device, text_member(identity, "device"), name, problems);
  hold_axis("code_generator", of.code_generator, text_member(identity, "code_generator"), name,
            problems);
  hold_axis("framework_build", of.framework_build, text_member(identity, "framework_build"), name,
            problems);
  hold_axis("code_sha", of.code_sha.value_or(""), text_member(identity, "code_sha"), name,
            problems);
}

// The axes of an arm that stand in the facts about its interpreter, GPU or command.
struct FoundAxes {
  std::string device;
  std::string framework_build;
  std::string code_sha;
};

FoundAxes axes_found(const Json& about) {
  FoundAxes axes;
  if (const Json& gpu = member(about, "gpu"); gpu.is_object()) {
    axes.device =
        fmt::format("{}, compute capability {}, {}", text_member(gpu, "name"),
                    shown_text(member(gpu, "compute_capability")), text_member(gpu, "driver"));
  }
  const Json& interpreter = member(about, "interpreter");
  const std::string torch = text_member(interpreter, "torch");
  if (!torch.empty()) {
    axes.framework_build =
        fmt::format("torch {} transformers {} python {}", torch,
                    text_member(interpreter, "transformers"), text_member(interpreter, "python"));
    axes.device = text_member(interpreter, "cuda_device");
  }
  axes.code_sha = text_member(member(about, "command"), "code_sha");
  return axes;
}

void check_found(const std::string& arm, const Json& stated, const Json& about,
                 Problems& problems) {
  const FoundAxes found = axes_found(about);
  const auto hold = [&](const char* axis, const std::string& expected) {
    const std::string own = text_member(stated, axis);
    if (own.empty()) return;  // the run's, or the arm's gate found that it can't run
    hold_axis(fmt::format("arms.{}.{}", arm, axis), expected, own,
              fmt::format("{}: arms.{}", kEnvironmentName, arm), problems);
  };
  hold("device", found.device);
  hold("framework_build", found.framework_build);
  hold("code_sha", found.code_sha);
}

void check_arms(const Checked& checked, const Json& identity, Problems& problems) {
  const Json& stated = member(identity, "arms");
  if (!stated.is_object()) return;
  std::set<std::string> names;
  for (const Json& arm : member(member(checked.bundle.manifest, "study"), "arms")) {
    const std::string name = text_member(arm, "name");
    if (name.empty()) continue;
    names.insert(name);
    const Json& own = member(stated, name);
    if (!own.is_object()) {
      problems.add(kManifestName,
                   fmt::format("expected identity.arms to name {}, found nothing of it",
                               quoted_excerpt(name)));
      continue;
    }
    const auto hold = [&](const char* axis, const std::string& expected) {
      const Json& value = member(own, axis);
      if (value.is_null()) return;
      problems.hold(kManifestName, fmt::format("identity.arms.{}.{} as in study", name, axis),
                    expected, shown_text(value));
    };
    hold("cache", text_member(arm, "cache"));
    hold("compile_mode", text_member(arm, "mode"));
    check_found(name, own, member(member(checked.bundle.environment, "arms"), name), problems);
  }
  if (names.empty()) return;
  for (const auto& [name, own] : stated.items()) {
    if (names.contains(name)) continue;
    problems.add(kManifestName, fmt::format("expected arms of the study in identity.arms, found {}",
                                            quoted_excerpt(name)));
  }
}

// An arm that rows are of is one of the study's.
void check_arms_of_rows(const Checked& checked, Problems& problems) {
  std::set<std::string> known;
  for (const Json& arm : member(member(checked.bundle.manifest, "study"), "arms")) {
    known.insert(arm.is_string() ? arm.get<std::string>() : text_member(arm, "name"));
  }
  if (known.empty()) return;
  for (const CellRows& cell : checked.cells) {
    const Row& row = *cell.rows.front();
    if (known.contains(row.arm)) continue;
    problems.add(
        fmt::format("{}/metrics.csv: cell {}", phase_name(row.phase), cell.id),
        fmt::format("expected an arm of the study, found {}", quoted_excerpt(row.arm.str())));
  }
}

}  // namespace

void check_identity(const Checked& checked, Problems& problems) {
  const Json& identity = member(checked.bundle.manifest, "identity");
  check_arms_of_rows(checked, problems);
  check_arms(checked, identity, problems);
  if (!checked.is_known_run()) return;
  // A resume under another identity is refused, so that every sitting has the first one's.
  for (size_t i = 0; i < checked.bundle.sittings.size(); ++i) {
    check_program(identity, checked.bundle.sittings[i].environment,
                  i == 0 ? kEnvironmentName : sitting_name(static_cast<int64_t>(i) + 1), problems);
  }
}

}  // namespace assay::crosscheck
