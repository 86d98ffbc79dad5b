// An engine's process in a thread, with a fate, for tests.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/files/descriptor.h"
#include "base/process/subprocess.h"
#include "engine/serving/batch.h"
#include "server/engine_process.h"

namespace assay::server {

// A process's life.
struct Fate {
  int64_t messages = INT64_MAX;  // until its end
  LineRead::Kind kind = LineRead::Kind::kEnd;
  std::atomic<bool>* held = nullptr;  // true: it isn't ready yet
  bool refuses = false;               // it says that there is no engine
  std::string poison = {};            // in a call: its end
  int64_t heard = 0;                  // messages
  std::vector<std::string> calls = {};
};

// The process's side in a thread.
class ThreadChild final : public Child {
 public:
  ThreadChild(engine::Batch batch, Fate& fate) : batch_(std::move(batch)), fate_(fate) {
    int requests[2], replies[2];
    EXPECT_EQ(::pipe(requests), 0);
    EXPECT_EQ(::pipe(replies), 0);
    to_ = Descriptor(requests[1]);
    from_ = ::fdopen(replies[0], "r");
    thread_ = std::thread([this, in = requests[0], out = Descriptor(replies[1])] {
      if (fate_.refuses) tell_no_engine({ErrorKind::kEnvironment, "no room"}, out.get());
      (void)serve_batch(batch_, {99}, {{"name", "tiny"}}, in, out.get());
    });
  }
  ~ThreadChild() override {
    to_ = Descriptor();
    std::fclose(from_);
    thread_.join();
  }
  int64_t pid() const override { return 0; }
  Status send(std::string_view bytes, int64_t) override {
    if (bytes.starts_with("{")) fate_.calls.emplace_back(bytes);
    is_dead_ |= !fate_.poison.empty() && bytes.find(fate_.poison) != std::string::npos;
    if (is_dead_ || ::write(to_.get(), bytes.data(), bytes.size()) < 0)
      return environment_error("it has ended");
    return {};
  }
  void close_requests() override {}
  // One that isn't held is ready by the first look.
  LineRead read_line(int64_t deadline_ns) override {
    if (fate_.held != nullptr && *fate_.held && deadline_ns <= 0)
      return {LineRead::Kind::kDeadline, ""};
    if (fate_.held != nullptr) fate_.held->wait(true);
    is_dead_ |= fate_.heard++ == fate_.messages;
    if (is_dead_) return {fate_.kind, ""};
    std::string line;
    for (int byte = 0; (byte = std::fgetc(from_)) != EOF && byte != '\n';)
      line += static_cast<char>(byte);
    return {LineRead::Kind::kLine, line};
  }
  int reply_descriptor() const override { return -1; }
  int end_descriptor() const override { return -1; }
  std::optional<ChildEnd> wait(int64_t) override {
    ChildEnd end;
    end.signal = "SIGSEGV";
    return end;
  }
  void kill() override {}
  std::string captured_stdout() const override { return ""; }
  std::string captured_stderr() const override { return ""; }

 private:
  engine::Batch batch_;
  Fate& fate_;
  Descriptor to_;
  std::FILE* from_ = nullptr;
  bool is_dead_ = false;
  std::thread thread_;
};

}  // namespace assay::server
