// `assay portability` as a user and as CI meet it: exit status, formats, the one line on stderr.
#include <gmock/gmock.h>

#include "base/files/files.h"
#include "base/records/json.h"
#include "base/tables/csv.h"
#include "base/text/text.h"
#include "bundle_on_disk.h"
#include "portability/regimes_fixture.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

class PortabilityCommand : public BundleCommandTest {
 protected:
  // Eager and compiled; the latter takes `fast_ms`, under another code generator in each bundle.
  fs::path write(const std::string& name, uint64_t seed, double fast_ms, int64_t lose = 0) {
    MadeRegime made = two_arm_regime(name, 10, fast_ms);
    made.identity = {{"code_generator", name}};
    made.arms[1].lose = lose;
    return write_bundle(name, bundle_of(made, seed), true);
  }
};

constexpr const char* kPortableClaim = "fast faster than eager in prefill";

TEST_F(PortabilityCommand, FailsWhereAConditionFlips) {
  const fs::path a = write("a", 1, 8);
  const fs::path same = write("same", 2, 8);
  const fs::path flipped = write("flipped", 3, 12);
  const CommandOutput fine = assay({"portability", a, same});
  EXPECT_EQ(fine.end.exit_status, 0) << fine.out << fine.err;
  EXPECT_THAT(fine.out, HasSubstr("passes: 1 of 1 claim portable"));
  EXPECT_THAT(fine.out, HasSubstr("claim (than eager)"));
  EXPECT_THAT(fine.out, HasSubstr("fast faster in prefill")) << "the head names the baseline";
  const CommandOutput failed = assay({"portability", a, same, flipped});
  EXPECT_EQ(failed.end.exit_status, 1) << failed.out << failed.err;
  EXPECT_THAT(failed.out, HasSubstr("direction_flip"));
  EXPECT_THAT(failed.out,
              testing::ContainsRegex(
                  "code_generator alone\\s+differs\\. 1\\s+run\\s+and\\s+1\\s+run\\s+don't"));
  const fs::path lost = write("lost", 4, 8, 30);
  EXPECT_EQ(assay({"portability", a, lost}).end.exit_status, 1);
}

TEST_F(PortabilityCommand, ANamedClaimFailsUnlessItIsShownToBePortable) {
  const fs::path a = write("a", 1, 8);
  const fs::path same = write("same", 2, 8);
  const fs::path equal = write("equal", 3, 10);
  const CommandOutput holds = assay({"portability", a, same, "--claim", kPortableClaim});
  EXPECT_EQ(holds.end.exit_status, 0) << holds.out << holds.err;
  EXPECT_THAT(holds.out, HasSubstr("PORTABLE: fast faster than eager in prefill"));
  const CommandOutput undecided = assay({"portability", a, equal, "--claim", kPortableClaim});
  EXPECT_EQ(undecided.end.exit_status, 1);
  EXPECT_THAT(undecided.out, HasSubstr("NOT DECIDED"));
  EXPECT_EQ(assay({"portability", a, equal}).end.exit_status, 0);
}

TEST_F(PortabilityCommand, EveryFormatHasTheVerdicts) {
  const fs::path a = write("a", 1, 8);
  const fs::path b = write("b", 2, 12);
  const CommandOutput json = assay({"portability", a, b, "-o", "json"});
  const auto parsed = parse_json(json.out, "output");
  ASSERT_TRUE(parsed) << json.out;
  EXPECT_EQ((*parsed)["regimes"][1]["counts"]["direction_flip"], 2);
  EXPECT_EQ((*parsed)["regimes"][1]["counts"]["portable_similar_latency"], 2);
  const std::string csv = assay({"portability", a, b, "-o", "csv"}).out;
  EXPECT_EQ(std::ranges::count(csv, '\n'), 5) << "four conditions";
  EXPECT_THAT(csv, HasSubstr(",direction_flip,"));
  const std::string markdown = assay({"portability", a, b, "-o", "md"}).out;
  EXPECT_THAT(markdown, StartsWith("# Portability: 1 bundle beside a\n"));
  EXPECT_THAT(markdown, HasSubstr("## What changed, and what is responsible"));
  const fs::path map = root_ / "map.svg";
  const fs::path page = root_ / "page.html";
  assay({"portability", a, b, "--heat-map", map, "--html", page});
  EXPECT_THAT(read_file(page).value_or(""), HasSubstr("<h2>What changed, and what is responsible"));
  EXPECT_THAT(read_file(map).value_or(""), StartsWith("<svg "));
}

TEST_F(PortabilityCommand, BadInputIsOneLine) {
  const fs::path a = write("a", 1, 8);
  const fs::path b = write("b", 2, 8);
  EXPECT_THAT(refused({"portability", a}), HasSubstr("expected two bundles or more, found 1"));
  EXPECT_THAT(refused({"portability", a, a}), HasSubstr("expected each bundle once"));
  EXPECT_THAT(refused({"portability", a, root_ / "none"}), HasSubstr("none"));
  EXPECT_THAT(refused({"portability", a, b, "--vary", "device"}), HasSubstr("code_generator"));
  EXPECT_THAT(refused({"portability", a, b, "--vary", "stak"}), HasSubstr("--vary"));
  EXPECT_EQ(assay({"portability", a, b, "--vary", "stack"}).end.exit_status, 0);
  EXPECT_EQ(assay({"portability", a, b, "--margin", "5 %", "-o", "json"}).out,
            assay({"portability", a, b, "--margin", "0.05", "-o", "json"}).out);
  for (const char* margin : {"0%", "101%", "5", "%", "nan", "5%%"}) {
    EXPECT_THAT(refused({"portability", a, b, "--margin", margin}),
                HasSubstr("expected a share such as 2% or 0.02, from 1e-06 to 1, found"));
  }
  EXPECT_THAT(refused({"portability", a, b, "--claim", "fast wins"}),
              HasSubstr("expected ARM faster than ARM in PHASE"));
  EXPECT_THAT(refused({"portability", a, b, "--claim", "fats faster than eager in prefill"}),
              HasSubstr("did you mean \"fast\"?"));
}

TEST_F(PortabilityCommand, HostileFilesAreOneLine) {
  const fs::path a = write("a", 1, 8);
  const fs::path b = write("b", 2, 8);
  const auto spoil = [&](const std::string& name, const std::string& content) {
    const fs::path copy = root_ / "spoilt";
    fs::remove_all(copy);
    fs::copy(b, copy, fs::copy_options::recursive);
    fs::remove(copy / name);
    EXPECT_TRUE(write_file(copy / name, content));
    return refused({"portability", a, copy});
  };
  EXPECT_THAT(spoil("manifest.json", "{\"schema_version\": 99}"), HasSubstr("manifest.json"));
  EXPECT_THAT(spoil("manifest.json", std::string(100'000, '[')), HasSubstr("manifest.json"));
  EXPECT_THAT(spoil("prefill/metrics.csv", "\x1b[2J,,,\n"), HasSubstr("prefill/metrics.csv"));
  EXPECT_THAT(spoil("environment.json", "[]"), HasSubstr("environment.json"));
  // Kept rows of somebody else's, whose identity is nothing that anybody knows.
  const fs::path kept = root_ / "kept";
  fs::create_directories(kept / "prefill");
  fs::copy(b / "prefill/metrics.csv", kept / "prefill/metrics.csv");
  EXPECT_TRUE(write_file(
      kept / "origin.json",
      "{\"complete\": true, \"started_at\": \"2026-11-22T07:52:33Z\", \"identity\": [7], "
      "\"study\": 3}"));
  const CommandOutput output = assay({"portability", a, kept, "-o", "json"});
  EXPECT_THAT(output.end.exit_status, testing::AnyOf(0, 1, 2)) << output.err;
  EXPECT_LE(std::ranges::count(output.err, '\n'), 1);
}

}  // namespace
}  // namespace assay
