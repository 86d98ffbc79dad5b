// tokenizer.json, or a GGUF's metadata: BPE over bytes (GPT-2, Llama 3, Qwen2, SmolLM2) or over
// characters with bytes to fall back on, as SentencePiece trains it (Llama 2, TinyLlama).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay::engine {

struct TokenizerFile;

class Tokenizer {
 public:
  // Reads folder/tokenizer.json, or the metadata of a GGUF file. A model, normaliser,
  // pre-tokeniser, post-processor or decoder that isn't supported is an error that names it.
  static Result<Tokenizer> open(const std::filesystem::path& model);
  // The same; absent if the folder or the file has none.
  static Result<std::optional<Tokenizer>> find(const std::filesystem::path& model);
  static Result<Tokenizer> parse(std::string_view json_text, std::string_view object);
  // The file is read and validated already.
  static Tokenizer of(TokenizerFile file);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // Any bytes: invalid UTF-8 is replaced as the `tokenizers` package's callers do (U+FFFD). Fails
  // when the file's own regular expression backtracks past a limit on this text. Safe from several
  // threads at once.
  Result<std::vector<int32_t>> encode(std::string_view text, bool add_special_tokens) const;
  // Bytes of the tokens; unknown ids give nothing. The result may hold or end inside a malformed
  // UTF-8 sequence (a random model's does): TokenStream repairs such bytes, or holds them back.
  std::string decode(const std::vector<int32_t>& ids, bool skip_special_tokens) const;
  int64_t vocab_size() const;  // one more than the largest id

 private:
  friend class TokenStream;
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Feeds tokens one by one and returns the text that is complete so far: valid UTF-8, special tokens
// left out. The pieces together are decode()'s text for the whole, repaired. A run of byte tokens
// ("<0x0A>") is held back until its end: if it isn't UTF-8, each of its bytes becomes U+FFFD.
class TokenStream {
 public:
  // The tokenizer must outlive the stream.
  explicit TokenStream(const Tokenizer& tokenizer);
  ~TokenStream();
  std::string push(int32_t id);
  std::string finish();  // the text held back; half a character gives U+FFFD

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace assay::engine
