// The page at `/`: its document, style and script. They know nothing of the model: the script asks
// for it at /status, with a key if the server has one.
#pragma once

#include <string_view>

namespace assay::server {

std::string_view page_html();
std::string_view page_css();
std::string_view page_js();

}  // namespace assay::server
