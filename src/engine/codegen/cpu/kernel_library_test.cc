#include "engine/codegen/cpu/kernel_library.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/files/files.h"
#include "engine/codegen/cpu/scratch_folder.h"

namespace assay::engine {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

// A kernel that writes `value`, and calls the C library as printed kernels may.
std::string source_of(int value) {
  return fmt::format(
      "struct Args {{ void* const* buffers; long dims[4]; float* scratch; }};\n"
      "extern \"C\" void assay_run(const Args* args, long, long) {{\n"
      "  float* out = (float*)args->buffers[0];\n"
      "  for (long i = 0; i < args->dims[0]; ++i) out[i] = __builtin_expf(0.0f) * {}.0f;\n"
      "}}\n",
      value);
}

float result_of(const KernelFunctions& functions) {
  float out[3] = {};
  void* buffers[] = {out};
  KernelArgs args{};
  args.buffers = buffers;
  args.dims[0] = 3;
  functions.run(&args, 0, 1);
  EXPECT_EQ(out[0], out[2]);
  return out[2];
}

class KernelLibraryTest : public testing::Test {
 protected:
  KernelLibrary library(CpuCompiler compiler) { return {std::move(compiler), cache(), 2}; }
  KernelLibrary library() { return library(system_compiler()); }
  KernelCache cache() const { return *KernelCache::open(scratch_.path() / "kernels"); }
  static CpuCompiler system_compiler() {
    auto compiler = CpuCompiler::find();
    EXPECT_TRUE(compiler) << compiler.error().message;
    return *std::move(compiler);
  }
  // The system's compiler with a shell script in its place.
  CpuCompiler scripted(const std::string& script) const {
    CpuCompiler compiler = system_compiler();
    compiler.command = scratch_.path() / "c++";
    EXPECT_TRUE(write_file(compiler.command, "#!/bin/sh\n" + script));
    EXPECT_EQ(::chmod(compiler.command.c_str(), 0755), 0);
    return compiler;
  }
  std::string error_with(const CpuCompiler& compiler) {
    KernelLibrary broken = library(compiler);
    const auto loaded = broken.load_sources(std::vector{source_of(1)});
    if (loaded) return "no error";
    EXPECT_EQ(loaded.error().kind, ErrorKind::kEnvironment);
    EXPECT_EQ(broken.stats().compiled, 0);
    EXPECT_TRUE(cache().entries()->empty()) << "what doesn't load must not be kept";
    return loaded.error().message;
  }

  ScratchFolder scratch_;
};

TEST_F(KernelLibraryTest, CompilesOnceThenLoadsFromTheCache) {
  const std::vector sources = {source_of(1), source_of(2), source_of(1), source_of(3)};
  {
    KernelLibrary cold = library();
    const auto functions = cold.load_sources(sources);
    ASSERT_TRUE(functions) << functions.error().message;
    EXPECT_EQ(result_of((*functions)[0]), 1);
    EXPECT_EQ(result_of((*functions)[1]), 2);
    EXPECT_EQ(result_of((*functions)[2]), 1);
    EXPECT_EQ(result_of((*functions)[3]), 3);
    EXPECT_EQ((*functions)[0].epilogue, nullptr);
    EXPECT_EQ(cold.stats().compiled, 3);
    EXPECT_EQ(cold.stats().reused, 1);
    EXPECT_EQ(cold.stats().loaded, 0);
    EXPECT_EQ(cold.stats().unsaved, 0) << cold.stats().unsaved_reason;
    EXPECT_GT(cold.stats().compile_seconds, 0);
    ASSERT_TRUE(cold.load_sources(sources));
    EXPECT_EQ(cold.stats().compiled, 3);
    EXPECT_EQ(cold.stats().reused, 5);
  }
  KernelLibrary warm = library();
  const auto functions = warm.load_sources(sources);
  ASSERT_TRUE(functions) << functions.error().message;
  EXPECT_EQ(result_of((*functions)[3]), 3);
  EXPECT_EQ(warm.stats().compiled, 0);
  EXPECT_EQ(warm.stats().loaded, 3);
  EXPECT_EQ(warm.stats().compile_seconds, 0);
}

TEST_F(KernelLibraryTest, DamagedEntryIsCompiledAnew) {
  ASSERT_TRUE(library().load_sources(std::vector{source_of(1)}));
  const fs::path entry = fs::directory_iterator(cache().folder())->path();
  fs::resize_file(entry, fs::file_size(entry) / 2);
  KernelLibrary second = library();
  const auto functions = second.load_sources(std::vector{source_of(1)});
  ASSERT_TRUE(functions) << functions.error().message;
  EXPECT_EQ(result_of((*functions)[0]), 1);
  EXPECT_EQ(second.stats().compiled, 1);
}

// Another user's code under a key of ours, whole and with the right hash.
TEST_F(KernelLibraryTest, AnEntryThatOthersMayWriteIsCompiledAnew) {
  ASSERT_TRUE(library().load_sources(std::vector{source_of(1)}));
  const fs::path entry = fs::directory_iterator(cache().folder())->path();
  fs::permissions(entry, fs::perms::others_write, fs::perm_options::add);
  KernelLibrary second = library();
  const auto functions = second.load_sources(std::vector{source_of(1)});
  ASSERT_TRUE(functions) << functions.error().message;
  EXPECT_EQ(result_of((*functions)[0]), 1);
  EXPECT_EQ(second.stats().compiled, 1);
  EXPECT_EQ(second.stats().refused, 1);
  EXPECT_THAT(
      second.stats().refused_reason,
      HasSubstr(entry.string() + " is not used: expected a file that others can't write to"));
  KernelLibrary third = library();
  ASSERT_TRUE(third.load_sources(std::vector{source_of(1)}));
  EXPECT_EQ(third.stats().loaded, 1) << "the new one took its place";
  EXPECT_EQ(third.stats().refused, 0);
}

TEST_F(KernelLibraryTest, CompilerFlagsAndProcessorArePartOfTheKey) {
  ASSERT_TRUE(library().load_sources(std::vector{source_of(1)}));
  CpuCompiler other = system_compiler();
  other.flags.push_back("-fno-ident");
  KernelLibrary flags = library(other);
  ASSERT_TRUE(flags.load_sources(std::vector{source_of(1)}));
  EXPECT_EQ(flags.stats().compiled, 1);
  other = system_compiler();
  other.target += " avx1024";
  KernelLibrary processor = library(other);
  ASSERT_TRUE(processor.load_sources(std::vector{source_of(1)}));
  EXPECT_EQ(processor.stats().compiled, 1);
}

TEST_F(KernelLibraryTest, UnwritableCacheIsNoErrorAndIsSaid) {
  KernelLibrary kernels = library();
  fs::remove_all(scratch_.path() / "kernels");
  const auto functions = kernels.load_sources(std::vector{source_of(4), source_of(5)});
  ASSERT_TRUE(functions) << functions.error().message;
  EXPECT_EQ(result_of((*functions)[1]), 5);
  EXPECT_EQ(kernels.stats().compiled, 2);
  EXPECT_EQ(kernels.stats().unsaved, 2);
  EXPECT_THAT(kernels.stats().unsaved_reason, HasSubstr("expected to write a kernel"));
}

TEST_F(KernelLibraryTest, WorksWithoutACache) {
  KernelLibrary kernels(system_compiler(), std::nullopt, 1);
  const auto functions = kernels.load_sources(std::vector{source_of(6)});
  ASSERT_TRUE(functions) << functions.error().message;
  EXPECT_EQ(result_of((*functions)[0]), 6);
  EXPECT_EQ(kernels.stats().unsaved, 0);
}

TEST_F(KernelLibraryTest, OneBadSourceDoesNotCostTheOthers) {
  KernelLibrary kernels = library();
  const auto loaded =
      kernels.load_sources(std::vector{source_of(1), std::string("nonsense here;"), source_of(2)});
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().kind, ErrorKind::kEnvironment);
  EXPECT_THAT(loaded.error().message, AllOf(HasSubstr("exit 1"), HasSubstr("nonsense")));
  ASSERT_TRUE(kernels.load_sources(std::vector{source_of(1), source_of(2)}));
  EXPECT_EQ(kernels.stats().compiled, 2);
}

TEST_F(KernelLibraryTest, FailingCompilerIsAnErrorWithItsWholeStderr) {
  const std::string message = error_with(
      scripted("i=0; while [ $i -lt 300 ]; do echo line $i >&2; i=$((i+1)); done; exit 4"));
  EXPECT_THAT(message,
              AllOf(HasSubstr("found exit 4"), HasSubstr("line 0\n"), HasSubstr("line 299")));
}

TEST_F(KernelLibraryTest, CrashingCompilerIsAnError) {
  EXPECT_THAT(error_with(scripted("kill -SEGV $$")), HasSubstr("found SIGSEGV"));
}

TEST_F(KernelLibraryTest, HangingCompilerIsKilled) {
  CpuCompiler hanging = scripted("echo thinking >&2; while :; do sleep 100; done");
  hanging.timeout_s = 0.2;
  EXPECT_THAT(error_with(hanging),
              AllOf(HasSubstr("still running after 0.2 s"), HasSubstr("thinking")));
}

// One that hung would hang on each of the others: they are not tried.
TEST_F(KernelLibraryTest, CompilerThatHungIsNotStartedAgain) {
  const fs::path starts = scratch_.path() / "starts";
  CpuCompiler hanging =
      scripted(fmt::format("echo x >> {}; while :; do sleep 100; done", starts.string()));
  hanging.timeout_s = 0.2;
  KernelLibrary kernels(hanging, std::nullopt, 1);
  const auto first = kernels.load_sources(std::vector{source_of(1), source_of(2), source_of(3)});
  const auto second = kernels.load_sources(std::vector{source_of(4)});
  ASSERT_TRUE(!first && !second);
  EXPECT_THAT(first.error().message, HasSubstr("still running after 0.2 s"));
  EXPECT_EQ(second.error().message, first.error().message);
  EXPECT_EQ(*read_file(starts), "x\n");
}

TEST_F(KernelLibraryTest, MissingCompilerIsAnError) {
  CpuCompiler missing = system_compiler();
  missing.command = scratch_.path() / "nothing";
  EXPECT_THAT(error_with(missing), HasSubstr("nothing"));
}

// $1 is -x; the file is the argument behind -o.
constexpr const char* kOutOf = "while [ \"$1\" != -o ]; do shift; done\n";

TEST_F(KernelLibraryTest, NothingOrGarbageFromTheCompilerIsAnError) {
  EXPECT_THAT(error_with(scripted("exit 0")), HasSubstr("no file"));
  EXPECT_THAT(error_with(scripted(std::string(kOutOf) + ": > $2")), HasSubstr("0 bytes"));
  EXPECT_THAT(error_with(scripted(std::string(kOutOf) + "echo garbage > $2")),
              HasSubstr("expected a shared object, found 8 bytes of something else"));
  EXPECT_THAT(error_with(scripted(std::string(kOutOf) + "cp /bin/sh $2")), HasSubstr("expected"));
}

TEST_F(KernelLibraryTest, CutObjectsAreRefusedBeforeTheLoaderCrashes) {
  CpuCompiler cutting = scripted("c++ \"$@\" || exit\n" + std::string(kOutOf) +
                                 "head -c $CUT $2 > $2.cut; mv $2.cut $2");
  for (const char* bytes : {"10", "64", "1000", "5000", "8300"}) {
    ::setenv("CUT", bytes, 1);
    EXPECT_THAT(error_with(cutting), HasSubstr("expected a")) << bytes;
  }
  ::unsetenv("CUT");
}

TEST_F(KernelLibraryTest, ObjectWithoutTheFunctionIsRefused) {
  KernelLibrary kernels = library();
  const auto loaded = kernels.load_sources(std::vector{std::string("int other;")});
  ASSERT_FALSE(loaded);
  EXPECT_THAT(loaded.error().message, HasSubstr("assay_run"));
}

TEST_F(KernelLibraryTest, UnknownFunctionsAreAnErrorOfTheLoader) {
  KernelLibrary kernels = library();
  const auto loaded = kernels.load_sources(
      std::vector{std::string("extern \"C\" void no_such_function(); extern \"C\" void assay_run() "
                              "{ no_such_function(); }")});
  ASSERT_FALSE(loaded);
  EXPECT_THAT(loaded.error().message, HasSubstr("no_such_function"));
}

TEST_F(KernelLibraryTest, NothingIsLeftInTheTemporaryFolder) {
  const fs::path temporary = scratch_.path() / "tmp";
  fs::create_directory(temporary);
  const fs::path old = temporary / "assay-build-killed";
  fs::create_directory(old);
  const timespec times[2] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, old.c_str(), times, 0), 0);
  const char* before = std::getenv("TMPDIR");
  const std::string saved = before ? before : "";
  ::setenv("TMPDIR", temporary.c_str(), 1);
  EXPECT_TRUE(library().load_sources(std::vector{source_of(1)}));
  EXPECT_FALSE(library().load_sources(std::vector{std::string("nonsense")}));
  before ? ::setenv("TMPDIR", saved.c_str(), 1) : ::unsetenv("TMPDIR");
  EXPECT_TRUE(fs::is_empty(temporary));
}

}  // namespace
}  // namespace assay::engine
