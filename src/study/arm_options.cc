// The keys of each backend.
#include "study/arm_options.h"

#include "base/records/backend_traits.h"
#include "base/records/device_name.h"
#include "study/command_arm.h"
#include "study/http_arm.h"

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

Result<Json> read_flag(const YamlValue& value) {
  ASSAY_TRY(const Json word, read_word(value, {"true", "false"}));
  return Json(word == "true");
}

constexpr int64_t kMostSlots = 1024, kMostContext = 1'000'000, kMostChunk = 100'000;

Result<Json> read_slots(const YamlValue& value) {
  ASSAY_TRY(const int64_t slots, value.integer(1, kMostSlots));
  return Json(slots);
}

Result<Json> read_context(const YamlValue& value) {
  ASSAY_TRY(const int64_t tokens, value.integer(1, kMostContext));
  return Json(tokens);
}

Result<Json> read_chunk(const YamlValue& value) {
  ASSAY_TRY(const int64_t tokens, value.integer(1, kMostChunk));
  return Json(tokens);
}

// A list would be an axis of the arm, so passes stand in one text: "fuse_norm, merge_products".
Result<Json> read_text(const YamlValue& value) {
  ASSAY_TRY(std::string text, value.text());
  return Json(std::move(text));
}

Result<Json> read_arm_type(const YamlValue& value) {
  return read_word(value, {"fp8"});
}

Result<Json> read_logits(const YamlValue& value) {
  return read_word(value, {"last", "all"});
}

Result<Json> read_fp8_products(const YamlValue& value) {
  return read_word(value, {"scaled_mm", "transformer_engine"});
}

Result<Json> read_sdpa(const YamlValue& value) {
  return read_word(value, {"auto", "cudnn", "flash", "efficient", "math"});
}

// The name is kept as it is written.
Result<Json> read_native_device(const YamlValue& value) {
  ASSAY_TRY(std::string text, value.text());
  if (!parse_device_name(text, "device")) return value.error("cpu, cuda or cuda:N");
  return Json(std::move(text));
}

Result<Json> read_torch_device(const YamlValue& value) {
  return read_word(value, {"cpu", "cuda", "auto"});
}

Result<Json> read_torch_backend(const YamlValue& value) {
  return read_word(value, {"inductor", "aot_eager", "eager"});
}

Result<Json> read_compile_target(const YamlValue& value) {
  return read_word(value, {"forward", "module"});
}

Result<Json> read_compile_phases(const YamlValue& value) {
  return read_word(value, {"prefill", "decode", "both"});
}

Result<Json> read_attention(const YamlValue& value) {
  return read_word(value, {"eager", "sdpa", "flash_attention_2", "flex_attention"});
}

Result<Json> read_reset(const YamlValue& value) {
  return read_word(value, {"unit", "never"});
}

Result<Json> read_attention_mask(const YamlValue& value) {
  return read_word(value, {"auto", "always"});
}

}  // namespace

std::string device_option(const StudyArm& arm) {
  const auto device = arm.options.find("device");
  return device == arm.options.end() ? std::string() : device->get<std::string>();
}

bool may_take_gpu(const StudyArm& arm) {
  return backend_traits(arm.backend).takes_gpu_unasked && device_option(arm) != "cpu";
}

bool mode_compiles(std::string_view mode) {
  return !mode.empty() && mode != "eager" && mode != "manual-cudagraph";
}

std::span<const ArmOption> arm_options() {
  static const std::vector<ArmOption> options = {
      {"recompile_limit", "native", false, read_recompile_limit},
      {"split", "native", false, read_split},
      {"bucket", "native", false, read_bucket},
      {"disabled_passes", "native", false, read_text},
      {"kernel_cache", "native", false, read_flag},
      {"weight_cache", "native", false, read_flag},
      {"program", "native", true, read_text},
      {"device", "native", true, read_native_device},
      {"dtype", "native", true, read_arm_type},
      {kQuantizationOption, "native", true, read_text, true},
      {"fp8_head", "native", true, read_flag},
      {"fp8_fast_sums", "native", true, read_flag},
      {"fp8_always", "native", true, read_flag},
      {"logits", "native", true, read_logits},
      {kSlotsOption, "native", true, read_slots},
      {"context", "native", true, read_context},
      {"chunk", "native", true, read_chunk},
      {"device", "torch", true, read_torch_device},
      {"torch_backend", "torch", false, read_torch_backend},
      {"fullgraph", "torch", false, read_flag},
      {"cudagraph_trees", "torch", false, read_flag},
      {"compile_target", "torch", false, read_compile_target},
      {"compile_phases", "torch", false, read_compile_phases},
      {"mark_step_begin", "torch", false, read_flag},
      {"recompile_limit", "torch", false, read_recompile_limit},
      {"attn_implementation", "torch", true, read_attention},
      {"attention_mask", "torch", true, read_attention_mask},
      {"explain", "torch", false, read_flag},
      {"reset", "torch", false, read_reset},
      {"keep_cache", "torch", false, read_flag},
      {"step_times", "torch", true, read_flag},
      {"dtype", "torch", true, read_arm_type},
      {"fp8_head", "torch", true, read_flag},
      {"fp8_fast_sums", "torch", true, read_flag},
      {"fp8_products", "torch", true, read_fp8_products},
      {"logits", "torch", true, read_logits},
      {"sdpa_kernel", "torch", true, read_sdpa},
      {"python", "torch", true, read_text},
      {"command", "command", true, read_command, true},
      {"shell", "command", true, read_flag},
      {"workdir", "command", true, read_workdir},
      {"env", "command", true, read_command_environment, true},
      {"patterns", "command", true, read_patterns, true},
      {"samples", "command", true, read_samples},
      {"api", kHttpBackend, true, read_api},
      {"url", kHttpBackend, true, read_text},
      {"model", kHttpBackend, true, read_text},
      {"api_key_env", kHttpBackend, true, read_variable_name},
      {"tls_ca", kHttpBackend, true, read_text},
      {"start", kHttpBackend, true, read_start, true},
      {"ready", kHttpBackend, true, read_text},
      {"env", kHttpBackend, true, read_server_environment, true},
      {"chat", kHttpBackend, true, read_flag},
      {"cached_prefix", kHttpBackend, true, read_cached_prefix},
      {kQuantizationOption, kHttpBackend, true, read_text, true}};
  return options;
}

}  // namespace assay
