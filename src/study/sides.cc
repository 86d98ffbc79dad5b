// Doubles the arms of a study.
#include "study/sides.h"

#include "base/records/backend_traits.h"
#include "base/text/text.h"
#include "study/arms.h"
#include "study/command_arm.h"

namespace assay {
namespace {

// The key by which an arm of this backend names its program.
std::string_view program_key(const std::string& backend) {
  return backend_traits(backend).worker == WorkerKind::kInterpreter ? "python" : "program";
}

// A side of a command is a revision of its checkout, or the text in the place of {side}.
Status check_command_sides(const StudyArm& arm) {
  const auto checkout = arm.options.find("checkout");
  if (checkout != arm.options.end() && checkout->contains("revision")) {
    return bad_input(
        "arm \"{}\": expected a checkout without revisions (the sides are its "
        "revisions), found {}",
        arm.name, quoted_excerpt(checkout->value("revision", "")));
  }
  if (checkout != arm.options.end() || has_placeholder(arm, "side")) return {};
  return bad_input(
      "arm \"{}\": expected a checkout: {{repo: DIR}}, whose revisions the sides are, "
      "or a command with {{side}} in it, found neither",
      arm.name);
}

Status check_arm(const StudyArm& arm, const std::string& backend) {
  if (arm.backend != backend) {
    return bad_input(
        "arm \"{}\": expected backend {} as in the study's first arm (a program serves arms of one "
        "backend), found {}",
        arm.name, backend, arm.backend);
  }
  const std::string_view key = program_key(backend);
  if (is_command(arm)) ASSAY_CHECK(check_command_sides(arm));
  if (arm.options.contains(key)) {
    return bad_input("arm \"{}\": expected no key \"{}\" (both sides name their own), found {}",
                     arm.name, key, quoted_excerpt(arm.options[key].get<std::string>()));
  }
  if (arm.name.ends_with(kBaseSide) || arm.name.ends_with(kCandSide)) {
    return bad_input("arm \"{}\": expected a name that doesn't end in {} or {}", arm.name,
                     kBaseSide, kCandSide);
  }
  return {};
}

StudyArm arm_of(const StudyArm& arm, std::string_view side, const std::string& program) {
  StudyArm sided = arm;
  sided.name += side;
  if (!is_command(arm)) {
    sided.options[program_key(arm.backend)] = program;
    return sided;
  }
  const auto checkout = sided.options.find("checkout");
  if (checkout != sided.options.end()) (*checkout)["revision"] = program;
  sided.options[kSideOption] = program;
  return sided;
}

}  // namespace

Result<Study> two_sided(Study study, const StudySides& sides) {
  std::vector<StudyArm> arms;
  for (const StudyArm& arm : study.arms) {
    ASSAY_CHECK(check_arm(arm, study.arms.front().backend));
    arms.push_back(arm_of(arm, kBaseSide, sides.base));
    arms.push_back(arm_of(arm, kCandSide, sides.cand));
  }
  if (arms.size() > kMaxArms) {
    return bad_input("study \"{}\": expected at most {} arms to measure on two sides, found {}",
                     study.name, kMaxArms / 2, study.arms.size());
  }
  study.arms = std::move(arms);
  study.baseline += kBaseSide;
  study.order = RunOrder::kInterleaved;
  study.stopping.reset();
  study.sides = sides;
  if (count_cells(study) > kMaxPlanCells || count_rows(study) > kMaxPlanRows) {
    return bad_input(
        "study \"{}\": expected a plan of at most {} cells and {} rows on two sides, found {} "
        "cells and {} rows",
        study.name, kMaxPlanCells, kMaxPlanRows, count_cells(study), count_rows(study));
  }
  return study;
}

}  // namespace assay
