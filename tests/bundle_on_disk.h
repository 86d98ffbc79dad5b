// Bundles made by code on a disk, as `assay run` writes them, and the program called on them.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>

#include "analysis/rows/synthetic_bundle.h"
#include "base/files/gzip.h"
#include "base/files/hash.h"
#include "base/process/subprocess.h"
#include "base/records/json.h"
#include "tests/support/places.h"

namespace assay {

class BundleCommandTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    root_ = std::filesystem::path(testing::TempDir()) /
            fmt::format("assay-{}-{}", test->test_suite_name(), test->name());
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  CommandOutput assay(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), built("assay").string());
    auto output = run_command(system_spawner(), std::move(arguments), 120);
    EXPECT_TRUE(output);
    return output ? *std::move(output) : CommandOutput{};
  }

  // Exit 2 and one line on stderr.
  std::string refused(std::vector<std::string> arguments) {
    const CommandOutput output = assay(std::move(arguments));
    EXPECT_EQ(output.end.exit_status, 2) << output.err;
    EXPECT_TRUE(output.out.empty());
    EXPECT_EQ(std::ranges::count(output.err, '\n'), 1) << output.err;
    return output.err;
  }

  // Runs the command with `-o json`, expects the exit status, and gives the JSON that it prints.
  Json printed_json(std::vector<std::string> arguments, int status) {
    arguments.insert(arguments.end(), {"-o", "json"});
    const CommandOutput output = assay(std::move(arguments));
    EXPECT_EQ(output.end.exit_status, status) << output.out << output.err;
    auto json = parse_json(output.out, "stdout");
    EXPECT_TRUE(json);
    return json ? *std::move(json) : Json();
  }

  // Writes as write_bundle() does, with the cells' evidence.
  std::filesystem::path write_with_evidence(const std::string& name, SyntheticBundle& made) {
    return write_bundle(name, made, true);
  }

  // `traces`: Chrome's JSON of cells that were profiled.
  std::filesystem::path write_bundle(const std::string& name, SyntheticBundle& made, bool sealed,
                                     const std::map<std::string, std::string>& traces = {}) {
    return write_bundle(name, made.build(), sealed, traces);
  }

  std::filesystem::path write_bundle(const std::string& name, const Bundle& bundle, bool sealed,
                                     const std::map<std::string, std::string>& traces = {}) {
    BundleHeader header;
    header.environment = bundle.environment;
    header.identity = bundle.manifest.at("identity");
    header.study = bundle.manifest.at("study");
    // No study stands behind such a bundle, as none stands behind an imported one.
    if (header.identity.is_object()) header.identity["imported_from"] = "code";
    const std::string plan = to_json_text({{"imported", "code"}, {"study", header.study}});
    header.study_yaml = plan;
    header.plan_hash = sha256_hex(plan);
    header.assay_version = "0";
    header.started_at_ns = bundle.manifest.value("started_at_ns", int64_t{0});
    const std::filesystem::path folder = root_ / name;
    auto writer = BundleWriter::create(disk(), folder, header);
    EXPECT_TRUE(writer) << writer.error().message;
    for (const Row& row : bundle.rows) EXPECT_TRUE(writer->append(row));
    for (const auto& [cell, parity] : bundle.parity) {
      EXPECT_TRUE(writer->write_cell_json(cell, "parity.json", parity));
    }
    for (const auto& [cell, evidence] : bundle.evidence) {
      if (traces.contains(cell)) continue;
      EXPECT_TRUE(writer->write_cell_json(cell, "evidence.json", evidence_to_json(evidence)));
    }
    for (const auto& [cell, trace] : traces) {
      const Json summary = {{"device", "cuda"}, {"kernels_launched", 3}, {"launch_calls", 3}};
      EXPECT_TRUE(writer->write_cell_json(
          cell, "evidence.json",
          {{"compiler_real", "not_applicable"}, {"profile", {{"summary", summary}}}}));
      const auto path = writer->offer_cell_file(cell, "trace.json.gz");
      EXPECT_TRUE(path && write_file(*path, gzip_stored(trace)));
      EXPECT_TRUE(writer->take_cell_file(cell, "trace.json.gz"));
    }
    EXPECT_TRUE(writer->commit_unit(0, nullptr));
    if (sealed) {
      EXPECT_TRUE(writer->seal({{"rows", bundle.rows.size()}}));
    }
    return folder;
  }

  std::filesystem::path root_;
};

}  // namespace assay
