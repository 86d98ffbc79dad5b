// Rows, headers, a small run and a scratch folder for the bundle's tests.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>

#include "artifact/bundle.h"

namespace assay {

Row test_row(int64_t order_index, Phase phase);
BundleHeader test_header();
// The header of a resume: another host, and an hour later.
BundleHeader later_header();

// The test run: unit u has two rows, of phase u modulo 3, and a line in its cell's log.
inline constexpr int64_t kTestUnits = 4;
Row unit_row(int64_t unit, int64_t i);
Status write_unit(BundleWriter& writer, int64_t unit);
// Writes the files that follow the last unit, as answers to parity do, unless they are there.
Status finish_cells(BundleWriter& writer);
// Writes all units that are still missing, then the cells' files and the seal.
Status finish_run(BundleWriter& writer);

// A bundle of three prefill rows, test_row(0 .. 2), in one unit, with the columns of an older
// schema version and `version` in its manifest.
Status write_older_version(const std::filesystem::path& folder, int columns_of, int version,
                           bool complete);

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
