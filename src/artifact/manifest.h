// manifest.json: what the bundle is, and the hash of each of its files and of itself.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "artifact/bundle.h"
#include "base/json.h"
#include "base/result.h"

namespace assay {

inline constexpr const char* kManifestName = "manifest.json";
inline constexpr const char* kStudyName = "study.yaml";
inline constexpr const char* kEnvironmentName = "environment.json";
inline constexpr const char* kCommitsName = "commits.jsonl";

struct FileEntry {
  uint64_t size_bytes = 0;
  std::string sha256;

  friend bool operator==(const FileEntry&, const FileEntry&) = default;
};
using FileEntries = std::map<std::string, FileEntry>;  // by path within the bundle

Json file_entries_to_json(const FileEntries& entries);
Result<FileEntries> file_entries_from_json(const Json& manifest, std::string_view object);

FileEntry file_entry(std::string_view content);

// The manifest of a bundle that has just been opened: not complete, with the two files that are
// already there for good.
Json opening_manifest(const BundleHeader& header);

// The text with a last member "sha256" over the rest: a changed byte of the manifest shows too.
std::string manifest_text(const Json& manifest);

// Parses and checks the text: bad_input if it isn't what manifest_text() wrote, or of
// a schema version that this program doesn't read. The result lacks the "sha256" member again.
Result<Json> parse_manifest(std::string_view text, std::string_view object);

// Reports, reports' plots and findings are made from a finished bundle, and so aren't hashed.
bool is_derived(std::string_view path);

// Every regular file below the folder by its path within it, derived ones and the manifest left
// out. Anything that is neither file nor folder (a link, a device) is bad_input.
Result<std::map<std::string, std::filesystem::path>> list_bundle_files(
    const std::filesystem::path& folder);

Result<FileEntry> hash_file(const std::filesystem::path& path);

}  // namespace assay
