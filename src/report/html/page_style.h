// The looks of a page, and the few lines of script that it can do without.
#pragma once

#include <string>
#include <string_view>

namespace assay {

// Style sheet of the page. It stands behind plot::theme_css(), whose colours it uses.
const std::string& page_css();

// A <script> element: buttons that copy a text. If scripts are off, the buttons are hidden.
std::string_view page_script();

}  // namespace assay
