#include "engine/codegen/cuda/cuda_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "engine/codegen/cpu/scratch_folder.h"
#include "engine/codegen/cuda/nvrtc.h"
#include "tests/support/places.h"

namespace assay::engine {
namespace {

using testing::HasSubstr;

// Variables as they were, when it goes.
class Environment {
 public:
  void set(const std::string& name, const std::string& value) {
    if (const char* before = std::getenv(name.c_str()); !saved_.contains(name)) {
      saved_[name] = before != nullptr ? std::optional<std::string>(before) : std::nullopt;
    }
    ::setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() {
    for (const auto& [name, value] : saved_) {
      value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
    }
  }

 private:
  std::map<std::string, std::optional<std::string>> saved_;
};

// A shared object that is surely there, under the name of one of CUDA's that surely isn't.
constexpr const char* kStem = "assay-nowhere";

TEST(CudaLibrary, IsFoundInTheFolderOfMakeCudaLibs) {
  const ScratchFolder scratch;
  const auto folder = scratch.path() / "assay" / "cuda-libs";
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(built("libfake_cuda.so"), folder / "libassay-nowhere.so.13");
  Environment environment;
  environment.set("XDG_CACHE_HOME", scratch.path());
  EXPECT_EQ(cuda_libraries_folder(), folder);
  const auto found = open_cuda_library(kStem, "ASSAY_NOWHERE");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->path, folder / "libassay-nowhere.so.13");
  EXPECT_NE(found->handle, nullptr);
}

TEST(CudaLibrary, IsWhatTheVariableNamesAlone) {
  Environment environment;
  environment.set("ASSAY_NOWHERE", built("libfake_cuda.so"));
  const auto found = open_cuda_library(kStem, "ASSAY_NOWHERE");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->path, built("libfake_cuda.so"));
  environment.set("ASSAY_NOWHERE", "/nowhere/libassay.so");
  const auto missing = open_cuda_library("c", "ASSAY_NOWHERE");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, "c: expected one of /nowhere/libassay.so, found none");
}

TEST(CudaLibrary, MissingEverywhereNamesWhereItWasLookedFor) {
  const ScratchFolder scratch;
  Environment environment;
  environment.set("XDG_CACHE_HOME", scratch.path());
  const auto missing = open_cuda_library(kStem, "ASSAY_NOWHERE");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::kEnvironment);
  EXPECT_THAT(missing.error().message,
              HasSubstr("expected one of libassay-nowhere.so.13, libassay-nowhere.so.12"));
  EXPECT_THAT(missing.error().message, HasSubstr(scratch.path() / "assay" / "cuda-libs"));
}

}  // namespace
}  // namespace assay::engine
