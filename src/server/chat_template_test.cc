// Conversations as prompts, family by family.
#include "server/chat_template.h"

#include <gtest/gtest.h>

namespace assay::server {
namespace {

TEST(ChatTemplates, OfKnownFamiliesAreRendered) {
  const auto chatml = ChatTemplate::recognize(
      "{% if x %}{{ '<|im_start|>system\\nYou help.<|im_end|>\\n' }}{% endif %}{{'<|im_start|>' + "
      "role}}");
  ASSERT_TRUE(chatml);
  EXPECT_EQ(*chatml->render({{"user", "Hi"}}),
            "<|im_start|>system\nYou "
            "help.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(
      *chatml->render({{"system", "S"}, {"user", "Hi"}}),
      "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  const auto llama2 = ChatTemplate::recognize("[INST]");
  EXPECT_EQ(*llama2->render({{"system", "S"}, {"user", "a"}, {"assistant", "b"}, {"user", "c"}}),
            "<s>[INST] <<SYS>>\nS\n<</SYS>>\n\na [/INST] b </s><s>[INST] c [/INST]");
  EXPECT_FALSE(llama2->render({{"assistant", "b"}}));
  EXPECT_FALSE(chatml->render({{"tool", "b"}}));
  EXPECT_FALSE(ChatTemplate::recognize("{{ messages }}"));
}

}  // namespace
}  // namespace assay::server
