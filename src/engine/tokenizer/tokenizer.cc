// The pipeline: added tokens, normalisation, added tokens again, words, BPE; and back.
#include "engine/tokenizer/tokenizer.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/files/files.h"
#include "engine/tokenizer/added_tokens.h"
#include "engine/tokenizer/bpe.h"
#include "engine/tokenizer/gguf_tokenizer.h"
#include "engine/tokenizer/tokenizer_file.h"
#include "engine/tokenizer/unicode.h"

namespace assay::engine {

struct Tokenizer::Impl {
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  BytePairEncoder encoder;
  Decoder decoder;
  AddedTokenFinder raw_finder;         // in the text as it came
  AddedTokenFinder normalized_finder;  // in the normalised text between those
  std::unordered_map<int32_t, TokenText> tokens;
  std::vector<int32_t> prefix;
  std::vector<int32_t> suffix;
  int64_t vocab_size = 0;

  // A part of the text between raw added tokens; at_start: nothing stands before it.
  Status encode_between(std::string_view text, bool at_start, std::vector<int32_t>& ids) const {
    ASSAY_TRY(const std::string normal, normalizer.apply(text));
    std::vector<Segment> segments;
    normalized_finder.cut(normal, segments);
    for (const Segment& segment : segments) {
      if (segment.id >= 0) {
        ids.push_back(segment.id);
        continue;
      }
      const bool starts = at_start && segment.text.data() == normal.data();
      ASSAY_TRY(const Words cut, pre_tokenizer.cut(segment.text, starts));
      for (const std::string_view word : cut.words) encoder.encode(word, ids);
    }
    return {};
  }

  // The token's text for the decoder; null for an id that no token has.
  const std::string* text_of(int32_t id, bool skip_special_tokens) const {
    const auto it = tokens.find(id);
    if (it == tokens.end() || (skip_special_tokens && it->second.special)) return nullptr;
    return &it->second.text;
  }
};

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::open(const std::filesystem::path& model) {
  std::error_code error;
  if (std::filesystem::is_regular_file(model, error)) {
    ASSAY_TRY(const GgufFile file, open_gguf(model));
    ASSAY_TRY(TokenizerFile read, read_gguf_tokenizer(file.gguf, model.string()));
    return of(std::move(read));
  }
  const std::filesystem::path path = model / "tokenizer.json";
  ASSAY_TRY(const std::string text, read_file(path));
  return parse(text, path.string());
}

Result<std::optional<Tokenizer>> Tokenizer::find(const std::filesystem::path& model) {
  std::error_code error;
  if (std::filesystem::is_regular_file(model, error)) {
    ASSAY_TRY(const GgufFile file, open_gguf(model));
    if (!file.gguf.has("tokenizer.ggml.tokens")) return std::nullopt;
  } else if (!std::filesystem::exists(model / "tokenizer.json")) {
    return std::nullopt;
  }
  ASSAY_TRY(Tokenizer found, open(model));
  return found;
}

Result<Tokenizer> Tokenizer::parse(std::string_view json_text, std::string_view object) {
  ASSAY_TRY(TokenizerFile file, read_tokenizer_file(json_text, object));
  return of(std::move(file));
}

Tokenizer Tokenizer::of(TokenizerFile file) {
  int32_t largest = 0;
  for (const auto& [id, text] : file.tokens) largest = std::max(largest, id);
  std::vector<AddedToken> raw, normalized;
  for (AddedToken& token : file.added) {
    (token.normalized ? normalized : raw).push_back(std::move(token));
  }
  return Tokenizer(std::unique_ptr<Impl>(
      new Impl{std::move(file.normalizer), std::move(file.pre_tokenizer),
               BytePairEncoder(std::move(file.model)), std::move(file.decoder),
               AddedTokenFinder(std::move(raw)), AddedTokenFinder(std::move(normalized)),
               std::move(file.tokens), std::move(file.prefix), std::move(file.suffix),
               largest + int64_t{1}}));
}

Result<std::vector<int32_t>> Tokenizer::encode(std::string_view text,
                                               bool add_special_tokens) const {
  const std::string valid = repair_utf8(text);
  std::vector<int32_t> ids;
  if (add_special_tokens) ids = impl_->prefix;
  std::vector<Segment> segments;
  impl_->raw_finder.cut(valid, segments);
  for (const Segment& segment : segments) {
    if (segment.id >= 0) {
      ids.push_back(segment.id);
    } else {
      ASSAY_CHECK(impl_->encode_between(segment.text, segment.text.data() == valid.data(), ids));
    }
  }
  if (add_special_tokens) ids.insert(ids.end(), impl_->suffix.begin(), impl_->suffix.end());
  return ids;
}

std::string Tokenizer::decode(const std::vector<int32_t>& ids, bool skip_special_tokens) const {
  DecoderRun run(impl_->decoder);
  std::string bytes;
  for (const int32_t id : ids) {
    if (const std::string* text = impl_->text_of(id, skip_special_tokens)) bytes += run.push(*text);
  }
  return bytes + run.finish();
}

int64_t Tokenizer::vocab_size() const {
  return impl_->vocab_size;
}

struct TokenStream::Impl {
  const Tokenizer::Impl* tokenizer;
  DecoderRun run;
  std::string pending;  // the start of a character
};

TokenStream::TokenStream(const Tokenizer& tokenizer)
    : impl_(new Impl{tokenizer.impl_.get(), DecoderRun(tokenizer.impl_->decoder), {}}) {}
TokenStream::~TokenStream() = default;

std::string TokenStream::push(int32_t id) {
  const std::string* token = impl_->tokenizer->text_of(id, true);
  if (!token) return {};
  std::string& pending = impl_->pending;
  pending += impl_->run.push(*token);
  size_t complete = pending.size();
  // A sequence is at most four bytes: look for one that has begun in the last three.
  for (size_t back = 1; back <= std::min<size_t>(3, pending.size()); ++back) {
    const size_t at = pending.size() - back;
    const Utf8Char c = read_utf8(pending, at);
    if (c.truncated && at + c.size == pending.size()) complete = at;
  }
  std::string text = repair_utf8(std::string_view(pending).substr(0, complete));
  pending.erase(0, complete);
  return text;
}

std::string TokenStream::finish() {
  return repair_utf8(std::exchange(impl_->pending, {}) + impl_->run.finish());
}

}  // namespace assay::engine
