#include "artifact/each_once.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/temporary_folder.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

TEST(EachOnce, AFolderNamedTwiceIsRefusedHoweverItIsSpelt) {
  const auto folder = TemporaryFolder::make("assay-each-once-");
  ASSERT_TRUE(folder);
  const std::filesystem::path root = folder->path();
  for (const char* name : {"a", "b"}) std::filesystem::create_directory(root / name);
  std::filesystem::create_directory_symlink(root / "a", root / "link");
  const std::string a = root / "a";
  EXPECT_TRUE(check_each_once("gate", std::vector{a, (root / "b").string()}));
  for (const std::string& again : {a, a + "/", a + "/../a", a + "/.", (root / "link").string()}) {
    const Status refused = check_each_once("gate", std::vector{a, again});
    ASSERT_FALSE(refused) << again;
    EXPECT_THAT(refused.error().message, HasSubstr("gate: expected each bundle once, found"));
  }
  // What isn't there is told apart by its text, and refused when it is read.
  EXPECT_TRUE(check_each_once("gate", std::vector<std::string>{"/nowhere/a", "/nowhere/b"}));
  EXPECT_FALSE(check_each_once("gate", std::vector<std::string>{"/nowhere/a", "/nowhere/./a"}));
}

}  // namespace
}  // namespace assay
