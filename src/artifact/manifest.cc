// The manifest's text, its own hash, and the walk over the bundle's files.
#include "artifact/manifest.h"

#include "base/clock.h"
#include "base/hash.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDigestKey = "sha256";

}  // namespace

FileEntry file_entry(std::string_view content) {
  return {content.size(), sha256_hex(content)};
}

Json file_entries_to_json(const FileEntries& entries) {
  Json json = Json::object();
  for (const auto& [path, entry] : entries) {
    json[path] = {{"bytes", entry.size_bytes}, {"sha256", entry.sha256}};
  }
  return json;
}

Result<FileEntries> file_entries_from_json(const Json& manifest, std::string_view object) {
  const auto it = manifest.find("files");
  if (it == manifest.end() || !it->is_object()) {
    return bad_input("{}: expected an object at \"files\", found none", object);
  }
  FileEntries entries;
  for (const auto& [path, entry] : it->items()) {
    ASSAY_TRY(const int64_t size, json_int(entry, "bytes", object));
    ASSAY_TRY(std::string sha256, json_string(entry, "sha256", object));
    entries[path] = {static_cast<uint64_t>(size), std::move(sha256)};
  }
  return entries;
}

Json opening_manifest(const BundleHeader& header) {
  const FileEntries fixed = {{kStudyName, file_entry(header.study_yaml)},
                             {kEnvironmentName, file_entry(to_json_text(header.environment))}};
  return {
      {"schema_version", kBundleSchemaVersion},
      {"assay_version", header.assay_version},
      {"started_at", format_utc(header.started_at_ns)},
      {"started_at_ns", header.started_at_ns},
      {"plan_sha256", header.plan_hash},
      {"study", header.study},
      {"identity", header.identity},
      {"complete", false},
      {"completion", nullptr},
      {"files", file_entries_to_json(fixed)},
  };
}

std::string manifest_text(const Json& manifest) {
  Json json = Json::parse(to_json_text(manifest));  // as a reader will see it
  json[kDigestKey] = sha256_hex(to_json_text(json));
  return to_json_text(json);
}

Result<Json> parse_manifest(std::string_view text, std::string_view object) {
  ASSAY_TRY(Json json, parse_json(text, object));
  ASSAY_TRY(const int64_t version, json_int(json, "schema_version", object));
  if (version < kOldestBundleSchemaVersion || version > kBundleSchemaVersion) {
    return bad_input("{}: expected schema version {} to {}, found {}", object,
                     kOldestBundleSchemaVersion, kBundleSchemaVersion, version);
  }
  ASSAY_TRY(const std::string claimed, json_string(json, kDigestKey, object));
  if (to_json_text(json) != text) {
    return bad_input("{}: expected the text as it was written, found changed bytes", object);
  }
  json.erase(kDigestKey);
  const std::string found = sha256_hex(to_json_text(json));
  if (found != claimed) {
    return bad_input("{}: expected sha256 {} of itself, found {}", object, claimed, found);
  }
  return json;
}

bool is_derived(std::string_view path) {
  return path == "report.md" || path == "report.html" || path.starts_with("analysis/") ||
         path.starts_with("plots/");
}

Result<std::map<std::string, fs::path>> list_bundle_files(const fs::path& folder) {
  std::map<std::string, fs::path> files;
  std::error_code error;
  fs::recursive_directory_iterator it(folder, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    const fs::path& path = it->path();
    const std::string name = path.lexically_relative(folder).generic_string();
    if (is_derived(name + "/") || is_derived(name)) {
      if (!it->is_symlink() && it->is_directory()) it.disable_recursion_pending();
      continue;
    }
    if (it->symlink_status().type() == fs::file_type::directory) continue;
    if (it->symlink_status().type() != fs::file_type::regular) {
      return bad_input("{}: expected a regular file, found another kind", path.string());
    }
    if (name != kManifestName) files[name] = path;
  }
  if (error) {
    return bad_input("{}: expected a readable folder, found: {}", folder.string(), error.message());
  }
  return files;
}

Result<FileEntry> hash_file(const fs::path& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (error) {
    return bad_input("{}: expected a readable file, found: {}", path.string(), error.message());
  }
  ASSAY_TRY(std::string sha256, sha256_file_hex(path));
  return FileEntry{size, std::move(sha256)};
}

}  // namespace assay
