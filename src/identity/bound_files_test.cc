// Changes that count as another file, and changes that don't.
#include "identity/bound_files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "base/files/files.h"
#include "base/files/hash.h"
#include "base/files/temporary_folder.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class BoundFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = TemporaryFolder::make("assay-bound-test-");
    ASSERT_TRUE(made);
    scratch_.emplace(std::move(made).value());
    write("script", "one");
    write("model/config.json", "{}");
    write("model/weights", "1234");
    write("model/.hidden", "x");
  }

  fs::path at(const std::string& name) const { return scratch_->path() / name; }

  // Writes in place, as an editor or dd does, always at another time than before.
  void write(const std::string& name, const std::string& text) {
    fs::create_directories(at(name).parent_path());
    std::ofstream(at(name)) << text;
    set_time(name, ++written_s_);
  }

  void set_time(const std::string& name, int64_t unix_s) {
    const timespec times[2] = {{unix_s, 0}, {unix_s, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, at(name).c_str(), times, 0), 0);
  }

  Result<BoundFiles> bind() const {
    return BoundFiles::bind({{"arm \"a\"", "script", at("script")},
                             {"model \"m\"", "", at("model")},
                             {"arm \"a\"", "absent", at("absent")}});
  }

  // The message about the change that `change` makes; empty: none.
  template <typename Change>
  std::string after(const Change& change) {
    auto bound = bind();
    EXPECT_TRUE(bound) << bound.error().message;
    EXPECT_FALSE(bound->changed());
    change();
    const auto found = bound->changed();
    EXPECT_EQ(bound->changed().has_value(), found.has_value()) << "it stays changed";
    const std::string message = found ? found->message : "";
    EXPECT_EQ(message.find('\n'), std::string::npos);
    return message;
  }

  std::optional<TemporaryFolder> scratch_;
  int64_t written_s_ = 1'700'000'000;
};

TEST_F(BoundFilesTest, AnotherContentHasBothIdentities) {
  EXPECT_THAT(after([&] { write("script", "two"); }),
              AllOf(HasSubstr("arm \"a\": " + at("script").string() + " changed during the run"),
                    HasSubstr("expected sha256 " + sha256_hex("one") + ", 3 bytes, inode"),
                    HasSubstr("found sha256 " + sha256_hex("two"))));
  const std::string longer = after([&] { write("model/weights", "12345"); });
  EXPECT_THAT(longer, HasSubstr("model \"m\""));
  EXPECT_THAT(longer, HasSubstr("5 bytes"));
}

TEST_F(BoundFilesTest, AFileThatWasReplacedTouchedOrPutBackIsAnother) {
  EXPECT_NE(after([&] {
              write("new", "one");
              fs::rename(at("new"), at("script"));
            }),
            "");
  EXPECT_NE(after([&] { write("script", "one"); }), "") << "written again with what it had";
  EXPECT_NE(after([&] {
              const auto time = fs::last_write_time(at("model/weights"));
              std::ofstream(at("model/weights")) << "4321";
              fs::last_write_time(at("model/weights"), time);
            }),
            "")
      << "another content under the old time";
}

TEST_F(BoundFilesTest, FilesThatComeAndGoAreNamed) {
  EXPECT_THAT(after([&] { fs::remove(at("script")); }), HasSubstr("found none"));
  write("script", "one");
  EXPECT_THAT(after([&] { write("model/more", "x"); }),
              AllOf(HasSubstr("more changed during the run: expected none, found sha256")));
  EXPECT_THAT(after([&] { fs::remove_all(at("model")); }), HasSubstr("found none"));
}

TEST_F(BoundFilesTest, LinksAndPermissionsAreNoChange) {
  EXPECT_EQ(after([&] { fs::create_hard_link(at("script"), at("backup")); }), "");
  EXPECT_EQ(after([&] { fs::permissions(at("script"), fs::perms::owner_all); }), "");
  EXPECT_EQ(after([&] { write("model/.hidden", "y"); }), "");
}

TEST_F(BoundFilesTest, LargeFilesAreKnownByInodeSizeAndTimes) {
  write("large", "");
  fs::resize_file(at("large"), BoundFiles::kMostHashedBytes + 1);
  const std::vector<BoundRoot> roots = {{"model \"m\"", "large", at("large")}};
  auto bound = BoundFiles::bind(roots);
  ASSERT_TRUE(bound) << bound.error().message;
  const Json told = bound->to_json();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_FALSE(told[0].contains("sha256"));
  EXPECT_FALSE(bound->changed());
  const auto time = fs::last_write_time(at("large"));
  std::fstream(at("large"), std::ios::in | std::ios::out) << "x";
  fs::last_write_time(at("large"), time);
  EXPECT_TRUE(bound->changed()) << "the kernel's own time of change can't be set back";
  EXPECT_FALSE(check_bound_alike(told, BoundFiles::bind(roots)->to_json(), {}));
  EXPECT_TRUE(check_bound_alike(told, BoundFiles::bind(roots)->to_json(), {"model \"m\""}));
}

TEST_F(BoundFilesTest, WhatWasStatedBeforeMustHold) {
  const auto other =
      BoundFiles::bind({{"arm \"a\"", "script", at("script"), sha256_hex("another")}});
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message,
              AllOf(HasSubstr("arm \"a\": "), HasSubstr(sha256_hex("another")),
                    HasSubstr(sha256_hex("one"))));
  EXPECT_TRUE(BoundFiles::bind({{"arm \"a\"", "script", at("script"), sha256_hex("one")}}));
}

TEST_F(BoundFilesTest, ALaterSittingComparesContents) {
  const Json before = bind()->to_json();
  ASSERT_EQ(before.size(), 3u) << before.dump();
  write("script", "one");
  write("absent", "new");
  EXPECT_TRUE(check_bound_alike(before, bind()->to_json(), {})) << "copied anew";
  write("model/weights", "4321");
  const auto other = check_bound_alike(before, bind()->to_json(), {"model \"m\""});
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message,
              AllOf(HasSubstr("model \"m\": weights: expected the file with which the run began"),
                    HasSubstr(sha256_hex("1234")), HasSubstr(sha256_hex("4321"))));
  fs::remove(at("model/weights"));
  EXPECT_THAT(check_bound_alike(before, bind()->to_json(), {}).error().message,
              HasSubstr("found none"));
  EXPECT_TRUE(check_bound_alike(Json(), bind()->to_json(), {})) << "an older program's bundle";
}

TEST_F(BoundFilesTest, WhatIsNoFileIsLeftAlone) {
  fs::create_directory(at("folder"));
  ASSERT_EQ(::mkfifo(at("folder/pipe").c_str(), 0600), 0);
  const auto bound = BoundFiles::bind({{"x", "", at("folder")}, {"y", "", at("nowhere")}});
  ASSERT_TRUE(bound) << bound.error().message;
  EXPECT_TRUE(bound->to_json().empty());
}

}  // namespace
}  // namespace assay
