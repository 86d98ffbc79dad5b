// Any bytes as a GGUF file: tensors of an accepted one lie within it, and can be decoded.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "engine/model/gguf_checkpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay::engine;
  const auto files = read_gguf_bytes(std::as_bytes(std::span(data, size)), "fuzz");
  if (!files) {
    if (files.error().message.find('\n') != std::string::npos) std::abort();
    return 0;
  }
  for (const auto& [name, view] : files->tensors) {
    std::vector<float> row(static_cast<size_t>(view.row_values()));
    const int64_t rows = view.shape.elements() / view.row_values();
    for (int64_t i = 0; i < rows; ++i) decode_row(view, i, row.data());  // an over-read shows here
  }
  return 0;
}
