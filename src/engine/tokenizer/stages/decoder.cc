// The steps of the `tokenizers` package, which work on lists of tokens, made to work on one token
// after another.
#include "engine/tokenizer/stages/decoder.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include "engine/tokenizer/byte_alphabet.h"
#include "engine/tokenizer/stages/normalizer.h"
#include "engine/tokenizer/stages/stage_json.h"
#include "engine/tokenizer/unicode.h"

namespace assay::engine {

Result<Decoder::Step> Decoder::read_step(const Json& stage, const std::string& type,
                                         std::string_view name) {
  Step step;
  if (type == "ByteLevel") {
    step.kind = Kind::kByteLevel;
  } else if (type == "ByteFallback") {
    step.kind = Kind::kByteFallback;
  } else if (type == "Fuse") {
    step.kind = Kind::kFuse;
  } else if (type == "Metaspace") {
    step.kind = Kind::kMetaspace;
    ASSAY_TRY(step.pattern, stage_character(stage, "replacement", name));
    ASSAY_TRY(const std::string scheme, json_string_or(stage, "prepend_scheme", "always", name));
    ASSAY_TRY(const bool add_prefix, json_bool_or(stage, "add_prefix_space", true, name));
    step.prepends = scheme != "never" && add_prefix;
  } else if (type == "Replace") {
    step.kind = Kind::kReplace;
    ASSAY_TRY(step.pattern, stage_string_pattern(stage, name));
    ASSAY_TRY(step.content, json_string(stage, "content", name));
    for (const std::string& text : {step.pattern, step.content}) {
      if (text.empty() || read_utf8(text, 0).size == text.size()) continue;
      return bad_input("{}: expected Replace of one character by one or none, found {}", name,
                       json_quoted(text));
    }
  } else if (type == "Strip") {
    step.kind = Kind::kStrip;
    ASSAY_TRY(step.pattern, stage_character(stage, "content", name));
    if (step.pattern.size() != 1) {
      return bad_input("{}: expected Strip of an ASCII character, found {}", name,
                       json_quoted(step.pattern));
    }
    ASSAY_TRY(const int64_t start, json_int(stage, "start", name));
    ASSAY_TRY(const int64_t stop, json_int(stage, "stop", name));
    if (start < 0 || stop != 0) {
      return bad_input("{}: expected Strip with start at least 0 and stop 0, found {} and {}", name,
                       start, stop);
    }
    step.count = static_cast<size_t>(start);
  } else {
    return bad_input(
        "{}: expected ByteLevel, ByteFallback, Fuse, Metaspace, Replace or Strip, found {}", name,
        type);
  }
  return step;
}

Status Decoder::check_order(const std::vector<Step>& before, const Step& step,
                            const std::string& type, std::string_view name) {
  const auto is_bytes = [](const Step& earlier) { return earlier.kind == Kind::kByteLevel; };
  if (std::any_of(before.begin(), before.end(), is_bytes) && step.kind != Kind::kFuse &&
      step.kind != Kind::kStrip) {
    return bad_input("{}: expected nothing but Fuse and Strip after ByteLevel, found {}", name,
                     type);
  }
  if (step.fused && step.kind == Kind::kByteFallback) {
    return bad_input("{}: expected ByteFallback before Fuse, found it after", name);
  }
  return {};
}

Result<Decoder> Decoder::read(const Json& stage, std::string_view object) {
  const std::string name = fmt::format("{}: decoder", object);
  Decoder decoder;
  bool fused = false;
  const auto add = [&](const Json& part, const std::string& type) -> Status {
    ASSAY_TRY(Step step, read_step(part, type, name));
    step.fused = fused;
    ASSAY_CHECK(check_order(decoder.steps_, step, type, name));
    fused = fused || step.kind == Kind::kFuse || step.kind == Kind::kByteLevel;
    decoder.steps_.push_back(std::move(step));
    return {};
  };
  ASSAY_CHECK(walk_stage(stage, "decoders", name, add));
  if (decoder.steps_.empty()) return bad_input("{}: expected a decoder, found none", name);
  return decoder;
}

namespace {

// "<0x0A>": the byte that the token stands for.
std::optional<char> byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  uint8_t byte = 0;
  const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
  if (error != std::errc() || end != token.data() + 5) return std::nullopt;
  return static_cast<char>(byte);
}

bool is_valid_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = read_utf8(text, at);
    if (!c.valid) return false;
    at += c.size;
  }
  return true;
}

}  // namespace

bool Decoder::can_stream(std::string_view token) const {
  const auto bytes = std::find_if(steps_.begin(), steps_.end(),
                                  [](const Step& s) { return s.kind == Kind::kByteLevel; });
  if (bytes == steps_.end() || !bytes->fused) return true;
  std::string text(token);
  for (auto step = steps_.begin(); step != bytes; ++step) {
    // Bytes may spell any character.
    if (step->kind == Kind::kByteFallback && byte_of_token(token)) return false;
    if (step->kind == Kind::kReplace) text = replace_all(text, step->pattern, step->content);
    if (step->kind == Kind::kMetaspace) text = replace_all(text, step->pattern, " ");
  }
  return bytes_of_symbols(text).has_value();
}

std::string DecoderRun::strip(const Decoder::Step& step, State& state, std::string piece) const {
  if (!step.fused) state = {};
  size_t cut = 0;
  while (!state.begun && state.stripped < step.count && cut < piece.size() &&
         piece[cut] == step.pattern[0]) {
    ++cut;
    ++state.stripped;
  }
  if (cut < piece.size()) state.begun = true;
  return piece.substr(cut);
}

std::string DecoderRun::unmark(const Decoder::Step& step, State& state,
                               const std::string& piece) const {
  const bool is_first = !state.begun || step.fused;
  state.begun = true;
  return replace_all(piece, step.pattern, is_first && step.prepends ? "" : " ");
}

// A run of byte tokens is a text, or else as many U+FFFD as it has bytes.
void DecoderRun::flush_bytes(size_t step, std::string& out) {
  const std::string bytes = std::exchange(states_[step].held, {});
  if (bytes.empty()) return;
  if (is_valid_utf8(bytes)) {
    feed(step + 1, bytes, out);
    return;
  }
  for (size_t i = 0; i < bytes.size(); ++i) feed(step + 1, "\ufffd", out);
}

void DecoderRun::feed(size_t step, std::string piece, std::string& out) {
  for (; step < decoder_->steps_.size(); ++step) {
    const Decoder::Step& does = decoder_->steps_[step];
    State& state = states_[step];
    switch (does.kind) {
      case Decoder::Kind::kByteLevel:
        if (auto bytes = bytes_of_symbols(piece)) piece = std::move(*bytes);
        break;
      case Decoder::Kind::kByteFallback:
        if (const auto byte = byte_of_token(piece)) {
          state.held += *byte;
          return;
        }
        flush_bytes(step, out);
        break;
      case Decoder::Kind::kFuse:
        break;
      case Decoder::Kind::kMetaspace:
        piece = unmark(does, state, piece);
        break;
      case Decoder::Kind::kReplace:
        piece = replace_all(piece, does.pattern, does.content);
        break;
      case Decoder::Kind::kStrip:
        piece = strip(does, state, std::move(piece));
        break;
    }
  }
  out += piece;
}

std::string DecoderRun::push(std::string_view token) {
  std::string out;
  feed(0, std::string(token), out);
  return out;
}

std::string DecoderRun::finish() {
  std::string out;
  for (size_t step = 0; step < states_.size(); ++step) {
    if (decoder_->steps_[step].kind == Decoder::Kind::kByteFallback) flush_bytes(step, out);
  }
  std::fill(states_.begin(), states_.end(), State{});
  return out;
}

}  // namespace assay::engine
