#include "server/chat_template.h"

#include <array>
#include <utility>

#include "base/files/files.h"
#include "base/records/json.h"
#include "base/records/lenient_json.h"
#include "base/text/text.h"
#include "engine/model/gguf.h"

namespace assay::server {
namespace {

// "<|im_start|>system\nYou are ...<|im_end|>" as the template has it, its line breaks escaped or
// not.
std::string default_system(std::string_view jinja) {
  constexpr std::string_view kEnd = "<|im_end|>";
  for (const std::string_view begin : {"<|im_start|>system\\n", "<|im_start|>system\n"}) {
    for (size_t at = jinja.find(begin); at != std::string_view::npos;
         at = jinja.find(begin, at + 1)) {
      const std::string_view rest = jinja.substr(at + begin.size());
      const std::string_view said = rest.substr(0, rest.find(kEnd));
      // A quote ends the literal: what follows is a message's own content.
      if (!said.empty() && said.size() < rest.size() && said.find('\'') == std::string_view::npos &&
          said.find("{{") == std::string_view::npos)
        return std::string(said);
    }
  }
  return "";
}

bool is_role(std::string_view role) {
  constexpr std::array<std::string_view, 3> kRoles = {"system", "user", "assistant"};
  for (const std::string_view one : kRoles) {
    if (role == one) return true;
  }
  return false;
}

std::string trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n\f\v";
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(kBlank) - begin + 1));
}

}  // namespace

Result<std::optional<ChatTemplate>> ChatTemplate::open(const std::filesystem::path& model) {
  const auto known = [](std::string_view jinja) -> Result<std::optional<ChatTemplate>> {
    ASSAY_TRY(ChatTemplate found, recognize(jinja));
    return found;
  };
  std::error_code error;
  if (std::filesystem::is_regular_file(model, error)) {
    ASSAY_TRY(const engine::GgufFile file, engine::open_gguf(model));
    ASSAY_TRY(const auto text, file.gguf.text("tokenizer.chat_template"));
    if (!text || text->empty()) return std::nullopt;
    return known(*text);
  }
  if (std::filesystem::exists(model / "chat_template.jinja")) {
    ASSAY_TRY(const std::string text, read_file(model / "chat_template.jinja"));
    return known(text);
  }
  if (!std::filesystem::exists(model / "tokenizer_config.json")) return std::nullopt;
  ASSAY_TRY(const Json config, read_json_file(model / "tokenizer_config.json"));
  const std::string text = text_member(config, "chat_template");
  if (text.empty()) return std::nullopt;
  return known(text);
}

Result<ChatTemplate> ChatTemplate::recognize(std::string_view jinja) {
  const auto has = [&](std::string_view part) {
    return jinja.find(part) != std::string_view::npos;
  };
  if (has("<|im_start|>")) {
    ChatTemplate chatml(Family::kChatMl);
    chatml.system_ = default_system(jinja);
    return chatml;
  }
  if (has("<|start_header_id|>")) return ChatTemplate(Family::kLlama3);
  if (has("[INST]")) return ChatTemplate(Family::kLlama2);
  return bad_input("chat template: expected ChatML, Llama 3's or Llama 2's, found another: {}",
                   quoted_excerpt(jinja));
}

Result<std::string> ChatTemplate::render(const std::vector<ChatMessage>& messages) const {
  if (messages.empty()) return bad_input("messages: expected at least one, found none");
  for (const ChatMessage& message : messages) {
    if (!is_role(message.role))
      return bad_input("messages: expected the role system, user or assistant, found {}",
                       quoted_excerpt(message.role));
  }
  std::string text;
  switch (family_) {
    case Family::kChatMl: {
      const auto say = [&](const std::string& role, const std::string& content) {
        text += "<|im_start|>" + role + "\n" + content + "<|im_end|>\n";
      };
      if (!system_.empty() && messages.front().role != "system") say("system", system_);
      for (const ChatMessage& message : messages) say(message.role, message.content);
      return text + "<|im_start|>assistant\n";
    }
    case Family::kLlama3: {
      text = "<|begin_of_text|>";
      for (const ChatMessage& message : messages) {
        text += "<|start_header_id|>" + message.role + "<|end_header_id|>\n\n" +
                trimmed(message.content) + "<|eot_id|>";
      }
      return text + "<|start_header_id|>assistant<|end_header_id|>\n\n";
    }
    case Family::kLlama2:
      return render_llama2(messages);
  }
  std::unreachable();
}

Result<std::string> ChatTemplate::render_llama2(const std::vector<ChatMessage>& messages) const {
  const bool has_system = messages.front().role == "system";
  std::string text;
  for (size_t i = has_system ? 1 : 0; i < messages.size(); ++i) {
    const size_t turn = i - (has_system ? 1 : 0);
    const ChatMessage& message = messages[i];
    if (message.role != (turn % 2 == 0 ? "user" : "assistant")) {
      return bad_input("messages: expected user and assistant by turns, found {} at place {}",
                       message.role, i);
    }
    if (turn % 2 == 1) {
      text += " " + trimmed(message.content) + " </s>";
      continue;
    }
    const std::string system =
        turn == 0 && has_system ? "<<SYS>>\n" + messages.front().content + "\n<</SYS>>\n\n" : "";
    text += "<s>[INST] " + trimmed(system + message.content) + " [/INST]";
  }
  if (text.empty() || messages.back().role != "user")
    return bad_input("messages: expected a user's at the end, found another");
  return text;
}

}  // namespace assay::server
