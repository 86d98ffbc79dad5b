// Bodies of requests, for every path that takes one: none may crash, and each is answered by JSON.
// The first byte chooses the path.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/records/json.h"
#include "server/fuzzed_service.h"

namespace assay::server {
namespace {

constexpr std::array<std::string_view, 6> kPaths = {"/v1/completions", "/v1/chat/completions",
                                                    "/api/generate",   "/api/chat",
                                                    "/api/show",       "/tokenize"};

void demand(bool holds) {
  if (!holds) std::abort();
}

// Holds that there is one answer, and that it is JSON.
class HeldAnswer final : public Answer {
 public:
  ~HeldAnswer() override { demand(done_); }
  void send(int status, std::string_view, std::string body) override {
    demand(!done_ && !streams_ && status == 200 && Json::accept(body));
    done_ = true;
  }
  void refuse(int status, const std::string& message, std::optional<int>) override {
    demand(!done_ && !streams_ && status >= 400 && status < 600 && !message.empty());
    demand(Json::accept(api_error("/v1/completions", status, message)));
    done_ = true;
  }
  void begin(std::string_view) override { streams_ = true; }
  void write(std::string bytes) override {
    demand(streams_ && !done_);
    bytes_ += bytes;
  }
  void end() override {
    demand(streams_ && !done_);
    done_ = true;
    for (size_t at = 0; at < bytes_.size();) {
      const size_t end = bytes_.find('\n', at);
      demand(end != std::string::npos);
      std::string_view line = std::string_view(bytes_).substr(at, end - at);
      if (line.starts_with("data: ")) line.remove_prefix(6);
      demand(line.empty() || line == "[DONE]" || Json::accept(line));
      at = end + 1;
    }
  }
  void when_gone(std::function<void()>) override {}

 private:
  bool streams_ = false, done_ = false;
  std::string bytes_;
};

}  // namespace
}  // namespace assay::server

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay::server;
  if (size == 0) return 0;
  static FuzzedService fuzzed;
  const std::string body(reinterpret_cast<const char*>(data) + 1, size - 1);
  fuzzed.service.serve({"POST", std::string(kPaths[data[0] % kPaths.size()]), "", body},
                       std::make_shared<HeldAnswer>());
  fuzzed.generator.work();
  return 0;
}
