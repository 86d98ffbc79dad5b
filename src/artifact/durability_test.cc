// A writer that is killed at any moment, and one whose disk fills up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <memory>

#include "artifact/bundle.h"
#include "artifact/fixture_test.h"

namespace assay {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

// A request to the file system, with paths relative to its root.
struct Operation {
  enum class Kind { kMakeFolder, kWriteNew, kRename, kOpen, kAppend, kTruncate, kRemove } kind;
  fs::path path;
  std::string bytes;
  uint64_t size = 0;
  fs::path to;  // of a rename
};

// Passes everything on to the disk, and asks `before` first.
class WatchedFileSystem : public FileSystem {
 public:
  using Before = std::function<Status(const Operation&)>;
  WatchedFileSystem(fs::path root, Before before)
      : root_(std::move(root)), before_(std::move(before)) {}

  Status make_folder(const fs::path& path) override {
    ASSAY_CHECK(ask({Operation::Kind::kMakeFolder, path, {}, 0, {}}));
    return disk().make_folder(path);
  }
  Result<std::unique_ptr<Folder>> open_folder(const fs::path& path) override {
    ASSAY_TRY(Folder folder, Folder::open(path));
    return std::make_unique<WatchedFolder>(*this, std::move(folder));
  }

 private:
  class File final : public AppendFile {
   public:
    File(WatchedFileSystem& owner, fs::path path, std::unique_ptr<AppendFile> file)
        : owner_(owner), path_(std::move(path)), file_(std::move(file)) {}
    Status append(std::string_view bytes) override {
      ASSAY_CHECK(owner_.ask({Operation::Kind::kAppend, path_, std::string(bytes), 0, {}}));
      return file_->append(bytes);
    }
    Status sync() override { return file_->sync(); }

   private:
    WatchedFileSystem& owner_;
    fs::path path_;
    std::unique_ptr<AppendFile> file_;
  };

  class WatchedFolder final : public Folder {
   public:
    WatchedFolder(WatchedFileSystem& owner, Folder folder)
        : Folder(std::move(folder)), owner_(owner) {}
    Status make_folder(const std::string& name) override {
      ASSAY_CHECK(owner_.ask({Operation::Kind::kMakeFolder, path_of(name), {}, 0, {}}));
      return Folder::make_folder(name);
    }
    Status write_new(const std::string& name, std::string_view content) override {
      ASSAY_CHECK(
          owner_.ask({Operation::Kind::kWriteNew, path_of(name), std::string(content), 0, {}}));
      return Folder::write_new(name, content);
    }
    Status rename(const std::string& from, const std::string& to) override {
      ASSAY_CHECK(owner_.ask({Operation::Kind::kRename, path_of(from), {}, 0, path_of(to)}));
      return Folder::rename(from, to);
    }
    Result<std::unique_ptr<AppendFile>> open_append(const std::string& name) override {
      ASSAY_CHECK(owner_.ask({Operation::Kind::kOpen, path_of(name), {}, 0, {}}));
      ASSAY_TRY(auto file, Folder::open_append(name));
      return std::make_unique<File>(owner_, path_of(name), std::move(file));
    }
    Status truncate(const std::string& name, uint64_t size) override {
      ASSAY_CHECK(owner_.ask({Operation::Kind::kTruncate, path_of(name), {}, size, {}}));
      return Folder::truncate(name, size);
    }
    Status remove(const std::string& name) override {
      ASSAY_CHECK(owner_.ask({Operation::Kind::kRemove, path_of(name), {}, 0, {}}));
      return Folder::remove(name);
    }

   private:
    WatchedFileSystem& owner_;
  };

  Status ask(Operation operation) {
    operation.path = operation.path.lexically_relative(root_);
    if (!operation.to.empty()) operation.to = operation.to.lexically_relative(root_);
    return before_(operation);
  }

  fs::path root_;
  Before before_;
};

// The files of a killed run, by path, in memory.
using Image = std::map<std::string, std::string>;

void apply(const Operation& operation, Image& image) {
  switch (operation.kind) {
    case Operation::Kind::kWriteNew:
      image[operation.path] = operation.bytes;
      break;
    case Operation::Kind::kRename:
      image[operation.to] = image.extract(operation.path).mapped();
      break;
    case Operation::Kind::kOpen:
    case Operation::Kind::kAppend:
      image[operation.path] += operation.bytes;
      break;
    case Operation::Kind::kTruncate:
      image[operation.path].resize(operation.size);
      break;
    case Operation::Kind::kRemove:
      image.erase(operation.path);
      break;
    case Operation::Kind::kMakeFolder:
      break;
  }
}

void materialise(const Image& image, const fs::path& root) {
  fs::remove_all(root);
  fs::create_directories(root);
  for (const auto& [name, content] : image) {
    fs::create_directories((root / name).parent_path());
    FILE* file = std::fopen((root / name).c_str(), "wb");
    ASSERT_TRUE(file);
    ASSERT_EQ(std::fwrite(content.data(), 1, content.size(), file), content.size());
    ASSERT_EQ(std::fclose(file), 0);
  }
}

constexpr int64_t kFirstUnits = 2;  // of the first sitting

Status run_in_two_sittings(FileSystem& files, const fs::path& folder) {
  {
    ASSAY_TRY(BundleWriter first, BundleWriter::create(files, folder, test_header()));
    for (int64_t unit = 0; unit < kFirstUnits; ++unit) ASSAY_CHECK(write_unit(first, unit));
  }
  ASSAY_TRY(BundleWriter second, BundleWriter::resume(files, folder, later_header()));
  return finish_run(second);
}

std::vector<Operation> record_a_run(const fs::path& root) {
  std::vector<Operation> operations;
  WatchedFileSystem files(root, [&](const Operation& operation) -> Status {
    operations.push_back(operation);
    return {};
  });
  EXPECT_TRUE(run_in_two_sittings(files, root / "b"));
  return operations;
}

// Every row has its sitting: those of the second are there only with its environment, in front of
// them, and no file of a sitting is there that the manifest doesn't know.
void expect_sittings(const Bundle& bundle, int64_t committed) {
  const auto& sittings = bundle.sittings;
  ASSERT_GE(sittings.size(), committed > kFirstUnits ? 2u : 1u);
  EXPECT_EQ(sittings[0].environment, test_header().environment);
  EXPECT_EQ(sittings[0].started_at_ns, test_header().started_at_ns);
  if (sittings.size() > 1 && committed > kFirstUnits) {
    EXPECT_EQ(sittings[1].units_before, kFirstUnits);
    EXPECT_EQ(sittings[1].rows_before, 2 * kFirstUnits);
    EXPECT_EQ(sittings[1].environment, later_header().environment);
    EXPECT_EQ(sittings[1].started_at_ns, later_header().started_at_ns);
  }
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(bundle.folder)) {
    files += entry.path().filename().string().starts_with("environment-") ? 1 : 0;
  }
  EXPECT_EQ(files, sittings.size() - 1);
}

// Checks resume after a kill that left `image`: the bundle has exactly the units whose commit
// record is whole, with their rows and no others.
void expect_resumes(const Image& image, const fs::path& root, int64_t committed) {
  materialise(image, root);
  auto writer = BundleWriter::resume(disk(), root / "b", test_header());
  ASSERT_TRUE(writer) << writer.error().message;
  ASSERT_EQ(static_cast<int64_t>(writer->committed_units().size()), committed);
  const auto bundle = read_bundle(root / "b");
  ASSERT_TRUE(bundle) << bundle.error().message;
  ASSERT_EQ(static_cast<int64_t>(bundle->rows.size()), committed * 2);
  for (int64_t i = 0; i < committed * 2; ++i) {
    ASSERT_EQ(bundle->rows[static_cast<size_t>(i)], unit_row(i / 2, i % 2));
  }
  expect_sittings(*bundle, committed);
}

void expect_finishes(const fs::path& root, const Image& uninterrupted) {
  auto writer = BundleWriter::resume(disk(), root / "b", later_header());
  ASSERT_TRUE(writer) << writer.error().message;
  ASSERT_TRUE(finish_run(*writer));
  const auto problems = verify_bundle(root / "b");
  ASSERT_TRUE(problems);
  ASSERT_TRUE(problems->empty()) << problems->front().object << problems->front().problem;
  for (const auto& [name, content] : uninterrupted) {
    // These two depend on the number of sittings.
    if (name == "b/manifest.json" || name.starts_with("b/environment-")) continue;
    ASSERT_EQ(read_file(root / name), content) << name;
  }
  const auto bundle = read_bundle(root / "b");
  ASSERT_TRUE(bundle) << bundle.error().message;
  EXPECT_TRUE(bundle->complete);
  expect_sittings(*bundle, 0);
}

// True for a unit's commit; a record of cells alone closes none.
bool is_commit(const Operation& operation) {
  return operation.kind == Operation::Kind::kAppend && operation.path == "b/commits.jsonl" &&
         !operation.bytes.contains("\"unit\":null");
}

TEST(Durability, AKillAtEveryByteLosesNothingCommitted) {
  const Scratch scratch;
  const std::vector<Operation> operations = record_a_run(scratch / "whole");
  Image uninterrupted;
  for (const Operation& operation : operations) apply(operation, uninterrupted);

  Image image;
  int64_t committed = 0;
  for (size_t i = 0; i + 1 < operations.size(); ++i) {  // after the last, the bundle is sealed
    const Operation& operation = operations[i];
    SCOPED_TRACE(
        fmt::format("operation {} of {}: {}", i, operations.size(), operation.path.string()));
    if (operation.kind == Operation::Kind::kAppend) {
      for (size_t cut = 0; cut < operation.bytes.size(); ++cut) {
        Image torn = image;
        torn[operation.path] += operation.bytes.substr(0, cut);
        expect_resumes(torn, scratch / "killed", committed);
        if (HasFatalFailure()) return;
      }
    } else if (operation.kind == Operation::Kind::kWriteNew) {
      for (size_t cut : {size_t{0}, operation.bytes.size() / 2}) {
        Image torn = image;
        torn[operation.path] = operation.bytes.substr(0, cut);
        expect_resumes(torn, scratch / "killed", committed);
        if (HasFatalFailure()) return;
      }
    }
    apply(operation, image);
    committed += is_commit(operation);
    expect_resumes(image, scratch / "killed", committed);
    if (HasFatalFailure()) return;
    expect_finishes(scratch / "killed", uninterrupted);
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(committed, kTestUnits);
}

// --- A full disk ------------------------------------------------------------------------------

TEST(Durability, AFailureAtAnyOperationLeavesAResumableBundle) {
  const Scratch scratch;
  const size_t operations = record_a_run(scratch / "whole").size();
  for (size_t allowed = 0; allowed < operations; ++allowed) {
    SCOPED_TRACE(fmt::format("fails after {} operations", allowed));
    const fs::path root = scratch / fmt::format("full{}", allowed);
    size_t done = 0;
    int64_t committed = 0;
    WatchedFileSystem files(root, [&](const Operation& operation) -> Status {
      if (done++ >= allowed) {
        return environment_error("{}: expected to write there, found: No space left on device",
                                 operation.path.string());
      }
      committed += is_commit(operation);
      return {};
    });
    {
      const Status status = run_in_two_sittings(files, root / "b");
      ASSERT_FALSE(status);
      EXPECT_EQ(status.error().kind, ErrorKind::kEnvironment);
      EXPECT_THAT(status.error().message, HasSubstr("No space left on device"));
    }
    auto writer = BundleWriter::resume(disk(), root / "b", test_header());
    ASSERT_TRUE(writer) << writer.error().message;
    EXPECT_EQ(static_cast<int64_t>(writer->committed_units().size()), committed);
    expect_sittings(*read_bundle(root / "b"), committed);
    ASSERT_TRUE(finish_run(*writer));
    EXPECT_TRUE(verify_bundle(root / "b")->empty());
  }
}

TEST(Durability, AfterAFailureNothingIsWrittenAnyMore) {
  const Scratch scratch;
  bool full = false;
  WatchedFileSystem files(scratch / "", [&](const Operation&) -> Status {
    if (full) return environment_error("disk: expected space, found none");
    return {};
  });
  auto writer = BundleWriter::create(files, scratch / "b", test_header());
  ASSERT_TRUE(writer && write_unit(*writer, 0));
  full = true;
  const Status first = writer->append(unit_row(1, 0));
  ASSERT_FALSE(first);
  full = false;  // somebody made room: the run has failed all the same
  EXPECT_EQ(writer->append(unit_row(1, 1)), first);
  EXPECT_EQ(writer->commit_unit(1, {}), first);
  EXPECT_EQ(writer->seal({}), first);
  EXPECT_EQ(read_bundle(scratch / "b")->rows.size(), 2u);
}

// The kernel's own refusal: files may not grow past a limit, in a child process so that the limit
// ends with it. Exit status: units committed, or 100 and above for a failed expectation.
int run_under_file_limit(const fs::path& folder, rlim_t limit_bytes) {
  ::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{limit_bytes, limit_bytes};
  if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 100;
  auto writer = BundleWriter::create(disk(), folder, test_header());
  if (!writer) return 101;
  for (int64_t unit = 0; unit < kTestUnits; ++unit) {
    if (const Status status = write_unit(*writer, unit); !status) {
      return status.error().kind == ErrorKind::kEnvironment ? static_cast<int>(unit) : 102;
    }
  }
  return 103;
}

TEST(Durability, ARealFullFileIsOneErrorAndResumes) {
  std::set<int> seen;
  for (rlim_t limit = 600; limit <= 3000; limit += 200) {
    const Scratch scratch;
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(run_under_file_limit(scratch / "b", limit));
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    ASSERT_TRUE(WIFEXITED(status));
    const int committed = WEXITSTATUS(status);
    if (committed >= 100) continue;  // too small for a manifest, or large enough for all
    seen.insert(committed);
    auto writer = BundleWriter::resume(disk(), scratch / "b", test_header());
    ASSERT_TRUE(writer) << writer.error().message;
    EXPECT_EQ(static_cast<int>(writer->committed_units().size()), committed);
    ASSERT_TRUE(finish_run(*writer));
    EXPECT_TRUE(verify_bundle(scratch / "b")->empty());
  }
  EXPECT_GE(seen.size(), 2u) << "the limits must stop the run at different units";
}

}  // namespace
}  // namespace assay
