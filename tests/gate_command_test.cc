// `assay gate` as a user and as CI meet it: exit status, formats, the one line on stderr.
#include <gmock/gmock.h>

#include "analysis/analyze.h"
#include "base/files/files.h"
#include "base/tables/csv.h"
#include "base/text/text.h"
#include "bundle_on_disk.h"
#include "gates/honest_bundle.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const char* const kClaim = "compiled-static faster than eager-dynamic in kv_decode";

class GateCommand : public BundleCommandTest {
 protected:
  fs::path write(const std::string& name, const HonestStudy& study = {}) {
    HonestBundle bundle(study);
    return write_with_evidence(name, bundle.made);
  }
  Json judged(std::vector<std::string> arguments, int status) {
    arguments.insert(arguments.begin(), "gate");
    return printed_json(std::move(arguments), status);
  }
};

TEST_F(GateCommand, TwoRegimesPassAndOneIsNotDecided) {
  const fs::path one = write("one");
  const fs::path two = write("two", {.seed = 2, .code_sha = std::string(40, 'f')});
  const Json alone = judged({one, "--claim", kClaim}, 0);
  EXPECT_EQ(alone["verdict"], "not_decided");
  EXPECT_EQ(alone["claim_holds"], "pass");
  EXPECT_EQ(alone["gates"]["artifact_evidence"], "pass") << alone.dump(1);
  const Json both = judged({one, two, "--claim", kClaim, "--vary", "code_sha"}, 0);
  EXPECT_EQ(both["verdict"], "pass") << both.dump(1);
  EXPECT_EQ(judged({one, two}, 0)["verdict"], "pass");
}

TEST_F(GateCommand, ThePageHasGatesDemandsAndClaims) {
  const fs::path one = write("one");
  const fs::path two = write("two", {.seed = 2, .code_sha = std::string(40, 'f')});
  const fs::path page = root_ / "gates.html";
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(assay({"gate", one, two, "--html", page}).end.exit_status, 0);
  }
  const std::string html = *read_file(page);
  EXPECT_THAT(html, HasSubstr("<h1>Gates: the claims of 2 bundles</h1>"));
  EXPECT_THAT(html, HasSubstr("<p>pass: all five gates pass.</p>"));
  EXPECT_THAT(html, testing::ContainsRegex("<h2>Demands of [^<]*/two</h2>"));
  EXPECT_THAT(html, Not(HasSubstr("class=alert")));
  const std::vector<std::string> wrong = {
      "gate",   one, "--claim", "eager-dynamic faster than compiled-static in prefill",
      "--html", page};
  EXPECT_EQ(assay(wrong).end.exit_status, 1);
  EXPECT_THAT(*read_file(page),
              testing::ContainsRegex("<p class=alert>FAIL: [^<]*the claim doesn&#39;t hold"));
  EXPECT_THAT(refused({"gate", one, "--html", one / "page.html"}), HasSubstr("outside of bundles"));
}

TEST_F(GateCommand, AFailureExitsWithOne) {
  const fs::path one = write("one");
  const Json wrong =
      judged({one, "--claim", "eager-dynamic faster than compiled-static in prefill"}, 1);
  EXPECT_EQ(wrong["claim_holds"], "fail");
  const Json phaseless = judged({one, "--claim", "compiled-static faster than eager-dynamic"}, 1);
  EXPECT_EQ(phaseless["gates"]["phase_separation"], "fail");
  HonestBundle label;
  label.made.evidence(label.cell("compiled-static", Phase::kKvDecode))["compiler_real"] =
      "label_only";
  const Json unproven = judged({write_with_evidence("label", label.made)}, 1);
  EXPECT_EQ(unproven["gates"]["artifact_evidence"], "fail");
}

TEST_F(GateCommand, AnOpenClaimIsNotDecidedAndFailsNothing) {
  const fs::path one = write("one", {.compiled_share = 0.99, .noise = 0.3});
  const Json open = judged({one, "--claim", kClaim}, 0);
  EXPECT_EQ(open["claim_holds"], "not_decided") << open.dump(1);
  EXPECT_EQ(open["verdict"], "not_decided");
  EXPECT_THAT(assay({"gate", one, "--claim", kClaim}).out, HasSubstr("not decided"));
}

TEST_F(GateCommand, EveryRelationIsJudged) {
  const fs::path one = write("one");
  for (const auto& [claim, verdict] :
       {std::pair{"compiled-static fastest in kv_decode", "pass"},
        {"eager-dynamic fastest in kv_decode", "fail"},
        {"eager-dynamic slower than compiled-static in prefill", "pass"},
        {"compiled-static equivalent to eager-dynamic in prefill", "fail"}}) {
    const bool fails = std::string_view(verdict) == "fail";
    EXPECT_EQ(judged({one, "--claim", claim}, fails ? 1 : 0)["claim_holds"], verdict) << claim;
  }
}

TEST_F(GateCommand, TwoArmsBesideTheBaselineAreJudgedWithoutTheirFindings) {
  HonestBundle bundle;
  bundle.made.add({.arm = "third",
                   .phase = Phase::kKvDecode,
                   .mean_ms = 5,
                   .noise = 0.01,
                   .warmup = 2,
                   .processes = 5});
  bundle.made.raw().manifest["study"]["arms"].push_back("third");
  const fs::path one = write_with_evidence("three", bundle.made);
  EXPECT_EQ(assay({"analyze", one, "--resamples", "500"}).end.exit_status, 0);
  const std::string claim = "third faster than compiled-static in kv_decode at single_micro";
  const auto verdict_of = [&](const std::string& text) {
    const CommandOutput output = assay({"gate", one, "--claim", text, "-o", "json"});
    return (*parse_json(output.out, "stdout"))["claim_holds"];
  };
  EXPECT_EQ(verdict_of(claim), "pass");
  EXPECT_EQ(verdict_of("compiled-static faster than third in kv_decode at single_micro"), "fail");
}

TEST_F(GateCommand, TheDeclaredAxisHasToBeTheOneThatDiffers) {
  const fs::path one = write("one");
  const fs::path two = write("two", {.seed = 2, .code_sha = std::string(40, 'f')});
  const fs::path both =
      write("both", {.seed = 3, .device = "Another CPU", .code_sha = std::string(40, 'f')});
  const auto regimes = [&](const std::vector<std::string>& arguments) {
    return judged(arguments, 0)["gates"]["cross_regime"];
  };
  EXPECT_EQ(regimes({one, two, "--vary", "code_sha"}), "pass");
  EXPECT_EQ(regimes({one, two, "--vary", "device"}), "not_decided");
  EXPECT_EQ(regimes({one, both}), "not_decided") << "two axes differ";
  EXPECT_EQ(regimes({one, two, both}), "pass") << "two of the three differ on one axis";
}

TEST_F(GateCommand, DamageIsAVerdictAndWhatCannotBeReadIsRefused) {
  const fs::path one = write("one");
  ASSERT_TRUE(write_file(one / "cells" / "added.txt", "what no run wrote\n"));
  const Json damaged = judged({one, "--claim", kClaim}, 1);
  EXPECT_EQ(damaged["gates"]["artifact_evidence"], "fail");
  EXPECT_THAT(damaged["bundles"][0]["gates"][2]["checks"][0]["decided_by"].dump(),
              HasSubstr("not in the manifest"));
  const fs::path rows = write("two") / "prefill" / "metrics.csv";
  std::string text = *read_file(rows);
  text[text.size() / 2] ^= 1;
  ASSERT_TRUE(write_file(rows, text));
  EXPECT_THAT(refused({"gate", root_ / "two"}), HasSubstr("prefill/metrics.csv"));
}

TEST_F(GateCommand, FindingsOfTheBundleAreReadAndForeignOnesAreNot) {
  const fs::path one = write("one");
  const auto findings_of = [&] { return judged({one}, 0)["bundles"][0]["findings"]; };
  EXPECT_EQ(findings_of()["from"], "rows");
  EXPECT_EQ(findings_of()["why"], "there is no analysis/findings.json");
  EXPECT_FALSE(fs::exists(one / "analysis")) << "a gate writes nothing";
  EXPECT_EQ(assay({"analyze", one, "--resamples", "500"}).end.exit_status, 0);
  EXPECT_EQ(findings_of()["from"], "analysis/findings.json");
  const fs::path two = write("two", {.seed = 2});
  EXPECT_EQ(assay({"analyze", two, "--resamples", "500"}).end.exit_status, 0);
  fs::copy_file(two / "analysis" / "findings.json", one / "analysis" / "findings.json",
                fs::copy_options::overwrite_existing);
  EXPECT_EQ(findings_of()["from"], "rows");
  ASSERT_TRUE(write_file(one / "analysis" / "findings.json", "{\"schema_version\": 1}"));
  EXPECT_EQ(findings_of()["from"], "rows");
  EXPECT_THAT(findings_of()["why"].get<std::string>(), HasSubstr("schema version"));
}

TEST_F(GateCommand, EveryFormatSaysTheSame) {
  HonestBundle label;
  label.made.evidence(label.cell("compiled-static", Phase::kKvDecode))["compiler_real"] =
      "label_only";
  const fs::path one = write_with_evidence("label", label.made);
  const std::string screen = assay({"gate", one, "--claim", kClaim}).out;
  EXPECT_THAT(screen, StartsWith("FAIL: 1 of 5 gates fails, 1 is not decided.\n"));
  EXPECT_THAT(screen, HasSubstr("Claim: compiled-static faster than eager-dynamic in kv_decode"));
  EXPECT_THAT(screen, HasSubstr("- FAIL: Artifact evidence, compiled_cells: "));
  const std::string markdown = assay({"gate", one, "--claim", kClaim, "-o", "md"}).out;
  EXPECT_THAT(markdown, HasSubstr("## Verdict\n\nFAIL: 1 of 5 gates fails, 1 is not decided.\n"));
  EXPECT_THAT(markdown, HasSubstr("| 3 Artifact evidence            | FAIL        |"));
  EXPECT_THAT(markdown, HasSubstr("evidence.json: compiler_real"));
  const std::string csv = assay({"gate", one, "--claim", kClaim, "-o", "csv"}).out;
  CsvReader reader(csv, "stdout");
  const size_t columns = reader.next()->size();
  int failed = 0;
  while (!reader.done()) {
    const auto fields = reader.next();
    ASSERT_EQ(fields->size(), columns);
    failed += (*fields)[3] == "fail" ? 1 : 0;
  }
  EXPECT_EQ(failed, 1);
}

TEST_F(GateCommand, TheScreenKeepsToItsSizeWhateverIsWrong) {
  std::vector<std::string> arguments = {"gate"};
  for (uint64_t i = 0; i < 20; ++i) {
    HonestBundle bundle({.seed = i, .phases = {Phase::kKvDecode}, .processes = 2});
    if (i % 2 == 0) {
      bundle.identity() = Json::object();
      bundle.made.raw().environment.erase("program_sha256");
      for (Row& row : bundle.made.raw().rows) {
        row.cache = row.compile_mode = "";
        row.ttft_ms = 1;
        bundle.made.drop_evidence(row.cell_id.str());
      }
    }
    arguments.push_back(
        write_with_evidence(fmt::format("a-rather-long-name-of-a-bundle-{}", i), bundle.made));
  }
  const CommandOutput output = assay(arguments);
  EXPECT_EQ(output.end.exit_status, 1) << output.err;
  const std::vector<std::string> lines = split(output.out, '\n');
  EXPECT_LE(lines.size(), 41u) << output.out;
  for (const std::string& line : lines) EXPECT_LE(line.size(), 100u) << line;
  EXPECT_THAT(output.out, HasSubstr("more rows: -o md"));
  EXPECT_THAT(output.out, HasSubstr("more: -o md"));
}

TEST_F(GateCommand, RowsWithoutTheirBundleFailByName) {
  const fs::path one = write("one");
  const auto manifest = *parse_json(*read_file(one / "manifest.json"), "manifest");
  Json origin;
  for (const char* key : {"started_at", "complete", "study", "identity"}) {
    origin[key] = manifest[key];
  }
  fs::create_directories(root_ / "kept");
  for (const char* phase : {"prefill", "kv_decode"}) {
    fs::copy(one / phase, root_ / "kept" / phase, fs::copy_options::recursive);
  }
  ASSERT_TRUE(write_file(root_ / "kept" / "origin.json", to_json_text(origin)));
  const Json kept = judged({root_ / "kept"}, 1);
  EXPECT_EQ(kept["gates"]["artifact_evidence"], "fail");
  EXPECT_EQ(kept["gates"]["environment_attribution"], "fail");
}

TEST_F(GateCommand, HostileNamesAreShownAndNotObeyed) {
  HonestBundle bundle;
  const std::string name = "eager\x1b[31m|<b>";
  for (Row& row : bundle.made.raw().rows) {
    if (row.arm == "eager-dynamic") row.arm = name;
  }
  bundle.made.raw().manifest["study"]["baseline"] = name;
  bundle.made.raw().manifest["study"]["arms"] = {name, "compiled-static"};
  const fs::path folder = write_with_evidence("hostile", bundle.made);
  for (const char* format : {"table", "md", "json"}) {
    const CommandOutput output = assay({"gate", folder, "-o", format});
    EXPECT_THAT(output.out, Not(HasSubstr("\x1b"))) << format;
    EXPECT_TRUE(output.err.empty()) << output.err;
  }
  EXPECT_THAT(assay({"gate", folder, "-o", "md"}).out, Not(HasSubstr("<b>")));
}

TEST_F(GateCommand, BadInputsGiveOneLineAndExitTwo) {
  const fs::path one = write("one");
  EXPECT_THAT(refused({"gate"}), HasSubstr("bundle"));
  EXPECT_THAT(refused({"gate", root_ / "missing"}), HasSubstr("missing"));
  EXPECT_THAT(refused({"gate", root_}), HasSubstr("manifest.json"));
  EXPECT_THAT(refused({"gate", one, one}), HasSubstr("each bundle once"));
  EXPECT_THAT(refused({"gate", one, "--claim", "faster"}), HasSubstr("expected an arm before"));
  EXPECT_THAT(refused({"gate", one, "--claim", "compiled-statik fastest in prefill"}),
              HasSubstr("did you mean \"compiled-static\"?"));
  EXPECT_THAT(refused({"gate", one, "--claim", "compiled-static fastest in decode"}),
              HasSubstr("expected one of prefill, kv_decode, e2e_kv"));
  EXPECT_THAT(refused({"gate", one, "--vary", "devise"}), HasSubstr("did you mean \"device\"?"));
  EXPECT_THAT(refused({"gate", one, "-o", "xml"}), HasSubstr("xml"));
}

}  // namespace
}  // namespace assay
