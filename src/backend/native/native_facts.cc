// Fixed facts of the native engine.
#include "backend/native/native_facts.h"

#include <algorithm>

namespace assay {

Json native_capabilities() {
  return {{"modes", {"eager", "compiled"}},
          {"dynamic", {"false", "true", "auto"}},
          {"caches", {"dynamic", "static"}},
          {"dtypes", {"fp32", "fp16", "bf16"}},
          {"architectures", {"gpt2", "llama", "qwen2"}},
          {"devices", {"cpu", "cuda"}},
          {"tokenize", true},
          {"device_events", true}};
}

Json native_toolchain() {
#if defined(__clang__)
  const char* compiler = "clang";
#else
  const char* compiler = "gcc";
#endif
  return {{"compiler", compiler}, {"version", __VERSION__}, {"code_generator", nullptr}};
}

std::vector<int64_t> native_special_ids(const engine::ModelConfig& config) {
  std::vector<int64_t> ids;
  if (config.bos_token_id) ids.push_back(*config.bos_token_id);
  ids.insert(ids.end(), config.eos_token_ids.begin(), config.eos_token_ids.end());
  std::erase_if(ids, [&](int64_t id) { return id < 0 || id >= config.vocab_size; });
  std::ranges::sort(ids);
  ids.erase(std::ranges::unique(ids).begin(), ids.end());
  return ids;
}

}  // namespace assay
