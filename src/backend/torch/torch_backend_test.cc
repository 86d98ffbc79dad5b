// Interpreters and workers are found, asked once, and their faults are the arm's readiness.
#include "backend/torch/torch_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>

#include "base/files/files.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class TorchBackendTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    scratch_ = fs::temp_directory_path() / fmt::format("assay-torch-{}-{}", info->name(), getpid());
    fs::remove_all(scratch_);
    fs::create_directories(scratch_);
  }
  void TearDown() override { fs::remove_all(scratch_); }

  EnvironmentReader environment() {
    return [this](const std::string& name) -> std::optional<std::string> {
      const auto it = variables_.find(name);
      if (it == variables_.end()) return std::nullopt;
      return it->second;
    };
  }

  std::unique_ptr<Backend> backend() {
    return make_torch_backend(
        scratch_ / "bin" / "assay",
        [](const std::string& name, const std::string& dtype) -> Result<TorchArchitecture> {
          if (name != "tiny") return bad_input("architecture: found {}", name);
          return TorchArchitecture{{{"model_type", "gpt2"}, {"n_positions", 64}, {"dtype", dtype}},
                                   1000};
        },
        system_spawner(), environment());
  }

  fs::path write(const std::string& name, const std::string& content, bool executable = false) {
    const fs::path path = scratch_ / name;
    fs::create_directories(path.parent_path());
    EXPECT_TRUE(write_file(path, content));
    if (executable) fs::permissions(path, fs::perms::owner_all);
    return path;
  }

  // Stands for an interpreter: prints what `probe.py` would, and counts how often it was asked.
  fs::path fake_python(const std::string& answer) {
    return write(
        "python",
        fmt::format("#!/bin/sh\necho asked >> {}\n{}\n", (scratch_ / "asked").string(), answer),
        true);
  }

  static StudyArm arm(Json options = Json::object()) {
    StudyArm made;
    made.name = "arm";
    made.backend = "torch";
    made.mode = "eager";
    made.cache = "static";
    made.options = std::move(options);
    return made;
  }

  fs::path scratch_;
  std::map<std::string, std::string> variables_;
};

TEST_F(TorchBackendTest, WorkersAreBesideTheInstallationOrAboveTheBuild) {
  const fs::path program = scratch_ / "bin" / "assay";
  EXPECT_THAT(find_workers(program, environment()).error().message, HasSubstr("ASSAY_WORKERS"));
  write("workers/torch/worker.py", "");
  EXPECT_EQ(find_workers(program, environment()).value(), scratch_ / "workers");
  write("share/assay/workers/torch/worker.py", "");
  EXPECT_EQ(find_workers(program, environment()).value(), scratch_ / "share/assay/workers");
  variables_["ASSAY_WORKERS"] = (scratch_ / "workers").string();
  EXPECT_EQ(find_workers(program, environment()).value(), scratch_ / "workers");
  variables_["ASSAY_WORKERS"] = "/nonexistent";
  EXPECT_THAT(find_workers(program, environment()).error().message, EndsWith("found /nonexistent"));
}

TEST_F(TorchBackendTest, TheInterpreterIsTheArmsOrTheUsersOrTheNewestEnvironment) {
  variables_["XDG_CACHE_HOME"] = scratch_.string();
  EXPECT_THAT(find_python(arm(), environment()).error().message, HasSubstr("ASSAY_TORCH_PYTHON"));
  write("assay/torch-env-old/complete", "");
  write("assay/torch-env-new/complete", "");
  write("assay/torch-env-unfinished/bin/python", "");
  fs::last_write_time(scratch_ / "assay/torch-env-old/complete",
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_EQ(find_python(arm(), environment()).value(), scratch_ / "assay/torch-env-new/bin/python");
  variables_["ASSAY_TORCH_PYTHON"] = "/their/python";
  EXPECT_EQ(find_python(arm(), environment()).value(), "/their/python");
  EXPECT_EQ(find_python(arm({{"python", "python3.12"}}), environment()).value(), "python3.12");
  const StudyArm by_name = arm({{"python", "$STACK_A"}});
  EXPECT_EQ(find_python(by_name, environment()).error().message,
            "$STACK_A: expected the path of an interpreter, found it unset");
  variables_["STACK_A"] = "/a/python";
  EXPECT_EQ(find_python(by_name, environment()).value(), "/a/python");
}

TEST_F(TorchBackendTest, AnInterpreterIsAskedOnceAndItsAnswerIsTheGate) {
  write("workers/torch/worker.py", "");
  write("workers/torch/probe.py", "");
  variables_["ASSAY_TORCH_PYTHON"] =
      fake_python(R"(echo noise; echo '{"python": "3", "torch": "2", "transformers": "5"}')")
          .string();
  const auto torch = backend();
  EXPECT_EQ(torch->readiness(arm()).verdict, ArmReadiness::Verdict::kReady);
  EXPECT_EQ(torch->readiness(arm({{"device", "cuda"}})).error_class, "no_cuda");
  EXPECT_EQ(read_file(scratch_ / "asked").value(), "asked\n");
  const WorkerCommand command = torch->worker_command(arm());
  EXPECT_THAT(command.argv, ElementsAre(EndsWith("/python"), "-B", EndsWith("torch/worker.py")));
}

// A kill by a crowded machine's kernel of a process of 500 MB says nothing about the interpreter.
TEST_F(TorchBackendTest, AnInterpreterThatASignalEndedIsAskedOnceMore) {
  write("workers/torch/worker.py", "");
  write("workers/torch/probe.py", "");
  variables_["ASSAY_TORCH_PYTHON"] =
      fake_python(fmt::format("[ $(wc -l < {}) = 1 ] && kill -KILL $$\n"
                              R"(echo '{{"python": "3", "torch": "2", "transformers": "5"}}')",
                              (scratch_ / "asked").string()))
          .string();
  EXPECT_EQ(backend()->readiness(arm()).verdict, ArmReadiness::Verdict::kReady);
  EXPECT_EQ(read_file(scratch_ / "asked").value(), "asked\nasked\n");
}

TEST_F(TorchBackendTest, AnInterpreterThatFailsIsNamed) {
  write("workers/torch/worker.py", "");
  for (const char* answer : {"echo broken >&2; exit 3", "echo '[]'", "kill -SEGV $$"}) {
    variables_["ASSAY_TORCH_PYTHON"] = fake_python(answer).string();
    const ArmReadiness readiness = backend()->readiness(arm());
    EXPECT_EQ(readiness.verdict, ArmReadiness::Verdict::kImpossible) << answer;
    EXPECT_EQ(readiness.error_class, "no_interpreter");
    EXPECT_THAT(readiness.reason, HasSubstr("/python: ")) << answer;
  }
  variables_["ASSAY_TORCH_PYTHON"] = "/nonexistent/python";
  EXPECT_THAT(backend()->readiness(arm()).reason, HasSubstr("/nonexistent/python"));
}

TEST_F(TorchBackendTest, AnArchitectureTravelsInTheOptions) {
  StudyModel model;
  model.name = model.arch = "tiny";
  model.dtype = "fp16";
  const auto torch = backend();
  const Json options = torch->load_options(arm({{"device", "cpu"}, {"python", "p"}}), model, 7);
  EXPECT_EQ(
      options.dump(),
      R"({"device":"cpu","config":{"model_type":"gpt2","n_positions":64,"dtype":"fp16"},"seed":7})");
  const auto facts = torch->inspect(model, {});
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->max_positions, 64);
  EXPECT_EQ(facts->weight_bytes, 1000u);
  const std::vector<std::string> texts = {"hello"};
  EXPECT_THAT(torch->inspect(model, texts).error().message, HasSubstr("no tokenizer"));
  model.arch = "other";
  EXPECT_FALSE(torch->inspect(model, {}));
}

TEST_F(TorchBackendTest, ACheckpointIsInspectedWithoutLoadingIt) {
  StudyModel model;
  model.name = "m";
  model.path = scratch_ / "m";
  const auto torch = backend();
  EXPECT_FALSE(torch->inspect(model, {}));
  write("m/config.json", R"({"max_position_embeddings": 99, "num_hidden_layers": 7})");
  write("m/model.safetensors", "12345678");
  const auto facts = torch->inspect(model, {});
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_EQ(facts->max_positions, 99);
  EXPECT_EQ(facts->layers, 7);
  EXPECT_EQ(facts->weight_bytes, 8u);
  EXPECT_EQ(torch->load_options(arm(), model, 7).dump(), "{}");
}

TEST_F(TorchBackendTest, ACapturedStepNeedsAStaticCache) {
  StudyArm captured = arm();
  captured.mode = "manual-cudagraph";
  EXPECT_TRUE(backend()->check_arm(captured));
  captured.cache = "dynamic";
  EXPECT_THAT(backend()->check_arm(captured).error().message, HasSubstr("expected cache static"));
}

}  // namespace
}  // namespace assay
