// Writes a bundle: rows appended, units committed, the whole sealed by hashes.
#include <algorithm>
#include <cassert>

#include "artifact/bundle.h"
#include "artifact/cell_files.h"
#include "artifact/commit_log.h"
#include "artifact/committed.h"
#include "artifact/manifest.h"
#include "artifact/new_bundle.h"
#include "artifact/sittings.h"
#include "base/clock.h"
#include "base/tables/csv.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

Status check_cell_id(const std::string& cell_id) {
  if (cell_id.empty() || cell_id.starts_with(".") || cell_id.find('/') != std::string::npos) {
    return bad_input("cell id: expected a folder's name, found \"{}\"", cell_id);
  }
  return {};
}

constexpr std::string_view kCellsPrefix = "cells/";

std::string cell_file(const std::string& cell_id, const std::string& name) {
  return fmt::format("{}{}/{}", kCellsPrefix, cell_id, name);
}

}  // namespace

struct BundleWriter::Impl {
  // A file that only grows: of metrics, or a cell's log.
  struct Grown {
    std::unique_ptr<AppendFile> file;  // opened by the first append
    uint64_t size_bytes = 0;
    Sha256 pending;        // over the bytes appended since the last commit
    bool touched = false;  // true if any were
  };

  Impl(FileSystem& files_in, fs::path path_in) : files(files_in), path(std::move(path_in)) {}

  Status open_new(const BundleHeader& header);
  Status open_unfinished(const BundleHeader& header);
  Status open_folder();
  Status lock_commits();
  Status check_same_run(const BundleHeader& header) const;
  Status keep_sitting();
  Status append(const std::string& name, std::string_view bytes);
  Status append_line(const std::string& name, const std::string& header, const std::string& line);
  Status append_row(const Row& row);
  bool cells_changed() const;
  Status ask_check();
  Status commit(std::optional<int64_t> unit_index, const Json& note);
  Status commit_cells();
  Result<FileEntries> committed_entries() const;
  // Runs a step unless one failed before; remembers its error.
  template <typename Step>
  Status guarded(const Step& step);

  FileSystem& files;
  fs::path path;
  std::unique_ptr<Folder> folder;
  Descriptor lock;
  Json manifest;
  std::map<std::string, Grown> grown;  // by name in the bundle
  std::optional<CellFiles> cells;      // there as soon as `folder` is
  std::unique_ptr<AppendFile> commits;
  std::string plan_hash;
  std::string chain;
  int64_t rows = 0;
  int64_t committed_rows = 0;
  std::map<int64_t, Json> committed;
  int64_t sittings = 1;                 // that the manifest knows of
  std::optional<Sitting> next_sitting;  // of this resume, as long as it has not begun to measure
  CommitCheck check;
  std::optional<Error> failure;
};

template <typename Step>
Status BundleWriter::Impl::guarded(const Step& step) {
  if (failure) return std::unexpected(*failure);
  const Status status = step();
  if (!status) failure = status.error();
  return status;
}

Status BundleWriter::Impl::open_folder() {
  ASSAY_TRY(folder, files.open_folder(path));
  cells.emplace(*folder);
  return {};
}

// The writer's lock: a second one that appends to the same bundle would ruin both.
Status BundleWriter::Impl::lock_commits() {
  ASSAY_TRY(lock, folder->lock(kCommitsName));
  if (lock.ok()) return {};
  return bad_input("{}: expected a bundle that no run is writing, found it locked",
                   folder->path_of(kCommitsName).string());
}

Status BundleWriter::Impl::open_new(const BundleHeader& header) {
  if (!folder) {
    ASSAY_CHECK(files.make_folder(path));
    ASSAY_CHECK(open_folder());
  }
  ASSAY_TRY(commits, folder->open_append(kCommitsName));
  ASSAY_CHECK(lock_commits());
  if (folder->has(kManifestName)) {
    return bad_input("{}: expected a new bundle, found that another run has just made it",
                     path.string());
  }
  ASSAY_CHECK(folder->write_atomic(kStudyName, header.study_yaml));
  ASSAY_CHECK(folder->write_atomic(kEnvironmentName, to_json_text(header.environment)));
  // Last: a folder with a manifest is a bundle.
  manifest = opening_manifest(header);
  plan_hash = chain = header.plan_hash;
  return folder->write_atomic(kManifestName, manifest_text(manifest));
}

Status BundleWriter::Impl::check_same_run(const BundleHeader& header) const {
  const std::string name = folder->path_of(kManifestName).string();
  ASSAY_TRY(const bool complete, json_bool(manifest, "complete", name));
  if (complete) {
    return bad_input("{}: expected an unfinished bundle to resume, found a complete one", name);
  }
  // Rows of two versions in one file would fit neither.
  ASSAY_TRY(const int64_t version, json_int(manifest, "schema_version", name));
  if (version != kBundleSchemaVersion) {
    return bad_input("{}: expected schema version {} to resume, found {}: another program began it",
                     name, kBundleSchemaVersion, version);
  }
  ASSAY_TRY(const std::string found_hash, json_string(manifest, "plan_sha256", name));
  if (found_hash != header.plan_hash) {
    return bad_input("{}: expected the plan {} of this study, found {}: the study has changed",
                     name, header.plan_hash.substr(0, 12), found_hash.substr(0, 12));
  }
  const std::string before = to_json_line(manifest.value("identity", Json()));
  const std::string now = to_json_line(header.identity);
  if (before != now) {
    return bad_input("{}: expected the identity {} of this machine and build, found {}", name, now,
                     before);
  }
  ASSAY_TRY(const FileEntries fixed, file_entries_from_json(manifest, name));
  for (const auto& [file, entry] : fixed) {
    ASSAY_TRY(const FileDigest found, hash_file(*folder, file, entry.size_bytes));
    if (found != entry) {
      return bad_input("{}: expected {} bytes with sha256 {}, found {} with {}",
                       folder->path_of(file).string(), entry.size_bytes, entry.sha256,
                       found.size_bytes, found.sha256.empty() ? "another" : found.sha256);
    }
  }
  return {};
}

Status BundleWriter::Impl::open_unfinished(const BundleHeader& header) {
  ASSAY_CHECK(lock_commits());
  const std::string name = folder->path_of(kManifestName).string();
  ASSAY_TRY(const std::string text, folder->read(kManifestName));
  ASSAY_TRY(manifest, parse_manifest(text, name));
  ASSAY_CHECK(check_same_run(header));
  ASSAY_TRY(const std::string records, folder->read(kCommitsName));
  ASSAY_TRY(const CommitLog log,
            parse_commit_log(records, header.plan_hash, folder->path_of(kCommitsName).string()));
  ASSAY_TRY(const std::vector<Sitting> known, read_sittings(*folder, manifest, log));
  ASSAY_TRY(const FileEntries fixed, file_entries_from_json(manifest, name));
  ASSAY_CHECK(restore_committed(*folder, log, fixed, records.size()));
  for (const auto& [file, end] : log.ends) grown[file].size_bytes = end;
  plan_hash = header.plan_hash;
  chain = log.chain;
  rows = committed_rows = log.rows();
  sittings = static_cast<int64_t>(known.size());
  next_sitting = Sitting{.started_at = format_utc(header.started_at_ns),
                         .started_at_ns = header.started_at_ns,
                         .units_before = static_cast<int64_t>(log.units.size()),
                         .rows_before = rows,
                         .environment = header.environment};
  for (const size_t place : log.units) {
    const CommitRecord& record = log.records[place];
    committed[*record.unit] = record.note;
  }
  ASSAY_TRY(commits, folder->open_append(kCommitsName));
  return {};
}

// Writes the file first, the manifest after it: every file that the manifest lists is there.
Status BundleWriter::Impl::keep_sitting() {
  if (!next_sitting) return {};
  const std::string name = sitting_name(sittings + 1);
  const std::string text = to_json_text(sitting_to_json(sittings + 1, *next_sitting));
  ASSAY_CHECK(folder->write_atomic(name, text));
  ASSAY_TRY(FileEntries fixed,
            file_entries_from_json(manifest, folder->path_of(kManifestName).string()));
  fixed[name] = file_entry(text);
  manifest["files"] = file_entries_to_json(fixed);
  ASSAY_CHECK(folder->write_atomic(kManifestName, manifest_text(manifest)));
  ++sittings;
  next_sitting.reset();
  return {};
}

Status BundleWriter::Impl::append(const std::string& name, std::string_view bytes) {
  ASSAY_CHECK(keep_sitting());
  Grown& to = grown[name];
  if (!to.file) {
    ASSAY_CHECK(folder->make_folder(name.substr(0, name.rfind('/'))));
    ASSAY_TRY(to.file, folder->open_append(name));
  }
  ASSAY_CHECK(to.file->append(bytes));
  to.size_bytes += bytes.size();
  to.pending.update(bytes);
  to.touched = true;
  return {};
}

// A line of CSV, behind the header where the file is new.
Status BundleWriter::Impl::append_line(const std::string& name, const std::string& header,
                                       const std::string& line) {
  if (line.empty()) return {};
  const auto there = grown.find(name);
  const bool fresh = there == grown.end() || there->second.size_bytes == 0;
  return append(name, fresh ? header + line : line);
}

Status BundleWriter::Impl::append_row(const Row& row) {
  const auto columns = row_columns();
  ASSAY_CHECK(append_line(metrics_name(row.phase), csv_line({columns.begin(), columns.end()}),
                          csv_line(row_to_fields(row))));
  ++rows;
  return {};
}

Status BundleWriter::Impl::ask_check() {
  auto refusal = check ? check() : std::nullopt;
  if (!refusal) return {};
  refusal->record["message"] = refusal->message;
  manifest[kRefusals].push_back(refusal->record);
  ASSAY_CHECK(folder->write_atomic(kManifestName, manifest_text(manifest)));
  return environment_error("{}", refusal->message);
}

// Writes the record, which has the hashes of the cells' files from here on; then renames the files.
Status BundleWriter::Impl::commit(std::optional<int64_t> unit_index, const Json& note) {
  ASSAY_CHECK(ask_check());
  if (unit_index) committed_rows = rows;
  CommitRecord record{.unit = unit_index, .rows = committed_rows, .added = {}, .note = note};
  for (auto& [name, part] : grown) {
    const bool of_cell = name.starts_with(kCellsPrefix);
    if (!part.touched || (!unit_index && !of_cell)) continue;
    ASSAY_CHECK(part.file->sync());
    record.added[name] = {part.size_bytes, std::exchange(part.pending, Sha256()).finish_hex()};
    part.touched = false;
    if (of_cell) part.file.reset();  // there may be thousands
  }
  record.replaced = cells->pending();
  ASSAY_CHECK(commits->append(commit_line(record, chain)));
  ASSAY_CHECK(commits->sync());
  if (unit_index) committed[*unit_index] = note;
  return cells->publish();
}

bool BundleWriter::Impl::cells_changed() const {
  return !cells->pending().empty() || std::ranges::any_of(grown, [](const auto& file) {
    return file.second.touched && file.first.starts_with(kCellsPrefix);
  });
}

Status BundleWriter::Impl::commit_cells() {
  if (!cells_changed()) return cells->publish();
  ASSAY_CHECK(keep_sitting());
  return commit(std::nullopt, nullptr);
}

// The committed files, as long as each still has its committed content, and no other file.
Result<FileEntries> BundleWriter::Impl::committed_entries() const {
  ASSAY_TRY(const std::string records, folder->read(kCommitsName));
  const std::string name = folder->path_of(kCommitsName).string();
  ASSAY_TRY(const CommitLog log, parse_commit_log(records, plan_hash, name));
  if (log.chain != chain || log.size_bytes != records.size()) {
    return bad_input("{}: expected the records of this run, found others", name);
  }
  ASSAY_CHECK(check_committed(*folder, log, Beyond::kRefused));
  ASSAY_TRY(FileEntries entries,
            file_entries_from_json(manifest, folder->path_of(kManifestName).string()));
  for (const auto& [file, end] : log.ends) {
    ASSAY_TRY(entries[file], hash_file(*folder, file, end));
  }
  entries.insert(log.replaced.begin(), log.replaced.end());
  entries[kCommitsName] = file_entry(records);
  return entries;
}

Result<BundleWriter> BundleWriter::create(FileSystem& files, const fs::path& folder,
                                          const BundleHeader& header) {
  ASSAY_CHECK(check_new_bundle(folder));
  auto impl = std::make_unique<Impl>(files, folder);
  ASSAY_CHECK(impl->open_new(header));
  return BundleWriter(std::move(impl));
}

Result<BundleWriter> BundleWriter::resume(FileSystem& files, const fs::path& folder,
                                          const BundleHeader& header) {
  std::error_code error;
  auto impl = std::make_unique<Impl>(files, folder);
  if (!fs::exists(fs::symlink_status(folder, error))) {
    ASSAY_CHECK(check_is_in_no_bundle(folder));
    ASSAY_CHECK(impl->open_new(header));
    return BundleWriter(std::move(impl));
  }
  ASSAY_CHECK(impl->open_folder());
  if (impl->folder->has(kManifestName)) {
    ASSAY_CHECK(impl->open_unfinished(header));
    return BundleWriter(std::move(impl));
  }
  ASSAY_TRY(const auto temporaries, list_unborn(*impl->folder));
  ASSAY_CHECK(impl->open_new(header));  // under the lock, so that the temporaries are nobody else's
  for (const std::string& name : temporaries) ASSAY_CHECK(impl->folder->remove(name));
  return BundleWriter(std::move(impl));
}

BundleWriter::BundleWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
BundleWriter::BundleWriter(BundleWriter&&) noexcept = default;
BundleWriter& BundleWriter::operator=(BundleWriter&&) noexcept = default;
BundleWriter::~BundleWriter() = default;

const fs::path& BundleWriter::folder() const {
  return impl_->path;
}

const std::map<int64_t, Json>& BundleWriter::committed_units() const {
  return impl_->committed;
}

Status BundleWriter::begin_sitting() {
  return impl_->guarded([&] { return impl_->keep_sitting(); });
}

void BundleWriter::check_commits(CommitCheck check) {
  impl_->check = std::move(check);
}

Status BundleWriter::append(const Row& row) {
  return impl_->guarded([&] { return impl_->append_row(row); });
}

Status BundleWriter::append_request(const std::string& cell_id, int64_t run,
                                    const SentRequest& request) {
  return impl_->guarded([&]() -> Status {
    ASSAY_CHECK(
        impl_->append_line(kRequestsName, requests_header(), request_line(cell_id, run, request)));
    return impl_->append_line(kTokenTimesName, token_times_header(),
                              token_times_line(cell_id, run, request));
  });
}

Status BundleWriter::commit_unit(int64_t unit_index, const Json& note) {
  assert(!impl_->committed.contains(unit_index));
  return impl_->guarded([&] { return impl_->commit(unit_index, note); });
}

Status BundleWriter::write_cell_json(const std::string& cell_id, const std::string& name,
                                     const Json& content) {
  ASSAY_CHECK(check_cell_id(cell_id));
  return impl_->guarded([&]() -> Status {
    return impl_->cells->write(cell_file(cell_id, name), to_json_text(content));
  });
}

Status BundleWriter::append_log(const std::string& cell_id, std::string_view bytes) {
  ASSAY_CHECK(check_cell_id(cell_id));
  return impl_->guarded([&] { return impl_->append(cell_file(cell_id, "stderr.log"), bytes); });
}

Result<fs::path> BundleWriter::offer_cell_file(const std::string& cell_id,
                                               const std::string& name) {
  ASSAY_CHECK(check_cell_id(cell_id));
  return impl_->cells->offer(cell_file(cell_id, name));
}

Status BundleWriter::take_cell_file(const std::string& cell_id, const std::string& name) {
  ASSAY_CHECK(check_cell_id(cell_id));
  return impl_->guarded([&] { return impl_->cells->take(cell_file(cell_id, name)); });
}

Status BundleWriter::commit_cells() {
  return impl_->guarded([&] { return impl_->commit_cells(); });
}

Status BundleWriter::seal(const Json& completion) {
  ASSAY_CHECK(commit_cells());
  for ([[maybe_unused]] const auto& [name, part] : impl_->grown) assert(!part.touched);
  return impl_->guarded([&]() -> Status {
    ASSAY_CHECK(impl_->ask_check());
    ASSAY_TRY(const FileEntries entries, impl_->committed_entries());
    Json sealed = impl_->manifest;
    sealed["complete"] = true;
    sealed["completion"] = completion;
    sealed["files"] = file_entries_to_json(entries);
    return impl_->folder->write_atomic(kManifestName, manifest_text(sealed));
  });
}

}  // namespace assay
