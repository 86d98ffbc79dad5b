// manifest.json: the bundle's identity and state, and the hash of each of its files and of itself.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/bundle.h"
#include "base/files/folder.h"
#include "base/files/hash.h"
#include "base/records/json.h"
#include "base/result.h"

namespace assay {

inline constexpr const char* kManifestName = "manifest.json";
inline constexpr const char* kStudyName = "study.yaml";
inline constexpr const char* kEnvironmentName = "environment.json";
inline constexpr const char* kCommitsName = "commits.jsonl";

// Member of the manifest: the records of CommitCheck's refusals. Absent: none.
inline constexpr const char* kRefusals = "refusals";
// The last refusal's message; empty: there is none.
std::string last_refusal(const Json& manifest);

// The bundle that a path lies in, at any depth below its folder; absent: in none. A bundle's files
// are all its own: another one in it makes it fail its verification.
std::optional<std::filesystem::path> bundle_around(const std::filesystem::path& path);

using FileEntries = std::map<std::string, FileDigest>;  // by path within the bundle

Json file_entries_to_json(const FileEntries& entries);
// The object at `key`.
Result<FileEntries> file_entries_from_json(const Json& json, std::string_view object,
                                           const std::string& key = "files");

FileDigest file_entry(std::string_view content);

// The manifest of a bundle that has just been opened: not complete, with the two files that are
// already there for good.
Json opening_manifest(const BundleHeader& header);

// The text with a last member "sha256" over the rest: a changed byte of the manifest shows too.
std::string manifest_text(const Json& manifest);

// Parses and checks the text: bad_input if it isn't what manifest_text() wrote, or of
// a schema version that this program doesn't read. The result lacks the "sha256" member again.
Result<Json> parse_manifest(std::string_view text, std::string_view object);

// Findings, the report and a signature are made from a finished bundle, and so aren't hashed:
// report.md, report.html, manifest.json.sig, the SVG files in plots/, the files in analysis/, and
// leftovers of a killed writer of these, including the two folders without a file in them.
bool is_derived(std::string_view path);

// The content of a bundle's folder.
struct BundleListing {
  std::vector<std::string> files;          // regular ones, derived ones and the manifest left out
  std::vector<Error> strange;              // neither a file nor a folder, such as a link
  std::vector<std::string> empty_folders;  // except plots/ and analysis/
};
Result<BundleListing> list_bundle(const Folder& folder);
// The bundle's files; the error is the first strange entry.
Result<std::vector<std::string>> list_bundle_files(const Folder& folder);

// Hashes a file of the bundle. One that isn't of the expected length isn't read: it has no hash.
Result<FileDigest> hash_file(const Folder& folder, const std::string& name,
                             uint64_t expected_bytes);

}  // namespace assay
