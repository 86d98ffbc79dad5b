// A conversation as the text that a model was trained on, for the families whose form is known:
// ChatML (Qwen2, SmolLM), Llama 3 and Llama 2.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay::server {

struct ChatMessage {
  std::string role;  // system | user | assistant
  std::string content;
};

// The checkpoint's template is data that is recognised, never run.
class ChatTemplate {
 public:
  // Reads chat_template.jinja, or tokenizer_config.json, or a GGUF file's metadata. Absent: there
  // is none. bad_input: it is of no family that is known.
  static Result<std::optional<ChatTemplate>> open(const std::filesystem::path& model);
  static Result<ChatTemplate> recognize(std::string_view jinja);

  // With the beginning of the assistant's answer. bad_input: a role that the family hasn't, or an
  // order that it doesn't know.
  Result<std::string> render(const std::vector<ChatMessage>& messages) const;

 private:
  enum class Family { kChatMl, kLlama3, kLlama2 };
  explicit ChatTemplate(Family family) : family_(family) {}
  Result<std::string> render_llama2(const std::vector<ChatMessage>& messages) const;

  Family family_;
  std::string system_ = {};  // that is said where a conversation has no system message; empty: none
};

}  // namespace assay::server
