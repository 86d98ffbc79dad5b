// The transcript of docs/worker-protocol.md, against the parser and against the real native worker.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <thread>

#include "backend/line_stream.h"
#include "backend/native/native_worker.h"
#include "backend/protocol.h"
#include "base/files/descriptor.h"
#include "base/files/files.h"
#include "base/text/text.h"
#include "engine/model/make.h"
#include "tests/support/places.h"

namespace assay {
namespace {

struct Transcript {
  std::vector<std::string> requests;
  std::vector<std::string> replies;
};

Transcript read_transcript() {
  const auto text = read_file(checked_out("docs/worker-protocol.md"));
  EXPECT_TRUE(text) << text.error().message;
  Transcript transcript;
  if (!text) return transcript;
  for (const std::string& line : split(*text, '\n')) {
    if (line.starts_with("> {")) transcript.requests.push_back(line.substr(2));
    if (line.starts_with("< {")) transcript.replies.push_back(line.substr(2));
  }
  return transcript;
}

TEST(Transcript, EveryLineKeepsThePagesRules) {
  const Transcript transcript = read_transcript();
  ASSERT_EQ(transcript.requests.size(), 8u);
  ASSERT_EQ(transcript.replies.size(), 10u);
  for (const std::string& line : transcript.requests) {
    const auto request = parse_request(line);
    EXPECT_TRUE(request) << line << ": " << request.error().message;
  }
  for (const std::string& line : transcript.replies) {
    const auto reply = parse_reply(line);
    EXPECT_TRUE(reply) << line << ": " << reply.error().message;
  }
}

// The names of all members, those of objects within objects as "outer.inner".
void add_member_names(const Json& json, const std::string& before, std::set<std::string>& names) {
  if (!json.is_object()) return;
  for (const auto& [name, value] : json.items()) {
    names.insert(before + name);
    add_member_names(value, before + name + ".", names);
  }
}

std::set<std::string> member_names(const std::string& line) {
  std::set<std::string> names;
  add_member_names(Json::parse(line), "", names);
  names.erase("capabilities.profile");  // only where CUPTI is
  return names;
}

// A checkpoint of the size that the transcript's prompts fit.
std::filesystem::path tiny_checkpoint() {
  const auto folder =
      std::filesystem::temp_directory_path() / fmt::format("assay-transcript-{}", getpid());
  std::filesystem::remove_all(folder);
  const auto made = engine::make_checkpoint("tiny-gpt2", folder, {});
  EXPECT_TRUE(made) << made.error().message;
  return folder;
}

TEST(Transcript, TheNativeWorkerAnswersAsItSays) {
  const Transcript transcript = read_transcript();
  const auto folder = tiny_checkpoint();
  std::array<int, 2> to_worker{};
  std::array<int, 2> from_worker{};
  ASSERT_EQ(pipe(to_worker.data()), 0);
  ASSERT_EQ(pipe(from_worker.data()), 0);
  Descriptor request_end(to_worker[1]);
  const Descriptor reply_end(from_worker[0]);
  std::thread serving([&] {
    const Descriptor requests(to_worker[0]);
    const Descriptor replies(from_worker[1]);
    const auto worker = make_native_worker("test");
    EXPECT_TRUE(serve_worker(*worker, requests.get(), replies.get()));
  });
  LineStream harness(reply_end.get(), request_end.get(), kMaxLineBytes);
  std::vector<std::string> output_hashes;
  size_t next = 0;
  for (std::string request : transcript.requests) {
    if (const size_t at = request.find("\"MODEL\""); at != std::string::npos) {
      request.replace(at, 7, Json(folder.string()).dump());
    }
    ASSERT_TRUE(harness.write(request + "\n"));
    const int64_t id = parse_request(request)->id;
    for (; next < transcript.replies.size(); ++next) {
      const auto expected = parse_reply(transcript.replies[next]);
      if (expected->id != id) break;
      const auto line = harness.read_line();
      ASSERT_TRUE(line && *line);
      const auto reply = parse_reply(**line);
      ASSERT_TRUE(reply) << **line;
      EXPECT_EQ(reply->id, id);
      EXPECT_EQ(reply->body.index(), expected->body.index()) << **line;
      EXPECT_EQ(member_names(**line), member_names(transcript.replies[next])) << **line;
      if (const auto* sample = std::get_if<SampleReply>(&reply->body)) {
        const auto& wanted = std::get<SampleReply>(expected->body);
        EXPECT_EQ(sample->repetition, wanted.repetition);
        EXPECT_EQ(sample->tokens, wanted.tokens);
        EXPECT_EQ(sample->cold, wanted.cold);
        EXPECT_GT(sample->latency_ms, 0.0);
        output_hashes.push_back(sample->output_hash);
      }
    }
  }
  EXPECT_EQ(next, transcript.replies.size());
  ASSERT_EQ(output_hashes.size(), 2u);
  EXPECT_EQ(output_hashes[0], output_hashes[1]);  // greedy, from an empty cache both times
  serving.join();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace assay
