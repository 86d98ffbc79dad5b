// A stat of each file tells that it is the same; the hash is asked where that can't tell.
#include "identity/bound_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "base/clock.h"
#include "base/files/descriptor.h"
#include "base/files/files.h"
#include "base/files/hash.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

int64_t ns_of(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

FileIdentity identity_of(const struct stat& info) {
  return {static_cast<uint64_t>(info.st_size), info.st_ino, ns_of(info.st_mtim),
          ns_of(info.st_ctim), ""};
}

// The identity by one descriptor, hashed up to kMostHashedBytes; an error if it changes meanwhile.
Result<FileIdentity> read_identity(const fs::path& path) {
  ASSAY_TRY(const Descriptor file, open_regular(path));
  struct stat before {};
  struct stat behind {};
  if (::fstat(file.get(), &before) != 0) {
    return environment_error("{}: expected a readable file, found: {}", path.string(),
                             std::strerror(errno));
  }
  FileIdentity identity = identity_of(before);
  if (identity.bytes > BoundFiles::kMostHashedBytes) return identity;
  ASSAY_TRY(FileDigest digest, digest_file(file.get(), path));
  if (::fstat(file.get(), &behind) != 0 || identity_of(behind) != identity) {
    return bad_input("{}: expected a file that nobody writes while a run begins, found a change",
                     path.string());
  }
  identity.sha256 = std::move(digest.sha256);
  return identity;
}

// Paths of a root's files, by the files' names.
std::map<std::string, fs::path> files_of(const BoundRoot& root) {
  std::map<std::string, fs::path> files;
  std::error_code error;
  if (!fs::is_directory(root.path, error)) {
    if (fs::is_regular_file(root.path, error)) files.emplace(root.name, root.path);
    return files;
  }
  for (fs::directory_iterator it(root.path, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    std::error_code unknown;
    if (name.starts_with('.') || !it->is_regular_file(unknown)) continue;
    files.emplace(root.name + name, it->path());
  }
  return files;
}

std::string words_of(const std::optional<FileIdentity>& identity) {
  if (!identity) return "none";
  const int64_t ns = identity->written_ns;
  std::string written = format_utc(ns);
  written.insert(written.size() - 1, fmt::format(".{:09}", ns % 1'000'000'000));
  return fmt::format("{}{} bytes, inode {}, written {}",
                     identity->sha256.empty() ? "" : "sha256 " + identity->sha256 + ", ",
                     identity->bytes, identity->inode, written);
}

Json json_of(const FileIdentity& identity) {
  Json json = {{"bytes", identity.bytes}};
  if (!identity.sha256.empty()) json["sha256"] = identity.sha256;
  json["inode"] = identity.inode;
  json["written_at_ns"] = identity.written_ns;
  json["changed_at_ns"] = identity.changed_ns;
  return json;
}

// A new name, other permissions or another link: the time of change, and nothing else.
bool content_is_the_same(const FileIdentity& before, const FileIdentity& now) {
  FileIdentity as_before = now;
  as_before.changed_ns = before.changed_ns;
  return !before.sha256.empty() && as_before == before;
}

bool stat_agrees(const fs::path& path, const FileIdentity& before) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return false;
  FileIdentity now = identity_of(info);
  now.sha256 = before.sha256;
  return now == before;
}

// The present identity, without a hash if the file can't be read or is being written.
std::optional<FileIdentity> identity_now(const fs::path& path) {
  if (auto read = read_identity(path)) return *std::move(read);
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? std::optional(identity_of(info)) : std::nullopt;
}

BoundChange change_of(const BoundRoot& file, const std::optional<FileIdentity>& before,
                      const std::optional<FileIdentity>& now) {
  const auto json = [](const std::optional<FileIdentity>& identity) {
    return identity ? json_of(*identity) : Json();
  };
  return {fmt::format("{}: {} changed during the run: expected {}, found {}", file.of,
                      file.path.string(), words_of(before), words_of(now)),
          {{"of", file.of},
           {"name", file.name},
           {"path", file.path.string()},
           {"before", json(before)},
           {"now", json(now)}}};
}

std::string text_at(const Json& file, const char* key) {
  const auto found = file.find(key);
  return found != file.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

Result<BoundFiles> BoundFiles::bind(const std::vector<BoundRoot>& roots) {
  BoundFiles bound;
  for (const BoundRoot& root : roots) {
    const bool known = std::ranges::any_of(bound.roots_, [&](const Root& other) {
      return other.root.of == root.of && other.root.name == root.name &&
             other.root.path == root.path;
    });
    if (known) continue;
    Root& made = bound.roots_.emplace_back(root);
    for (auto& [name, path] : files_of(root)) {
      auto identity = read_identity(path);
      if (!identity) return with_context(root.of, identity.error());
      if (!root.sha256.empty() && !identity->sha256.empty() && identity->sha256 != root.sha256) {
        return bad_input("{}: {}: expected sha256 {} as before the run began, found {}", root.of,
                         path.string(), root.sha256, words_of(*identity));
      }
      made.files.push_back({root.of, name, path, *std::move(identity)});
    }
  }
  return bound;
}

std::optional<BoundChange> BoundFiles::changed() {
  for (Root& root : roots_) {
    for (File& file : root.files) {
      if (stat_agrees(file.path, file.identity)) continue;
      const auto now = identity_now(file.path);
      if (!now || !content_is_the_same(file.identity, *now)) {
        return change_of({file.of, file.name, file.path}, file.identity, now);
      }
      file.identity = *now;
    }
    for (const auto& [name, path] : files_of(root.root)) {
      if (std::ranges::find(root.files, name, &File::name) != root.files.end()) continue;
      return change_of({root.root.of, name, path}, std::nullopt, identity_now(path));
    }
  }
  return std::nullopt;
}

Json BoundFiles::to_json() const {
  Json list = Json::array();
  for (const Root& root : roots_) {
    if (!root.root.told) continue;
    for (const File& file : root.files) {
      Json json = {{"of", file.of}, {"name", file.name}};
      Json identity = json_of(file.identity);
      if (identity.contains("sha256")) {
        for (const char* key : {"inode", "written_at_ns", "changed_at_ns"}) identity.erase(key);
      }
      json.update(identity);
      list.push_back(std::move(json));
    }
  }
  return list;
}

Status check_bound_alike(const Json& before, const Json& now,
                         const std::vector<std::string>& known) {
  if (!before.is_array() || !now.is_array()) return {};
  for (const Json& file : before) {
    if (!file.is_object()) continue;
    const std::string of = text_at(file, "of");
    const std::string name = text_at(file, "name");
    const auto same = std::ranges::find_if(now, [&](const Json& other) {
      return text_at(other, "of") == of && text_at(other, "name") == name;
    });
    if (same != now.end() && *same == file) continue;
    if (!file.contains("sha256") && std::ranges::find(known, of) != known.end()) continue;
    const auto shown = [](const Json& one) {
      Json identity = one;
      for (const char* key : {"of", "name"}) identity.erase(key);
      return to_json_line(identity);
    };
    return bad_input("{}: {}: expected the file with which the run began, {}, found {}", of, name,
                     shown(file), same == now.end() ? "none" : shown(*same));
  }
  return {};
}

}  // namespace assay
