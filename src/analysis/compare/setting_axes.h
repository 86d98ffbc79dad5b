// Settings that files of other tools state (`assay import`), as axes of the identity: NAME of a
// file is the axis setting.NAME.
#pragma once

#include <string>
#include <vector>

#include "analysis/compare/identity_axes.h"

namespace assay {

inline constexpr const char* kSettingAxis = "setting.";

// Differences between two identities: of the settings of arms of one name (identity.settings,
// identity.arms.ARM.settings), of the loads that they were measured under, scenario by scenario
// (identity.arms.ARM.loads), and, on the axis "model", of the statements on models of one name
// (identity.models). A setting that one of the two doesn't state is a difference. One that all arms
// have alike is about the whole bundle.
std::vector<AxisDifference> setting_differences(const Json& base, const Json& cand);

// The axes of the settings that an identity states.
std::vector<std::string> setting_axes(const Json& identity);

}  // namespace assay
