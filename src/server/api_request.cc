// Reads requests. A member that would change what is generated and can't be had is refused by name;
// others are left alone, as these APIs' servers do.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <utility>

#include "base/clock.h"
#include "base/random.h"
#include "base/text/text.h"
#include "server/api.h"

namespace assay::server {
namespace {

constexpr std::string_view kRequest = "request";
constexpr int64_t kMostTokens = 1'000'000;
constexpr int64_t kMostLikeliest = 20;
constexpr size_t kMostStops = 16;
constexpr size_t kMostStopBytes = 1000;

const Json& at(const Json& object, std::string_view key) {
  static const Json nothing;
  if (!object.is_object()) return nothing;
  const auto found = object.find(key);
  return found == object.end() ? nothing : *found;
}

std::unexpected<Error> refuse(std::string_view key, std::string_view expected, const Json& found) {
  return bad_input("{}: expected {}, found {}", key, expected, quoted_excerpt(to_json_line(found)));
}

Result<std::optional<int64_t>> count_at(const Json& object, std::string_view key, int64_t least,
                                        int64_t most = kMostTokens) {
  const Json& value = at(object, key);
  if (value.is_null()) return std::nullopt;
  const bool fits = value.is_number_integer() && value >= least && value <= most;
  if (!fits) return refuse(key, fmt::format("a whole number from {} to {}", least, most), value);
  return value.get<int64_t>();
}

Result<bool> flag_at(const Json& object, std::string_view key, bool otherwise) {
  return json_bool_or(object, key, otherwise, kRequest);
}

Status demand_nothing(const Json& object, std::string_view key, std::string_view why) {
  const Json& value = at(object, key);
  const bool is_nothing = value.is_null() || value == false || value == "" ||
                          ((value.is_array() || value.is_object()) && value.empty());
  if (is_nothing) return {};
  return refuse(key, fmt::format("nothing, since {}", why), value);
}

Status read_number(const Json& object, std::string_view key, double& into) {
  const Json& value = at(object, key);
  if (value.is_null()) return {};
  if (!value.is_number()) return refuse(key, "a number", value);
  into = value.get<double>();
  return {};
}

constexpr int64_t kMostBiases = 1024;  // each of a request's answers holds them

Status read_logit_bias(const Json& object, engine::Sampling& sampling) {
  const Json& biases = at(object, "logit_bias");
  if (biases.is_null()) return {};
  if (!biases.is_object()) return refuse("logit_bias", "an object of token ids", biases);
  for (const auto& [token, bias] : biases.items()) {
    int32_t id = 0;
    const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), id);
    if (error != std::errc() || end != token.data() + token.size() || !bias.is_number())
      return refuse("logit_bias", "token ids with numbers", biases);
    sampling.logit_bias.emplace_back(id, bias.get<double>());
  }
  std::ranges::sort(sampling.logit_bias);
  const auto same = [](const auto& one, const auto& other) { return one.first == other.first; };
  if (std::ranges::adjacent_find(sampling.logit_bias, same) != sampling.logit_bias.end() ||
      std::ssize(sampling.logit_bias) > kMostBiases) {
    return bad_input("logit_bias: expected at most {} token ids, each once, found {}", kMostBiases,
                     counted(std::ssize(sampling.logit_bias), "entry", "entries"));
  }
  return {};
}

// Without a seed a temperature gives each request another text.
uint64_t any_seed() {
  static std::atomic<uint64_t> made{0};
  uint64_t mix = static_cast<uint64_t>(system_clock().wall_ns()) + made++;
  return splitmix64(mix);
}

// The likeliest token is taken unless a temperature is asked for.
Status read_sampling(const Json& object, engine::Sampling& sampling) {
  ASSAY_CHECK(read_number(object, "temperature", sampling.temperature));
  ASSAY_CHECK(read_number(object, "top_p", sampling.top_p));
  ASSAY_CHECK(read_number(object, "min_p", sampling.min_p));
  ASSAY_CHECK(read_number(object, "repetition_penalty", sampling.repetition_penalty));
  ASSAY_CHECK(read_number(object, "repeat_penalty", sampling.repetition_penalty));
  ASSAY_CHECK(read_number(object, "presence_penalty", sampling.presence_penalty));
  ASSAY_CHECK(read_number(object, "frequency_penalty", sampling.frequency_penalty));
  ASSAY_TRY(const auto top_k, count_at(object, "top_k", -1));
  sampling.top_k = std::max<int64_t>(top_k.value_or(0), 0);
  ASSAY_CHECK(read_logit_bias(object, sampling));
  const Json& seed = at(object, "seed");
  if (!seed.is_null() && !seed.is_number_integer()) return refuse("seed", "a whole number", seed);
  sampling.seed = seed.is_null() || seed == -1 ? any_seed() : seed.get<uint64_t>();
  return {};
}

Result<std::vector<std::string>> stops_at(const Json& object) {
  const Json& value = at(object, "stop");
  std::vector<std::string> stops;
  if (value.is_null()) return stops;
  if (value.is_string()) {
    stops.push_back(value.get<std::string>());
  } else if (value.is_array() && value.size() <= kMostStops) {
    for (const Json& one : value) {
      if (!one.is_string()) return refuse("stop", "texts", one);
      stops.push_back(one.get<std::string>());
    }
  } else {
    return refuse("stop", fmt::format("a text, or at most {} of them", kMostStops), value);
  }
  for (const std::string& stop : stops) {
    if (stop.empty() || stop.size() > kMostStopBytes)
      return bad_input("stop: expected texts of 1 to {} bytes, found {}", kMostStopBytes,
                       counted(std::ssize(stop), "byte"));
  }
  return stops;
}

// A text, or a list of parts that are texts.
Result<std::string> content_at(const Json& message) {
  const Json& content = at(message, "content");
  if (content.is_string()) return content.get<std::string>();
  if (content.is_null()) return std::string();
  std::string text;
  if (!content.is_array()) return refuse("content", "a text or a list of parts", content);
  for (const Json& part : content) {
    if (at(part, "type") != "text" || !at(part, "text").is_string())
      return refuse("content", "parts of type text", part);
    text += at(part, "text").get<std::string>();
  }
  return text;
}

Result<std::vector<ChatMessage>> messages_at(const Json& body) {
  const Json& list = at(body, "messages");
  if (!list.is_array() || list.empty()) return refuse("messages", "a list of messages", list);
  std::vector<ChatMessage> messages;
  for (const Json& one : list) {
    ChatMessage message;
    ASSAY_TRY(message.role, json_string(one, "role", "messages"));
    if (message.role == "developer") message.role = "system";
    ASSAY_CHECK(demand_nothing(one, "tool_calls", "this server calls no tools"));
    ASSAY_CHECK(demand_nothing(one, "images", "the model reads text alone"));
    ASSAY_TRY(message.content, content_at(one));
    messages.push_back(std::move(message));
  }
  return messages;
}

Result<std::vector<int32_t>> ids_of(const Json& list) {
  std::vector<int32_t> ids;
  for (const Json& one : list) {
    if (!one.is_number_integer() || one < 0 || one > INT32_MAX)
      return refuse("prompt", "token ids", one);
    ids.push_back(one.get<int32_t>());
  }
  return ids;
}

Result<ApiPrompt> prompt_of(const Json& prompt) {
  if (prompt.is_string()) return prompt.get<std::string>();
  if (!prompt.is_array()) return refuse("prompt", "a text or token ids", prompt);
  return ids_of(prompt);
}

// A text, token ids, or a list of such.
Status read_prompts(const Json& body, ApiRequest& request) {
  const Json& prompt = at(body, "prompt");
  const bool is_list = prompt.is_array() && !prompt.empty() &&
                       (prompt.front().is_array() || prompt.front().is_string());
  if (!is_list) {
    ASSAY_TRY(request.prompts.emplace_back(), prompt_of(prompt));
    return {};
  }
  for (const Json& one : prompt) {
    ASSAY_TRY(request.prompts.emplace_back(), prompt_of(one));
  }
  return {};
}

Status read_openai(const Json& body, ApiRequest& request) {
  ASSAY_CHECK(read_sampling(body, request.sampling));
  ASSAY_TRY(const auto choices, count_at(body, "n", 1, kMostChoices));
  request.choices = choices.value_or(1);
  ASSAY_TRY(const auto best_of, count_at(body, "best_of", 1));
  if (best_of && *best_of != request.choices)
    return refuse("best_of", "n, since none is left out", at(body, "best_of"));
  ASSAY_CHECK(demand_nothing(body, "suffix", "the model goes on from a prompt alone"));
  ASSAY_CHECK(demand_nothing(body, "tools", "this server calls no tools"));
  const Json& format = at(body, "response_format");
  if (!format.is_null() && at(format, "type") != "text")
    return refuse("response_format", "text", format);
  ASSAY_TRY(request.most_tokens, count_at(body, "max_completion_tokens", 1));
  if (!request.most_tokens) {
    ASSAY_TRY(request.most_tokens, count_at(body, "max_tokens", 1));
  }
  ASSAY_TRY(const auto least, count_at(body, "min_tokens", 0));
  request.least_tokens = least.value_or(0);
  ASSAY_TRY(request.ignore_ends, flag_at(body, "ignore_eos", false));
  ASSAY_TRY(request.stops, stops_at(body));
  ASSAY_TRY(request.stream, flag_at(body, "stream", false));
  ASSAY_TRY(request.tells_usage, flag_at(at(body, "stream_options"), "include_usage", false));
  return {};
}

Status read_ollama(const Json& body, ApiRequest& request) {
  const Json& options = at(body, "options");
  if (!options.is_null() && !options.is_object()) return refuse("options", "an object", options);
  ASSAY_CHECK(read_sampling(options, request.sampling));
  ASSAY_CHECK(demand_nothing(body, "images", "the model reads text alone"));
  ASSAY_CHECK(demand_nothing(body, "tools", "this server calls no tools"));
  ASSAY_CHECK(demand_nothing(body, "format", "answers are plain text"));
  ASSAY_CHECK(demand_nothing(body, "template", "the model's own is used"));
  ASSAY_CHECK(demand_nothing(body, "suffix", "the model goes on from a prompt alone"));
  ASSAY_CHECK(demand_nothing(body, "logprobs", "only OpenAI's API tells probabilities here"));
  ASSAY_TRY(const auto most, count_at(options, "num_predict", -2));
  if (most && *most >= 0) request.most_tokens = std::max<int64_t>(*most, 1);
  request.cut_to_room = true;
  ASSAY_TRY(request.stops, stops_at(options));
  ASSAY_TRY(request.stream, flag_at(body, "stream", true));
  return {};
}

Status read_completion(const Json& body, ApiRequest& request) {
  constexpr int64_t kDefaultTokens = 16;  // this API's
  ASSAY_CHECK(read_openai(body, request));
  ASSAY_CHECK(read_prompts(body, request));
  ASSAY_TRY(request.echo, flag_at(body, "echo", false));
  ASSAY_TRY(request.likeliest, count_at(body, "logprobs", 0, kMostLikeliest));
  if (request.likeliest && request.echo)
    return refuse("logprobs", "nothing beside echo, since a prompt's own aren't computed",
                  at(body, "logprobs"));
  if (!request.most_tokens) request.most_tokens = kDefaultTokens;
  return {};
}

Status read_chat(const Json& body, ApiRequest& request) {
  ASSAY_CHECK(read_openai(body, request));
  ASSAY_TRY(request.prompts.emplace_back(), messages_at(body));
  ASSAY_TRY(const bool tells_logprobs, flag_at(body, "logprobs", false));
  ASSAY_TRY(const auto likeliest, count_at(body, "top_logprobs", 0, kMostLikeliest));
  if (tells_logprobs) {
    request.likeliest = likeliest.value_or(0);
  } else if (likeliest.value_or(0) > 0) {
    return refuse("logprobs", "true beside top_logprobs", at(body, "logprobs"));
  }
  return {};
}

Status read_ollama_generate(const Json& body, ApiRequest& request) {
  ASSAY_CHECK(read_ollama(body, request));
  ASSAY_TRY(const std::string text, json_string_or(body, "prompt", "", kRequest));
  ASSAY_TRY(const std::string system, json_string_or(body, "system", "", kRequest));
  ASSAY_TRY(const bool raw, flag_at(body, "raw", false));
  if (raw) {
    request.prompts.emplace_back(text);
    return {};
  }
  std::vector<ChatMessage> messages;
  if (!system.empty()) messages.push_back({"system", system});
  messages.push_back({"user", text});
  request.prompts.emplace_back(std::move(messages));
  request.needs_template = false;
  return {};
}

Status read_ollama_chat(const Json& body, ApiRequest& request) {
  ASSAY_CHECK(read_ollama(body, request));
  ASSAY_TRY(request.prompts.emplace_back(), messages_at(body));
  return {};
}

}  // namespace

Result<ApiRequest> parse_api_request(ApiKind kind, const Json& body) {
  const auto read = [&] {
    switch (kind) {
      case ApiKind::kCompletion:
        return read_completion;
      case ApiKind::kChat:
        return read_chat;
      case ApiKind::kOllamaGenerate:
        return read_ollama_generate;
      case ApiKind::kOllamaChat:
        return read_ollama_chat;
    }
    std::unreachable();
  }();
  ApiRequest request;
  ASSAY_CHECK(read(body, request));
  const int64_t all = std::ssize(request.prompts) * request.choices;
  if (all > kMostChoices)
    return bad_input("n: expected at most {} answers to a request, found {}", kMostChoices, all);
  return request;
}

}  // namespace assay::server
