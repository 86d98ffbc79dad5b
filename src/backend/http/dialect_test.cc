#include "backend/http/dialect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/http/generation.h"
#include "backend/http/scripted_server.h"
#include "base/records/json.h"

namespace assay {
namespace {

using test::chunked_answer;
using test::Script;
using test::ScriptedRequest;
using test::ScriptedServer;
using test::whole_answer;
using testing::ElementsAre;
using testing::HasSubstr;

const Dialect& dialect(std::string_view name) {
  return *find_dialect(name);
}

struct Heard {
  Generated generated;
  HttpResult<void> result;
};

Heard heard_of(std::string_view name, const std::vector<std::string>& pieces) {
  ScriptedServer server([&](const ScriptedRequest&) { return chunked_answer(pieces); });
  HttpLoop loop;
  Heard heard;
  heard.result = generate(loop, {parse_server_url(server.url()).value()}, dialect(name),
                          dialect(name).generate({"m", {{1, 2}}, 2}), {}, heard.generated);
  return heard;
}

// The role's chunk has no token, the last chunk no choice; both are traps.
const std::vector<std::string> kChat = {
    "data: "
    "{\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[]},\"finish_"
    "reason\":null}]}"
    "\n\n",
    "data: {\"choices\":[{\"delta\":{\"content\":\"two words\"},\"finish_reason\":null}]}\n\n",
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}\n\n",
    "data: "
    "{\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2,\"prompt_tokens_"
    "details\":{\"cached_tokens\":3}}}\n\n",
    "data: [DONE]\n\n"};

TEST(Openai, TheFirstTokenIsTheFirstWithContentAndCountsAreUsage) {
  const Heard heard = heard_of("openai", kChat);
  ASSERT_TRUE(heard.result) << heard.result.error().message;
  EXPECT_EQ(heard.generated.token_ns.size(), 1u)
      << "neither the role, nor the finish, nor the usage is a token";
  EXPECT_EQ(heard.generated.text, "two words");
  EXPECT_EQ(heard.generated.figures.new_tokens, 2) << "one chunk of two tokens";
  EXPECT_EQ(heard.generated.figures.prompt_tokens, 9);
  EXPECT_EQ(heard.generated.figures.cached_tokens, 3);
  EXPECT_EQ(heard.generated.finish, "length");
}

TEST(Openai, WithoutItsLastEventAStreamIsCut) {
  for (size_t kept = 0; kept + 1 < kChat.size(); ++kept) {
    const Heard heard =
        heard_of("openai", {kChat.begin(), kChat.begin() + static_cast<ptrdiff_t>(kept)});
    ASSERT_FALSE(heard.result) << kept;
    EXPECT_EQ(heard.result.error().error_class, http_class::kCut);
  }
}

TEST(Openai, AnErrorInTheStreamIsTheServers) {
  const Heard heard =
      heard_of("openai", {kChat[1], "data: {\"error\":{\"message\":\"out of slots\"}}\n\n"});
  ASSERT_FALSE(heard.result);
  EXPECT_EQ(heard.result.error().error_class, http_class::kServerError);
  EXPECT_THAT(heard.result.error().message, HasSubstr("out of slots"));
  EXPECT_EQ(heard.generated.token_ns.size(), 1u) << "what came before is known";
}

TEST(Openai, EventsThatAreNoJsonAreMalformed) {
  EXPECT_EQ(heard_of("openai", {"data: {\"choices\":[\n\n"}).result.error().error_class,
            http_class::kMalformed);
  EXPECT_EQ(heard_of("openai", {"data: [1]\n\n"}).result.error().error_class,
            http_class::kMalformed);
}

TEST(Openai, AsksForIdsOrForAConversation) {
  const HttpRequest ids = dialect("openai").generate({"m", {{5, 6}}, 7});
  EXPECT_EQ(ids.path, "/v1/completions");
  const Json body = parse_json(ids.body, "body").value();
  EXPECT_EQ(body["prompt"], Json({5, 6}));
  EXPECT_EQ(body["max_tokens"], 7);
  EXPECT_EQ(body["stream_options"]["include_usage"], true);
  EXPECT_EQ(body["ignore_eos"], true);
  EXPECT_EQ(body["min_tokens"], 7);
  EXPECT_FALSE(body.contains("cache_prompt")) << "other servers may refuse llama.cpp's key";
  const HttpRequest llama = dialect("openai").generate({"m", {{5, 6}}, 7, false, "llama.cpp"});
  EXPECT_EQ(parse_json(llama.body, "body").value()["cache_prompt"], false);
  const HttpRequest chat = dialect("openai").generate({"m", {{}, "hi"}, 7, true});
  EXPECT_EQ(chat.path, "/v1/chat/completions");
  EXPECT_EQ(parse_json(chat.body, "body").value()["messages"][0]["content"], "hi");
}

TEST(LlamaServer, HasIdsAndTimings) {
  const Heard heard =
      heard_of("llama_server", {"data: {\"content\":\"\",\"tokens\":[5],\"stop\":false}\n\n",
                                "data: {\"content\":\"x\",\"tokens\":[6],\"stop\":false}\n\n",
                                "data: "
                                "{\"content\":\"\",\"tokens\":[],\"stop\":true,\"stop_type\":"
                                "\"limit\",\"tokens_predicted\":2,\"tokens_evaluated\":8,"
                                "\"timings\":{\"cache_n\":1,\"prompt_n\":7,\"prompt_ms\":12.5,"
                                "\"predicted_n\":2,\"predicted_ms\":3.25}}\n\n"});
  ASSERT_TRUE(heard.result) << heard.result.error().message;
  EXPECT_THAT(heard.generated.ids, ElementsAre(5, 6)) << "a token may have no text of its own";
  EXPECT_EQ(heard.generated.token_ns.size(), 2u);
  EXPECT_EQ(heard.generated.figures.prompt_tokens, 8);
  EXPECT_EQ(heard.generated.figures.cached_tokens, 1);
  EXPECT_EQ(heard.generated.figures.prompt_ms, 12.5);
  EXPECT_EQ(heard.generated.figures.generation_ms, 3.25);
}

TEST(Generation, AFreshConnectionIsMadeForEachRequest) {
  ScriptedServer server([&](const ScriptedRequest&) { return chunked_answer(kChat); });
  HttpLoop loop;
  for (int i = 0; i < 3; ++i) {
    Generated generated;
    HttpRequest request = dialect("openai").generate({"m", {{1, 2}}, 2});
    request.fresh = true;
    ASSERT_TRUE(generate(loop, {parse_server_url(server.url()).value()}, dialect("openai"), request,
                         {}, generated));
    EXPECT_GE(generated.connected_ns, generated.started_ns);
    EXPECT_GE(generated.sent_ns, generated.connected_ns);
    EXPECT_GT(generated.token_ns.at(0), generated.connected_ns);
  }
  EXPECT_EQ(server.connections(), 3);
}

TEST(LlamaServer, WantsNothingFromACache) {
  const Json body =
      parse_json(dialect("llama_server").generate({"", {{5, 6}}, 7}).body, "body").value();
  EXPECT_EQ(body["cache_prompt"], false);
  EXPECT_EQ(body["ignore_eos"], true);
  EXPECT_EQ(body["n_predict"], 7);
}

TEST(LlamaServer, ShowsIdsUpToTheEndOfTheText) {
  const auto request = dialect("llama_server").show_ids({"", {{5, 6}}, 7});
  ASSERT_TRUE(request);
  const Json body = parse_json(request->body, "body").value();
  EXPECT_FALSE(body.contains("ignore_eos")) << "or the server would never choose such an id";
  EXPECT_FALSE(body.contains("stream"));
  EXPECT_EQ(body["return_tokens"], true);
  EXPECT_EQ(body["n_predict"], 7);
  EXPECT_EQ(body["cache_prompt"], false);
  const auto piece =
      dialect("llama_server").read(R"({"content": "x", "tokens": [7, 2], "stop": true,
                                   "stop_type": "eos", "tokens_predicted": 2})");
  ASSERT_TRUE(piece) << piece.error().message;
  EXPECT_THAT(piece->ids, ElementsAre(7, 2));
  EXPECT_EQ(piece->finish, "eos");
  for (const char* const other : {"openai", "ollama"}) {
    EXPECT_FALSE(dialect(other).show_ids({"", {{5, 6}}, 7})) << other;
  }
}

TEST(Ollama, TheLastLineHasFiguresInNanosecondsAllOfThemOptional) {
  const Heard heard =
      heard_of("ollama", {"{\"response\":\"a\",\"done\":false}\n",
                          "{\"response\":\"\",\"done\":true,\"done_reason\":\"length\","
                          "\"prompt_eval_count\":10,\"prompt_eval_cached_count\":4,\"prompt_eval_"
                          "duration\":2500000,\"eval_count\":1,"
                          "\"load_duration\":1000000}\n"});
  ASSERT_TRUE(heard.result) << heard.result.error().message;
  EXPECT_EQ(heard.generated.token_ns.size(), 1u);
  EXPECT_EQ(heard.generated.figures.prompt_tokens, 10) << "the cached ones are counted too";
  EXPECT_EQ(heard.generated.figures.cached_tokens, 4);
  EXPECT_EQ(heard.generated.figures.prompt_ms, 2.5);
  EXPECT_EQ(heard.generated.figures.generation_ms, std::nullopt);
  EXPECT_EQ(heard.generated.figures.load_ms, 1.0);
}

TEST(Ollama, SendsTextAsItIs) {
  const HttpRequest request = dialect("ollama").generate({"m", {{}, "the of"}, 7});
  EXPECT_EQ(request.path, "/api/generate");
  const Json body = parse_json(request.body, "body").value();
  EXPECT_EQ(body["raw"], true);
  EXPECT_EQ(body["options"]["num_predict"], 7);
}

// Servers as they answer questions about themselves.
Script as_llama_server(const ScriptedRequest& request) {
  if (request.path == "/props") {
    return whole_answer(
        "{\"total_slots\":2,\"build_info\":\"b1\",\"model_ftype\":\"Q4_1\",\"bos_token\":\"<s>\","
        "\"eos_token\":\"</s>\","
        "\"model_path\":\"/m/a.gguf\",\"default_generation_settings\":{\"n_ctx\":1024}}");
  }
  if (request.path == "/v1/models") {
    return whole_answer(
        "{\"data\":[{\"id\":\"/m/"
        "a.gguf\",\"owned_by\":\"llamacpp\",\"meta\":{\"n_vocab\":500,\"size\":99,\"ftype\":\"Q4_"
        "1\"}}]}");
  }
  if (request.path == "/tokenize") {
    return whole_answer(request.body.find("</s>") == std::string::npos ? "{\"tokens\":[1]}"
                                                                       : "{\"tokens\":[2]}");
  }
  return whole_answer("{\"error\":\"not found\"}", 404);
}

Script as_openai(const ScriptedRequest& request) {
  if (request.path == "/v1/models")
    return whole_answer(
        "{\"data\":[{\"id\":\"a\",\"owned_by\":\"vllm\",\"max_model_len\":2048},{\"id\":\"b\"}]}");
  if (request.path == "/version") return whole_answer("{\"version\":\"0.9\"}");
  return whole_answer("not found", 404);
}

Script as_ollama(const ScriptedRequest& request) {
  if (request.path == "/api/tags") {
    return whole_answer(
        "{\"models\":[{\"name\":\"smol:latest\",\"digest\":\"d1\",\"size\":5,\"details\":{"
        "\"quantization_level\":\"Q4_0\"}}]}");
  }
  if (request.path == "/api/version") return whole_answer("{\"version\":\"0.12\"}");
  if (request.path == "/api/show") {
    return whole_answer(
        "{\"template\":\"t\",\"model_info\":{\"general.architecture\":\"llama\",\"llama.context_"
        "length\":2048}}");
  }
  if (request.path == "/api/ps")
    return whole_answer("{\"models\":[{\"name\":\"smol:latest\",\"size\":5,\"size_vram\":0}]}");
  return whole_answer("404 page not found", 404);
}

// As assay serve, behind the APIs of both.
Script as_both(const ScriptedRequest& request) {
  if (request.path == "/api/version")
    return whole_answer("{\"version\":\"0.1\",\"server\":\"assay\"}");
  return request.path.starts_with("/api/") ? as_ollama(request) : as_openai(request);
}

HttpResult<const Dialect*> probed(ScriptedServer::Handler handler) {
  ScriptedServer server(std::move(handler));
  HttpLoop loop;
  return probe_dialect(loop, {parse_server_url(server.url()).value()});
}

HttpResult<ServerFacts> facts_of(std::string_view name, ScriptedServer::Handler handler,
                                 const std::string& model) {
  ScriptedServer server(std::move(handler));
  HttpLoop loop;
  return dialect(name).facts(loop, {parse_server_url(server.url()).value()}, model);
}

TEST(ProbeDialect, FindsTheApiThatTellsMost) {
  EXPECT_EQ(probed(as_llama_server).value()->name(), "llama_server");
  EXPECT_EQ(probed(as_openai).value()->name(), "openai");
  EXPECT_EQ(probed(as_ollama).value()->name(), "ollama");
  EXPECT_EQ(probed(as_both).value()->name(), "openai");
  EXPECT_EQ(probed([](const ScriptedRequest& request) {
              return request.path.starts_with("/api/") ? as_both(request) : whole_answer("no", 404);
            })
                .value()
                ->name(),
            "ollama")
      << "it has no other API";
  const auto none = probed([](const ScriptedRequest&) { return whole_answer("hello", 404); });
  ASSERT_FALSE(none);
  EXPECT_THAT(
      none.error().message,
      testing::MatchesRegex("expected a server of an API that assay knows "
                            "\\(llama_server, ollama, openai\\) at http://127.0.0.1:[0-9]+, "
                            "found none: expected an answer, found status 404: hello"))
      << "one answer to all three is told once";
  const auto site = probed([](const ScriptedRequest&) {
    return whole_answer("<html><body>" + std::string(1000, 'x') + "</body></html>");
  });
  ASSERT_FALSE(site);
  EXPECT_THAT(site.error().message, HasSubstr("expected a JSON object, found \"<html><body>x"));
  EXPECT_LT(site.error().message.size(), 300u);
  EXPECT_EQ(
      probed([](const ScriptedRequest&) { return whole_answer("key?", 401); }).error().error_class,
      "http_401");
}

TEST(ServerFacts, AreWhatTheServerSays) {
  const auto llama = facts_of("llama_server", as_llama_server, "");
  ASSERT_TRUE(llama) << llama.error().message;
  EXPECT_EQ(llama->version, "b1");
  EXPECT_EQ(llama->quantization, "Q4_1");
  EXPECT_EQ(llama->vocab_size, 500);
  EXPECT_EQ(llama->slots, 2);
  EXPECT_EQ(llama->context_tokens, 1024);
  EXPECT_THAT(llama->special_ids, ElementsAre(1, 2));
  const auto openai = facts_of("openai", as_openai, "a");
  ASSERT_TRUE(openai) << openai.error().message;
  EXPECT_EQ(openai->server, "vllm");
  EXPECT_EQ(openai->version, "0.9");
  EXPECT_EQ(openai->context_tokens, 2048);
  const auto ollama = facts_of("ollama", as_ollama, "smol");
  ASSERT_TRUE(ollama) << ollama.error().message;
  EXPECT_EQ(ollama->model, "smol:latest");
  EXPECT_EQ(ollama->digest, "d1");
  EXPECT_EQ(ollama->quantization, "Q4_0");
  EXPECT_EQ(ollama->device, "cpu");
  EXPECT_EQ(ollama->context_tokens, 2048);
}

TEST(ServerFacts, AModelThatTheServerHasNotIsRefusedWithTheNamesOfThoseThatItHas) {
  const auto openai = facts_of("openai", as_openai, "c");
  ASSERT_FALSE(openai);
  EXPECT_EQ(openai.error().error_class, "model_not_found");
  EXPECT_THAT(openai.error().message, HasSubstr("found a, b"));
  EXPECT_EQ(facts_of("ollama", as_ollama, "other").error().error_class, "model_not_found");
  EXPECT_EQ(facts_of("llama_server", as_llama_server, "other").error().error_class,
            "model_not_found");
  EXPECT_TRUE(facts_of("llama_server", as_llama_server, "a.gguf"));
}

TEST(ServerFacts, HostileAnswersAreNoFacts) {
  for (const char* const body :
       {"[]", "{", "{\"data\":7}", "{\"data\":[{\"id\":7}]}", "{\"models\":{}}", "null",
        "{\"models\":[7]}", "{\"total_slots\":\"many\"}",
        "{\"total_slots\":-1,\"default_generation_settings\":{}}"}) {
    for (const std::string_view name : dialect_names()) {
      const auto facts = facts_of(
          name, [&](const ScriptedRequest&) { return whole_answer(body); }, "m");
      EXPECT_FALSE(facts) << name << " " << body;
    }
  }
}

}  // namespace
}  // namespace assay
