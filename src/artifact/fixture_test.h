// What the bundle's tests share: rows, headers, a small run, and a scratch folder.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>

#include "artifact/bundle.h"
#include "base/hash.h"

namespace assay {

inline Row test_row(int64_t order_index, Phase phase) {
  Row row;
  row.cell_id = "c" + std::string(phase_name(phase));
  row.backend = "native";
  row.arm = "eager";
  row.model = "m";
  row.dtype = "fp32";
  row.cache = "dynamic";
  row.compile_mode = "eager";
  row.padding = "none";
  row.phase = phase;
  row.scenario = "single_micro";
  row.prompt_id = "0";
  row.prompt_tokens = 10;
  row.padded_tokens = 10;
  row.repetition = order_index;
  row.order_index = order_index;
  row.latency_ms = 1.0 + 0.1 * static_cast<double>(order_index);
  row.tokens = 1;
  row.started_at_ns = 1'700'000'000'000'000'000 + order_index;
  return row;
}

inline BundleHeader test_header() {
  BundleHeader header;
  header.study_yaml = "name: test\n";
  header.plan_hash = sha256_hex("plan");
  header.environment = {{"host", "here"}, {"cores", 2}};
  header.identity = {{"gpu", nullptr}, {"code", "abc"}};
  header.started_at_ns = 1'700'000'000'000'000'000;
  header.assay_version = "0.1.0";
  return header;
}

// The test run: unit u has two rows, of phase u modulo 3.
inline constexpr int64_t kTestUnits = 4;

inline Row unit_row(int64_t unit, int64_t i) {
  return test_row(unit * 2 + i, kPhases[unit % 3]);
}

inline Status write_unit(BundleWriter& writer, int64_t unit) {
  for (int64_t i = 0; i < 2; ++i) ASSAY_CHECK(writer.append(unit_row(unit, i)));
  ASSAY_CHECK(writer.write_cell_json(unit_row(unit, 0).cell_id, "evidence.json", {{"unit", unit}}));
  return writer.commit_unit(unit, {{"note", unit}});
}

// Everything that is still to do, to the seal.
inline Status finish_run(BundleWriter& writer) {
  for (int64_t unit = 0; unit < kTestUnits; ++unit) {
    if (!writer.committed_units().contains(unit)) ASSAY_CHECK(write_unit(writer, unit));
  }
  return writer.seal({{"ended", "as planned"}});
}

// An empty folder of the test's own, in memory where the machine has such a place, and gone
// afterwards.
class Scratch {
 public:
  Scratch() {
    const char* shm = "/dev/shm";
    const std::string base = std::filesystem::is_directory(shm) ? shm : testing::TempDir();
    std::string pattern = base + "/assay-artifact-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { std::filesystem::remove_all(folder_); }
  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }

 private:
  std::filesystem::path folder_;
};

}  // namespace assay
