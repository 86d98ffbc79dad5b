// Texts held against the approved ones of tests/golden.
#pragma once

#include <string>

namespace assay {

// Fails unless the received text is the approved file's. scripts/approve-golden compares and copies
// what is left in the build's folder golden.
void expect_approved(const std::string& name, const std::string& received);

}  // namespace assay
