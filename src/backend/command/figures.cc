// Patterns, numbers, units, outcomes.
#include "backend/command/figures.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "backend/command/exception_class.h"
#include "base/text/text.h"

namespace assay {
namespace {

constexpr size_t kMostMatches = 1'000'000;
constexpr double kSearchSeconds = 10;  // of one pattern
constexpr size_t kShownTail = 4096;
constexpr double kLongestNs = 9e18;
constexpr double kLargestFigure = 1e100;  // so that sums and squares of figures stay numbers

std::unexpected<NoFigures> none(std::string error_class, std::string message,
                                std::string outcome = "false_success") {
  return std::unexpected(NoFigures{std::move(error_class), std::move(message), std::move(outcome)});
}

// The end of a command's output, from the start of a line if possible.
std::string tail(const std::string& text) {
  if (text.size() <= kShownTail) return text;
  const size_t begin = text.size() - kShownTail;
  const size_t line = text.find('\n', begin);
  return "..." + text.substr(line == std::string::npos ? begin : line + 1);
}

std::string last_words(const Invocation& invocation) {
  std::string text = invocation.err.empty() ? invocation.out : invocation.err;
  while (text.ends_with('\n')) text.pop_back();
  return text.empty() ? "it printed nothing" : tail(text);
}

std::optional<double> positive_number(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !(value > 0 && value < kLargestFigure)) {
    return std::nullopt;
  }
  return value;
}

// Nanoseconds of one unit.
struct TimeFigure {
  const char* name;
  double ns;
};
constexpr std::array kLatencies = {TimeFigure{"latency_ns", 1}, TimeFigure{"latency_us", 1e3},
                                   TimeFigure{"latency_ms", 1e6}, TimeFigure{"latency_s", 1e9}};
constexpr std::array kFirstTokens = {TimeFigure{"ttft_ms", 1e6}, TimeFigure{"ttft_s", 1e9}};

std::optional<double> figure(const Figures& figures, const char* name) {
  const auto found = figures.find(name);
  return found == figures.end() ? std::nullopt : std::optional(found->second);
}

template <size_t N>
std::optional<double> time_ns(const Figures& figures, const std::array<TimeFigure, N>& names) {
  for (const TimeFigure& each : names) {
    if (const auto value = figure(figures, each.name)) return *value * each.ns;
  }
  return std::nullopt;
}

std::optional<double> latency_ns(const Figures& figures, const AskedTokens& asked, double tokens) {
  if (const auto printed = time_ns(figures, kLatencies)) return printed;
  // A rate of prefill is over the prompt.
  const double counted = asked.phase == Phase::kPrefill
                             ? static_cast<double>(asked.batch * asked.prompt_tokens)
                             : tokens;
  if (const auto rate = figure(figures, "tokens_per_s")) return counted / *rate * 1e9;
  if (const auto each = figure(figures, "ms_per_token")) {
    return counted / static_cast<double>(asked.batch) * *each * 1e6;
  }
  return asked.phase == Phase::kPrefill ? time_ns(figures, kFirstTokens) : std::nullopt;
}

using Matches = std::vector<TextPattern::Match>;

std::expected<Matches, NoFigures> search(const TextPattern& pattern, const Invocation& invocation) {
  for (const std::string* text : {&invocation.out, &invocation.err}) {
    auto found = pattern.find_all(*text, kMostMatches + 1, kSearchSeconds);
    if (!found) return none("pattern_limit", found.error().message, "");
    if (found->size() > kMostMatches) {
      return none("pattern_limit",
                  fmt::format("pattern {}: expected at most {} matches in what an invocation "
                              "prints, found more",
                              quoted_excerpt(pattern.text()), kMostMatches),
                  "");
    }
    if (!found->empty()) return *std::move(found);
  }
  return none("no_match",
              fmt::format("the command ended with status 0, and nothing that it printed matches "
                          "the pattern {}: {}",
                          quoted_excerpt(pattern.text()), last_words(invocation)));
}

}  // namespace

std::expected<std::vector<Figures>, NoFigures> read_figures(std::span<const TextPattern> patterns,
                                                            const Invocation& invocation) {
  std::vector<Figures> samples;
  for (const TextPattern& pattern : patterns) {
    const auto matches = search(pattern, invocation);
    if (!matches) return std::unexpected(matches.error());
    if (samples.empty()) samples.resize(matches->size());
    if (samples.size() != matches->size()) {
      return none("unequal_matches",
                  fmt::format("expected as many matches of each pattern, found {} of {} and {} of "
                              "{}",
                              samples.size(), quoted_excerpt(patterns.front().text()),
                              matches->size(), quoted_excerpt(pattern.text())));
    }
    for (size_t i = 0; i < samples.size(); ++i) {
      const TextPattern::Match& match = (*matches)[i];
      for (size_t group = 0; group < match.size(); ++group) {
        if (!match[group]) continue;
        const std::string& name = pattern.names()[group];
        const auto value = positive_number(*match[group]);
        if (!value) {
          return none("bad_figure", fmt::format("expected a positive number for {}, found {}", name,
                                                quoted_excerpt(*match[group])));
        }
        samples[i][name] = *value;
      }
    }
  }
  return samples;
}

std::expected<SampleReply, NoFigures> sample_of(const Figures& figures, const AskedTokens& asked) {
  const int64_t each = asked.phase == Phase::kPrefill ? 1 : asked.new_tokens;
  double tokens = static_cast<double>(asked.batch * each);
  if (asked.phase != Phase::kPrefill) tokens = figure(figures, "tokens").value_or(tokens);
  const auto ns = latency_ns(figures, asked, tokens);
  if (!ns) return none("bad_figure", "expected a time or a rate, found none in the match");
  SampleReply sample;
  sample.latency_ms = ns_to_ms(std::llround(std::min(*ns, kLongestNs)));
  sample.tokens = std::llround(std::min(tokens, kLongestNs));
  if (asked.phase == Phase::kE2eKv) {
    if (const auto first = time_ns(figures, kFirstTokens)) {
      sample.ttft_ms = ns_to_ms(std::llround(std::min(*first, kLongestNs)));
    }
  }
  return sample;
}

std::optional<NoFigures> failure_of(const Invocation& invocation) {
  switch (invocation.stopped) {
    case Invocation::Stopped::kTimeout:
      return NoFigures{
          "timeout",
          fmt::format("the command didn't end within {} s: {}",
                      format_significant(invocation.seconds, 3), last_words(invocation)),
          "timeout"};
    case Invocation::Stopped::kFlood:
      return NoFigures{"output_flood",
                       fmt::format("expected a command that prints less than {}, found more",
                                   format_bytes(static_cast<double>(kMostOutputBytes))),
                       ""};
    case Invocation::Stopped::kInterrupted:
      return NoFigures{"interrupted", "the command was interrupted", ""};
    case Invocation::Stopped::kNo:
      break;
  }
  if (invocation.end.ok()) return std::nullopt;
  std::string thrown = exception_class(invocation.err);
  if (thrown.empty()) thrown = exception_class(invocation.out);
  const bool raised = !thrown.empty() && invocation.end.exit_status;
  return NoFigures{
      thrown.empty() ? invocation.end.text() : thrown,
      fmt::format("the command ended with {}: {}", invocation.end.text(), last_words(invocation)),
      raised ? "" : "crash"};
}

bool ran_out_of_memory(const Invocation& invocation, const NoFigures& failure) {
  return invocation.end.oom_likely || means_out_of_memory(failure.error_class);
}

}  // namespace assay
