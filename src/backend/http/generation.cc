// Reads a dialect's events into one generation.
#include "backend/http/generation.h"

#include "base/clock.h"
#include "base/records/json.h"
#include "base/text/text.h"

namespace assay {
namespace {

constexpr size_t kMostEventBytes = size_t{1} << 20;
constexpr size_t kMostText = size_t{16} << 20;

class GenerationExchange final : public HttpExchange {
 public:
  GenerationExchange(const Dialect& dialect, GenerationListener& listener)
      : dialect_(dialect), listener_(listener), events_(dialect.form(), kMostEventBytes) {
    generated_.started_ns = monotonic_now_ns();
  }

  void begun(int64_t at_ns) override { generated_.started_ns = at_ns; }
  void connected(int64_t at_ns) override { generated_.connected_ns = at_ns; }
  void sent(int64_t at_ns) override { generated_.sent_ns = at_ns; }

  HttpResult<void> body(std::string_view bytes, int64_t at_ns) override {
    return events_.take(bytes, [&](std::string_view event) { return take(event, at_ns); });
  }

  void end(HttpResult<void> result, int64_t at_ns) override {
    generated_.end_ns = at_ns;
    if (result && !whole_) {
      result =
          http_failure(http_class::kCut, events_.between_events()
                                             ? "expected the stream's last event, found its end"
                                             : "expected the end of an event, found the stream's");
    }
    listener_.ended(generated_, std::move(result));
  }

 private:
  HttpResult<void> take(std::string_view event, int64_t at_ns) {
    if (whole_) return {};
    auto piece = dialect_.read(event);
    if (!piece) return std::unexpected(std::move(piece).error());
    if (!piece->error.empty())
      return http_failure(http_class::kServerError, "the server said: " + piece->error);
    if (generated_.text.size() + piece->text.size() > kMostText) {
      return http_failure(http_class::kTooLong,
                          fmt::format("expected at most {} bytes of text, found more", kMostText));
    }
    if (piece->has_token) generated_.token_ns.push_back(at_ns);
    if (piece->has_token || !piece->finish.empty()) generated_.finish_ns = at_ns;
    if (generated_.ids.size() + piece->ids.size() > kMostText) {
      return http_failure(http_class::kTooLong,
                          fmt::format("expected at most {} ids, found more", kMostText));
    }
    generated_.text += piece->text;
    generated_.ids.insert(generated_.ids.end(), piece->ids.begin(), piece->ids.end());
    if (!piece->finish.empty()) generated_.finish = piece->finish;
    merge(piece->figures);
    whole_ = piece->last;
    return {};
  }

  template <typename T>
  static void take_if_said(std::optional<T>& into, const std::optional<T>& said) {
    if (said) into = said;
  }
  void merge(const ServerFigures& said) {
    ServerFigures& into = generated_.figures;
    take_if_said(into.prompt_tokens, said.prompt_tokens);
    take_if_said(into.cached_tokens, said.cached_tokens);
    take_if_said(into.new_tokens, said.new_tokens);
    take_if_said(into.prompt_ms, said.prompt_ms);
    take_if_said(into.generation_ms, said.generation_ms);
    take_if_said(into.load_ms, said.load_ms);
  }

  const Dialect& dialect_;
  GenerationListener& listener_;
  EventStream events_;
  Generated generated_;
  bool whole_ = false;
};

struct Kept final : GenerationListener {
  Generated generated;
  HttpResult<void> result;
  void ended(const Generated& all, HttpResult<void> end) override {
    generated = all;
    result = std::move(end);
  }
};

}  // namespace

std::shared_ptr<HttpExchange> make_generation(const Dialect& dialect,
                                              GenerationListener& listener) {
  return std::make_shared<GenerationExchange>(dialect, listener);
}

HttpResult<void> generate(HttpLoop& loop, const HttpEndpoint& endpoint, const Dialect& dialect,
                          HttpRequest request, const HttpLimits& limits, Generated& generated) {
  Kept kept;
  loop.start(endpoint, std::move(request), limits, make_generation(dialect, kept));
  loop.run();
  generated = std::move(kept.generated);
  return std::move(kept.result);
}

}  // namespace assay
