#include "artifact/each_once.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>

#include "artifact/fixture_test.h"
#include "base/files/temporary_folder.h"

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
  // A missing bundle is told apart by its path's text, and refused when it is read.
  EXPECT_TRUE(check_each_once("gate", std::vector<std::string>{"/nowhere/a", "/nowhere/b"}));
  EXPECT_FALSE(check_each_once("gate", std::vector<std::string>{"/nowhere/a", "/nowhere/./a"}));
}

// A bundle of rows with these times, the first of which starts at `started_at_ns`, 0: unknown.
Bundle bundle_of(const std::string& folder, const std::vector<double>& times_ms,
                 int64_t started_at_ns) {
  Bundle bundle;
  bundle.folder = folder;
  for (const double ms : times_ms) {
    Row row = test_row(std::ssize(bundle.rows), Phase::kPrefill);
    row.latency_ms = ms;
    row.started_at_ns = started_at_ns == 0 ? 0 : started_at_ns + row.order_index * 1'000'000;
    bundle.rows.push_back(std::move(row));
  }
  return bundle;
}

TEST(EachOnce, ARunIsKnownByItsRowsItsTimesOrItsPlanAndStart) {
  const std::vector<double> many = {1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8};
  const std::vector<double> few = {12, 12, 13, 12, 12, 13, 12, 12};
  const auto shared = [](const Bundle& a, const Bundle& b) -> std::string {
    const Status distinct = check_distinct_runs("gate", std::array{run_mark(a), run_mark(b)});
    return distinct ? "nothing" : distinct.error().message;
  };
  const auto again = [](const std::string& what) {
    return fmt::format("gate: expected each run once, found {} of a again in b", what);
  };
  const Bundle a = bundle_of("a", many, 5'000'000);
  EXPECT_EQ(shared(a, bundle_of("b", many, 5'000'000)), again("8 rows"));
  EXPECT_EQ(shared(a, bundle_of("b", {1.1, 9, 9, 9}, 5'000'000)), again("1 row"));
  EXPECT_EQ(shared(a, bundle_of("b", many, 7'000'001)), again("the times of all rows"));
  std::vector<double> other = many;
  other.back() += 0.1;
  EXPECT_EQ(shared(a, bundle_of("b", other, 7'000'001)), "nothing");
  // Files without starts: times of one clock's coarse ticks may agree by chance, others don't.
  EXPECT_EQ(shared(bundle_of("a", many, 0), bundle_of("b", many, 0)),
            again("the times of all rows"));
  EXPECT_EQ(shared(bundle_of("a", few, 0), bundle_of("b", few, 0)), "nothing");
  EXPECT_EQ(shared(bundle_of("a", {}, 0), bundle_of("b", {}, 0)), "nothing");
  // A run that was copied while it went on, and one of the two that lost every row.
  Bundle early = bundle_of("a", {}, 0);
  Bundle late = bundle_of("b", many, 5'000'000);
  for (Bundle* one : {&early, &late}) {
    one->manifest = {{"plan_sha256", "p"}, {"started_at_ns", 4'000'000}};
  }
  EXPECT_EQ(shared(early, late), again("plan and start"));
  late.manifest["started_at_ns"] = 4'000'001;
  EXPECT_EQ(shared(early, late), "nothing");
}

}  // namespace
}  // namespace assay
