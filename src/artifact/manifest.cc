// The manifest's text, its own hash, and the walk over the bundle's files.
#include "artifact/manifest.h"

#include <sys/stat.h>

#include "artifact/bundle.h"
#include "artifact/signature.h"
#include "base/clock.h"
#include "base/files/hash.h"

namespace assay {
namespace {

constexpr const char* kDigestKey = "sha256";

}  // namespace

std::optional<std::filesystem::path> bundle_around(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path above = fs::weakly_canonical(fs::absolute(path, error), error);
  while (above.has_relative_path()) {
    above = above.parent_path();
    if (fs::is_regular_file(above / kManifestName, error) &&
        fs::is_regular_file(above / kCommitsName, error)) {
      return above;
    }
  }
  return std::nullopt;
}

Json status_counts_to_json(const std::map<RowStatus, int64_t>& rows_by_status) {
  Json json = Json::object();
  for (const auto& [status, rows] : rows_by_status) json[row_status_name(status)] = rows;
  return json;
}

std::string last_refusal(const Json& manifest) {
  const auto refusals = manifest.find(kRefusals);
  if (refusals == manifest.end() || !refusals->is_array() || refusals->empty()) return "";
  const auto message = refusals->back().find("message");
  return message == refusals->back().end() || !message->is_string() ? ""
                                                                    : message->get<std::string>();
}

FileDigest file_entry(std::string_view content) {
  return {content.size(), sha256_hex(content)};
}

Json file_entries_to_json(const FileEntries& entries) {
  Json json = Json::object();
  for (const auto& [path, entry] : entries) {
    json[path] = {{"bytes", entry.size_bytes}, {"sha256", entry.sha256}};
  }
  return json;
}

Result<FileEntries> file_entries_from_json(const Json& json, std::string_view object,
                                           const std::string& key) {
  const auto it = json.find(key);
  if (it == json.end() || !it->is_object()) {
    return bad_input("{}: expected an object at \"{}\", found none", object, key);
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

bool is_derived_folder(std::string_view path) {
  return path == "analysis" || path == "plots";
}

bool is_derived(std::string_view path) {
  const std::string target = temporary_target(std::string(path));
  if (!target.empty()) return is_derived(target);
  if (path == "report.md" || path == "report.html" || path == kSignatureName) return true;
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view folder = path.substr(0, slash);
  return folder == "analysis" || (folder == "plots" && path.ends_with(".svg"));
}

Result<BundleListing> list_bundle(const Folder& folder) {
  BundleListing listing;
  ASSAY_TRY(std::vector<FolderEntry> entries, folder.list());
  for (FolderEntry& entry : entries) {
    if (entry.kind == FolderEntry::Kind::kOther) {
      listing.strange.push_back(
          {ErrorKind::kBadInput, fmt::format("{}: expected a regular file, found {}",
                                             folder.path_of(entry.name).string(), entry.what)});
    } else if (entry.kind == FolderEntry::Kind::kFolder) {
      if (entry.is_empty && !is_derived_folder(entry.name)) {
        listing.empty_folders.push_back(std::move(entry.name));
      }
    } else if (entry.name != kManifestName && !is_derived(entry.name)) {
      listing.files.push_back(std::move(entry.name));
    }
  }
  return listing;
}

Result<std::vector<std::string>> list_bundle_files(const Folder& folder) {
  ASSAY_TRY(BundleListing listing, list_bundle(folder));
  if (!listing.strange.empty()) return std::unexpected(std::move(listing.strange.front()));
  return std::move(listing.files);
}

Result<FileDigest> hash_file(const Folder& folder, const std::string& name,
                             uint64_t expected_bytes) {
  ASSAY_TRY(const Descriptor file, folder.open_file(name));
  struct stat info {};
  if (::fstat(file.get(), &info) == 0 && static_cast<uint64_t>(info.st_size) != expected_bytes) {
    return FileDigest{static_cast<uint64_t>(info.st_size), ""};
  }
  return digest_file(file.get(), folder.path_of(name));
}

}  // namespace assay
