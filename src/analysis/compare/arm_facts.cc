// Arms as rows, manifest, evidence and environment state them.
#include "analysis/compare/arm_facts.h"

#include <utility>

#include "base/records/backend_traits.h"
#include "base/records/lenient_json.h"
#include "base/text/text.h"

namespace assay {
namespace {

void put(std::set<std::string>& values, const std::string& value) {
  if (!value.empty()) values.insert(value);
}

// True if this program computed the row, so that the run's identity is the arm's.
bool runs_assay(const Row& row) {
  return backend_traits(row.backend.str()).worker == WorkerKind::kAssay;
}

void add_columns(const Row& row, AxisValues& axes) {
  for (const auto& [axis, value] :
       {std::pair<const char*, const std::string&>{"backend", row.backend},
        {"dtype", row.dtype},
        {"quantization", row.quantization},
        {"cache", row.cache},
        {"compile_mode", row.compile_mode},
        {"dynamic", row.dynamic},
        {"padding", row.padding}}) {
    if (!value.empty()) axes[axis].insert(value);
  }
}

// Members of the arm's identity that aren't the run's: a GPU, another framework, a checkout.
void add_own_identity(const Bundle& bundle, const Row& row, AxisValues& axes) {
  const Json& own = member(member(member(bundle.manifest, "identity"), "arms"), row.arm.str());
  for (const char* axis : {"device", "code_generator", "framework_build", "code_sha"}) {
    if (runs_assay(row) && std::string_view(axis) != "device") continue;
    if (std::string value = shown_text(member(own, axis)); !value.empty()) {
      axes[axis].insert(std::move(value));
    }
  }
}

// A torch worker's toolchain is the framework; its code generator is another member of it.
void add_report(const Row& row, const WorkerReport& report, ArmFacts& arm) {
  const Json& toolchain = member(report.whole, "toolchain");
  const bool torch = text_member(toolchain, "name") == "torch";
  const bool stated = !runs_assay(row) && arm.axes.contains("code_generator");
  if (!stated && !torch && !report.code_generator.empty()) {
    arm.axes["code_generator"].insert(report.code_generator);
  }
  if (!report.triton_version.empty()) {
    put(arm.parts["code_generator"]["triton"], report.triton_version);
  }
  if (const auto bits = number_member(member(report.whole, "weights"), "bits_a_weight")) {
    put(arm.parts["quantization"]["bits a weight"], format_significant(*bits, 4));
  }
  if (runs_assay(row)) return;
  AxisValues& framework = arm.parts["framework_build"];
  if (torch) put(framework["torch"], text_member(toolchain, "version"));
  const Json& packages = member(toolchain, "packages");
  if (packages.is_object()) {
    for (const auto& [name, version] : packages.items()) {
      if (name != "triton") put(framework[name], shown_text(version));
    }
  }
  put(arm.parts["device"]["cuda device"], text_member(member(toolchain, "cuda"), "device"));
}

void add_evidence(const Row& row, const Evidence& evidence, ArmFacts& arm) {
  if (evidence.reported) add_report(row, *evidence.reported, arm);
  if (runs_assay(row) || !evidence.worker) return;
  if (!evidence.worker->name.empty()) {
    put(arm.parts["framework_build"]["worker"],
        evidence.worker->name + " " + evidence.worker->version);
  }
}

// Adds the facts of a command's program. That of a checkout changes with its revision, which is
// told instead.
void add_environment(const Bundle& bundle, const Row& row, ArmFacts& arm) {
  if (runs_assay(row)) return;
  const Json& about = member(member(bundle.environment, "arms"), row.arm.str());
  const std::string revision = text_member(member(about, "command"), "code_sha");
  put(arm.parts["code_sha"]["revision"], revision);
  if (!revision.empty()) return;
  put(arm.parts["framework_build"]["program"], text_member(member(about, "program"), "sha256"));
}

}  // namespace

std::map<std::string, ArmFacts> arm_facts(const Bundle& bundle) {
  std::map<std::string, ArmFacts> facts;
  std::set<std::string> seen;
  for (const Row& row : bundle.rows) {
    if (!seen.insert(row.cell_id).second) continue;
    ArmFacts& arm = facts[row.arm];
    add_columns(row, arm.axes);
    add_own_identity(bundle, row, arm.axes);
    add_environment(bundle, row, arm);
    const auto evidence = bundle.evidence.find(row.cell_id);
    if (evidence != bundle.evidence.end()) add_evidence(row, evidence->second, arm);
  }
  return facts;
}

}  // namespace assay
