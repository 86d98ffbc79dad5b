// One table a family, read in both directions.
#include "engine/model/gguf_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <span>
#include <utility>

namespace assay::engine {
namespace {

struct Renamed {
  std::string_view gguf, engine;
};

// Parts of a layer's names, without ".weight" and ".bias".
constexpr std::array kLlamaLayer = {
    Renamed{"attn_norm", "input_layernorm"},    Renamed{"attn_q", "self_attn.q_proj"},
    Renamed{"attn_k", "self_attn.k_proj"},      Renamed{"attn_v", "self_attn.v_proj"},
    Renamed{"attn_output", "self_attn.o_proj"}, Renamed{"ffn_norm", "post_attention_layernorm"},
    Renamed{"ffn_gate", "mlp.gate_proj"},       Renamed{"ffn_up", "mlp.up_proj"},
    Renamed{"ffn_down", "mlp.down_proj"},
};
constexpr std::array kLlamaOthers = {
    Renamed{"token_embd", "model.embed_tokens"},
    Renamed{"output_norm", "model.norm"},
    Renamed{"output", "lm_head"},
};
constexpr std::array kGpt2Layer = {
    Renamed{"attn_norm", "ln_1"},          Renamed{"attn_qkv", "attn.c_attn"},
    Renamed{"attn_output", "attn.c_proj"}, Renamed{"ffn_norm", "ln_2"},
    Renamed{"ffn_up", "mlp.c_fc"},         Renamed{"ffn_down", "mlp.c_proj"},
};
constexpr std::array kGpt2Others = {
    Renamed{"token_embd", "transformer.wte"},
    Renamed{"position_embd", "transformer.wpe"},
    Renamed{"output_norm", "transformer.ln_f"},
    Renamed{"output", "lm_head"},
};
struct FamilyNames {
  std::span<const Renamed> layer, others;
  std::string_view layers;  // the engine's prefix of a layer's names
};

FamilyNames names_of(Architecture architecture) {
  if (architecture == Architecture::kGpt2) return {kGpt2Layer, kGpt2Others, "transformer.h."};
  return {kLlamaLayer, kLlamaOthers, "model.layers."};
}

constexpr std::string_view kFileLayers = "blk.";

// A name's part before ".weight" or ".bias"; empty: it ends otherwise.
std::string_view stem_of(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return "";
  const std::string_view end = name.substr(dot);
  return end == ".weight" || end == ".bias" ? name.substr(0, dot) : "";
}

// The name with its layer's prefix and its stem replaced, each as `from` has it by what `to` has.
std::string renamed(std::string_view name, Architecture architecture,
                    std::string_view Renamed::*from, std::string_view Renamed::*to,
                    std::string_view from_layers, std::string_view to_layers) {
  const FamilyNames names = names_of(architecture);
  std::string_view stem = stem_of(name);
  if (stem.empty()) return "";
  const std::string_view end = name.substr(stem.size());
  std::string prefix;
  std::span<const Renamed> table = names.others;
  if (stem.starts_with(from_layers)) {
    stem.remove_prefix(from_layers.size());
    const size_t dot = stem.find('.');
    if (dot == std::string_view::npos) return "";
    prefix = fmt::format("{}{}.", to_layers, stem.substr(0, dot));
    stem.remove_prefix(dot + 1);
    table = names.layer;
  }
  const auto found = std::ranges::find(table, stem, from);
  return found == table.end() ? "" : fmt::format("{}{}{}", prefix, (*found).*to, end);
}

}  // namespace

std::string engine_name(std::string_view name, Architecture architecture) {
  return renamed(name, architecture, &Renamed::gguf, &Renamed::engine, kFileLayers,
                 names_of(architecture).layers);
}

std::string gguf_name(std::string_view name, Architecture architecture) {
  std::string found = renamed(name, architecture, &Renamed::engine, &Renamed::gguf,
                              names_of(architecture).layers, kFileLayers);
  assert(!found.empty());
  return found;
}

// llama-model-loader.cpp, llama_model_ftype_name().
std::string_view mix_name(int64_t file_type) {
  static constexpr std::array<std::pair<int64_t, std::string_view>, 11> kNames = {{
      {2, "Q4_0"},
      {3, "Q4_1"},
      {7, "Q8_0"},
      {8, "Q5_0"},
      {9, "Q5_1"},
      {14, "Q4_K - Small"},
      {15, "Q4_K - Medium"},
      {16, "Q5_K - Small"},
      {17, "Q5_K - Medium"},
      {18, "Q6_K"},
      {25, "IQ4_NL - 4.5 bpw"},
  }};
  const auto found = std::ranges::find(kNames, file_type, &decltype(kNames)::value_type::first);
  return found == kNames.end() ? "" : found->second;
}

}  // namespace assay::engine
