// Each method's parts are checked, then described by a few pointers, from which rows are made when
// they are asked for.
#include "engine/model/quantized_tensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "base/records/json.h"
#include "engine/model/repacked_rows.h"
#include "engine/model/safetensors.h"

namespace assay::engine {
namespace {

constexpr std::array<std::string_view, 9> kParts = {
    "qweight",       "qzeros",       "scales",       "g_idx",
    "weight_packed", "weight_scale", "weight_shape", "weight_zero_point",
    "weight_g_idx"};

class Quantized {
 public:
  Quantized(const StoredTensors& parts, std::string_view object, CheckpointFiles& files)
      : parts_(parts), object_(object), files_(files), config_(*files.config.quantization) {}

  Status run() {
    if (files_.config.architecture == Architecture::kGpt2) {
      return bad_input("{}: expected quantised weights of llama or qwen2 alone, found gpt2",
                       object_);
    }
    const std::vector<TensorSpec> specs = tensor_specs(files_.config);
    for (const TensorSpec& spec : specs) {
      if (spec.shape.rank() != 2 || spec.name == "model.embed_tokens.weight") continue;
      module_ = spec.name.substr(0, spec.name.size() - std::string_view(".weight").size());
      ASSAY_TRY(const bool converted, is_converted());
      if (converted) ASSAY_CHECK(add(spec));
    }
    for (const auto& [name, part] : parts_) {
      if (used_.contains(name)) continue;
      return bad_input("{}: expected the parts of weights in {}, found {} beside them", object_,
                       method_name(config_.method), json_quoted(name));
    }
    files_.quantization = label();
    return drop_zero_biases(specs);
  }

 private:
  std::string name_of(std::string_view part) const { return fmt::format("{}.{}", module_, part); }

  std::string_view main_part() const {
    switch (config_.method) {
      case QuantizationMethod::kAwq:
      case QuantizationMethod::kGptq:
        return "qweight";
      case QuantizationMethod::kPacked:
        return "weight_packed";
      case QuantizationMethod::kFp8:
        return "weight";
    }
    return "";
  }

  // As people call it, for rows of results.
  std::string label() const {
    switch (config_.method) {
      case QuantizationMethod::kAwq:
        return "AWQ";
      case QuantizationMethod::kGptq:
        return "GPTQ";
      case QuantizationMethod::kPacked:
        return "W4A16";
      case QuantizationMethod::kFp8:
        return "FP8";
    }
    return "";
  }

  Result<bool> is_converted() const {
    const std::string main = name_of(main_part());
    const bool found = parts_.contains(main);
    // The file's name may lack the prefix that the engine's has.
    KeptModule kept = is_kept(config_, module_);
    const std::string_view bare = std::string_view(module_).substr(std::min(
        module_.size(), module_.starts_with("model.") ? std::string_view("model.").size() : 0));
    if (kept == KeptModule::kNo) kept = is_kept(config_, bare);
    if (found && kept == KeptModule::kYes) {
      return bad_input("{}: expected {} as it was, by its quantization_config, found {}", object_,
                       json_quoted(module_), json_quoted(main));
    }
    if (!found && kept == KeptModule::kNo) {
      return bad_input("{}: expected tensor {} of {}, by its quantization_config, found none",
                       object_, json_quoted(main), method_name(config_.method));
    }
    return found;
  }

  Status add(const TensorSpec& spec) {
    outputs_ = spec.shape[0];
    inputs_ = spec.shape[1];
    TensorView view;
    RowReader reader;
    if (config_.method == QuantizationMethod::kFp8) {
      ASSAY_TRY(const Fp8Weight weight, fp8());
      view = TensorView(nullptr, weight.format, spec.shape);
      reader = reader_of(weight);
    } else {
      ASSAY_TRY(const Int4Weight weight, int4());
      view = TensorView(nullptr, weight.format, spec.shape);
      view.input_order = weight.order;
      reader = reader_of(weight);
    }
    if (!files_.tensors.emplace(spec.name, view).second) {
      return bad_input("{}: expected one form of tensor {}, found it quantised and not", object_,
                       json_quoted(spec.name));
    }
    files_.repacked.emplace(spec.name, std::move(reader));
    return {};
  }

  // A part of one of these types and of a shape.
  Result<StoredTensor> part(std::string_view suffix, std::span<const std::string_view> types,
                            const std::vector<int64_t>& dims) {
    const std::string name = name_of(suffix);
    const auto found = parts_.find(name);
    if (found == parts_.end()) {
      return bad_input("{}: expected tensor {}, found none of this name", object_,
                       json_quoted(name));
    }
    used_.insert(name);
    const StoredTensor& tensor = found->second;
    if (std::ranges::find(types, tensor.dtype) == types.end()) {
      return bad_input("{}: expected {} for tensor {}, found {}", object_, fmt::join(types, " or "),
                       json_quoted(name), tensor.dtype);
    }
    if (tensor.dims != dims) {
      return bad_input("{}: expected shape [{}] for tensor {} by its config, found [{}]", object_,
                       fmt::join(dims, ", "), json_quoted(name), fmt::join(tensor.dims, ", "));
    }
    return tensor;
  }
  Result<StoredTensor> words(std::string_view suffix, std::vector<int64_t> dims) {
    static constexpr std::array<std::string_view, 1> kTypes = {"I32"};
    return part(suffix, kTypes, dims);
  }
  Result<StoredTensor> floats(std::string_view suffix, std::vector<int64_t> dims) {
    static constexpr std::array<std::string_view, 3> kTypes = {"F16", "BF16", "F32"};
    return part(suffix, kTypes, dims);
  }

  Result<Int4Weight> int4() {
    Int4Weight weight{.method = config_.method, .inputs = inputs_, .outputs = outputs_};
    weight.group = config_.group_size < 0 ? inputs_ : config_.group_size;
    const auto format = int4_format(weight.group);
    if (inputs_ % weight.group != 0 || !format || outputs_ % kCodesOfWord != 0) {
      return bad_input(
          "{}: expected outputs in whole eights and inputs in whole groups of {} that are a "
          "multiple of 32, found {} "
          "and {} in {}",
          object_, weight.group, outputs_, inputs_, json_quoted(module_));
    }
    weight.format = *format;
    ASSAY_CHECK(config_.method == QuantizationMethod::kPacked ? packed_parts(weight)
                                                              : transposed_parts(weight));
    return weight;
  }

  // AWQ's and GPTQ's, whose rows are inputs.
  Status transposed_parts(Int4Weight& weight) {
    const bool awq = config_.method == QuantizationMethod::kAwq;
    const int64_t groups = weight.groups();
    ASSAY_TRY(const StoredTensor codes, awq ? words("qweight", {inputs_, outputs_ / kCodesOfWord})
                                            : words("qweight", {inputs_ / kCodesOfWord, outputs_}));
    ASSAY_TRY(const StoredTensor zeros, words("qzeros", {groups, outputs_ / kCodesOfWord}));
    ASSAY_TRY(const StoredTensor scales, floats("scales", {groups, outputs_}));
    weight.codes = codes.data;
    weight.zeros = zeros.data;
    weight.scales = scales.data;
    weight.scale_type = *safetensors_float_dtype(scales.dtype);
    if (awq) return {};
    weight.added_to_zeros = config_.zeros_less_one ? 1 : 0;
    if (config_.zeros_less_one) ASSAY_CHECK(check_zeros(zeros, groups * outputs_ / kCodesOfWord));
    return take_order("g_idx", weight);
  }

  // In GPTQ's first version 15 stands for 16 or, wrapped, for 0: readers differ.
  Status check_zeros(const StoredTensor& zeros, int64_t count) const {
    for (int64_t i = 0; i < count; ++i) {
      const uint32_t word = word_at(zeros.data, i);
      const uint32_t all_ones = word & word >> 1 & word >> 2 & word >> 3 & 0x11111111u;
      if (all_ones == 0) continue;
      return bad_input("{}: expected zeros of 1 to 15 in tensor {}, found one stored as 15",
                       object_, json_quoted(name_of("qzeros")));
    }
    return {};
  }

  Status packed_parts(Int4Weight& weight) {
    const int64_t groups = weight.groups();
    ASSAY_TRY(const StoredTensor codes, words("weight_packed", {outputs_, inputs_ / kCodesOfWord}));
    ASSAY_TRY(const StoredTensor scales, floats("weight_scale", {outputs_, groups}));
    ASSAY_CHECK(check_shape());
    weight.codes = codes.data;
    weight.scales = scales.data;
    weight.scale_type = *safetensors_float_dtype(scales.dtype);
    if (!config_.symmetric) {
      ASSAY_TRY(const StoredTensor zeros,
                words("weight_zero_point", {outputs_ / kCodesOfWord, groups}));
      weight.zeros = zeros.data;
    }
    if (config_.act_order) return take_order("weight_g_idx", weight);
    return {};
  }

  Status check_shape() {
    static constexpr std::array<std::string_view, 2> kTypes = {"I64", "I32"};
    ASSAY_TRY(const StoredTensor shape, part("weight_shape", kTypes, {2}));
    std::array<int64_t, 2> found = {};
    for (int64_t i = 0; i < 2; ++i) {
      auto& dim = found[static_cast<size_t>(i)];
      if (shape.dtype == "I64") {
        std::memcpy(&dim, shape.data + 8 * i, sizeof dim);
      } else {
        dim = static_cast<int32_t>(word_at(shape.data, i));
      }
    }
    if (found == std::array{outputs_, inputs_}) return {};
    return bad_input("{}: expected [{}, {}] in tensor {} by its config, found [{}, {}]", object_,
                     outputs_, inputs_, json_quoted(name_of("weight_shape")), found[0], found[1]);
  }

  // The order of inputs by their groups, from each input's group.
  Status take_order(std::string_view suffix, Int4Weight& weight) {
    if (!config_.act_order && !parts_.contains(name_of(suffix))) return {};
    ASSAY_TRY(const StoredTensor indices, words(suffix, {inputs_}));
    const int64_t groups = weight.groups();
    std::vector<int64_t> next(
        static_cast<size_t>(groups));  // by group: the place of its next input
    for (size_t g = 0; g < next.size(); ++g) next[g] = static_cast<int64_t>(g) * weight.group;
    std::vector<int32_t> order(static_cast<size_t>(inputs_));
    bool in_order = true;
    for (int64_t i = 0; i < inputs_; ++i) {
      const auto g = static_cast<int32_t>(word_at(indices.data, i));
      if (g < 0 || g >= groups) {
        return bad_input("{}: expected groups from 0 to {} in tensor {}, found {}", object_,
                         groups - 1, json_quoted(name_of(suffix)), g);
      }
      int64_t& at = next[static_cast<size_t>(g)];
      if (at == (g + int64_t{1}) * weight.group) {
        return bad_input("{}: expected {} inputs for each group in tensor {}, found more for {}",
                         object_, weight.group, json_quoted(name_of(suffix)), g);
      }
      in_order = in_order && at == i;
      order[static_cast<size_t>(at++)] = static_cast<int32_t>(i);
    }
    if (in_order) return {};
    if (!config_.act_order) {
      return bad_input(
          "{}: expected groups in order in tensor {}, as its config says, found another order",
          object_, json_quoted(name_of(suffix)));
    }
    // Products of one input have the same order as a rule, which then is one.
    for (const std::vector<int32_t>& known : files_.input_orders) {
      if (known == order) {
        weight.order = known.data();
        return {};
      }
    }
    files_.input_orders.push_back(std::move(order));
    weight.order = files_.input_orders.back().data();
    return {};
  }

  Result<Fp8Weight> fp8() {
    Fp8Weight weight{.inputs = inputs_, .one_scale = config_.one_scale};
    const auto format = fp8_format(inputs_);
    if (!format) {
      return bad_input("{}: expected inputs that are a multiple of 32, found {} in {}", object_,
                       inputs_, json_quoted(module_));
    }
    weight.format = *format;
    static constexpr std::array<std::string_view, 1> kTypes = {"F8_E4M3"};
    ASSAY_TRY(const StoredTensor values, part("weight", kTypes, {outputs_, inputs_}));
    const auto scale = parts_.find(name_of("weight_scale"));
    const size_t rank = scale == parts_.end() ? 1 : scale->second.dims.size();
    std::vector<int64_t> dims = {config_.one_scale ? 1 : outputs_};
    if (config_.one_scale && rank == 0) dims.clear();
    if (!config_.one_scale && rank > 1) dims.push_back(1);
    ASSAY_TRY(const StoredTensor scales, floats("weight_scale", dims));
    weight.values = values.data;
    weight.scales = scales.data;
    weight.scale_type = *safetensors_float_dtype(scales.dtype);
    return weight;
  }

  Status drop_zero_biases(const std::vector<TensorSpec>& specs) {
    for (const auto& [name, reader] : files_.repacked) {
      const std::string bias =
          name.substr(0, name.size() - std::string_view("weight").size()) + "bias";
      const auto found = files_.tensors.find(bias);
      if (found == files_.tensors.end() ||
          std::ranges::find(specs, bias, &TensorSpec::name) != specs.end()) {
        continue;
      }
      const std::span bytes(found->second.data, found->second.size_bytes());
      if (std::ranges::any_of(bytes, [](std::byte byte) { return byte != std::byte{0}; })) {
        return bad_input("{}: expected no bias, or zeros, in {} by its config, found others",
                         object_, json_quoted(bias));
      }
      files_.tensors.erase(found);
    }
    return {};
  }

  const StoredTensors& parts_;
  std::string_view object_;
  CheckpointFiles& files_;
  const QuantizationConfig& config_;
  std::set<std::string> used_;
  std::string module_;  // at hand, with its sizes
  int64_t inputs_ = 0, outputs_ = 0;
};

}  // namespace

bool is_part_of_weight(std::string_view name, std::string_view dtype) {
  const size_t dot = name.rfind('.');
  const std::string_view suffix = name.substr(dot == std::string_view::npos ? 0 : dot + 1);
  return std::ranges::find(kParts, suffix) != kParts.end() ||
         (dtype == "F8_E4M3" && suffix == "weight");
}

Status add_quantized(const StoredTensors& parts, std::string_view object, CheckpointFiles& files) {
  return Quantized(parts, object, files).run();
}

}  // namespace assay::engine
