// Parts of a page that one bundle and several have in common.
#pragma once

#include <string>

#include "analysis/findings/findings.h"

namespace assay {

// The screen's lines (report/screen), with room for all of them.
std::string verdict_html(const Findings& findings);

// The choices that voids or weaken nothing: the table alone, and the loudest warnings.
std::string short_verdict_html(const Findings& findings);

// SHA-256 of the identity's lines, NAME=VALUE each: two bundles with one hash were measured alike.
std::string identity_hash(const Findings& findings);

}  // namespace assay
