// Members of a quantization_config that are read, and each that is refused.
#include "engine/model/quantization_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::engine {
namespace {

using testing::HasSubstr;

Json awq() {
  return Json::parse(R"({"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": true,
    "version": "gemm", "modules_to_not_convert": ["mlp.gate"], "do_fuse": false})");
}
Json gptq() {
  return Json::parse(R"({"quant_method": "gptq", "bits": 4, "group_size": -1, "desc_act": true,
    "sym": true, "damp_percent": 0.1, "static_groups": false, "true_sequential": true,
    "model_name_or_path": null, "checkpoint_format": "gptq", "lm_head": false})");
}
// As llm-compressor 0.14 writes them.
Json packed() {
  return Json::parse(R"({"config_groups": {"group_0": {"format": "pack-quantized",
    "input_activations": null, "output_activations": null, "targets": ["Linear"], "weights":
    {"actorder": null, "block_structure": null, "dynamic": false, "group_size": 128, "num_bits": 4,
     "observer": "memoryless_minmax", "observer_kwargs": {}, "scale_dtype": null, "strategy":
     "group", "symmetric": true, "type": "int", "zp_dtype": null}}}, "format": "pack-quantized",
    "global_compression_ratio": null, "ignore": ["lm_head"], "kv_cache_scheme": null,
    "quant_method": "compressed-tensors", "quantization_status": "compressed", "sparsity_config":
    {}, "transform_config": {}, "version": "0.19.0"})");
}
Json fp8() {
  return Json::parse(R"({"config_groups": {"group_0": {"format": "float-quantized",
    "input_activations": {"actorder": null, "block_structure": null, "dynamic": true, "group_size":
     null, "num_bits": 8, "observer": null, "observer_kwargs": {}, "scale_dtype": null, "strategy":
     "token", "symmetric": true, "type": "float", "zp_dtype": null}, "output_activations": null,
    "targets": ["Linear"], "weights": {"actorder": null, "block_structure": null, "dynamic": false,
     "group_size": null, "num_bits": 8, "observer": "memoryless_minmax", "observer_kwargs": {},
     "scale_dtype": null, "strategy": "channel", "symmetric": true, "type": "float", "zp_dtype":
     null}}}, "format": "float-quantized", "global_compression_ratio": null, "ignore": ["lm_head"],
    "kv_cache_scheme": null, "quant_method": "compressed-tensors", "quantization_status":
    "compressed", "sparsity_config": {}, "transform_config": {}, "version": "0.19.0"})");
}

std::string error_of(const Json& json) {
  const auto parsed = parse_quantization_config(json, "config.json \"quantization_config\"");
  if (parsed) return "no error";
  EXPECT_EQ(parsed.error().kind, ErrorKind::kBadInput);
  EXPECT_THAT(parsed.error().message, testing::StartsWith("config.json \"quantization_config\""));
  EXPECT_EQ(parsed.error().message.find('\n'), std::string::npos);
  return parsed.error().message;
}

TEST(QuantizationConfig, ReadsWhatWritersWrite) {
  const auto a = parse_quantization_config(awq(), "a");
  ASSERT_TRUE(a) << a.error().message;
  EXPECT_EQ(a->method, QuantizationMethod::kAwq);
  EXPECT_EQ(a->group_size, 128);
  EXPECT_EQ(is_kept(*a, "model.layers.3.mlp.gate_proj"), KeptModule::kYes)
      << "by a part of its name";
  EXPECT_EQ(is_kept(*a, "model.layers.3.mlp.up_proj"), KeptModule::kNo);
  EXPECT_EQ(is_kept(*a, "lm_head"), KeptModule::kYes);
  const auto g = parse_quantization_config(gptq(), "g");
  ASSERT_TRUE(g) << g.error().message;
  EXPECT_TRUE(g->act_order && g->zeros_less_one && !g->head);
  EXPECT_EQ(g->group_size, -1);
  const auto p = parse_quantization_config(packed(), "p");
  ASSERT_TRUE(p) << p.error().message;
  EXPECT_EQ(p->method, QuantizationMethod::kPacked);
  EXPECT_TRUE(p->symmetric && !p->act_order);
  EXPECT_EQ(is_kept(*p, "lm_head"), KeptModule::kYes);
  EXPECT_EQ(is_kept(*p, "lm_head2"), KeptModule::kNo);
  const auto f = parse_quantization_config(fp8(), "f");
  ASSERT_TRUE(f) << f.error().message;
  EXPECT_EQ(f->method, QuantizationMethod::kFp8);
  EXPECT_FALSE(f->one_scale);
  Json patterns = packed();
  patterns["ignore"] = {"re:.*gate$"};
  EXPECT_EQ(is_kept(*parse_quantization_config(patterns, "p"), "lm_head"), KeptModule::kEither);
  Json all = packed();
  all["ignore"] = Json::array();
  EXPECT_EQ(is_kept(*parse_quantization_config(all, "p"), "lm_head"), KeptModule::kNo);
}

// Any member beside the known ones, in each object.
TEST(QuantizationConfig, RefusesMembersThatItDoesNotKnow) {
  for (Json json : {awq(), gptq(), packed(), fp8()}) {
    json["rotation"] = nullptr;
    EXPECT_THAT(error_of(json), HasSubstr("found \"rotation\""));
  }
  for (Json json : {packed(), fp8()}) {
    Json deep = json;
    deep["config_groups"]["group_0"]["rotation"] = 1;
    EXPECT_THAT(error_of(deep), HasSubstr("found \"rotation\""));
    json["config_groups"]["group_0"]["weights"]["rotation"] = 1;
    EXPECT_THAT(error_of(json), HasSubstr("found \"rotation\""));
  }
}

struct Change {
  const char* path;  // a JSON pointer
  const char* value;
  const char* expected;
};

void expect_errors(const Json& json, const std::vector<Change>& changes) {
  for (const Change& change : changes) {
    Json changed = json;
    changed[Json::json_pointer(change.path)] = Json::parse(change.value);
    EXPECT_THAT(error_of(changed), HasSubstr(change.expected))
        << change.path << " = " << change.value;
  }
}

TEST(QuantizationConfig, RefusesValuesThatItCannotComputeWith) {
  expect_errors(awq(), {{"/quant_method", "\"bitsandbytes\"", "awq, gptq or compressed-tensors"},
                        {"/quant_method", "7", "quant_method"},
                        {"/bits", "8", "expected 4 at \"bits\", found 8"},
                        {"/bits", "\"4\"", "bits"},
                        {"/group_size", "0", "group_size"},
                        {"/group_size", "16", "group_size"},
                        {"/group_size", "100", "group_size"},
                        {"/group_size", "9223372036854775807", "group_size"},
                        {"/zero_point", "3", "zero_point"},
                        {"/version", "\"gemv\"", "expected \"gemm\" at \"version\""},
                        {"/modules_to_not_convert", "[3]", "a list of names"},
                        {"/modules_to_not_convert", "[\"\"]", "a list of names"}});
  expect_errors(gptq(), {{"/bits", "3", "bits"},
                         {"/sym", "false", "expected true at \"sym\""},
                         {"/desc_act", "2", "desc_act"},
                         {"/checkpoint_format", "\"marlin\"", "\"gptq\" or \"gptq_v2\""},
                         {"/is_marlin_format", "true", "is_marlin_format"},
                         {"/dynamic", "{\"+:.*\": {\"bits\": 8}}", "dynamic"},
                         {"/pack_dtype", "\"int16\"", "pack_dtype"}});
  const std::string weights = "/config_groups/group_0/weights";
  const std::string inputs = "/config_groups/group_0/input_activations";
  expect_errors(packed(), {{"/format", "\"marlin-24\"", "pack-quantized"},
                           {"/quantization_status", "\"frozen\"", "quantization_status"},
                           {"/kv_cache_scheme", "{\"num_bits\": 8}", "kv_cache_scheme"},
                           {"/sparsity_config", "{\"format\": \"dense\"}", "sparsity_config"},
                           {"/config_groups", "{}", "expected one group, found 0"},
                           {"/config_groups", "[]", "an object"},
                           {"/config_groups/group_1", "{}", "expected one group, found 2"},
                           {"/config_groups/group_0/targets", "[\"re:.*\"]", "targets"},
                           {(weights + "/num_bits").c_str(), "8", "num_bits"},
                           {(weights + "/type").c_str(), "\"float\"", "type"},
                           {(weights + "/strategy").c_str(), "\"block\"", "strategy"},
                           {(weights + "/actorder").c_str(), "\"random\"", "actorder"},
                           {(weights + "/group_size").c_str(), "7", "group_size"},
                           {(weights + "/dynamic").c_str(), "true", "dynamic"},
                           {inputs.c_str(), "{\"num_bits\": 8}", "input_activations"}});
  expect_errors(fp8(), {{(weights + "/strategy").c_str(), "\"block\"", "strategy"},
                        {(weights + "/symmetric").c_str(), "false", "symmetric"},
                        {(weights + "/num_bits").c_str(), "4", "num_bits"},
                        {(inputs + "/dynamic").c_str(), "false", "dynamic"},
                        {(inputs + "/type").c_str(), "\"int\"", "type"}});
  EXPECT_THAT(error_of(Json(3)), HasSubstr("expected an object, found 3"));
}

}  // namespace
}  // namespace assay::engine
