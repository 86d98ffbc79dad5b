// The pipeline: added tokens, normalisation, added tokens again, words, BPE; and back.
#include "engine/tokenizer/tokenizer.h"

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <utility>

#include "base/files.h"
#include "engine/tokenizer/added_tokens.h"
#include "engine/tokenizer/bpe.h"
#include "engine/tokenizer/split_pattern.h"
#include "engine/tokenizer/tokenizer_file.h"
#include "engine/tokenizer/unicode.h"

namespace assay::engine {

struct Tokenizer::Impl {
  bool nfc = false;
  std::vector<SplitStep> steps;
  BytePairEncoder encoder;
  AddedTokenFinder raw_finder;         // in the text as it came
  AddedTokenFinder normalized_finder;  // in the normalised text between those
  std::unordered_map<int32_t, TokenText> tokens;
  std::vector<int32_t> prefix;
  std::vector<int32_t> suffix;
  int64_t vocab_size = 0;

  Result<std::string> normalize(std::string_view text) const {
    if (nfc) return normalize_nfc(text);
    return std::string(text);
  }

  // Text without added tokens.
  Status encode_words(std::string_view text, std::vector<int32_t>& ids) const {
    std::vector<std::string_view> pieces = {text};
    std::deque<std::string> spaced;  // owns the pieces that grew a space
    for (const SplitStep& step : steps) {
      std::vector<std::string_view> cut;
      for (std::string_view piece : pieces) {
        if (step.add_prefix_space && !piece.starts_with(' ')) {
          piece = spaced.emplace_back(" ").append(piece);
        }
        if (step.pattern) {
          ASSAY_CHECK(step.pattern->split(piece, cut));
        } else {
          cut.push_back(piece);
        }
      }
      pieces = std::move(cut);
    }
    for (const std::string_view word : pieces) encoder.encode(word, ids);
    return {};
  }

  Status encode_between(std::string_view text, std::vector<int32_t>& ids) const {
    ASSAY_TRY(const std::string normal, normalize(text));
    std::vector<Segment> segments;
    normalized_finder.cut(normal, segments);
    for (const Segment& segment : segments) {
      if (segment.id >= 0) {
        ids.push_back(segment.id);
      } else {
        ASSAY_CHECK(encode_words(segment.text, ids));
      }
    }
    return {};
  }
};

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::open(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "tokenizer.json";
  ASSAY_TRY(const std::string text, read_file(path));
  return parse(text, path.string());
}

Result<Tokenizer> Tokenizer::parse(std::string_view json_text, std::string_view object) {
  ASSAY_TRY(TokenizerFile file, read_tokenizer_file(json_text, object));
  int32_t largest = 0;
  for (const auto& [id, text] : file.tokens) largest = std::max(largest, id);
  std::vector<AddedToken> raw, normalized;
  for (AddedToken& token : file.added) {
    (token.normalized ? normalized : raw).push_back(std::move(token));
  }
  return Tokenizer(std::unique_ptr<Impl>(
      new Impl{file.nfc, std::move(file.steps), BytePairEncoder(std::move(file.model)),
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
      ASSAY_CHECK(impl_->encode_between(segment.text, ids));
    }
  }
  if (add_special_tokens) ids.insert(ids.end(), impl_->suffix.begin(), impl_->suffix.end());
  return ids;
}

std::string Tokenizer::decode(const std::vector<int32_t>& ids, bool skip_special_tokens) const {
  std::string bytes;
  for (const int32_t id : ids) {
    const auto it = impl_->tokens.find(id);
    if (it == impl_->tokens.end() || (skip_special_tokens && it->second.special)) continue;
    bytes += it->second.bytes;
  }
  return bytes;
}

int64_t Tokenizer::vocab_size() const {
  return impl_->vocab_size;
}

std::string TokenStream::push(int32_t id) {
  pending_ += tokenizer_.decode({id}, true);
  size_t complete = pending_.size();
  // A sequence is at most four bytes: look for one that has begun in the last three.
  for (size_t back = 1; back <= std::min<size_t>(3, pending_.size()); ++back) {
    const size_t at = pending_.size() - back;
    const Utf8Char c = read_utf8(pending_, at);
    if (c.truncated && at + c.size == pending_.size()) complete = at;
  }
  std::string text = repair_utf8(std::string_view(pending_).substr(0, complete));
  pending_.erase(0, complete);
  return text;
}

std::string TokenStream::finish() {
  return repair_utf8(std::exchange(pending_, {}));
}

}  // namespace assay::engine
