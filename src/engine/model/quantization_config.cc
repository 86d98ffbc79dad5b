// One reader a method; every member is read, or is on the list of those that say how weights were
// made and not what they are.
#include "engine/model/quantization_config.h"

#include <algorithm>
#include <initializer_list>
#include <span>

namespace assay::engine {
namespace {

using Names = std::initializer_list<std::string_view>;

bool is_one_of(std::string_view name, Names names) {
  return std::ranges::find(names, name) != names.end();
}

std::string shown_value(const Json& value) {
  return to_json_line(value).substr(0, 80);
}

// Members of one object; `name` is how errors call it.
class Members {
 public:
  Members(const Json& json, std::string name) : json_(json), name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  // Null where it is absent or JSON's null.
  const Json* find(std::string_view key) const {
    const auto it = json_.find(std::string(key));
    return it == json_.end() || it->is_null() ? nullptr : &*it;
  }
  Status known(Names read, Names harmless) const {
    for (const auto& [key, value] : json_.items()) {
      if (is_one_of(key, read) || is_one_of(key, harmless)) continue;
      return bad_input("{}: expected members that assay knows, found {}", name_, json_quoted(key));
    }
    return {};
  }
  Status wrong(std::string_view key, std::string_view expected) const {
    const Json* value = find(key);
    return bad_input("{}: expected {} at \"{}\", found {}", name_, expected, key,
                     value == nullptr ? "none" : shown_value(*value));
  }
  // The member is `expected`, or, with `optional`, absent.
  Status is(std::string_view key, const Json& expected, bool optional = false) const {
    const Json* value = find(key);
    if (value == nullptr ? optional : *value == expected) return {};
    return wrong(key, to_json_line(expected));
  }
  // Absent, null, or an object or a list without members.
  Status none(std::string_view key) const {
    const Json* value = find(key);
    if (value == nullptr || ((value->is_object() || value->is_array()) && value->empty())) {
      return {};
    }
    return wrong(key, "none");
  }
  Result<bool> flag(std::string_view key, bool fallback) const {
    return json_bool_or(json_, key, fallback, name_);
  }
  Result<std::string> text(std::string_view key, std::string fallback) const {
    return json_string_or(json_, key, std::move(fallback), name_);
  }
  Result<int64_t> group_size() const {
    ASSAY_TRY(const int64_t size, json_int(json_, "group_size", name_));
    if (size == -1 || (size >= 32 && size % 32 == 0 && size <= kMostGroup)) return size;
    return bad_input("{}: expected -1 or a multiple of 32 up to {} at \"group_size\", found {}",
                     name_, kMostGroup, size);
  }
  Result<std::vector<std::string>> texts(std::string_view key) const {
    std::vector<std::string> list;
    const Json* value = find(key);
    if (value == nullptr) return list;
    for (const Json& text : value->is_array() ? *value : Json::array({*value})) {
      if (!text.is_string() || text.get<std::string>().empty()) {
        ASSAY_CHECK(wrong(key, "a list of names"));
      }
      list.push_back(text.get<std::string>());
    }
    return list;
  }
  Result<Members> object(std::string_view key) const {
    const Json* value = find(key);
    if (value == nullptr || !value->is_object()) ASSAY_CHECK(wrong(key, "an object"));
    return Members(*value, fmt::format("{} \"{}\"", name_, key));
  }
  const Json& json() const { return json_; }

 private:
  static constexpr int64_t kMostGroup = int64_t{1} << 24;
  const Json& json_;
  std::string name_;
};

Result<QuantizationConfig> parse_awq(const Members& members) {
  ASSAY_CHECK(
      members.known({"quant_method", "bits", "group_size", "zero_point", "version", "format",
                     "modules_to_not_convert", "sym", "checkpoint_format"},
                    {"backend", "do_fuse", "fuse_max_seq_len", "modules_to_fuse", "exllama_config",
                     "meta", "method", "pack_dtype", "desc_act", "lm_head"}));
  QuantizationConfig config{.method = QuantizationMethod::kAwq};
  ASSAY_CHECK(members.is("bits", 4));
  ASSAY_TRY(config.group_size, members.group_size());
  // Zeros are stored in any case, 8 where they are none of the weights' own.
  ASSAY_CHECK(members.flag("zero_point", true));
  ASSAY_CHECK(members.flag("sym", false));
  ASSAY_CHECK(members.is("desc_act", false, true));
  ASSAY_CHECK(members.is("lm_head", false, true));
  ASSAY_CHECK(members.is("pack_dtype", "int32", true));
  for (const char* key : {"version", "format", "checkpoint_format"}) {
    ASSAY_TRY(const std::string version, members.text(key, "gemm"));
    if (version != "gemm" && version != "GEMM") ASSAY_CHECK(members.wrong(key, "\"gemm\""));
  }
  ASSAY_TRY(config.kept, members.texts("modules_to_not_convert"));
  config.kept_by_parts = true;
  return config;
}

Result<QuantizationConfig> parse_gptq(const Members& members) {
  ASSAY_CHECK(members.known(
      {"quant_method", "bits", "group_size", "desc_act", "sym", "checkpoint_format", "format",
       "lm_head", "pack_dtype", "dynamic", "modules_in_block_to_quantize", "is_marlin_format"},
      {"damp_percent",
       "damp_auto_increment",
       "static_groups",
       "true_sequential",
       "act_group_aware",
       "hyb_act",
       "mse",
       "method",
       "meta",
       "model_name_or_path",
       "model_file_base_name",
       "model_seqlen",
       "tokenizer",
       "dataset",
       "batch_size",
       "pad_token_id",
       "max_input_length",
       "cache_block_outputs",
       "block_name_to_quantize",
       "module_name_preceding_first_block",
       "backend",
       "use_cuda_fp16",
       "use_exllama",
       "exllama_config",
       "disable_exllama"}));
  QuantizationConfig config{.method = QuantizationMethod::kGptq};
  ASSAY_CHECK(members.is("bits", 4));
  ASSAY_TRY(config.group_size, members.group_size());
  ASSAY_TRY(config.act_order, members.flag("desc_act", false));
  ASSAY_TRY(config.head, members.flag("lm_head", false));
  ASSAY_CHECK(members.is("is_marlin_format", false, true));
  ASSAY_CHECK(members.is("pack_dtype", "int32", true));
  ASSAY_CHECK(members.none("dynamic"));
  ASSAY_CHECK(members.none("modules_in_block_to_quantize"));
  const char* key = members.find("checkpoint_format") ? "checkpoint_format" : "format";
  ASSAY_TRY(const std::string format, members.text(key, "gptq"));
  if (format != "gptq" && format != "gptq_v2") {
    ASSAY_CHECK(members.wrong(key, "\"gptq\" or \"gptq_v2\""));
  }
  config.zeros_less_one = format == "gptq";
  // A zero of 0 is stored as 15 in the first version, as one of 16 would be.
  ASSAY_TRY(const bool symmetric, members.flag("sym", true));
  if (!symmetric && config.zeros_less_one) ASSAY_CHECK(members.is("sym", true));
  return config;
}

// One kind of tensors, as compressed-tensors describes it.
struct Scheme {
  int64_t bits = 0;
  std::string type, strategy, order;
  bool symmetric = true, dynamic = false;
  int64_t group_size = -1;
};

Result<Scheme> parse_scheme(const Members& members) {
  ASSAY_CHECK(members.known({"num_bits", "type", "symmetric", "strategy", "group_size",
                             "block_structure", "dynamic", "actorder"},
                            {"observer", "observer_kwargs", "scale_dtype", "zp_dtype"}));
  Scheme scheme;
  ASSAY_TRY(scheme.bits, json_int(members.json(), "num_bits", members.name()));
  ASSAY_TRY(scheme.type, members.text("type", "int"));
  ASSAY_TRY(scheme.symmetric, members.flag("symmetric", true));
  ASSAY_TRY(scheme.dynamic, members.flag("dynamic", false));
  ASSAY_TRY(scheme.order, members.text("actorder", "none"));
  ASSAY_CHECK(members.none("block_structure"));
  if (members.find("group_size")) {
    ASSAY_TRY(scheme.group_size, members.group_size());
  }
  ASSAY_TRY(scheme.strategy, members.text("strategy", scheme.group_size > 0 ? "group" : "tensor"));
  return scheme;
}

Status read_int4(const Members& weights, const Scheme& scheme, QuantizationConfig& config) {
  ASSAY_CHECK(weights.is("num_bits", 4));
  if (scheme.type != "int") ASSAY_CHECK(weights.wrong("type", "\"int\""));
  if (scheme.dynamic) ASSAY_CHECK(weights.wrong("dynamic", "false"));
  const bool grouped = scheme.strategy == "group" && scheme.group_size > 0;
  if (!grouped && scheme.strategy != "channel") {
    return weights.wrong("strategy", "\"channel\", or \"group\" with a \"group_size\"");
  }
  config.group_size = grouped ? scheme.group_size : -1;
  config.symmetric = scheme.symmetric;
  // "weight", and its likes, leave each group where it is.
  if (!is_one_of(scheme.order, {"none", "weight", "static", "group", "dynamic"})) {
    return weights.wrong("actorder", "none, \"weight\" or \"group\"");
  }
  config.act_order = scheme.order == "group" || scheme.order == "dynamic";
  return {};
}

Status read_fp8(const Members& weights, const Scheme& scheme, QuantizationConfig& config) {
  ASSAY_CHECK(weights.is("num_bits", 8));
  if (scheme.type != "float") ASSAY_CHECK(weights.wrong("type", "\"float\""));
  if (scheme.dynamic) ASSAY_CHECK(weights.wrong("dynamic", "false"));
  if (!scheme.symmetric) ASSAY_CHECK(weights.wrong("symmetric", "true"));
  ASSAY_CHECK(weights.none("actorder"));
  if (scheme.strategy != "channel" && scheme.strategy != "tensor") {
    return weights.wrong("strategy", "\"channel\" or \"tensor\"");
  }
  config.one_scale = scheme.strategy == "tensor";
  return {};
}

// Activations of fp8 are rounded as they come, or not at all: a scale from the file would be of no
// use here.
Status check_activations(const Members& group, bool fp8) {
  ASSAY_CHECK(group.none("output_activations"));
  if (!fp8) return group.none("input_activations");
  if (group.find("input_activations") == nullptr) return {};
  ASSAY_TRY(const Members activations, group.object("input_activations"));
  ASSAY_TRY(const Scheme scheme, parse_scheme(activations));
  ASSAY_CHECK(activations.is("num_bits", 8));
  if (scheme.type != "float") return activations.wrong("type", "\"float\"");
  if (!scheme.dynamic) return activations.wrong("dynamic", "true");
  return {};
}

Result<QuantizationConfig> parse_compressed(const Members& members) {
  ASSAY_CHECK(members.known({"quant_method", "format", "config_groups", "ignore", "kv_cache_scheme",
                             "quantization_status", "sparsity_config", "transform_config"},
                            {"global_compression_ratio", "version"}));
  ASSAY_CHECK(members.none("kv_cache_scheme"));
  ASSAY_CHECK(members.none("sparsity_config"));
  ASSAY_CHECK(members.none("transform_config"));
  ASSAY_CHECK(members.is("quantization_status", "compressed", true));
  ASSAY_TRY(const std::string format, members.text("format", ""));
  if (format != "pack-quantized" && format != "float-quantized") {
    ASSAY_CHECK(members.wrong("format", "\"pack-quantized\" or \"float-quantized\""));
  }
  const bool fp8 = format == "float-quantized";
  ASSAY_TRY(const Members groups, members.object("config_groups"));
  if (groups.json().size() != 1) {
    return bad_input("{}: expected one group, found {}", groups.name(), groups.json().size());
  }
  ASSAY_TRY(const Members group, groups.object(groups.json().begin().key()));
  ASSAY_CHECK(
      group.known({"targets", "weights", "input_activations", "output_activations", "format"}, {}));
  ASSAY_CHECK(group.is("targets", Json::array({"Linear"})));
  ASSAY_CHECK(group.is("format", format, true));
  ASSAY_CHECK(check_activations(group, fp8));
  ASSAY_TRY(const Members weights, group.object("weights"));
  ASSAY_TRY(const Scheme scheme, parse_scheme(weights));
  QuantizationConfig config{.method = fp8 ? QuantizationMethod::kFp8 : QuantizationMethod::kPacked,
                            .head = true};
  ASSAY_CHECK(fp8 ? read_fp8(weights, scheme, config) : read_int4(weights, scheme, config));
  ASSAY_TRY(config.kept, members.texts("ignore"));
  return config;
}

}  // namespace

std::string_view method_name(QuantizationMethod method) {
  switch (method) {
    case QuantizationMethod::kAwq:
      return "awq";
    case QuantizationMethod::kGptq:
      return "gptq";
    case QuantizationMethod::kPacked:
      return "pack-quantized";
    case QuantizationMethod::kFp8:
      return "float-quantized";
  }
  return "";
}

Result<QuantizationConfig> parse_quantization_config(const Json& json, std::string_view object) {
  const Members members(json, std::string(object));
  if (!json.is_object()) {
    return bad_input("{}: expected an object, found {}", object, shown_value(json));
  }
  ASSAY_TRY(const std::string method, members.text("quant_method", ""));
  if (method == "awq") return parse_awq(members);
  if (method == "gptq") return parse_gptq(members);
  if (method == "compressed-tensors") return parse_compressed(members);
  ASSAY_CHECK(members.wrong("quant_method", "awq, gptq or compressed-tensors"));
  return QuantizationConfig();
}

KeptModule is_kept(const QuantizationConfig& config, std::string_view module) {
  bool has_pattern = false;
  for (const std::string& name : config.kept) {
    if (config.kept_by_parts ? module.find(name) != std::string_view::npos : module == name) {
      return KeptModule::kYes;
    }
    has_pattern = has_pattern || name.starts_with("re:");
  }
  if (has_pattern) return KeptModule::kEither;
  return module == "lm_head" && !config.head ? KeptModule::kYes : KeptModule::kNo;
}

}  // namespace assay::engine
