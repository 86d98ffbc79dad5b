// Filters by name, in the order of the study.
#include "study/filter.h"

#include <algorithm>
#include <set>

#include "base/text/text.h"

namespace assay {
namespace {

using Words = std::vector<std::string>;

std::string name_of(Phase phase) {
  return std::string(phase_name(phase));
}
template <typename T>
std::string name_of(const T& item) {
  return item.name;
}

template <typename T>
Status keep(std::vector<T>& items, const std::string& filter, const Words& wanted) {
  Words known;
  for (const T& item : items) known.push_back(name_of(item));
  for (const std::string& name : wanted) {
    if (std::ranges::find(known, name) != known.end()) continue;
    return bad_input("--only {}: expected one of {}, found {}{}", excerpt(filter),
                     join(known, ", "), quoted_excerpt(name), nearest_hint(name, known));
  }
  std::erase_if(items, [&](const T& item) {
    return std::ranges::find(wanted, name_of(item)) == wanted.end();
  });
  return {};
}

}  // namespace

Status keep_only(Study& study, std::span<const std::string> filters) {
  static const Words axes = {"model", "arm", "phase", "scenario"};
  std::set<std::string> seen;
  for (const std::string& filter : filters) {
    const size_t equals = filter.find('=');
    const std::string axis = filter.substr(0, equals);
    if (equals == std::string::npos || std::ranges::find(axes, axis) == axes.end()) {
      return bad_input("--only: expected AXIS=NAME with an axis of {}, found {}{}",
                       join(axes, ", "), quoted_excerpt(filter), nearest_hint(axis, axes));
    }
    if (!seen.insert(axis).second) {
      return bad_input("--only: expected each axis once, found {} again", axis);
    }
    const Words wanted = split(filter.substr(equals + 1), ',');
    if (axis == "model") ASSAY_CHECK(keep(study.models, filter, wanted));
    if (axis == "arm") ASSAY_CHECK(keep(study.arms, filter, wanted));
    if (axis == "phase") ASSAY_CHECK(keep(study.phases, filter, wanted));
    if (axis == "scenario") ASSAY_CHECK(keep(study.scenarios, filter, wanted));
  }
  const auto baseline = std::ranges::find(study.arms, study.baseline, &StudyArm::name);
  if (baseline == study.arms.end()) study.baseline = study.arms.front().name;
  const auto is_measured = [&](const StudyScenario& scenario) {
    return longest_generation(study, scenario).has_value();
  };
  if (std::ranges::none_of(study.scenarios, is_measured)) {
    return bad_input("--only: expected a scenario of the phases that are left, found none");
  }
  return {};
}

}  // namespace assay
