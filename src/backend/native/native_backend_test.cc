// The readiness of compiled arms, with compilers of the test's own.
#include "backend/native/native_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "backend/native/native_options.h"
#include "backend/native/native_worker.h"
#include "base/files/files.h"
#include "base/files/hash.h"
#include "engine/model/make.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class NativeBackendTest : public testing::Test {
 protected:
  NativeBackendTest() { fs::create_directories(folder_); }
  ~NativeBackendTest() override {
    ::unsetenv("ASSAY_CXX");
    fs::remove_all(folder_);
  }

  // Names a shell script as the compiler; it writes a line to calls() whenever it is started.
  void compiler_is(const std::string& script) {
    const fs::path path = folder_ / "c++";
    ASSERT_TRUE(write_file(path, fmt::format("#!/bin/sh\necho \"$1\" >> {}\n{}\n",
                                             (folder_ / "calls").string(), script)));
    ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
    ::setenv("ASSAY_CXX", path.c_str(), 1);
  }
  std::string calls() const { return read_file(folder_ / "calls").value_or(""); }

  static StudyArm compiled_arm() {
    StudyArm arm;
    arm.name = "compiled";
    arm.backend = "native";
    arm.mode = "compiled";
    arm.cache = "static";
    return arm;
  }

  static std::optional<std::string> first_line_of_system_compiler() {
    const auto found = engine::CpuCompiler::find();
    if (!found) return std::nullopt;
    return found->version;
  }

  const fs::path folder_ =
      fs::path(testing::TempDir()) / fmt::format("assay-native-backend-{}", ::getpid());
  std::unique_ptr<Backend> backend_ = make_native_backend("assay");
};

// The harness asks before every unit.
TEST_F(NativeBackendTest, CompilerIsAskedAndTriedOnceARun) {
  compiler_is("exec c++ \"$@\"");
  for (int unit = 0; unit < 5; ++unit) {
    const ArmReadiness readiness = backend_->readiness(compiled_arm());
    EXPECT_EQ(readiness.verdict, ArmReadiness::Verdict::kReady) << readiness.reason;
  }
  EXPECT_EQ(calls(), "--version\n-x\n");
  const Json options = backend_->load_options(compiled_arm(), {}, 0);
  EXPECT_FALSE(options.contains("no_compiler"));
  EXPECT_EQ(options.at("compiler").at("version"), *first_line_of_system_compiler());
  // An older program wouldn't know the option.
  StudyArm other = compiled_arm();
  other.options["program"] = "/bin/true";
  EXPECT_FALSE(backend_->load_options(other, {}, 0).contains("compiler"));
}

// A worker takes the readiness's word for the compiler, and starts it for kernels alone. It
// compiles the readiness's trial and hangs on those: the worker says so, and no later worker starts
// it.
TEST_F(NativeBackendTest, CompilerThatHangsOnKernelsIsGivenUpForTheRun) {
  compiler_is(
      "[ $1 = --version ] && exec c++ --version\n"
      "for word; do case $word in *kernel.cc) grep -q assay_trial $word && exec c++ \"$@\";; esac; "
      "done\nwhile :; do sleep 100; done");
  ASSERT_EQ(backend_->readiness(compiled_arm()).verdict, ArmReadiness::Verdict::kReady);
  const auto model = folder_ / "model";
  ASSERT_TRUE(engine::make_checkpoint("tiny-gpt2", model, {}));
  const auto prepared = [&] {
    LoadRequest load;
    load.model = model.string();
    load.mode = "compiled";
    load.cache = "static";
    load.threads = 1;
    load.options = backend_->load_options(compiled_arm(), {}, 0);
    load.options["kernel_cache"] = false;
    if (load.options.contains("compiler")) load.options["compiler"]["timeout_s"] = 0.2;
    const auto worker = make_native_worker("test");
    EXPECT_TRUE(worker->load(load));
    const auto reply = worker->prepare({{Phase::kPrefill, 1, 0, 8}, {8}, {}});
    EXPECT_TRUE(reply);
    const auto evidence = worker->evidence({Phase::kPrefill});
    EXPECT_TRUE(evidence);
    EXPECT_FALSE(evidence->evidence["requested"]["options"].contains("compiler"));
    EXPECT_EQ(evidence->evidence.contains("compiler_gave_up"),
              reply->evidence.contains("compiler_gave_up"));
    return reply->evidence;
  };
  const Json first = prepared();
  ASSERT_TRUE(first.contains("compiler_gave_up")) << first.dump();
  EXPECT_EQ(calls(), "--version\n-x\n-x\n") << "asked once, tried once, hung once";
  EXPECT_THAT(backend_->hear(compiled_arm(), first),
              testing::Optional(HasSubstr("still running after 0.2 s")));
  EXPECT_EQ(backend_->hear(compiled_arm(), first), std::nullopt) << "said once";
  const Json second = prepared();
  EXPECT_FALSE(second.contains("compiler_gave_up")) << "it was never started";
  EXPECT_EQ(calls(), "--version\n-x\n-x\n");
  EXPECT_EQ(backend_->readiness(compiled_arm()).verdict, ArmReadiness::Verdict::kFallback);
}

// A compiler that fails costs the run one trial; its arms' workers are told.
TEST_F(NativeBackendTest, CompilerThatFailsIsAFallbackKnownToTheWorkers) {
  compiler_is("[ \"$1\" = --version ] && echo fake 1 && exit\necho broken >&2\nexit 3");
  const ArmReadiness readiness = backend_->readiness(compiled_arm());
  EXPECT_EQ(readiness.verdict, ArmReadiness::Verdict::kFallback);
  EXPECT_EQ(readiness.fallback, "eager");
  EXPECT_THAT(readiness.reason, HasSubstr("found exit 3: broken"));
  backend_->readiness(compiled_arm());
  EXPECT_EQ(calls(), "--version\n-x\n");

  LoadRequest request;
  request.mode = "compiled";
  request.cache = "static";
  request.options = backend_->load_options(compiled_arm(), {}, 0);
  const auto options = native_session_options(request);
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_THAT(options->compile.no_compiler, HasSubstr("exit 3"));
  StudyArm eager = compiled_arm();
  eager.mode = "eager";
  EXPECT_TRUE(backend_->load_options(eager, {}, 0).empty());
}

// The harness asks before every unit: a program is read once.
TEST_F(NativeBackendTest, AnArmsOwnProgramServesItAndIsPartOfItsIdentity) {
  const fs::path program = folder_ / "other-assay";
  ASSERT_TRUE(write_file(program, "#!/bin/sh\n"));
  StudyArm arm = compiled_arm();
  arm.mode = "eager";
  arm.options["program"] = program.string();
  EXPECT_TRUE(backend_->check_arm(arm));
  const ArmReadiness unfit = backend_->readiness(arm);
  EXPECT_EQ(unfit.verdict, ArmReadiness::Verdict::kImpossible);
  EXPECT_EQ(unfit.error_class, "no_program");
  EXPECT_THAT(unfit.reason, HasSubstr("expected a program that may be run"));

  backend_ = make_native_backend("assay");
  ASSERT_EQ(::chmod(program.c_str(), 0755), 0);
  const ArmReadiness readiness = backend_->readiness(arm);
  EXPECT_EQ(readiness.verdict, ArmReadiness::Verdict::kReady) << readiness.reason;
  const std::string hash = *sha256_file_hex(program);
  EXPECT_EQ(readiness.framework_build, "program " + hash.substr(0, 12));
  EXPECT_EQ(readiness.program, (Json{{"path", program.string()}, {"sha256", hash}}));
  EXPECT_EQ(backend_->worker_command(arm).argv.front(), program.string());
  EXPECT_FALSE(backend_->load_options(arm, {}, 0).contains("program"));
  fs::remove(program);
  EXPECT_EQ(backend_->readiness(arm).verdict, ArmReadiness::Verdict::kReady);

  arm.options["program"] = (folder_ / "missing").string();
  EXPECT_THAT(backend_->readiness(arm).reason, HasSubstr("missing"));
  arm.options.erase("program");
  EXPECT_EQ(backend_->worker_command(arm).argv.front(), "assay");
  EXPECT_TRUE(backend_->readiness(arm).program.is_null());
}

Status options_of(const std::string& mode, Json options, const std::string& dynamic = "") {
  LoadRequest request;
  request.mode = mode;
  request.cache = "static";
  request.dynamic = dynamic;
  request.options = std::move(options);
  const auto read = native_session_options(request);
  return read ? Status() : std::unexpected(read.error());
}

TEST(NativeOptions, ValuesOutOfRangeAreRefused) {
  EXPECT_TRUE(options_of("compiled", {{"recompile_limit", 1}, {"bucket", 0}}));
  for (const Json& bad : {Json(0), Json(-4), Json(1'000'001), Json(UINT64_MAX), Json(1.5)}) {
    EXPECT_FALSE(options_of("compiled", {{"recompile_limit", bad}})) << bad.dump();
  }
  const Json compiler = {
      {"command", "c++"}, {"path", "c++"}, {"version", "1"}, {"sha256", "0"}, {"timeout_s", 60}};
  EXPECT_TRUE(options_of("compiled", {{"compiler", compiler}}));
  for (const auto& [name, value] : compiler.items()) {
    Json without = compiler;
    without.erase(name);
    EXPECT_FALSE(options_of("compiled", {{"compiler", without}})) << name;
  }
  EXPECT_FALSE(options_of("compiled", {{"compiler", "c++"}}));
  for (const Json& bad : {Json(-1), Json(65'537), Json(INT64_MAX), Json("8")}) {
    EXPECT_FALSE(options_of("compiled", {{"bucket", bad}})) << bad.dump();
  }
}

TEST_F(NativeBackendTest, QualityIsOfTheArmsWeightsAndProducts) {
  StudyArm arm = compiled_arm();
  const StudyModel model{.name = "m", .path = "m", .dtype = "bf16"};
  EXPECT_FALSE(backend_->quality_command(arm, model, {}, 42)) << "its weights are the model's own";
  arm.options = {{"device", "cuda"}, {"quantization", "m-fp8"}};
  const auto argv = [&] { return backend_->quality_command(arm, model, {}, 42)->argv; };
  EXPECT_THAT(argv(), testing::Not(testing::Contains("--dtype")));
  arm.options["dtype"] = "fp8";
  const std::vector<std::string> asked = argv();
  const auto type = std::ranges::find(asked, "--dtype");
  ASSERT_LT(type + 1, asked.end());
  EXPECT_EQ(type[1], "fp8");
}

TEST(NativeOptions, EagerTakesNone) {
  EXPECT_TRUE(options_of("eager", Json::object()));
  EXPECT_FALSE(options_of("eager", {{"bucket", 7}}));
  EXPECT_TRUE(options_of("eager", {{"logits", "all"}}));
  EXPECT_TRUE(options_of("compiled", {{"device", "cuda"},
                                      {"dtype", "fp8"},
                                      {"fp8_head", true},
                                      {"fp8_fast_sums", true},
                                      {"fp8_always", true},
                                      {"logits", "all"}}));
  const auto error_of = [](const Json& options) {
    const auto read = options_of("compiled", options);
    return read ? std::string() : read.error().message;
  };
  EXPECT_THAT(error_of({{"dtype", "fp8"}}),
              HasSubstr("expected device cuda beside dtype fp8, found cpu"));
  EXPECT_THAT(error_of({{"device", "cuda"}, {"dtype", "bf16"}}),
              HasSubstr("options.dtype: expected fp8, found \"bf16\""));
  EXPECT_THAT(error_of({{"device", "cuda"}, {"fp8_head", true}}),
              HasSubstr("options.fp8_head: expected dtype fp8 beside it, found none"));
  EXPECT_THAT(error_of({{"device", "cuda"}, {"dtype", "fp8"}, {"fp8_fast_sums", 1}}),
              HasSubstr("options.fp8_fast_sums: expected true or false, found 1"));
  EXPECT_THAT(error_of({{"device", "cuda"}, {"fp8_always", true}}),
              HasSubstr("options.fp8_always: expected dtype fp8 beside it, found none"));
  EXPECT_THAT(error_of({{"logits", "some"}}), HasSubstr("expected last or all, found \"some\""));
  EXPECT_FALSE(options_of("eager", Json::object(), "bogus"));
}

}  // namespace
}  // namespace assay
