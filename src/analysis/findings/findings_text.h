// findings.json as text: the same bytes as to_json_text(findings_to_json(findings)), without its
// tree.
#pragma once

#include <string>

#include "analysis/findings/findings.h"

namespace assay {

std::string findings_text(const Findings& findings);

}  // namespace assay
