// A command's output as samples, or the reason why there are none.
#include "backend/command/figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/command/exception_class.h"

namespace assay {
namespace {

using testing::ElementsAre;

std::vector<TextPattern> patterns_of(const std::vector<std::string>& texts) {
  std::vector<TextPattern> patterns;
  for (const std::string& text : texts) {
    auto pattern = TextPattern::compile(text, "test");
    EXPECT_TRUE(pattern) << pattern.error().message;
    patterns.push_back(std::move(pattern).value());
  }
  return patterns;
}

Invocation printed(std::string out, std::string err = "") {
  Invocation invocation;
  invocation.end.exit_status = 0;
  invocation.out = std::move(out);
  invocation.err = std::move(err);
  return invocation;
}

std::string class_of(const std::vector<std::string>& texts, const Invocation& invocation) {
  const auto figures = read_figures(patterns_of(texts), invocation);
  return figures ? "none" : figures.error().error_class + "/" + figures.error().outcome;
}

TEST(Figures, TheNthMatchOfEachPatternIsOfTheNthSample) {
  const auto found =
      read_figures(patterns_of({"(?<latency_s>[\\d.]+) s\\b", "(?<tokens_per_s>[\\d.e+]+) tok/s"}),
                   printed("1: 1.5 s, 10 tok/s\n2: 2.5 s, 1.1e+1 tok/s\n"));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_THAT(*found, ElementsAre(Figures{{"latency_s", 1.5}, {"tokens_per_s", 10}},
                                  Figures{{"latency_s", 2.5}, {"tokens_per_s", 11}}));
}

TEST(Figures, AListOfSamplesIsReadByAPatternThatGoesOnWhereItEnded) {
  const auto found = read_figures(
      patterns_of({R"((?:"samples_ts": \[|\G,) *(?<tokens_per_s>[\d.]+))"}),
      printed("[\n  {\n    \"avg_ts\": 7100.002165,\n    \"samples_ns\": [ 74601900, 71632900 ],\n"
              "    \"samples_ts\": [ 6863.1, 7147.55, 7136.37 ]\n  }\n]\n"));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_THAT(*found,
              ElementsAre(Figures{{"tokens_per_s", 6863.1}}, Figures{{"tokens_per_s", 7147.55}},
                          Figures{{"tokens_per_s", 7136.37}}));
}

TEST(Figures, StderrIsSearchedWhereStdoutHasNoMatch) {
  const auto found = read_figures(patterns_of({"(?<latency_ms>\\d+) ms"}),
                                  printed("loading\n", "eval time = 7 ms\n"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->at(0).at("latency_ms"), 7);
}

TEST(Figures, WhatLacksAFigureIsNamed) {
  EXPECT_EQ(class_of({"(?<latency_ms>\\d+) ms"}, printed("done\n")), "no_match/false_success");
  EXPECT_EQ(class_of({"(?<latency_ms>\\S+) ms"}, printed("nan ms\n")), "bad_figure/false_success");
  EXPECT_EQ(class_of({"(?<latency_ms>\\S+) ms"}, printed("0.00 ms")), "bad_figure/false_success");
  EXPECT_EQ(class_of({"(?<latency_ms>\\S+) ms"}, printed("-1 ms")), "bad_figure/false_success");
  EXPECT_EQ(class_of({"(?<latency_ms>\\S+) ms"}, printed("1e308 ms")), "bad_figure/false_success");
  EXPECT_EQ(class_of({"(?<latency_ms>\\d+) ms", "(?<tokens>\\d+) tok"}, printed("1 ms 2 ms 3 tok")),
            "unequal_matches/false_success");
}

// A million matches taken in silence would give a figure over a part of the output.
TEST(Figures, MoreMatchesThanAreTakenAreAnError) {
  std::string most;
  for (int i = 0; i < 1'000'000; ++i) most += "1s";
  const auto taken = read_figures(patterns_of({"(?<latency_s>\\d)s"}), printed(most));
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->size(), 1'000'000u);
  const auto more = read_figures(patterns_of({"(?<latency_s>\\d)s"}), printed(most + "1s"));
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().error_class, "pattern_limit");
  EXPECT_NE(more.error().message.find("expected at most 1000000 matches"), std::string::npos);
}

TEST(Figures, ASampleIsATimeWhateverItWasPrintedAs) {
  const AskedTokens decode{Phase::kE2eKv, 2, 100, 50};
  const auto ns = [&](const Figures& figures, const AskedTokens& asked) {
    const auto sample = sample_of(figures, asked);
    return sample ? std::llround(*sample->latency_ms * 1e6) : -1;
  };
  EXPECT_EQ(ns({{"latency_ns", 3}}, decode), 3);
  EXPECT_EQ(ns({{"latency_us", 3}}, decode), 3'000);
  EXPECT_EQ(ns({{"latency_ms", 3}}, decode), 3'000'000);
  EXPECT_EQ(ns({{"latency_s", 3}}, decode), 3'000'000'000);
  EXPECT_EQ(ns({{"tokens_per_s", 200}}, decode), 500'000'000) << "100 tokens, of both sequences";
  EXPECT_EQ(ns({{"tokens_per_s", 200}, {"tokens", 40}}, decode), 200'000'000);
  EXPECT_EQ(ns({{"ms_per_token", 2}}, decode), 100'000'000) << "50 steps";
  EXPECT_EQ(ns({{"latency_s", 1}, {"tokens_per_s", 7}}, decode), 1'000'000'000);
  EXPECT_EQ(ns({{"ttft_ms", 5}}, decode), -1);
  const AskedTokens prefill{Phase::kPrefill, 2, 100, 0};
  EXPECT_EQ(ns({{"tokens_per_s", 200}}, prefill), 1'000'000'000) << "the prompts' tokens";
  EXPECT_EQ(ns({{"ttft_ms", 5}}, prefill), 5'000'000);
  EXPECT_EQ(sample_of({{"tokens_per_s", 200}, {"tokens", 40}}, decode)->tokens, 40);
  EXPECT_EQ(sample_of({{"latency_s", 1}}, decode)->tokens, 100);
  EXPECT_EQ(sample_of({{"latency_s", 1}, {"ttft_s", 0.25}}, decode)->ttft_ms, 250.0);
  EXPECT_EQ(sample_of({{"latency_s", 1}}, prefill)->tokens, 2);
  EXPECT_GT(ns({{"latency_s", 1e300}}, decode), 0) << "of a year and more the row rule judges";
}

TEST(Figures, AnEndThatIsntWellIsAnOutcome) {
  const auto ended = [](int status, const std::string& signal, const std::string& err) {
    Invocation invocation;
    if (signal.empty()) invocation.end.exit_status = status;
    invocation.end.signal = signal;
    invocation.err = err;
    const auto failure = failure_of(invocation);
    return failure ? failure->error_class + "/" + failure->outcome : "none";
  };
  EXPECT_EQ(ended(0, "", "Traceback (most recent call last):\nX: y\n"), "none");
  EXPECT_EQ(ended(3, "", "usage\n"), "exit 3/crash");
  EXPECT_EQ(ended(0, "SIGSEGV", ""), "SIGSEGV/crash");
  EXPECT_EQ(ended(1, "", "Traceback (most recent call last):\n  File\na.b.Broken: y\n"), "Broken/");
  Invocation oom;
  oom.end.exit_status = 1;
  oom.err = "Traceback (most recent call last):\n  x\ntorch.OutOfMemoryError: CUDA out of memory\n";
  EXPECT_TRUE(ran_out_of_memory(oom, *failure_of(oom)));
  Invocation late;
  late.stopped = Invocation::Stopped::kTimeout;
  EXPECT_EQ(failure_of(late)->outcome, "timeout");
}

TEST(Figures, AMessageHasTheLastWordsOfStderrElseOfStdout) {
  Invocation invocation;
  invocation.end.exit_status = 3;
  invocation.out = "result so far\n";
  EXPECT_EQ(failure_of(invocation)->message, "the command ended with exit 3: result so far");
  invocation.err = "first words\n" + std::string(100'000, 'x') + "\nlast words\n";
  const std::string message = failure_of(invocation)->message;
  EXPECT_TRUE(message.ends_with("last words")) << message;
  EXPECT_EQ(message.find("first words"), std::string::npos) << "the log has it whole";
  EXPECT_LT(message.size(), 5000U);
  invocation.out.clear();
  invocation.err.clear();
  EXPECT_EQ(failure_of(invocation)->message, "the command ended with exit 3: it printed nothing");
}

TEST(Figures, ATracebackMayStandOnEitherOutput) {
  Invocation invocation;
  invocation.end.exit_status = 1;
  invocation.out = "Traceback (most recent call last):\n  x\nKeyError: 1\n";
  invocation.err = "words of a library\n";
  EXPECT_EQ(failure_of(invocation)->error_class, "KeyError");
  invocation.err = "Traceback (most recent call last):\n  x\nValueError: 1\n";
  EXPECT_EQ(failure_of(invocation)->error_class, "ValueError");
}

TEST(Figures, TheKernelsOutOfMemoryKillerIsNoCrash) {
  Invocation invocation;
  invocation.end.signal = "SIGKILL";
  EXPECT_FALSE(ran_out_of_memory(invocation, *failure_of(invocation)));
  invocation.end.oom_likely = true;
  EXPECT_TRUE(ran_out_of_memory(invocation, *failure_of(invocation)));
}

TEST(ExceptionClass, IsTheLastTracebacks) {
  EXPECT_EQ(
      exception_class("Traceback (most recent call last):\n  File \"a\", line 1\nKeyError: 1\n"
                      "\nDuring handling of the above exception, another exception "
                      "occurred:\n\nTraceback (most recent call last):\n  File \"b\"\n    x\n"
                      "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\n"
                      "CppCompileError: words\n"),
      "BackendCompilerFailed");
  EXPECT_EQ(exception_class("[rank0]: Traceback (most recent call last):\n[rank0]:   File\n"
                            "other words\n[rank0]: RuntimeError: x\n"),
            "RuntimeError");
  EXPECT_EQ(exception_class("Traceback (most recent call last):\n  x\nKeyboardInterrupt"),
            "KeyboardInterrupt");
  EXPECT_EQ(exception_class("Traceback (most recent call last):\n  cut off"), "");
  EXPECT_EQ(exception_class("  File \"x.py\", line 1\n    (\n    ^\nSyntaxError: '(' was never "
                            "closed\n"),
            "SyntaxError");
  EXPECT_EQ(exception_class("terminate called after throwing an instance of 'std::bad_alloc'\n  "
                            "what():  std::bad_alloc\n"),
            "std::bad_alloc");
  EXPECT_EQ(exception_class("usage: x\nhttp://a: b\nerror: no file\n"), "");
  EXPECT_EQ(exception_class(std::string("\xff\x00Traceback", 11)), "");
  EXPECT_TRUE(means_out_of_memory("std::bad_alloc"));
  EXPECT_FALSE(means_out_of_memory("RuntimeError"));
}

}  // namespace
}  // namespace assay
