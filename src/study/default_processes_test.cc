// The number of processes of a study that doesn't give one.
#include "study/default_processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/records/backend_traits.h"
#include "study/gpu_arm.h"

namespace assay {
namespace {

using testing::HasSubstr;

StudyArm arm(const std::string& backend, const std::string& mode, Json options = Json::object()) {
  StudyArm made;
  made.name = "a";
  made.backend = backend;
  made.mode = mode;
  made.cache = "static";
  made.options = std::move(options);
  return made;
}

Study study_with(std::vector<StudyArm> arms) {
  Study study;
  study.models = {{.name = "m", .path = "m", .dtype = ""}};
  study.arms = std::move(arms);
  study.phases = {Phase::kPrefill};
  study.scenarios = {{.name = "s", .prompt_tokens = {10}, .text = ""}};
  study.batch = {1};
  return study;
}

DefaultProcesses chosen(const Study& study, const std::vector<std::optional<double>>& bytes) {
  std::vector<ModelSize> models;
  for (const auto& size : bytes) models.push_back({.bytes = size, .layers = 10});
  return default_processes(study, models);
}

TEST(DefaultProcesses, FiveWhereEveryStartIsCheap) {
  const Study study = study_with({arm("native", "eager"), arm("native", "compiled")});
  EXPECT_EQ(chosen(study, {100e6}).processes, 5);
  EXPECT_THAT(chosen(study, {100e6}).because, HasSubstr("in under 5 s on"));
}

TEST(DefaultProcesses, TwoWhereOneStartIsDear) {
  const auto of_two = [](const StudyArm& other, double bytes) {
    return chosen(study_with({arm("native", "eager"), other}), {bytes});
  };
  EXPECT_EQ(of_two(arm("torch", "eager"), 1e6).processes, 2);
  EXPECT_THAT(
      of_two(arm("torch", "eager"), 1e6).because,
      HasSubstr("starting \"a\" on \"m\" is estimated at 15 s, and starting and preparing more"));
  EXPECT_EQ(of_two(arm("torch", "eager", {{"device", "cpu"}}), 1e6).processes, 5)
      << "it opens no GPU";
  EXPECT_THAT(of_two(arm("torch", "default", {{"device", "cpu"}}), 1e6).because,
              HasSubstr("starting and compiling \"a\" on \"m\" is estimated at 34 s"));
  EXPECT_EQ(of_two(arm("torch", "default", {{"device", "cpu"}}), 1e6).processes, 2);
  EXPECT_EQ(of_two(arm("torch", "default", {{"device", "cuda"}}), 1e6).processes, 2);
  EXPECT_EQ(of_two(arm("native", "eager", {{"device", "cuda"}}), 1e6).processes, 5);
  const Json no_cache = {{"kernel_cache", false}};
  EXPECT_EQ(of_two(arm("native", "compiled", no_cache), 1e6).processes, 5) << "4 s of compiling";
  EXPECT_EQ(of_two(arm("native", "compiled", no_cache), 0.6e9).processes, 2);
  EXPECT_EQ(of_two(arm("native", "eager", no_cache), 0.6e9).processes, 5) << "it compiles nothing";
  EXPECT_EQ(of_two(arm("native", "compiled"), 3e9).processes, 2) << "it packs three gigabytes";
  EXPECT_EQ(of_two(arm("native", "eager"), 3e9).processes, 5) << "it maps them";
  EXPECT_EQ(of_two(arm("native", "eager"), 10e9).processes, 2);
}

// Each start maps 12 GB in 6 s, and each repetition reads them ten times in as long: of K processes
// there are K + 1 starts, one for parity.
TEST(DefaultProcesses, AsManyAsTheRepetitionsPayFor) {
  Study study = study_with({arm("native", "eager")});
  study.scenarios[0].prompt_tokens = {160};
  study.warmup = 0;
  const auto of_repetitions = [&](int64_t repetitions) {
    study.repetitions = repetitions;
    return chosen(study, {12e9});
  };
  EXPECT_EQ(of_repetitions(4).processes, 2);
  EXPECT_EQ(of_repetitions(5).processes, 3);
  EXPECT_EQ(of_repetitions(6).processes, 4);
  EXPECT_EQ(of_repetitions(7).processes, 5);
  EXPECT_EQ(of_repetitions(1000).processes, 5) << "no more than where starts cost nothing";
  EXPECT_EQ(of_repetitions(6).because,
            "starting \"a\" on \"m\" is estimated at 6.0 s; starting and preparing 4 "
            "processes of each arm takes no longer than their repetitions");
}

TEST(DefaultProcesses, WhatEachCompilesAnewIsPaidForToo) {
  Study study = study_with({arm("torch", "eager", {{"device", "cuda"}})});
  study.warmup = 0;
  const auto where_they_take = [&](double whole_seconds, double layer_seconds) {
    study.repetitions = static_cast<int64_t>(whole_seconds / (10 * layer_seconds));
    return chosen(study, {1e6}).processes;
  };
  EXPECT_EQ(where_they_take(100, backend_traits("torch").costs->gpu_eager_layer), 5)
      << "6 starts of 15 s";
  study.arms[0].mode = "reduce-overhead";
  study.arms[0].options["explain"] = false;
  EXPECT_EQ(where_they_take(100, backend_traits("torch").costs->gpu_graphed_layer), 3)
      << "4 starts, and 3 graphs of 9 s";
}

TEST(DefaultProcesses, OneLargeOrUnknownModelIsEnough) {
  Study study = study_with({arm("native", "eager")});
  study.models.push_back({.name = "large", .path = "l", .dtype = ""});
  EXPECT_EQ(chosen(study, {1e6, 1e6}).processes, 5);
  EXPECT_THAT(chosen(study, {1e6, 10e9}).because, HasSubstr("on \"large\""));
  EXPECT_EQ(chosen(study, {1e6, std::nullopt}).processes, 2);
  EXPECT_EQ(
      chosen(study, {1e6, std::nullopt}).because,
      "the size of \"large\" is unknown; two processes are too few for intervals, and the study's "
      "key `processes` sets more");
}

TEST(DefaultProcesses, EachHasARepetitionAtLeast) {
  Study study = study_with({arm("native", "eager")});
  for (const auto& [repetitions, expected] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {2, 2}, {4, 4}, {5, 5}, {9, 5}, {1000, 5}}) {
    study.repetitions = repetitions;
    const DefaultProcesses found = chosen(study, {1e6});
    EXPECT_EQ(found.processes, expected) << repetitions;
    EXPECT_EQ(found.because.contains("each process makes one of the"), expected < 5);
  }
}

TEST(DefaultProcesses, WarmUpsOfEachStayWithinThePlan) {
  Study study = study_with({arm("native", "eager")});
  study.repetitions = 10;
  study.warmup = 600'000;
  const DefaultProcesses found = chosen(study, {1e6});
  EXPECT_EQ(found.processes, 3);
  EXPECT_THAT(found.because, HasSubstr("at most 2000000 rows"));
}

TEST(DefaultProcesses, SettlesAStudyByItsFilesAndLeavesAGivenOneAlone) {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("settle-{}", getpid());
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "model.safetensors") << std::string(1000, 'x');
  Study study = study_with({arm("native", "compiled")});
  study.models[0].path = folder;
  Study given = study;
  given.processes = 4;
  given.processes_given = true;
  settle_processes(given);
  EXPECT_EQ(given.processes, 4);
  EXPECT_EQ(given.processes_because, "");
  settle_processes(study);
  EXPECT_EQ(study.processes, 5);
  EXPECT_NE(study.processes_because, "");
  EXPECT_EQ(least_repetitions(study), 5);
  std::filesystem::remove_all(folder);
  settle_processes(study);
  EXPECT_EQ(study.processes, 2) << "of unknown size";
  EXPECT_EQ(least_repetitions(study), 1);
}

}  // namespace
}  // namespace assay
