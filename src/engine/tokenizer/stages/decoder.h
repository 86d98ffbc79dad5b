// A tokenizer.json's "decoder": the texts of tokens to the text that they spell.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/records/json.h"
#include "base/result.h"

namespace assay::engine {

class DecoderRun;

class Decoder {
 public:
  // ByteLevel, ByteFallback, Fuse, Metaspace, Replace of one character by one or none, Strip at the
  // start, and sequences of them; another type, or an order that can't be streamed, is an error
  // that names it. So is null, for then no file says how tokens are joined. `object` names the file
  // in errors.
  static Result<Decoder> read(const Json& stage, std::string_view object);

  // False: decoding this token by itself isn't decoding it among others. It can be false only where
  // ByteLevel comes after Fuse: one character outside its alphabet then leaves the whole text as it
  // is, and no prefix of the text is certain.
  bool can_stream(std::string_view token) const;

 private:
  friend DecoderRun;
  enum class Kind { kByteLevel, kByteFallback, kFuse, kMetaspace, kReplace, kStrip };
  struct Step {
    Kind kind = Kind::kFuse;
    std::string pattern;   // kReplace, kMetaspace, kStrip: one character
    std::string content;   // kReplace: one character or none
    size_t count = 0;      // kStrip: how many at most
    bool prepends = true;  // kMetaspace: the first token's marks stand for nothing
    bool fused = false;    // the step sees one long token, piece by piece
  };

  static Result<Step> read_step(const Json& stage, const std::string& type, std::string_view name);
  static Status check_order(const std::vector<Step>& before, const Step& step,
                            const std::string& type, std::string_view name);

  std::vector<Step> steps_;
};

// One text being decoded, token by token. The decoder must outlive it.
class DecoderRun {
 public:
  explicit DecoderRun(const Decoder& decoder)
      : decoder_(&decoder), states_(decoder.steps_.size()) {}

  // The text that is certain after this token and wasn't before. The pieces together are the text
  // to which the `tokenizers` package decodes the whole list, except for malformed UTF-8, which it
  // replaces.
  std::string push(std::string_view token);
  // The rest. The run starts anew.
  std::string finish();

 private:
  struct State {
    bool begun = false;   // kMetaspace, kStrip: something has passed
    size_t stripped = 0;  // kStrip
    std::string held;     // kByteFallback: a run of byte tokens, whose text depends on its end
  };

  void feed(size_t step, std::string piece, std::string& out);
  void flush_bytes(size_t step, std::string& out);
  std::string strip(const Decoder::Step& step, State& state, std::string piece) const;
  std::string unmark(const Decoder::Step& step, State& state, const std::string& piece) const;

  const Decoder* decoder_;
  std::vector<State> states_;
};

}  // namespace assay::engine
