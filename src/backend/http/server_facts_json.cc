// Facts and gaps.
#include "backend/http/server_facts_json.h"

#include "base/files/hash.h"

namespace assay {

Json server_facts_json(const ServerFacts& facts) {
  Json json = Json::object(), unknown = Json::array();
  const auto add_text = [&](const char* name, const std::string& text) {
    if (text.empty()) {
      unknown.push_back(name);
    } else {
      json[name] = text;
    }
  };
  const auto add_number = [&](const char* name, const auto& number) {
    if (number) {
      json[name] = *number;
    } else {
      unknown.push_back(name);
    }
  };
  add_text("server", facts.server);
  add_text("version", facts.version);
  add_text("model", facts.model);
  add_text("digest", facts.digest);
  add_text("quantization", facts.quantization);
  add_text("device", facts.device);
  add_text("chat_template_sha256",
           facts.chat_template.empty() ? "" : sha256_hex(facts.chat_template));
  add_number("context_tokens", facts.context_tokens);
  add_number("vocab_size", facts.vocab_size);
  add_number("slots", facts.slots);
  add_number("weight_bytes", facts.weight_bytes);
  json["unknown"] = std::move(unknown);
  return json;
}

}  // namespace assay
