#include "engine/codegen/cpu/compiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <optional>

#include "base/files/files.h"
#include "engine/codegen/cpu/scratch_folder.h"

namespace assay::engine {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

// An environment variable for the length of a test.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

void write_script(const fs::path& path, const std::string& script) {
  ASSERT_TRUE(write_file(path, "#!/bin/sh\n" + script));
  ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
}

TEST(CpuCompilerTest, FindsTheSystemsCompiler) {
  const Variable none("ASSAY_CXX", "");
  const auto compiler = CpuCompiler::find();
  ASSERT_TRUE(compiler) << compiler.error().message;
  EXPECT_TRUE(compiler->command.is_absolute());
  EXPECT_FALSE(fs::is_symlink(compiler->path));
  EXPECT_EQ(compiler->sha256.size(), 64u);
  EXPECT_FALSE(compiler->version.empty());
  EXPECT_FALSE(compiler->target.empty());
  EXPECT_THAT(compiler->identity(), AllOf(HasSubstr(compiler->version), HasSubstr(compiler->sha256),
                                          HasSubstr(compiler->target)));
  EXPECT_EQ(compiler->identity(), CpuCompiler::find()->identity());
}

TEST(CpuCompilerTest, IsRunByTheNameItWasFoundUnder) {
  const ScratchFolder scratch;
  write_script(scratch.path() / "driver", "echo \"called $(basename $0)\"; echo more");
  fs::create_symlink(scratch.path() / "driver", scratch.path() / "mycc");
  const Variable asked("ASSAY_CXX", scratch.path() / "mycc");
  const auto compiler = CpuCompiler::find();
  ASSERT_TRUE(compiler) << compiler.error().message;
  EXPECT_EQ(compiler->version, "called mycc");
  EXPECT_EQ(compiler->path.filename(), "driver");
}

TEST(CpuCompilerTest, MissingOnesAreNamed) {
  const ScratchFolder scratch;
  {
    const Variable asked("ASSAY_CXX", "no-such-compiler");
    const auto compiler = CpuCompiler::find();
    ASSERT_FALSE(compiler);
    EXPECT_EQ(compiler.error().kind, ErrorKind::kEnvironment);
    EXPECT_THAT(compiler.error().message,
                AllOf(HasSubstr("no-such-compiler"), HasSubstr("ASSAY_CXX")));
  }
  const Variable none("ASSAY_CXX", "");
  const Variable path("PATH", scratch.path());
  const auto compiler = CpuCompiler::find();
  ASSERT_FALSE(compiler);
  EXPECT_THAT(compiler.error().message, AllOf(HasSubstr("\"c++\""), HasSubstr("PATH")));
}

TEST(CpuCompilerTest, OneThatDoesNotAnswerIsNone) {
  const ScratchFolder scratch;
  write_script(scratch.path() / "c++", "echo broken installation >&2; exit 1");
  const Variable asked("ASSAY_CXX", scratch.path() / "c++");
  const auto compiler = CpuCompiler::find();
  ASSERT_FALSE(compiler);
  EXPECT_THAT(compiler.error().message,
              AllOf(HasSubstr("exit 1"), HasSubstr("broken installation")));
}

TEST(Cpuinfo, ModelAndFeaturesIdentifyTheProcessor) {
  const std::string first =
      "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n"
      "model name\t: Xeon @ 2.50GHz\nstepping\t: 7\nflags\t\t: fpu avx2 avx512f\n\n";
  const auto xeon = parse_cpuinfo(first + "processor\t: 1\nflags\t: other\n");
  ASSERT_TRUE(xeon);
  EXPECT_EQ(xeon->name, "Xeon @ 2.50GHz");
  EXPECT_THAT(xeon->identity, AllOf(HasSubstr("model 85;"), HasSubstr("avx512f")));
  EXPECT_EQ(xeon->identity.find("other"), std::string::npos);
  EXPECT_NE(xeon->identity,
            parse_cpuinfo(std::string(first).replace(first.find("512f"), 4, "10.2"))->identity);

  const auto arm = parse_cpuinfo(
      "processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd sve\nCPU implementer\t: 0x41\n"
      "CPU variant\t: 0x1\nCPU part\t: 0xd40\nCPU revision\t: 1\n");
  ASSERT_TRUE(arm);
  EXPECT_EQ(arm->name, "0x41 0xd40");
  EXPECT_THAT(arm->identity, AllOf(HasSubstr("0xd40"), HasSubstr("sve")));
}

TEST(Cpuinfo, WithoutAProcessorIsAnError) {
  EXPECT_FALSE(parse_cpuinfo(""));
  EXPECT_FALSE(parse_cpuinfo("processor : 0\nmodel name : X\n"));
}

}  // namespace
}  // namespace assay::engine
