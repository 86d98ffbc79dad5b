// Files that a user names for a command to write: each replaces an earlier one of its kind, and
// nothing else, whatever it is and wherever it lies.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/files.h"
#include "bundle_on_disk.h"
#include "portability/regimes_fixture.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kForeign = "name: mine\n";

class OutputFile : public BundleCommandTest {
 protected:
  void SetUp() override {
    BundleCommandTest::SetUp();
    for (const auto& [name, seed] : {std::pair{"a", 1}, {"b", 2}}) {
      write_bundle(name, bundle_of(two_arm_regime(name, 10, 8), static_cast<uint64_t>(seed)), true);
    }
  }
  std::vector<std::string> report_to(const fs::path& file) {
    return {"report", root_ / "a", "-o", file, "--resamples", "200"};
  }
  std::vector<std::string> portability_to(const char* option, const fs::path& file) {
    return {"portability", root_ / "a", root_ / "b", option, file};
  }
  // Arguments of every command that writes a page or a picture.
  std::vector<std::vector<std::string>> commands_to(const fs::path& file) {
    return {report_to(file),
            {"report", root_ / "a", root_ / "b", "-o", file, "--resamples", "200"},
            {"report", "--index", root_ / "a", root_ / "b", "-o", file, "--resamples", "200"},
            portability_to("--html", file),
            portability_to("--heat-map", file)};
  }
};

TEST_F(OutputFile, IsWrittenAnewAndReplacesOneOfItsKind) {
  const fs::path page = root_ / "page.html";
  const fs::path picture = root_ / "map.svg";
  for (int time = 0; time < 2; ++time) {
    for (const auto& arguments : commands_to(page)) {
      if (arguments[0] == "portability" && arguments[3] == "--heat-map") continue;
      const CommandOutput output = assay(arguments);
      EXPECT_EQ(output.end.exit_status, 0) << output.err;
      EXPECT_THAT(*read_file(page), StartsWith("<!doctype html>"));
    }
    EXPECT_EQ(assay(portability_to("--heat-map", picture)).end.exit_status, 0);
    EXPECT_THAT(*read_file(picture), StartsWith("<svg "));
  }
  EXPECT_THAT(refused(portability_to("--html", picture)), HasSubstr("another file"));
  EXPECT_THAT(refused(portability_to("--heat-map", page)), HasSubstr("another file"));
  EXPECT_THAT(*read_file(picture), StartsWith("<svg "));
}

TEST_F(OutputFile, LeavesFilesOfOtherKindsAsTheyAre) {
  const fs::path file = root_ / "mine";
  for (const char* content :
       {kForeign, "", "<!doctype html>\n<html><body>written by hand</body></html>\n",
        "<svg xmlns=\"http://www.w3.org/2000/svg\"></svg>\n"}) {
    ASSERT_TRUE(write_file(file, content));
    for (const auto& arguments : commands_to(file)) {
      EXPECT_THAT(refused(arguments), HasSubstr("that assay wrote, found another file"));
      EXPECT_EQ(*read_file(file), content);
    }
  }
}

TEST_F(OutputFile, ReplacesNoLinkNoFolderNoPipeAndNoDevice) {
  const fs::path target = root_ / "target.html";
  ASSERT_TRUE(write_file(target, kForeign));
  fs::create_symlink(target, root_ / "link");
  fs::create_symlink(root_ / "nothing", root_ / "dangling");
  fs::create_directory(root_ / "folder");
  ASSERT_EQ(::mkfifo((root_ / "pipe").c_str(), 0600), 0);
  for (const auto& [path, noun] : {std::pair<fs::path, const char*>{root_ / "link", "a link"},
                                   {root_ / "dangling", "a link"},
                                   {root_ / "folder", "a folder"},
                                   {root_ / "pipe", "a pipe"},
                                   {"/dev/null", "a device"}}) {
    for (const auto& arguments : commands_to(path)) {
      EXPECT_THAT(refused(arguments), HasSubstr(std::string("found ") + noun));
    }
  }
  EXPECT_TRUE(fs::is_symlink(root_ / "link") && fs::is_symlink(root_ / "dangling"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_EQ(*read_file(target), kForeign);
}

TEST_F(OutputFile, LiesInABundleOnlyWhereTheProgramsOwnDo) {
  const fs::path bundle = root_ / "a";
  fs::create_symlink(bundle, root_ / "way");
  for (const fs::path& path : {bundle / "study.yaml", bundle / "manifest.json"}) {
    const std::string before = *read_file(path);
    EXPECT_THAT(refused(report_to(path)), HasSubstr("another file"));
    EXPECT_EQ(*read_file(path), before);
  }
  for (const fs::path& path : {bundle / "page.html", bundle / "cells" / "page.html",
                               root_ / "way" / "page.html", root_ / "b" / "page.html"}) {
    EXPECT_THAT(refused(report_to(path)), HasSubstr("outside of bundles or its report.html"));
    EXPECT_FALSE(fs::exists(path));
  }
  EXPECT_EQ(assay(report_to(bundle / "report.html")).end.exit_status, 0);
  EXPECT_EQ(assay(portability_to("--html", bundle / "report.html")).end.exit_status, 0);
  EXPECT_THAT(refused(portability_to("--heat-map", bundle / "map.svg")), HasSubstr("its plots/"));
  fs::create_directories(bundle / "plots");
  EXPECT_EQ(assay(portability_to("--heat-map", bundle / "plots" / "map.svg")).end.exit_status, 0);
  EXPECT_EQ(assay({"verify", bundle}).end.exit_status, 0);
}

TEST_F(OutputFile, OfTheManualReplacesManualPagesAlone) {
  const fs::path folder = root_ / "man";
  EXPECT_EQ(assay({"man", "--folder", folder}).end.exit_status, 0);
  EXPECT_EQ(assay({"man", "--folder", folder}).end.exit_status, 0);
  ASSERT_TRUE(write_file(folder / "assay-run.1", kForeign));
  EXPECT_THAT(refused({"man", "--folder", folder}), HasSubstr("assay-run.1"));
  EXPECT_EQ(*read_file(folder / "assay-run.1"), kForeign);
}

}  // namespace
}  // namespace assay
