// Any bytes as a safetensors file: entries of an accepted one lie within it and don't overlap.
// Where they have a zero byte, what stands before it is a config.json and what follows its weights:
// those of an accepted checkpoint can be decoded.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "base/records/json.h"
#include "engine/model/checkpoint.h"
#include "engine/model/safetensors.h"
#include "engine/model/safetensors_checkpoint.h"

namespace {

void check_checkpoint(const uint8_t* data, size_t size) {
  using namespace assay;
  using namespace assay::engine;
  const uint8_t* const end = std::find(data, data + size, uint8_t{0});
  if (end == data + size) return;
  const std::string_view text(reinterpret_cast<const char*>(data), static_cast<size_t>(end - data));
  const auto json = parse_json(text, "fuzz");
  if (!json) return;
  const auto config = parse_model_config(*json, "fuzz");
  if (!config || config->layers > 8) return;
  // A copy of its own: an over-read of it shows.
  const std::vector<std::byte> weights(reinterpret_cast<const std::byte*>(end) + 1,
                                       reinterpret_cast<const std::byte*>(data) + size);
  auto files = read_safetensors_bytes(*config, weights, "fuzz");
  const auto checkpoint = files ? Checkpoint::of("fuzz", std::move(*files))
                                : Result<Checkpoint>(std::unexpected(files.error()));
  if (!checkpoint) {
    if (checkpoint.error().message.find('\n') != std::string::npos) std::abort();
    return;
  }
  for (const TensorSpec& spec : checkpoint->tensors()) {
    const int64_t width = spec.shape[spec.shape.rank() - 1];
    std::vector<float> row(static_cast<size_t>(width));
    for (int64_t i = 0; i < spec.shape.elements() / width; ++i) {
      checkpoint->decode_row(spec.name, i, row.data());
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay::engine;
  check_checkpoint(data, size);
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto entries = parse_safetensors_header(bytes, size, "fuzz");
  if (!entries) {
    if (entries.error().message.find('\n') != std::string::npos) std::abort();
    return 0;
  }
  uint64_t end = 0;
  for (const SafetensorsEntry& entry : *entries) {
    if (entry.begin > entry.end || entry.end > size) std::abort();
    if (end != 0 && entry.begin != end) std::abort();
    end = entry.end;
    uint64_t sum = 0;
    for (uint64_t i = entry.begin; i < entry.end; ++i) sum += data[i];  // an over-read shows here
    if (sum > 255 * (entry.end - entry.begin)) std::abort();
  }
  return 0;
}
