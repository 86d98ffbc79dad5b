// Named output files.
#include "cli/output_file.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "artifact/manifest.h"
#include "base/files/files.h"
#include "base/text/text.h"
#include "report/judgements/route_report.h"
#include "routing/policy.h"
#include "routing/trace.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kHeadBytes = 1024;  // in which a file shows its kind

std::string_view type_noun(fs::file_type type) {
  switch (type) {
    case fs::file_type::directory:
      return "a folder";
    case fs::file_type::symlink:
      return "a link";
    case fs::file_type::block:
    case fs::file_type::character:
      return "a device";
    case fs::file_type::fifo:
      return "a pipe";
    case fs::file_type::socket:
      return "a socket";
    default:
      return "no regular file";
  }
}

Result<std::string> head_of(const fs::path& path) {
  ASSAY_TRY(const Descriptor file, open_regular(path));
  std::array<char, kHeadBytes> bytes;
  size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t more = ::read(file.get(), bytes.data() + got, bytes.size() - got);
    if (more <= 0) break;
    got += static_cast<size_t>(more);
  }
  return std::string(bytes.data(), got);
}

bool is_of_kind(std::string_view head, const OutputKind& kind) {
  return head.starts_with(kind.begins) &&
         std::ranges::all_of(kind.holds,
                             [&](std::string_view part) { return head.contains(part); });
}

bool belongs(const fs::path& inside, const OutputKind& kind) {
  if (kind.place_in_bundle.empty()) return false;
  if (!kind.place_in_bundle.ends_with('/')) return inside == kind.place_in_bundle;
  return inside.has_filename() && (inside.parent_path() / "") == kind.place_in_bundle;
}

// Whatever is added to a bundle or changed in it makes its verification fail.
Status check_bundle(const fs::path& path, const OutputKind& kind) {
  const auto bundle = bundle_around(path);
  if (!bundle) return {};
  std::error_code unknown;
  const fs::path parent = fs::weakly_canonical(fs::absolute(path).parent_path(), unknown);
  if (belongs((parent / path.filename()).lexically_relative(*bundle), kind)) return {};
  const std::string there =
      kind.place_in_bundle.empty() ? "" : fmt::format(" or its {}", kind.place_in_bundle);
  return bad_input("{}: expected a {} outside of bundles{}, found a place in the bundle {}",
                   path.string(), kind.noun, there, bundle->string());
}

}  // namespace

const OutputKind& page_output() {
  static const OutputKind kind{
      "page",
      "<!doctype html>\n<html lang=en>\n<head>\n",
      {"<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src "
       "'unsafe-inline'"},
      "report.html"};
  return kind;
}

const OutputKind& picture_output() {
  static const OutputKind kind{"picture", "<svg xmlns=", {" class=\"plot\" "}, "plots/"};
  return kind;
}

const OutputKind& manual_output() {
  static const OutputKind kind{"manual page", ".TH assay", {}, ""};
  return kind;
}

const OutputKind& gguf_output() {
  static const OutputKind kind{"GGUF file", "GGUF", {}, ""};
  return kind;
}

const OutputKind& policy_output() {
  static const OutputKind kind{"policy", kPolicyHeading, {}, ""};
  return kind;
}

const OutputKind& break_glass_output() {
  static const OutputKind kind{"break-glass text", kBreakGlassHeading, {}, ""};
  return kind;
}

const OutputKind& trace_output() {
  static const OutputKind kind{"trace", kTraceHeader, {}, ""};
  return kind;
}

Status check_output_file(const fs::path& path, const OutputKind& kind) {
  std::error_code unknown;
  const fs::file_status there = fs::symlink_status(path, unknown);
  const std::string wanted =
      fmt::format("expected a new file or a {} that assay wrote, found", kind.noun);
  if (fs::exists(there) && there.type() != fs::file_type::regular) {
    return bad_input("{}: {} {}", path.string(), wanted, type_noun(there.type()));
  }
  if (fs::exists(there)) {
    ASSAY_TRY(const std::string head, head_of(path));
    if (!is_of_kind(head, kind)) {
      return bad_input("{}: {} another file, which is left as it is", path.string(), wanted);
    }
  }
  return check_bundle(path, kind);
}

Status write_output_file(const fs::path& path, const OutputKind& kind, std::string_view content) {
  ASSAY_CHECK(check_output_file(path, kind));
  return write_file(path, content);
}

}  // namespace assay::cli
