// Files against the manifest: lengths before hashes.
#include "artifact/listed_files.h"

#include "artifact/sittings.h"
#include "base/files/hash.h"

namespace assay {
namespace {

constexpr int kCellsCommitted = 3;  // the schema version from which on commits have files of cells

std::unexpected<Error> another_length(const std::string& path, uint64_t expected, uint64_t found) {
  return bad_input("{}: expected {} bytes as the manifest lists, found {}", path, expected, found);
}

Status same_digest(const std::string& path, const FileDigest& expected, const FileDigest& found) {
  if (found.size_bytes != expected.size_bytes) {
    return another_length(path, expected.size_bytes, found.size_bytes);
  }
  if (found == expected) return {};
  return bad_input("{}: expected sha256 {} as the manifest lists, found {}", path, expected.sha256,
                   found.sha256);
}

bool is_fixed(const std::string& name) {
  return name == kStudyName || name == kEnvironmentName || name == kCommitsName ||
         sitting_number(name);
}

}  // namespace

Result<const FileDigest*> ListedFiles::entry(const std::string& name) const {
  const auto known = entries_.find(name);
  if (known == entries_.end()) {
    if (!complete_) return nullptr;
    return bad_input("{}: expected a file that the manifest lists, found another", path(name));
  }
  return &known->second;
}

std::unexpected<Error> ListedFiles::unread(const std::string& name, Error error) const {
  if (!entries_.contains(name) || folder_.has(name)) return std::unexpected(std::move(error));
  return bad_input("{}: expected the file that the manifest lists, found none", path(name));
}

Result<std::string> ListedFiles::read(const std::string& name, uint64_t max_bytes) const {
  ASSAY_CHECK(entry(name));
  Result<std::string> text = folder_.read(name, max_bytes);
  if (!text) return unread(name, std::move(text).error());
  ASSAY_CHECK(check_text(name, *text));
  return text;
}

Result<Json> ListedFiles::read_json(const std::string& name) const {
  ASSAY_TRY(const std::string text, read(name));
  return parse_json(text, path(name));
}

Status ListedFiles::check_text(const std::string& name, std::string_view text) const {
  ASSAY_TRY(const FileDigest* expected, entry(name));
  if (expected == nullptr) return {};
  if (text.size() != expected->size_bytes) {
    return another_length(path(name), expected->size_bytes, text.size());
  }
  return same_digest(path(name), *expected, file_entry(text));
}

Status ListedFiles::check(const std::string& name) const {
  ASSAY_TRY(const FileDigest* expected, entry(name));
  if (expected == nullptr) return {};
  Result<FileDigest> found = hash_file(folder_, name, expected->size_bytes);
  if (!found) return unread(name, std::move(found).error());
  return same_digest(path(name), *expected, *found);
}

std::string record_of_cell(const std::string& name) {
  if (!name.starts_with("cells/")) return "";
  std::string last = std::filesystem::path(name).filename().string();
  return last == "evidence.json" || last == "parity.json" ? last : "";
}

std::vector<Error> commit_disagreements(const FileEntries& listed, const CommitLog& log,
                                        int64_t schema_version) {
  std::vector<Error> all;
  const auto differ = [&](std::string problem) {
    all.push_back({ErrorKind::kBadInput, fmt::format("{}: {}", kManifestName, problem)});
  };
  for (const auto& [name, end] : log.ends) {
    const auto entry = listed.find(name);
    if (entry == listed.end()) {
      if (end > 0)
        differ(fmt::format("expected {} among its files, as committed, found none", name));
    } else if (entry->second.size_bytes != end) {
      differ(fmt::format("expected {} bytes of {} as committed, found {}", end, name,
                         entry->second.size_bytes));
    }
  }
  for (const auto& [name, committed] : log.replaced) {
    const auto entry = listed.find(name);
    if (entry == listed.end()) {
      differ(fmt::format("expected {} among its files, as committed, found none", name));
    } else if (entry->second != committed) {
      differ(fmt::format("expected sha256 {} of {} as committed, found {}", committed.sha256, name,
                         entry->second.sha256));
    }
  }
  if (schema_version < kCellsCommitted) return all;
  for (const auto& [name, entry] : listed) {
    if (is_fixed(name) || log.ends.contains(name) || log.replaced.contains(name)) continue;
    differ(fmt::format("expected files that were committed, found {}", name));
  }
  return all;
}

}  // namespace assay
