// The protocol's text: a formatted message parses back, and one that breaks a rule is refused.
#include "backend/protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using ::testing::HasSubstr;

std::string without_end(std::string line) {
  EXPECT_TRUE(line.ends_with('\n'));
  line.pop_back();
  return line;
}

// Formatting a parsed message gives the same text: nothing was lost on the way.
void expect_round_trip(const Request& request) {
  const std::string line = without_end(format_request(request));
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto parsed = parse_request(line);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(without_end(format_request(*parsed)), line);
}

void expect_round_trip(const Reply& reply) {
  const std::string line = without_end(format_reply(reply));
  const auto parsed = parse_reply(line);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(without_end(format_reply(*parsed)), line);
}

const WireShape kShape{Phase::kKvDecode, 2, 4, 7};
const WirePrompt kPrompt{{{0, 5, 6}, {7, 8, 9}}, {1, 0}};

TEST(Protocol, RequestsSurviveTheirText) {
  expect_round_trip(Request{1, HelloRequest{1, 3, "assay 0.1.0"}});
  expect_round_trip(Request{2, LoadRequest{"models/m", "fp32", "compiled", "static", "auto", 2,
                                           true, Json{{"backend", "inductor"}}}});
  expect_round_trip(Request{3, PrepareRequest{kShape, {1, 3}}});
  expect_round_trip(Request{4, MeasureRequest{kShape, {kPrompt}, {{-1, 0}, {0, 0}}}});
  expect_round_trip(Request{5, ParityRequest{kShape, kPrompt}});
  expect_round_trip(Request{6, ProfileRequest{kShape, kPrompt, "/tmp/trace.json"}});
  expect_round_trip(Request{7, PrepareRequest{kShape, {1, 3}, true}});
  expect_round_trip(Request{6, EvidenceRequest{Phase::kE2eKv}});
  expect_round_trip(Request{7, TokenizeRequest{"two\nlines and \"quotes\""}});
  expect_round_trip(Request{8, ShutdownRequest{}});
}

TEST(Protocol, RepliesSurviveTheirText) {
  expect_round_trip(Reply{1, HelloReply{1, "w", "2", Json{{"modes", {"eager"}}}}});
  expect_round_trip(Reply{2, LoadedReply{100, {0, 99}, 512, 4096, "bf16", "q4", 2, "ab", 0.5}});
  expect_round_trip(Reply{3, PreparedReply{0.25, Json{{"graphs", 1}}}});
  SampleReply sample;
  sample.repetition = -3;
  sample.latency_ms = 5e-6;
  sample.device_ms = 1234.567891;
  sample.ttft_ms = 1e-6;
  sample.energy_j = 0.3;
  sample.counters = {{Counter::kRecompiles, 1}, {Counter::kKernelLaunches, 2}};
  expect_round_trip(Reply{4, sample});
  sample.yardstick_lookups_us = 30.811;
  sample.yardstick_multiplies_us = 14.4;
  expect_round_trip(Reply{4, sample});
  EXPECT_EQ(format_reply({4, sample}).find("non_finite"), std::string::npos);
  sample.non_finite = true;
  const auto told =
      parse_reply(R"({"id":4,"type":"sample","repetition":0,"latency_ns":5,"tokens":1,)"
                  R"("output_hash":"","started_at_ns":0,"non_finite":true,)"
                  R"("counters":{"recompiles":3,"of_the_future":1}})");
  ASSERT_TRUE(told);
  EXPECT_EQ(std::get<SampleReply>(told->body).counters, Counts({{Counter::kRecompiles, 3}}));
  EXPECT_TRUE(std::get<SampleReply>(told->body).non_finite);
  expect_round_trip(Reply{4, sample});
  expect_round_trip(Reply{4, DoneReply{1}});
  expect_round_trip(Reply{5, ParityReply{{{1, 2}, {3, 4}}}});
  expect_round_trip(Reply{5, ParityReply{{{1}, {3}}, {Json{{"mean", 1}}, Json::object()}}});
  expect_round_trip(Reply{5, ParityReply{{{1, 2}}, {}, {2}}});
  expect_round_trip(Reply{6, ProfileReply{Json{{"kernels_launched", 3}}}});
  expect_round_trip(Reply{6, EvidenceReply{Json{{"compiler_real", "yes"}}}});
  expect_round_trip(Reply{7, TokenizedReply{{1, 2, 3}}});
  expect_round_trip(Reply{8, ByeReply{}});
  expect_round_trip(Reply{9, ErrorReply{"RuntimeError", "line\nline", true}});
}

TEST(Protocol, AbsentFiguresStayAbsent) {
  const auto reply = parse_reply(
      R"({"id":1,"type":"sample","repetition":0,"latency_ns":5,"tokens":1,"output_hash":"",)"
      R"("started_at_ns":0,"device_ns":null})");
  ASSERT_TRUE(reply) << reply.error().message;
  const auto& sample = std::get<SampleReply>(reply->body);
  EXPECT_EQ(static_cast<const Measured&>(sample), Measured{.latency_ms = 5e-6});
  EXPECT_FALSE(sample.cold);
}

TEST(Protocol, UnknownMembersAreIgnored) {
  EXPECT_TRUE(parse_reply(R"({"id":1,"type":"bye","mood":"good"})"));
  EXPECT_TRUE(parse_request(R"({"id":1,"type":"shutdown","why":[1,2]})"));
}

struct Refused {
  const char* line;
  const char* expected;  // part of the message

  friend void PrintTo(const Refused& refused, std::ostream* out) { *out << refused.line; }
};

class RefusedRequest : public ::testing::TestWithParam<Refused> {};
TEST_P(RefusedRequest, NamesTheFault) {
  const auto request = parse_request(GetParam().line);
  ASSERT_FALSE(request);
  EXPECT_EQ(request.error().kind, ErrorKind::kBadInput);
  EXPECT_THAT(request.error().message, HasSubstr(GetParam().expected));
}

INSTANTIATE_TEST_SUITE_P(
    Protocol, RefusedRequest,
    ::testing::Values(
        Refused{"", "expected JSON"}, Refused{"[]", "expected a JSON object"},
        Refused{R"({"type":"shutdown"})", "\"id\""},
        Refused{R"({"id":-1,"type":"shutdown"})", "\"id\""},
        Refused{R"({"id":1.5,"type":"shutdown"})", "\"id\""}, Refused{R"({"id":1})", "\"type\""},
        Refused{R"({"id":1,"type":"explode"})", "explode"},
        Refused{R"({"id":1,"type":"hello","protocol_min":2,"protocol_max":1})", "protocol_max"},
        Refused{R"({"id":1,"type":"load","model":"m","mode":"eager"})", "\"cache\""},
        Refused{R"({"id":1,"type":"evidence","phase":"warm"})", "prefill"},
        Refused{R"({"id":1,"type":"prepare","phase":"prefill","batch":0,"new_tokens":0,)"
                R"("capacity":5,"padded_lens":[5]})",
                "\"batch\""},
        Refused{R"({"id":1,"type":"prepare","phase":"prefill","batch":1,"new_tokens":3,)"
                R"("capacity":5,"padded_lens":[2]})",
                "\"new_tokens\""},
        Refused{R"({"id":1,"type":"prepare","phase":"kv_decode","batch":1,"new_tokens":3,)"
                R"("capacity":5,"padded_lens":[3]})",
                "\"padded_lens\""},
        Refused{R"({"id":1,"type":"measure","phase":"prefill","batch":1,"new_tokens":0,)"
                R"("capacity":2,"prompts":[{"ids":[[1,2,3]],"pad":[0]}],)"
                R"("repetitions":[{"repetition":0,"prompt":0}]})",
                "at most 2 ids"},
        Refused{R"({"id":1,"type":"measure","phase":"prefill","batch":2,"new_tokens":0,)"
                R"("capacity":3,"prompts":[{"ids":[[1,2,3]],"pad":[0]}],)"
                R"("repetitions":[{"repetition":0,"prompt":0}]})",
                "expected 2 rows"},
        Refused{R"({"id":1,"type":"measure","phase":"prefill","batch":2,"new_tokens":0,)"
                R"("capacity":3,"prompts":[{"ids":[[1,2],[3]],"pad":[0,0]}],)"
                R"("repetitions":[{"repetition":0,"prompt":0}]})",
                "rows of one length"},
        Refused{R"({"id":1,"type":"measure","phase":"prefill","batch":1,"new_tokens":0,)"
                R"("capacity":3,"prompts":[{"ids":[[1,2]],"pad":[2]}],)"
                R"("repetitions":[{"repetition":0,"prompt":0}]})",
                "padding"},
        Refused{R"({"id":1,"type":"measure","phase":"prefill","batch":1,"new_tokens":0,)"
                R"("capacity":3,"prompts":[{"ids":[[1,-2]],"pad":[0]}],)"
                R"("repetitions":[{"repetition":0,"prompt":0}]})",
                "prompts.ids"},
        Refused{R"({"id":1,"type":"measure","phase":"prefill","batch":1,"new_tokens":0,)"
                R"("capacity":3,"prompts":[{"ids":[[1,2]],"pad":[0]}],)"
                R"("repetitions":[{"repetition":0,"prompt":1}]})",
                "\"prompt\""},
        Refused{R"({"id":1,"type":"measure","phase":"prefill","batch":1,"new_tokens":0,)"
                R"("capacity":3,"prompts":[],"repetitions":[]})",
                "at least one repetition"},
        Refused{R"({"id":1,"type":"parity","phase":"kv_decode","batch":1,"new_tokens":3,)"
                R"("capacity":4,"prompt":{"ids":[[1,2,3]],"pad":[0]}})",
                "at most 2 ids"}));

TEST(Protocol, ParitysLastTokenTakesNoPlaceInTheCache) {
  const auto request =
      parse_request(R"({"id":1,"type":"parity","phase":"kv_decode","batch":1,"new_tokens":3,)"
                    R"("capacity":5,"prompt":{"ids":[[1,2,3]],"pad":[0]}})");
  ASSERT_TRUE(request) << request.error().message;
  const auto prefill_alone =
      parse_request(R"({"id":1,"type":"parity","phase":"kv_decode","batch":1,"new_tokens":1,)"
                    R"("capacity":3,"prompt":{"ids":[[1,2,3]],"pad":[0]}})");
  EXPECT_TRUE(prefill_alone) << prefill_alone.error().message;
}

class RefusedReply : public ::testing::TestWithParam<Refused> {};
TEST_P(RefusedReply, NamesTheFault) {
  const auto reply = parse_reply(GetParam().line);
  ASSERT_FALSE(reply);
  EXPECT_THAT(reply.error().message, HasSubstr(GetParam().expected));
}

INSTANTIATE_TEST_SUITE_P(
    Protocol, RefusedReply,
    ::testing::Values(
        Refused{"hello", "expected JSON"}, Refused{"{\"id\":1,\"type\":\"load\"}", "known type"},
        Refused{R"({"id":1,"type":"hello","worker":"w"})", "\"protocol\""},
        Refused{R"({"id":1,"type":"loaded","vocab_size":-1,"special_ids":[],"dtype":"fp32",)"
                R"("seconds":1})",
                "\"vocab_size\""},
        Refused{R"({"id":1,"type":"prepared","seconds":-1})", "\"seconds\""},
        Refused{R"({"id":1,"type":"sample","repetition":0,"latency_ns":-5})", "\"latency_ns\""},
        Refused{R"({"id":1,"type":"sample","repetition":0,"latency_ns":1e300})", "\"latency_ns\""},
        Refused{R"({"id":1,"type":"sample","repetition":0,"latency_ns":99999999999999999999})",
                "\"latency_ns\""},
        Refused{R"({"id":1,"type":"sample","repetition":0,"latency_ns":1,"tokens":1,)"
                R"("output_hash":"","started_at_ns":0,"counters":{"recompiles":-1}})",
                "\"recompiles\""},
        Refused{
            R"({"id":1,"type":"sample","repetition":0,"latency_ns":1,"tokens":1,)"
            R"("output_hash":"","started_at_ns":0,"counters":{"recompiles":9223372036854775807}})",
            "\"recompiles\""},
        Refused{R"({"id":1,"type":"parity","tokens":[]})", "at least one row"},
        Refused{R"({"id":1,"type":"parity","tokens":[[1]],"logit_stats":[{},{}]})",
                "1 row, at \"logit_stats\""},
        Refused{R"({"id":1,"type":"profile","summary":[]})", "an object"},
        Refused{R"({"id":1,"type":"evidence","evidence":[]})", "\"evidence\""},
        Refused{R"({"id":1,"type":"error","class":"x","outcome":"ok"})", "\"outcome\""},
        Refused{R"({"id":1,"type":"error","class":""})", "class"}));

TEST(Protocol, RefusesLinesBeyondTheLimit) {
  const std::string line =
      "{\"id\":1,\"type\":\"bye\",\"x\":\"" + std::string(kMaxLineBytes, 'x') + "\"}";
  EXPECT_FALSE(parse_reply(line));
}

}  // namespace
}  // namespace assay
