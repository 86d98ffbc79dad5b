// Writes a bundle: rows appended, units committed, the whole sealed by hashes.
#include <fcntl.h>
#include <sys/file.h>

#include <cassert>
#include <cerrno>
#include <cstring>

#include "artifact/bundle.h"
#include "artifact/commit_log.h"
#include "artifact/manifest.h"
#include "artifact/sittings.h"
#include "base/clock.h"
#include "base/csv.h"
#include "base/descriptor.h"
#include "base/hash.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

// A temporary file of FileSystem::write_atomic that a killed run left.
bool is_temporary(const std::string& name) {
  const size_t digits = name.find_last_not_of("0123456789") + 1;
  return digits < name.size() && std::string_view(name).substr(0, digits).ends_with(".tmp");
}

// The writer's lock: a second one that appends to the same bundle would ruin both.
Result<Descriptor> lock_commits(const fs::path& path) {
  Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file.ok()) {
    return bad_input("{}: expected a writable file, found: {}", path.string(),
                     std::strerror(errno));
  }
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    return bad_input("{}: expected a bundle that no run is writing, found it locked ({})",
                     path.string(), std::strerror(errno));
  }
  return file;
}

Status check_cell_id(const std::string& cell_id) {
  if (cell_id.empty() || cell_id.starts_with(".") || cell_id.find('/') != std::string::npos) {
    return bad_input("cell id: expected a folder's name, found \"{}\"", cell_id);
  }
  return {};
}

}  // namespace

struct BundleWriter::Impl {
  struct Metrics {
    std::unique_ptr<AppendFile> file;  // opened by the first append
    uint64_t size_bytes = 0;
    Sha256 pending;        // over what was appended since the last commit
    bool touched = false;  // whether anything was
  };

  Impl(FileSystem& files_in, fs::path folder_in) : files(files_in), folder(std::move(folder_in)) {}

  Status open_new(const BundleHeader& header);
  Status open_unfinished(const BundleHeader& header);
  Status check_same_run(const BundleHeader& header) const;
  Status drop_uncommitted(const CommitLog& log, uint64_t commits_size);
  Status keep_sitting();
  Status append_row(const Row& row);
  Status commit(int64_t unit_index, const Json& note);
  // Runs a step unless one failed before; remembers its error.
  template <typename Step>
  Status guarded(const Step& step);

  FileSystem& files;
  fs::path folder;
  Descriptor lock;
  Json manifest;
  std::map<Phase, Metrics> metrics;
  std::unique_ptr<AppendFile> commits;
  std::string chain;
  int64_t rows = 0;
  std::map<int64_t, Json> committed;
  int64_t sittings = 1;                 // that the manifest knows of
  std::optional<Sitting> next_sitting;  // of this resume, as long as it has not begun to measure
  std::optional<Error> failure;
};

template <typename Step>
Status BundleWriter::Impl::guarded(const Step& step) {
  if (failure) return std::unexpected(*failure);
  const Status status = step();
  if (!status) failure = status.error();
  return status;
}

Status BundleWriter::Impl::open_new(const BundleHeader& header) {
  ASSAY_CHECK(files.make_folder(folder));
  ASSAY_TRY(commits, files.open_append(folder / kCommitsName));
  ASSAY_TRY(lock, lock_commits(folder / kCommitsName));
  if (fs::exists(folder / kManifestName)) {
    return bad_input("{}: expected a new bundle, found that another run has just made it",
                     folder.string());
  }
  ASSAY_CHECK(files.write_atomic(folder / kStudyName, header.study_yaml));
  ASSAY_CHECK(files.write_atomic(folder / kEnvironmentName, to_json_text(header.environment)));
  // Last: a folder with a manifest is a bundle.
  manifest = opening_manifest(header);
  chain = header.plan_hash;
  return files.write_atomic(folder / kManifestName, manifest_text(manifest));
}

Status BundleWriter::Impl::check_same_run(const BundleHeader& header) const {
  const std::string name = (folder / kManifestName).string();
  if (manifest.value("complete", false)) {
    return bad_input("{}: expected an unfinished bundle to resume, found a complete one", name);
  }
  // Rows of two versions in one file would fit neither.
  ASSAY_TRY(const int64_t version, json_int(manifest, "schema_version", name));
  if (version != kBundleSchemaVersion) {
    return bad_input("{}: expected schema version {} to resume, found {}: another program began it",
                     name, kBundleSchemaVersion, version);
  }
  ASSAY_TRY(const std::string plan_hash, json_string(manifest, "plan_sha256", name));
  if (plan_hash != header.plan_hash) {
    return bad_input("{}: expected the plan {} of this study, found {}: the study has changed",
                     name, header.plan_hash.substr(0, 12), plan_hash.substr(0, 12));
  }
  const std::string before = to_json_line(manifest.value("identity", Json()));
  const std::string now = to_json_line(header.identity);
  if (before != now) {
    return bad_input("{}: expected the identity {} of this machine and build, found {}", name, now,
                     before);
  }
  ASSAY_TRY(const FileEntries fixed, file_entries_from_json(manifest, name));
  for (const auto& [path, entry] : fixed) {
    ASSAY_TRY(const FileEntry found, hash_file(folder / path));
    if (found != entry) {
      return bad_input("{}: expected sha256 {}, found {}", (folder / path).string(), entry.sha256,
                       found.sha256);
    }
  }
  return {};
}

Status BundleWriter::Impl::drop_uncommitted(const CommitLog& log, uint64_t commits_size) {
  ASSAY_TRY(const auto present, list_bundle_files(folder));
  ASSAY_TRY(const FileEntries fixed,
            file_entries_from_json(manifest, (folder / kManifestName).string()));
  for (const auto& [name, path] : present) {
    // A sitting that was killed before the manifest knew of it has no rows.
    const bool unknown_sitting = sitting_number(name) && !fixed.contains(name);
    if (is_temporary(name) || unknown_sitting) ASSAY_CHECK(files.remove(path));
  }
  for (Phase phase : kPhases) {
    const auto it = present.find(metrics_name(phase));
    const uint64_t committed_bytes = log.committed_bytes(phase);
    if (it == present.end()) {
      if (committed_bytes == 0) continue;
      return bad_input("{}: expected {} bytes, found no file",
                       (folder / metrics_name(phase)).string(), committed_bytes);
    }
    ASSAY_TRY(const std::string content, read_file(it->second));
    ASSAY_CHECK(check_committed_bytes(log, phase, content, it->second.string()));
    if (committed_bytes == 0) {
      ASSAY_CHECK(files.remove(it->second));
    } else if (content.size() > committed_bytes) {
      ASSAY_CHECK(files.truncate(it->second, committed_bytes));
    }
    metrics[phase].size_bytes = committed_bytes;
  }
  if (commits_size > log.size_bytes) {
    ASSAY_CHECK(files.truncate(folder / kCommitsName, log.size_bytes));
  }
  return {};
}

Status BundleWriter::Impl::open_unfinished(const BundleHeader& header) {
  const fs::path commits_path = folder / kCommitsName;
  ASSAY_TRY(lock, lock_commits(commits_path));
  ASSAY_TRY(const std::string text, read_file(folder / kManifestName));
  ASSAY_TRY(manifest, parse_manifest(text, (folder / kManifestName).string()));
  ASSAY_CHECK(check_same_run(header));
  ASSAY_TRY(const std::string records, read_file(commits_path));
  ASSAY_TRY(const CommitLog log,
            parse_commit_log(records, header.plan_hash, commits_path.string()));
  ASSAY_TRY(const std::vector<Sitting> known, read_sittings(folder, manifest, log));
  ASSAY_CHECK(drop_uncommitted(log, records.size()));
  chain = log.chain;
  rows = log.rows();
  sittings = static_cast<int64_t>(known.size());
  next_sitting = Sitting{.started_at = format_utc(header.started_at_ns),
                         .started_at_ns = header.started_at_ns,
                         .units_before = static_cast<int64_t>(log.records.size()),
                         .rows_before = rows,
                         .environment = header.environment};
  for (const CommitRecord& record : log.records) committed[record.unit] = record.note;
  ASSAY_TRY(commits, files.open_append(commits_path));
  return {};
}

// The file first, the manifest after it: what the manifest lists is there.
Status BundleWriter::Impl::keep_sitting() {
  if (!next_sitting) return {};
  const std::string name = sitting_name(sittings + 1);
  const std::string text = to_json_text(sitting_to_json(sittings + 1, *next_sitting));
  ASSAY_CHECK(files.write_atomic(folder / name, text));
  ASSAY_TRY(FileEntries fixed, file_entries_from_json(manifest, (folder / kManifestName).string()));
  fixed[name] = file_entry(text);
  manifest["files"] = file_entries_to_json(fixed);
  ASSAY_CHECK(files.write_atomic(folder / kManifestName, manifest_text(manifest)));
  ++sittings;
  next_sitting.reset();
  return {};
}

Status BundleWriter::Impl::append_row(const Row& row) {
  ASSAY_CHECK(keep_sitting());
  Metrics& to = metrics[row.phase];
  const fs::path path = folder / metrics_name(row.phase);
  if (!to.file) {
    ASSAY_CHECK(files.make_folder(path.parent_path()));
    ASSAY_TRY(to.file, files.open_append(path));
  }
  std::string line = csv_line(row_to_fields(row));
  if (to.size_bytes == 0) {
    const auto columns = row_columns();
    line.insert(0, csv_line({columns.begin(), columns.end()}));
  }
  ASSAY_CHECK(to.file->append(line));
  to.size_bytes += line.size();
  to.pending.update(line);
  to.touched = true;
  ++rows;
  return {};
}

Status BundleWriter::Impl::commit(int64_t unit_index, const Json& note) {
  CommitRecord record{.unit = unit_index, .rows = rows, .added = {}, .note = note};
  for (auto& [phase, part] : metrics) {
    if (!part.touched) continue;
    ASSAY_CHECK(part.file->sync());
    record.added[phase] = {part.size_bytes, std::exchange(part.pending, Sha256()).finish_hex()};
    part.touched = false;
  }
  ASSAY_CHECK(commits->append(commit_line(record, chain)));
  ASSAY_CHECK(commits->sync());
  committed[unit_index] = note;
  return {};
}

Result<BundleWriter> BundleWriter::create(FileSystem& files, const fs::path& folder,
                                          const BundleHeader& header) {
  std::error_code error;
  if (fs::exists(folder, error) && !fs::is_directory(folder, error)) {
    return bad_input("{}: expected a new folder, found a file", folder.string());
  }
  if (fs::is_directory(folder, error) && !fs::is_empty(folder, error)) {
    return bad_input("{}: expected a new or empty folder, found files in it{}", folder.string(),
                     fs::exists(folder / kManifestName, error)
                         ? " (a bundle exists already; --resume continues an unfinished one)"
                         : "");
  }
  auto impl = std::make_unique<Impl>(files, folder);
  ASSAY_CHECK(impl->open_new(header));
  return BundleWriter(std::move(impl));
}

Result<BundleWriter> BundleWriter::resume(FileSystem& files, const fs::path& folder,
                                          const BundleHeader& header) {
  std::error_code error;
  auto impl = std::make_unique<Impl>(files, folder);
  if (!fs::exists(folder, error)) {
    ASSAY_CHECK(impl->open_new(header));
    return BundleWriter(std::move(impl));
  }
  if (fs::exists(folder / kManifestName, error)) {
    ASSAY_CHECK(impl->open_unfinished(header));
    return BundleWriter(std::move(impl));
  }
  // A run killed while it made the bundle left no manifest, and only files of known names.
  ASSAY_TRY(const auto present, list_bundle_files(folder));
  for (const auto& [name, path] : present) {
    if (is_temporary(name)) continue;
    const bool known = name == kStudyName || name == kEnvironmentName ||
                       (name == kCommitsName && fs::file_size(path, error) == 0);
    if (!known) {
      return bad_input("{}: expected a bundle to resume, found {} and no {}", folder.string(), name,
                       kManifestName);
    }
  }
  ASSAY_CHECK(impl->open_new(header));
  ASSAY_CHECK(impl->drop_uncommitted(CommitLog(), 0));
  return BundleWriter(std::move(impl));
}

BundleWriter::BundleWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
BundleWriter::BundleWriter(BundleWriter&&) noexcept = default;
BundleWriter& BundleWriter::operator=(BundleWriter&&) noexcept = default;
BundleWriter::~BundleWriter() = default;

const fs::path& BundleWriter::folder() const {
  return impl_->folder;
}

const std::map<int64_t, Json>& BundleWriter::committed_units() const {
  return impl_->committed;
}

Status BundleWriter::begin_sitting() {
  return impl_->guarded([&] { return impl_->keep_sitting(); });
}

Status BundleWriter::append(const Row& row) {
  return impl_->guarded([&] { return impl_->append_row(row); });
}

Status BundleWriter::commit_unit(int64_t unit_index, const Json& note) {
  assert(!impl_->committed.contains(unit_index));
  return impl_->guarded([&] { return impl_->commit(unit_index, note); });
}

Status BundleWriter::write_cell_json(const std::string& cell_id, const std::string& name,
                                     const Json& content) {
  ASSAY_CHECK(check_cell_id(cell_id));
  const fs::path folder = impl_->folder / "cells" / cell_id;
  ASSAY_CHECK(impl_->files.make_folder(folder));
  return impl_->files.write_atomic(folder / name, to_json_text(content));
}

Result<fs::path> BundleWriter::stderr_path(const std::string& cell_id) {
  return cell_path(cell_id, "stderr.log");
}

Result<fs::path> BundleWriter::cell_path(const std::string& cell_id, const std::string& name) {
  ASSAY_CHECK(check_cell_id(cell_id));
  const fs::path folder = impl_->folder / "cells" / cell_id;
  ASSAY_CHECK(impl_->files.make_folder(folder));
  return folder / name;
}

Status BundleWriter::seal(const Json& completion) {
  for ([[maybe_unused]] const auto& [phase, part] : impl_->metrics) assert(!part.touched);
  return impl_->guarded([&]() -> Status {
    ASSAY_TRY(const auto present, list_bundle_files(impl_->folder));
    FileEntries entries;
    for (const auto& [name, path] : present) {
      ASSAY_TRY(entries[name], hash_file(path));
    }
    Json sealed = impl_->manifest;
    sealed["complete"] = true;
    sealed["completion"] = completion;
    sealed["files"] = file_entries_to_json(entries);
    return impl_->files.write_atomic(impl_->folder / kManifestName, manifest_text(sealed));
  });
}

}  // namespace assay
