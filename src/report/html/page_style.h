// The looks of a page, and the few lines of script that it can do without.
#pragma once

#include <string>
#include <string_view>

namespace assay {

// Beside plot::theme_css(), whose colours it uses, and behind it.
const std::string& page_css();

// A <script> element: buttons that copy a text. Without it they are hidden.
std::string_view page_script();

}  // namespace assay
