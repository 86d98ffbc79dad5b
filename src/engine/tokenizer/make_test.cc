#include "engine/tokenizer/make.h"

#include <gtest/gtest.h>

#include <set>

#include "base/files/hash.h"
#include "base/records/json.h"

namespace assay::engine {
namespace {

// Plain json: its objects are trees, as a vocabulary needs.
nlohmann::json parse(int64_t vocab_size, TokenizerStyle style) {
  return nlohmann::json::parse(make_tokenizer_json(vocab_size, style));
}

TEST(MakeTokenizer, FillsTheVocabularyExactly) {
  for (const auto style :
       {TokenizerStyle::kGpt2, TokenizerStyle::kLlama3, TokenizerStyle::kQwen2}) {
    for (const int64_t size : {8, 100, 256, 257, 259, 260, 261, 300, 1000, 32000}) {
      const auto tokenizer = parse(size, style);
      const auto& vocab = tokenizer["model"]["vocab"];
      std::set<int64_t> ids;
      for (const auto& [token, id] : vocab.items()) ids.insert(id.get<int64_t>());
      ASSERT_EQ(static_cast<int64_t>(ids.size()), size);
      EXPECT_EQ(*ids.begin(), 0);
      EXPECT_EQ(*ids.rbegin(), size - 1);
      for (const auto& merge : tokenizer["model"]["merges"]) {
        const std::string left = merge[0], right = merge[1];
        ASSERT_TRUE(vocab.contains(left) && vocab.contains(right) && vocab.contains(left + right));
      }
      for (const auto& added : tokenizer["added_tokens"]) {
        EXPECT_EQ(vocab[added["content"].get<std::string>()], added["id"]);
      }
    }
  }
}

TEST(MakeTokenizer, SpecialIdsAreTheRealModelsAtTheirSizes) {
  EXPECT_EQ(special_token_ids(50257, TokenizerStyle::kGpt2).eos, 50256);
  EXPECT_EQ(special_token_ids(128256, TokenizerStyle::kLlama3).bos, 128000);
  EXPECT_EQ(special_token_ids(128256, TokenizerStyle::kLlama3).eos, 128001);
  EXPECT_EQ(special_token_ids(151936, TokenizerStyle::kQwen2).eos, 151643);
  EXPECT_EQ(special_token_ids(151936, TokenizerStyle::kQwen2).bos, std::nullopt);
}

TEST(MakeTokenizer, IsTheSameEverywhere) {
  // A changed hash is a changed checkpoint: `assay model make` promises the same bytes on any
  // machine.
  EXPECT_EQ(sha256_hex(make_tokenizer_json(1000, TokenizerStyle::kGpt2)).substr(0, 16),
            "c3aaabe11e181fec");
  EXPECT_EQ(sha256_hex(make_tokenizer_json(32000, TokenizerStyle::kLlama3)).substr(0, 16),
            "fc6616d55b5d9860");
  EXPECT_EQ(sha256_hex(make_tokenizer_json(1000, TokenizerStyle::kQwen2)).substr(0, 16),
            "9d6799e00d41b810");
}

}  // namespace
}  // namespace assay::engine
