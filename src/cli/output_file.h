// Files that a user names for a command to write: they replace an earlier one of their kind and
// nothing else.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay::cli {

// A kind of file that a command writes, and the marks that tell an earlier one from other files.
struct OutputKind {
  std::string_view noun;                // "page", behind "assay wrote"
  std::string_view begins;              // with this
  std::vector<std::string_view> holds;  // and has these in its first bytes
  // Place in a bundle where such a file belongs: "report.html", or "plots/" for any in that folder;
  // empty: it belongs nowhere.
  std::string_view place_in_bundle;
};
const OutputKind& page_output();     // HTML
const OutputKind& picture_output();  // SVG
const OutputKind& manual_output();   // man(7)
const OutputKind& policy_output();
const OutputKind& gguf_output();
const OutputKind& break_glass_output();
const OutputKind& trace_output();

// bad_input that names the finding: a file of another kind, a folder, a link, a device, a pipe; or
// that the file would lie inside a bundle, where only the program's own files belong. Commands call
// it before they read their input, so that nobody waits for a refusal.
Status check_output_file(const std::filesystem::path& path, const OutputKind& kind);

// Like write_file(), after check_output_file().
Status write_output_file(const std::filesystem::path& path, const OutputKind& kind,
                         std::string_view content);

}  // namespace assay::cli
