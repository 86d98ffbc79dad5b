// The native backend's keys of a compiled arm.
#include "study/arm_options.h"

namespace assay {
namespace {

constexpr int64_t kMaxRecompiles = 1'000'000;
constexpr int64_t kMaxBucket = 65'536;

Result<Json> read_recompile_limit(const YamlValue& value) {
  ASSAY_TRY(const int64_t limit, value.integer(1, kMaxRecompiles));
  return Json(limit);
}

Result<Json> read_bucket(const YamlValue& value) {
  ASSAY_TRY(const int64_t bucket, value.integer(1, kMaxBucket));
  return Json(bucket);
}

Result<Json> read_word(const YamlValue& value, const std::vector<std::string>& words) {
  ASSAY_TRY(const size_t index, value.one_of(words));
  return Json(words[index]);
}

Result<Json> read_split(const YamlValue& value) {
  return read_word(value, {"prefill", "decode"});
}

Result<Json> read_kernel_cache(const YamlValue& value) {
  ASSAY_TRY(const Json word, read_word(value, {"true", "false"}));
  return Json(word == "true");
}

// A list would be an axis of the arm, so passes stand in one text: "fuse_norm, merge_products".
Result<Json> read_disabled_passes(const YamlValue& value) {
  ASSAY_TRY(std::string text, value.text());
  return Json(std::move(text));
}

}  // namespace

std::span<const ArmOption> arm_options() {
  static const std::vector<ArmOption> options = {
      {"recompile_limit", "native", read_recompile_limit},
      {"split", "native", read_split},
      {"bucket", "native", read_bucket},
      {"disabled_passes", "native", read_disabled_passes},
      {"kernel_cache", "native", read_kernel_cache}};
  return options;
}

}  // namespace assay
