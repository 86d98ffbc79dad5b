// Comparisons of other tools' files.
#include "analysis/compare/other_tools.h"

#include <algorithm>

#include "analysis/compare/setting_axes.h"
#include "base/records/lenient_json.h"

namespace assay {
namespace {

const Json& about_import(const Bundle& bundle) {
  return member(bundle.environment, "imported");
}

bool has_means_alone(const Bundle& bundle) {
  const auto means = whole_member(about_import(bundle), "means");
  return means && *means > 0 && *means == std::ssize(bundle.rows);
}

}  // namespace

bool is_imported(const Bundle& bundle) {
  return about_import(bundle).is_object();
}

bool all_imported(std::span<const Bundle> base, std::span<const Bundle> cand) {
  return std::ranges::all_of(base, is_imported) && std::ranges::all_of(cand, is_imported);
}

std::set<std::string> axes_of_other_tools() {
  return {"code_sha", "framework_build"};
}

bool is_of_newer_build(const AxisDifference& difference, const std::vector<AxisDifference>& all) {
  const bool one_sided = difference.base.empty() != difference.cand.empty();
  return one_sided && difference.axis.starts_with(kSettingAxis) &&
         std::ranges::any_of(all, [](const AxisDifference& other) {
           return axes_of_other_tools().contains(other.axis) && !other.base.empty() &&
                  !other.cand.empty();
         });
}

CompareOptions options_for_other_tools(std::span<const Bundle> base, std::span<const Bundle> cand,
                                       CompareOptions options) {
  if (std::ranges::any_of(base, has_means_alone) || std::ranges::any_of(cand, has_means_alone)) {
    options.minimum_rows = 1;
  } else {
    options.allow_single_process = true;
  }
  return options;
}

std::string caveat_of_other_tools(const Comparison& comparison) {
  const auto any = [&](const auto& has) { return std::ranges::any_of(comparison.cells, has); };
  if (any([](const ComparedCell& cell) { return !cell.verdict; })) {
    return "A file has means without their samples, so there is no interval and no verdict.";
  }
  const bool by_rows =
      any([](const ComparedCell& cell) { return cell.verdict && !cell.by_processes; });
  return by_rows ? "One process a side, one after the other: what changed on the machine between "
                   "is in this ratio."
                 : "Measured one after the other: what changed on the machine between is in this "
                   "ratio.";
}

}  // namespace assay
