// Any bytes as a study file: an error or a study whose plan can be made, never a crash.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "study/plan.h"
#include "study/study.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Larger plans cost time and show nothing that small ones don't.
  constexpr int64_t kLargestCells = 500;
  constexpr int64_t kLargestRows = 20'000;
  const auto study = assay::parse_study({reinterpret_cast<const char*>(data), size}, "fuzz.yaml");
  if (study && assay::count_cells(*study) <= kLargestCells &&
      assay::count_rows(*study) <= kLargestRows) {
    assay::plan_to_json(*study, assay::make_plan(*study));
  }
  return 0;
}
