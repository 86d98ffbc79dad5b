// The identity tuple, the build's part of it, libraries, and the long form of this very machine.
#include "identity/identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/files/hash.h"
#include "identity/fake_machine.h"
#include "identity/libraries.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

BuildInfo release_build() {
  BuildInfo build;
  build.version = "0.1.0";
  build.sha = "0123456789abcdef0123456789abcdef01234567";
  build.dirty = false;
  build.compiler = "gcc 12.2.0";
  build.build_type = "Release";
  build.optimized = true;
  return build;
}

TEST(Identity, NamesEveryAxis) {
  Host host;
  host.cpu_model = "Intel(R) Xeon(R)";
  host.cpu_family = 6;
  host.cpu_model_number = 85;
  host.cpu_stepping = 7;
  host.cpus_allowed = {0, 1};
  const Identity identity = make_identity(host, release_build());
  const std::vector<ArmIdentity> arms = {{"a", "static", "eager"}};
  EXPECT_EQ(to_json_line(identity_to_json(identity, arms)),
            R"({"device":"Intel(R) Xeon(R) (family 6 model 85 stepping 7) x 2",)"
            R"("code_generator":"gcc 12.2.0","framework_build":"assay 0.1.0 0123456789ab Release",)"
            R"("code_sha":"0123456789abcdef0123456789abcdef01234567",)"
            R"("arms":{"a":{"cache":"static","compile_mode":"eager"}}})");
}

TEST(Identity, DirtyCodeIsAnotherIdentityAndUnknownCodeNone) {
  BuildInfo build = release_build();
  build.dirty = true;
  EXPECT_TRUE(make_identity({}, build).code_sha->ends_with("-dirty"));
  build.sha.reset();
  const Identity identity = make_identity({}, build);
  EXPECT_FALSE(identity.code_sha);
  EXPECT_FALSE(identity_to_json(identity, {}).contains("code_sha"));
}

TEST(BuildWarnings, DebugAndSanitisedBuildsAreNamed) {
  BuildInfo build = release_build();
  EXPECT_THAT(build_warnings(build), IsEmpty());
  build.optimized = false;
  build.build_type = "Debug";
  EXPECT_THAT(build_warnings(build), ElementsAre(HasSubstr("debug build (Debug)")));
  build = release_build();
  build.sanitizers = "address";
  EXPECT_THAT(build_warnings(build), ElementsAre(HasSubstr("sanitised build (address)")));
}

TEST(BuildInfo, IsThatOfThisBuild) {
  const BuildInfo build = build_info();
  EXPECT_FALSE(build.version.empty());
  EXPECT_THAT(build.compiler, testing::ContainsRegex("^(gcc|clang) [0-9]+\\."));
  EXPECT_FALSE(build.build_type.empty());
  EXPECT_FALSE(build.dirty && !build.sha);
}

TEST(Libraries, VersionsComeFromFileNames) {
  EXPECT_EQ(library_version("libdnnl.so.2.7"), "2.7");
  EXPECT_EQ(library_version("libc.so.6"), "6");
  EXPECT_EQ(library_version("libc-2.31.so"), "2.31");
  EXPECT_EQ(library_version("ld-linux-x86-64.so.2"), "2");
  EXPECT_FALSE(library_version("libstdc++.so"));
  EXPECT_FALSE(library_version("libx.so.extra"));
  EXPECT_FALSE(library_version("program"));
}

TEST(Libraries, LoadedOnesAreHashed) {
  const auto libraries = loaded_libraries();
  const auto libc = std::ranges::find_if(
      libraries, [](const LoadedLibrary& library) { return library.name.starts_with("libc.so"); });
  ASSERT_NE(libc, libraries.end());
  EXPECT_EQ(libc->sha256, sha256_file_hex(libc->path).value_or("unreadable"));
}

TEST(Environment, LongFormOfThisMachine) {
  const Json json = collect_environment(MachineFiles(), 3);
  EXPECT_EQ(json["threads"], 3);
  EXPECT_FALSE(json["host"]["cpu"]["affinity"].empty());
  EXPECT_EQ(json["program_sha256"].get<std::string>().size(), 64u);
  EXPECT_FALSE(json["libraries"].empty());
  EXPECT_TRUE(json["warnings"].is_array());
}

TEST(Environment, WarningsOfTheMachineReachTheLongForm) {
  FakeMachine machine;
  machine.put("/proc/self/status", "Cpus_allowed_list:\t0\n").put("/proc/loadavg", "7.5 1 1\n");
  const Json json = collect_environment(machine.files(), 2);
  const std::string warnings = to_json_line(json["warnings"]);
  EXPECT_THAT(warnings, HasSubstr("load average was 7.50 on 1"));
  EXPECT_THAT(warnings, HasSubstr("2 threads on 1 usable"));
}

TEST(Environment, OnlyVariablesThatMatterAreKept) {
  const std::vector<std::string> environ = {"OMP_NUM_THREADS=2", "HOME=/h",        "DNNL_VERBOSE=1",
                                            "SECRET_OMP_=x",     "LD_PRELOAD=a=b", "ODD"};
  EXPECT_EQ(to_json_line(relevant_variables(environ)),
            R"({"OMP_NUM_THREADS":"2","DNNL_VERBOSE":"1","LD_PRELOAD":"a=b"})");
}

}  // namespace
}  // namespace assay
