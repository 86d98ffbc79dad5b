// Members of `load` and its `options` as SessionOptions.
#include "backend/native/native_options.h"

#include <algorithm>
#include <array>

#include "base/records/device_name.h"
#include "base/text/text.h"
#include "engine/codegen/kernel_cache.h"
#include "study/arm_options.h"

namespace assay {
namespace {

constexpr int64_t kMostRecompiles = 1'000'000;
// Options of any mode; the others are of modes that compile.
constexpr const char* kDevice = "device";
constexpr const char* kType = "dtype";
constexpr const char* kFp8Head = "fp8_head";
constexpr const char* kFastSums = "fp8_fast_sums";
constexpr const char* kFp8Always = "fp8_always";
constexpr const char* kLogits = "logits";
constexpr const char* kContext = "context";
constexpr const char* kChunk = "chunk";

bool of_any_mode(std::string_view name) {
  return name == kDevice || name == kType || name == kFp8Head || name == kFastSums ||
         name == kFp8Always || name == kLogits || name == kSlotsOption || name == kContext ||
         name == kChunk || name == kQuantizationOption;
}

Result<int64_t> whole_number(const std::string& name, const Json& value, int64_t least,
                             int64_t most) {
  const bool small = value.is_number_integer() &&
                     (!value.is_number_unsigned() || value.get<uint64_t>() <= INT64_MAX);
  if (small && value.get<int64_t>() >= least && value.get<int64_t>() <= most) {
    return value.get<int64_t>();
  }
  return bad_input("options.{}: expected an integer from {} to {}, found {}", name, least, most,
                   to_json_line(value));
}

Result<std::string> word(const std::string& name, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return bad_input("options.{}: expected a text, found {}", name, to_json_line(value));
}

// "fuse_norm, merge_products"
std::vector<std::string> names(std::string text) {
  std::ranges::replace(text, ',', ' ');
  std::vector<std::string> found = split(text, ' ');
  std::erase(found, "");
  return found;
}

Result<engine::CpuCompiler> compiler_of(const Json& value) {
  engine::CpuCompiler compiler;
  if (value.is_object()) {
    const auto text = [&](const char* name) {
      const auto found = value.find(name);
      return found != value.end() && found->is_string() ? found->get<std::string>() : "";
    };
    compiler.command = text("command");
    compiler.path = text("path");
    compiler.version = text("version");
    compiler.sha256 = text("sha256");
    const auto limit = value.find("timeout_s");
    compiler.timeout_s = limit != value.end() && limit->is_number() ? limit->get<double>() : 0;
  }
  const bool whole = !compiler.command.empty() && !compiler.path.empty() &&
                     !compiler.version.empty() && !compiler.sha256.empty();
  if (whole && compiler.timeout_s > 0) return compiler;
  return bad_input(
      "options.{}: expected an object with command, path, version, sha256 and timeout_s, found {}",
      kCompilerOption, excerpt(to_json_line(value)));
}

Status read_option(const std::string& name, const Json& value, engine::CompileOptions& compile) {
  if (name == "recompile_limit") {
    ASSAY_TRY(compile.recompile_limit, whole_number(name, value, 1, kMostRecompiles));
  } else if (name == "bucket") {
    ASSAY_TRY(compile.bucket, whole_number(name, value, 0, engine::kMostBucket));
  } else if (name == "disabled_passes") {
    ASSAY_TRY(const std::string text, word(name, value));
    compile.disabled_passes = names(text);
  } else if (name == "split") {
    ASSAY_TRY(const std::string phase, word(name, value));
    if (phase != "prefill" && phase != "decode") {
      return bad_input("options.split: expected prefill or decode, found {}", phase);
    }
    compile.prefill = phase == "prefill";
    compile.decode = phase == "decode";
  } else if (name == "no_compiler") {
    ASSAY_TRY(compile.no_compiler, word(name, value));
  } else if (name == kCompilerOption) {
    ASSAY_TRY(compile.compiler, compiler_of(value));
  } else if (name == "kernel_cache") {
    if (!value.is_boolean()) {
      return bad_input("options.kernel_cache: expected true or false, found {}",
                       to_json_line(value));
    }
    if (!value.get<bool>()) compile.kernel_cache.reset();
  } else if (name == "weight_cache") {
    if (!value.is_boolean()) {
      return bad_input("options.weight_cache: expected true or false, found {}",
                       to_json_line(value));
    }
    compile.keeps_weights = value.get<bool>();
  } else {
    return bad_input(
        "options: expected device, dtype, quantization, fp8_head, fp8_fast_sums, fp8_always, "
        "logits, "
        "recompile_limit, "
        "bucket, disabled_passes, split, kernel_cache, weight_cache, compiler or no_compiler, "
        "found {}",
        name);
  }
  return {};
}

Result<DeviceName> device_of(const Json& options) {
  const auto device = options.find(kDevice);
  if (device == options.end()) return DeviceName{};
  ASSAY_TRY(const std::string name, word(kDevice, *device));
  return parse_device_name(name, "options.device");
}

Result<engine::CompileOptions> compile_options(const LoadRequest& request) {
  engine::CompileOptions compile;
  compile.prefill = compile.decode = true;
  compile.kernel_cache = engine::KernelCache::default_folder();
  const std::string dynamic = request.dynamic.empty() ? "auto" : request.dynamic;
  const auto kind = engine::parse_dynamic(dynamic);
  if (!kind) return bad_input("dynamic: expected true, false or auto, found {}", dynamic);
  compile.dynamic = *kind;
  for (const auto& [name, value] : request.options.items()) {
    if (of_any_mode(name)) continue;
    ASSAY_CHECK(read_option(name, value, compile));
  }
  return compile;
}

// A flag that has a meaning beside dtype fp8 alone; false: it isn't there.
Result<bool> fp8_flag(const Json& options, const char* name, bool in_fp8) {
  const auto flag = options.find(name);
  if (flag == options.end()) return false;
  if (!flag->is_boolean()) {
    return bad_input("options.{}: expected true or false, found {}", name, to_json_line(*flag));
  }
  if (!in_fp8) return bad_input("options.{}: expected dtype fp8 beside it, found none", name);
  return flag->get<bool>();
}

// dtype, fp8_head, fp8_fast_sums, fp8_always and logits.
Status read_types(const Json& options, engine::SessionOptions& session) {
  if (const auto type = options.find(kType); type != options.end()) {
    if (*type != "fp8") {
      return bad_input("options.dtype: expected fp8, found {}", to_json_line(*type));
    }
    session.fp8 = engine::Fp8::kLayers;
  }
  const bool in_fp8 = session.fp8 != engine::Fp8::kNone;
  ASSAY_TRY(session.fp8_fast_sums, fp8_flag(options, kFastSums, in_fp8));
  ASSAY_TRY(session.fp8_always, fp8_flag(options, kFp8Always, in_fp8));
  ASSAY_TRY(const bool head, fp8_flag(options, kFp8Head, in_fp8));
  if (head) session.fp8 = engine::Fp8::kWithTheHead;
  if (const auto logits = options.find(kLogits); logits != options.end()) {
    if (*logits != "last" && *logits != "all") {
      return bad_input("options.logits: expected last or all, found {}", to_json_line(*logits));
    }
    if (*logits == "all") session.logits = engine::LogitsOf::kAllPositions;
  }
  return {};
}

bool has_others(const Json& options) {
  return std::ranges::any_of(options.items(),
                             [](const auto& item) { return !of_any_mode(item.key()); });
}

}  // namespace

Json compiler_to_json(const engine::CpuCompiler& compiler) {
  return {{"command", compiler.command.string()},
          {"path", compiler.path.string()},
          {"version", compiler.version},
          {"sha256", compiler.sha256},
          {"timeout_s", compiler.timeout_s}};
}

Result<std::optional<NativeSlots>> native_slots(const Json& options) {
  constexpr int64_t kMost = 1'000'000;
  NativeSlots slots;
  const auto read = [&](const char* name, int64_t& value) -> Status {
    const auto found = options.find(name);
    if (found == options.end()) return {};
    ASSAY_TRY(value, whole_number(name, *found, 1, kMost));
    return {};
  };
  ASSAY_CHECK(read(kSlotsOption, slots.slots));
  ASSAY_CHECK(read(kContext, slots.context));
  ASSAY_CHECK(read(kChunk, slots.chunk));
  if (slots.slots == 0) return std::optional<NativeSlots>();
  return std::optional(slots);
}

bool has_own_weights(const LoadRequest& request) {
  return request.options.contains(kQuantizationOption);
}

std::filesystem::path weights_of(const LoadRequest& request) {
  return has_own_weights(request) ? request.options[kQuantizationOption].get<std::string>()
                                  : request.model;
}

Result<engine::SessionOptions> native_session_options(const LoadRequest& request) {
  engine::SessionOptions options;
  if (request.mode == "compiled") {
    ASSAY_TRY(options.compile, compile_options(request));
  } else if (request.mode != "eager") {
    return bad_input("mode: expected eager or compiled, found {}", request.mode);
  } else if (!request.dynamic.empty() || has_others(request.options)) {
    return bad_input(
        "mode eager: expected no dynamic and no options but device, dtype, quantization, fp8_head, "
        "fp8_fast_sums, fp8_always and logits, found {} and {}",
        quoted_excerpt(request.dynamic), excerpt(to_json_line(request.options)));
  }
  if (request.cache != "static" && request.cache != "dynamic") {
    return bad_input("cache: expected dynamic or static, found {}", request.cache);
  }
  options.cache =
      request.cache == "static" ? engine::CacheKind::kStatic : engine::CacheKind::kDynamic;
  if (!request.dtype.empty()) {
    options.dtype = engine::parse_dtype(request.dtype);
    if (!options.dtype) {
      return bad_input("dtype: expected fp32, fp16 or bf16, found {}", request.dtype);
    }
  }
  if (has_own_weights(request)) {
    ASSAY_CHECK(word(kQuantizationOption, request.options[kQuantizationOption]));
    options.dtype.reset();  // the model's: these stay in their own
  }
  ASSAY_CHECK(read_types(request.options, options));
  options.threads = static_cast<size_t>(request.threads);
  ASSAY_TRY(const DeviceName device, device_of(request.options));
  options.gpu = device.gpu;
  if (options.fp8 != engine::Fp8::kNone && !options.gpu) {
    return bad_input("options.dtype: expected device cuda beside dtype fp8, found cpu");
  }
  // A GPU's eager kernels are compiled too.
  if (options.gpu && request.mode == "eager") {
    options.compile.kernel_cache = engine::KernelCache::default_folder();
  }
  return options;
}

}  // namespace assay
