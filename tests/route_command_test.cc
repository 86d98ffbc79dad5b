// `assay route` as a user and as CI meet it: exit status, formats, files, the one line on stderr.
#include <gmock/gmock.h>

#include "base/files/files.h"
#include "base/tables/csv.h"
#include "base/text/text.h"
#include "bundle_on_disk.h"
#include "routing/routed_bundle.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class RouteCommand : public BundleCommandTest {
 protected:
  fs::path write(const std::string& name, const RoutedStudy& study = two_routed_arms(0.7)) {
    RoutedBundle bundle(study);
    return write_with_evidence(name, bundle.made);
  }
  // A bundle in which the eager arm lost a row.
  fs::path write_unsafe(const std::string& name) {
    RoutedBundle bundle(two_routed_arms(0.7));
    bundle.made.lose(bundle.cell("eager", 30), 7, RowStatus::kOom, "OutOfMemory");
    return write_with_evidence(name, bundle.made);
  }
  Json routed(std::vector<std::string> arguments, int status) {
    arguments.insert(arguments.begin(), "route");
    return printed_json(std::move(arguments), status);
  }
};

TEST_F(RouteCommand, APolicyIsWrittenReadAndHeldAgainstItsIdentity) {
  const fs::path one = write("one");
  const fs::path file = root_ / "policy.yaml";
  const Json json = routed({one, "-o", file}, 0);
  EXPECT_EQ(json["schema_version"], 2);
  ASSERT_EQ(json["policy"]["rules"].size(), 1u) << json.dump(1);
  EXPECT_EQ(json["policy"]["rules"][0]["arm"], "fast");
  EXPECT_EQ(json["policy"]["rules"][0]["prompt_tokens"], Json({10, 80}));
  const Json manifest = *parse_json(*read_file(one / "manifest.json"), "manifest.json");
  EXPECT_EQ(json["policy"]["measured_at"], manifest["started_at"]);
  EXPECT_EQ(json["policy"]["plan_sha256"], manifest["plan_sha256"]);
  EXPECT_EQ(read_policy(file)->measured_at, manifest["started_at"]);
  EXPECT_EQ(json["policy_given"], false);
  EXPECT_EQ(json["validation"]["strata"], 3);
  EXPECT_THAT(*read_file(file), HasSubstr("arm: \"fast\"\n    fallback: \"eager\"\n"));
  EXPECT_EQ(routed({one, "--policy", file}, 0)["policy_given"], true);
  RoutedBundle other(two_routed_arms(0.7));
  other.made.raw().manifest["identity"]["cpu"] = "Another CPU";
  const fs::path two = write_with_evidence("two", other.made);
  EXPECT_THAT(refused({"route", two, "--policy", file}),
              HasSubstr("cpu: expected \"Example CPU 2.0\", found \"Another CPU\""));
}

TEST_F(RouteCommand, AStratumWithoutASafeArmExitsWithOne) {
  const Json json = routed({write_unsafe("one")}, 1);
  EXPECT_EQ(json["failures"].size(), 1u);
  const std::string screen = assay({"route", root_ / "one"}).out;
  EXPECT_THAT(screen, HasSubstr("FAILS: 1 measured stratum has no safe arm"));
  EXPECT_THAT(screen, HasSubstr("NONE"));
  EXPECT_THAT(assay({"route", root_ / "one", "-o", "md"}).out,
              HasSubstr("1. In doubt refuse the request"));
}

TEST_F(RouteCommand, ThePageIsWrittenBesideWhatIsPrinted) {
  const fs::path one = write("one");
  const fs::path page = root_ / "route.html";
  const std::string screen = assay({"route", one}).out;
  for (int i = 0; i < 2; ++i) {
    const CommandOutput output = assay({"route", one, "--html", page});
    EXPECT_EQ(output.end.exit_status, 0) << output.err;
    EXPECT_EQ(output.out, screen);
  }
  EXPECT_THAT(*read_file(page), HasSubstr("<h2>Triggers that force the fallback</h2>"));
  EXPECT_EQ(assay({"route", write_unsafe("two"), "--html", page}).end.exit_status, 1);
  EXPECT_THAT(*read_file(page), HasSubstr("<h2>Why it fails</h2>"));
  ASSERT_TRUE(write_file(page, "<html>mine"));
  EXPECT_THAT(refused({"route", one, "--html", page}), HasSubstr("expected a new file or a page"));
  EXPECT_EQ(*read_file(page), "<html>mine");
}

TEST_F(RouteCommand, SeveralRunsCountAsOne) {
  const fs::path one = write("one");
  RoutedStudy study = two_routed_arms(0.7);
  study.seed = 2;
  const fs::path two = write("two", study);
  const Json json = routed({one, two}, 0);
  EXPECT_EQ(json["policy"]["rules"][0]["evidence"][0]["rows"], 80);
  EXPECT_THAT(refused({"route", one, one}), HasSubstr("each bundle once"));
  RoutedBundle other(study);
  other.made.raw().manifest["identity"]["code_sha"] = "def";
  EXPECT_THAT(refused({"route", one, write_with_evidence("three", other.made)}),
              HasSubstr("another code_sha"));
}

TEST_F(RouteCommand, EveryFormatSaysTheSame) {
  RoutedStudy study = two_routed_arms(0.7);
  study.arms[1].ms = [](int64_t tokens) { return tokens < 50 ? 7.0 : 13.0; };
  const fs::path one = write("one", study);
  const std::string screen = assay({"route", one}).out;
  EXPECT_THAT(screen, StartsWith("synthetic: 3 rules, 1 of them abstains; every measured "
                                 "stratum has a safe arm.\n"));
  EXPECT_THAT(screen, HasSubstr("prefill   10-30  fast"));
  EXPECT_THAT(screen, HasSubstr("Not measured:\n- prefill of gpt2-25m: prompts below 10"));
  const std::string markdown = assay({"route", one, "-o", "md"}).out;
  EXPECT_THAT(markdown, HasSubstr("## Break glass\n\n1. In doubt"));
  EXPECT_THAT(markdown, HasSubstr("3. In prefill take fast for prompts of 10-30 tokens."));
  EXPECT_THAT(markdown, HasSubstr("| lost_row "));
  EXPECT_THAT(markdown, HasSubstr("40 warm rows can't bound p99"));
  EXPECT_THAT(markdown, HasSubstr("Out of sample: a policy made of half of the processes takes "));
  const std::string csv = assay({"route", one, "-o", "csv"}).out;
  CsvReader reader(csv, "stdout");
  const size_t columns = reader.next()->size();
  int rules = 0;
  while (!reader.done()) {
    ASSERT_EQ(reader.next()->size(), columns);
    ++rules;
  }
  EXPECT_EQ(rules, 3);
}

TEST_F(RouteCommand, AnArmThatServesBetweenTwoChoicesIsSaidAndReadBack) {
  RoutedStudy study;
  study.arms = {{"eager", false},
                {"static", true, [](int64_t tokens) { return tokens < 50 ? 6.0 : 9.0; }},
                {"dynamic", true, [](int64_t tokens) { return tokens < 50 ? 8.0 : 6.0; }}};
  study.lengths = {10, 80};
  const fs::path one = write("one", study);
  const fs::path file = root_ / "policy.yaml";
  const CommandOutput output = assay({"route", one, "-o", "table", "-o", file});
  EXPECT_EQ(output.end.exit_status, 0) << output.err;
  EXPECT_THAT(output.out, HasSubstr("3 rules, 0 of them abstain"));
  EXPECT_THAT(output.out, HasSubstr("faster than safe\n"));
  EXPECT_THAT(output.out, HasSubstr("Taken as faster than the safe arm:\n- dynamic: 10 prompt"));
  EXPECT_THAT(output.out, Not(HasSubstr("Where it abstains")));
  EXPECT_THAT(assay({"route", one, "-o", "md"}).out,
              HasSubstr("In prefill take dynamic for prompts of 11-80 tokens."));
  EXPECT_THAT(*read_file(file), HasSubstr("    because: \"10 prompt tokens take static and 80"));
  EXPECT_EQ(routed({one, "--policy", file}, 0)["policy"], routed({one}, 0)["policy"]);
}

TEST_F(RouteCommand, NumbersOfNewTokensAreRangesAndOneRowOfTheScreen) {
  RoutedStudy study = two_routed_arms(0.7);
  study.phases = {Phase::kKvDecode};
  study.batches = {1, 2};
  RoutedBundle bundle(study);
  for (Row& row : bundle.made.raw().rows) {
    if (row.batch != 2) continue;
    row.batch = 1;
    row.new_tokens = 128;
    row.tokens = 128;
  }
  const fs::path one = write_with_evidence("one", bundle.made);
  const fs::path file = root_ / "policy.yaml";
  const std::string screen = assay({"route", one}).out;
  EXPECT_THAT(screen, testing::ContainsRegex("phase +prompt +new +take"));
  EXPECT_THAT(screen, testing::ContainsRegex("kv_decode +10-80 +64-128 +fast"));
  EXPECT_THAT(screen, HasSubstr("prompt, new: tokens. faster: than every other arm."));
  const Json json = routed({one, "-o", file}, 0);
  ASSERT_EQ(json["policy"]["rules"].size(), 3u) << json.dump(1);
  EXPECT_EQ(json["policy"]["rules"][1]["new_tokens"], Json({65, 127}));
  EXPECT_THAT(*read_file(file), HasSubstr("    new_tokens: [65, 127]\n"));
  EXPECT_EQ(routed({one, "--policy", file}, 0)["policy"], json["policy"]);
}

TEST_F(RouteCommand, TheScreenSaysToWhatAnArmIsEquivalent) {
  RoutedStudy study = two_routed_arms(0.5);
  study.arms.push_back({"alike", true, [](int64_t) { return 5.0; }});
  RoutedBundle bundle(study);
  const fs::path one = write_with_evidence("one", bundle.made);
  const std::string screen = assay({"route", one}).out;
  EXPECT_THAT(screen, testing::ContainsRegex("prefill +[0-9-]+ +(fast|alike) +0\\.50.*equivalent"));
  EXPECT_THAT(screen, HasSubstr("equivalent: to the other fastest arms;"));
  EXPECT_THAT(screen, testing::Not(HasSubstr("than every other arm")));
}

TEST_F(RouteCommand, TheScreenKeepsToItsSizeWhateverIsThere) {
  RoutedStudy study;
  study.arms = {{"a-rather-long-name-of-an-eager-arm", false},
                {"a-rather-long-name-of-a-compiled-arm", true, [](int64_t) { return 7.0; }}};
  study.lengths = {10, 20, 30, 40, 50, 60, 70, 80, 90, 100};
  study.batches = {1, 2, 4, 8};
  study.phases = {Phase::kPrefill, Phase::kKvDecode, Phase::kE2eKv};
  study.repetitions = 16;
  RoutedBundle bundle(study);
  for (const int64_t length : {20, 50, 80}) {
    bundle.made.lose(bundle.cell(study.arms[0].name, length), 2, RowStatus::kCrash, "SIGSEGV");
    bundle.made.lose(bundle.cell(study.arms[1].name, length, Phase::kE2eKv, 4), 2,
                     RowStatus::kCrash, "SIGSEGV");
  }
  const CommandOutput output = assay({"route", write_with_evidence("wide", bundle.made)});
  EXPECT_EQ(output.end.exit_status, 1) << output.err;
  const std::vector<std::string> lines = split(output.out, '\n');
  EXPECT_LE(lines.size(), 41u) << output.out;
  for (const std::string& line : lines) EXPECT_LE(line.size(), 100u) << line;
  EXPECT_THAT(output.out, HasSubstr("more rows: -o md"));
}

TEST_F(RouteCommand, NoOtherFileIsReplaced) {
  const fs::path one = write("one");
  const fs::path policy = root_ / "policy.yaml";
  const fs::path text = root_ / "glass.md";
  for (int i = 0; i < 2; ++i) {
    const CommandOutput again = assay({"route", one, "-o", policy, "--break-glass", text});
    EXPECT_EQ(again.end.exit_status, 0) << again.err;
  }
  EXPECT_THAT(*read_file(text), StartsWith("# Break glass: which arm serves a request\n"));
  ASSERT_TRUE(write_file(policy, "name: my-study\n"));
  ASSERT_TRUE(write_file(text, "# Notes\n"));
  EXPECT_THAT(refused({"route", one, "-o", policy}), HasSubstr("expected a new file or a policy"));
  EXPECT_THAT(refused({"route", one, "--break-glass", text}), HasSubstr("break-glass text"));
  EXPECT_EQ(*read_file(policy), "name: my-study\n");
  EXPECT_EQ(*read_file(text), "# Notes\n");
  EXPECT_THAT(refused({"route", one, "-o", one / "policy.yaml"}), HasSubstr("outside of bundles"));
  fs::remove(policy);
  fs::create_symlink(root_ / "nowhere", policy);
  EXPECT_THAT(refused({"route", one, "-o", policy}), HasSubstr("found a link"));
}

TEST_F(RouteCommand, HostileNamesAreShownAndNotObeyed) {
  RoutedStudy study = two_routed_arms(0.7);
  study.arms[1].name = "fast\x1b[31m|<b>: {";
  RoutedBundle bundle(study);
  const fs::path one = write_with_evidence("hostile", bundle.made);
  const fs::path file = root_ / "policy.yaml";
  for (const char* format : {"table", "md", "json"}) {
    const CommandOutput output = assay({"route", one, "-o", format, "-o", file});
    EXPECT_EQ(output.end.exit_status, 0) << output.err;
    EXPECT_THAT(output.out, Not(HasSubstr("\x1b"))) << format;
  }
  EXPECT_THAT(*read_file(file), Not(HasSubstr("\x1b")));
  EXPECT_THAT(assay({"route", one, "-o", "md"}).out, Not(HasSubstr("<b>")));
  EXPECT_EQ(routed({one, "--policy", file}, 0)["policy"]["rules"][0]["arm"], study.arms[1].name);
}

TEST_F(RouteCommand, ATraceIsMadeAndReplayed) {
  const fs::path one = write("one");
  const fs::path trace = root_ / "trace.csv";
  const std::vector<std::string> make = {
      "route", "make-trace",    "-o", trace,          "-n", "200", "--prompt-least",
      "10",    "--prompt-most", "80", "--new-median", "0"};
  const std::string said = assay(make).out;
  EXPECT_THAT(said, HasSubstr("trace.csv: 200 requests in "));
  EXPECT_THAT(said, HasSubstr("seed 42, sha256 "));
  EXPECT_EQ(assay(make).out, said) << "a trace is replaced, and of a seed always the same";
  const Json json = routed({one, "--simulate", trace, "--replays", "40"}, 0)["simulation"];
  EXPECT_EQ(json["replayed"], 200);
  EXPECT_THAT(said, HasSubstr(json["hash"].get<std::string>()));
  ASSERT_EQ(json["strategies"].size(), 6u);
  EXPECT_EQ(json["strategies"][5]["name"], "policy");
  EXPECT_NEAR(json["strategies"][5]["p50_ms"]["mean"].get<double>(), 7, 0.5);
  const std::string screen = assay({"route", one, "--simulate", trace}).out;
  EXPECT_THAT(screen, HasSubstr("200 requests of "));
  EXPECT_THAT(screen, HasSubstr("split can't be had: prefill and kv_decode weren't both measured"));
  EXPECT_THAT(screen, HasSubstr("200 replays on 8 resampled processes, seed 42."));
  for (const std::string& line : split(screen, '\n')) EXPECT_LE(line.size(), 100u) << line;
  EXPECT_THAT(assay({"route", one, "--simulate", trace, "-o", "md"}).out,
              HasSubstr("## Replay of a trace"));
  EXPECT_THAT(screen, Not(HasSubstr("the queue grows")));
  std::vector<std::string> faster = make;
  faster.insert(faster.end(), {"--rate", "120"});  // compiled serves 143 a second, eager 100
  EXPECT_EQ(assay(faster).end.exit_status, 0);
  EXPECT_THAT(assay({"route", one, "--simulate", trace}).out,
              HasSubstr("- eager serves less than the "));
  EXPECT_EQ(assay(make).out, said);
  const std::vector<std::string> bursty = {"route",         "make-trace", "-o",
                                           root_ / "b.csv", "--burst",    "8"};
  EXPECT_EQ(assay(bursty).end.exit_status, 0);
  EXPECT_NE(*read_file(root_ / "b.csv"), *read_file(trace));
}

TEST_F(RouteCommand, HostileTracesGiveOneLineAndExitTwo) {
  const fs::path one = write("one");
  const fs::path trace = root_ / "trace.csv";
  ASSERT_TRUE(write_file(trace, "arrival_s,prompt_tokens,new_tokens,batch\n0,10,0,1\n0,x,0,1\n"));
  EXPECT_THAT(refused({"route", one, "--simulate", trace}),
              HasSubstr("trace.csv line 3: prompt_tokens"));
  ASSERT_TRUE(write_file(trace, "arrival_s,prompt_tokens,new_tokens,batch\n0,9,0,1\n"));
  EXPECT_THAT(refused({"route", one, "--simulate", trace}), HasSubstr("shorter or longer"));
  EXPECT_THAT(refused({"route", one, "--simulate", root_ / "none.csv"}), HasSubstr("none.csv"));
  EXPECT_THAT(refused({"route", "make-trace"}), HasSubstr("--output"));
  EXPECT_THAT(refused({"route", "somewhere", "make-trace", "-o", root_ / "none.csv"}),
              HasSubstr("expected its own options alone, found bundles of route"));
  EXPECT_FALSE(fs::exists(root_ / "none.csv"));
  EXPECT_THAT(refused({"route", "make-trace", "-o", trace, "--rate", "0"}), HasSubstr("--rate"));
  ASSERT_TRUE(write_file(trace, "notes\n"));
  EXPECT_THAT(refused({"route", "make-trace", "-o", trace}),
              HasSubstr("expected a new file or a trace"));
  EXPECT_EQ(*read_file(trace), "notes\n");
}

TEST_F(RouteCommand, ARangeThatNobodyMeasuredIsNotCalledFaster) {
  const fs::path one = write("one");
  const fs::path file = root_ / "policy.yaml";
  routed({one, "-o", file}, 0);
  std::string text = *read_file(file);
  const std::string measured = "    prompt_tokens: [10, 80]\n";
  ASSERT_TRUE(text.contains(measured)) << text;
  text.replace(text.find(measured), measured.size(), "    prompt_tokens: [1, 1000000]\n");
  ASSERT_TRUE(write_file(file, text));
  const std::string screen = assay({"route", one, "--policy", file}).out;
  EXPECT_THAT(screen, testing::ContainsRegex("prefill +1-1000000 +fast .* not measured in part\n"));
  EXPECT_THAT(screen, testing::Not(HasSubstr("faster")));
  EXPECT_THAT(screen, HasSubstr("1-9 and 81-1000000"));
  EXPECT_THAT(assay({"route", one, "--policy", file, "-o", "md"}).out,
              HasSubstr("take fast for prompts of 10-80 tokens"));
}

TEST_F(RouteCommand, AGivenPolicyThatTheRowsRefuteExitsWithOne) {
  const fs::path file = root_ / "policy.yaml";
  EXPECT_EQ(routed({write("one"), "-o", file}, 0)["differs"], Json::array());
  const fs::path slow = write("slow", two_routed_arms(1.3));
  EXPECT_EQ(routed({slow, "--policy", file}, 1)["failures"].size(), 3u);
  const std::string screen = assay({"route", slow, "--policy", file}).out;
  EXPECT_THAT(screen, HasSubstr("FAILS: the rows prove 3 choices slower than\n  the safe arm"));
  EXPECT_THAT(screen, HasSubstr("not chosen by the rows"));
  const fs::path equal = write("equal", two_routed_arms(1));
  EXPECT_EQ(routed({equal, "--policy", file}, 0)["differs"].size(), 1u);
  for (const char* format : {"table", "md"}) {
    EXPECT_THAT(assay({"route", equal, "--policy", file, "-o", format}).out,
                HasSubstr("Where these rows choose otherwise"));
  }
}

TEST_F(RouteCommand, OptionsWithoutEffectAndFilesNamedTwiceAreRefused) {
  const fs::path one = write("one");
  EXPECT_THAT(refused({"route", one, "--model", "gpt2-25m"}), HasSubstr("--simulate"));
  EXPECT_THAT(refused({"route", one, "--replays", "50"}), HasSubstr("--simulate"));
  const fs::path both = root_ / "both.yaml";
  EXPECT_THAT(refused({"route", one, "-o", both, "--break-glass", root_ / "." / "both.yaml"}),
              HasSubstr("found it named twice"));
  EXPECT_FALSE(fs::exists(both));
  const fs::path trace = root_ / "trace.csv";
  EXPECT_THAT(refused({"route", "make-trace", "-o", trace, "--rate", "0.001", "-n", "1000000",
                       "--seed", "2"}),
              HasSubstr("arrive within 1e+09 s"));
  EXPECT_FALSE(fs::exists(trace)) << "a trace that can't be read back";
}

TEST_F(RouteCommand, BadInputsGiveOneLineAndExitTwo) {
  const fs::path one = write("one");
  EXPECT_THAT(refused({"route"}), HasSubstr("expected a bundle"));
  EXPECT_THAT(refused({"route", root_ / "missing"}), HasSubstr("missing"));
  EXPECT_THAT(refused({"route", one, "-o", "xml"}), HasSubstr(".yaml"));
  EXPECT_THAT(refused({"route", one, "-o", "json", "-o", "csv"}), HasSubstr("one format"));
  EXPECT_THAT(refused({"route", one, "-o", root_ / "no" / "policy.yaml"}),
              HasSubstr("policy.yaml"));
  EXPECT_THAT(refused({"route", one, "--policy", root_ / "none.yaml"}), HasSubstr("none.yaml"));
  ASSERT_TRUE(write_file(root_ / "bad.yaml", "policy: 1\nidentity: []\nrules: [{}]\n"));
  EXPECT_THAT(refused({"route", one, "--policy", root_ / "bad.yaml"}),
              HasSubstr("bad.yaml line 3"));
}

}  // namespace
}  // namespace assay
