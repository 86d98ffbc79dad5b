// Progress of a long run.
#include "base/process/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/process/terminal.h"
#include "base/text/fit_text.h"
#include "base/text/shown_text.h"
#include "base/text/text.h"

namespace assay {
namespace {

constexpr size_t kBarWidth = 20;
constexpr size_t kLeastWhat = 10;  // columns of `what` worth a place beside the bar
constexpr std::string_view kWipe = "\r\x1b[K";

double share_done(const ProgressState& state) {
  if (state.total <= 0) return 0;
  return std::clamp(static_cast<double>(state.done) / static_cast<double>(state.total), 0.0, 1.0);
}

std::string bar(double share) {
  const auto filled = static_cast<size_t>(share * kBarWidth);
  return fmt::format("[{:#<{}}{:-<{}}]  ", "", filled, "", kBarWidth - filled);
}

// The first `columns` characters, without cutting one of several bytes.
std::string_view cut(std::string_view text, size_t columns) {
  return text.substr(0, bytes_of_columns(text, columns));
}

// The text's parts, which two spaces part, as many as have room; the first may be cut.
std::string whole_parts(std::string_view text, size_t columns) {
  const std::string_view first = cut(text, columns);
  if (first.size() == text.size() || text.substr(first.size()).starts_with("  ")) {
    return std::string(first);
  }
  const size_t end = first.rfind("  ");
  return std::string(end == std::string_view::npos ? first : first.substr(0, end));
}

std::string in_colour(const char* colour, const std::string& text, bool colours) {
  return colours && !text.empty() ? fmt::format("\x1b[{}m{}\x1b[0m", colour, text) : text;
}

constexpr const char* kGreen = "32";
constexpr const char* kRed = "31";

}  // namespace

ProgressStyle stderr_style() {
  const Terminal terminal = terminal_of(STDERR_FILENO);
  if (!terminal.is_one) return {};
  // One column less: a full last column makes some terminals wrap.
  return {.rewrite = true,
          .columns = terminal.columns - 1,
          .interval_s = 0.1,
          .colours = terminal.colours};
}

std::string progress_line(const ProgressState& state, std::optional<double> left_s, size_t columns,
                          bool colours) {
  const double share = share_done(state);
  const std::string percent = fmt::format("{:3} %", static_cast<int>(share * 100));
  const std::string left = left_s ? fmt::format("  {} left", format_duration(*left_s)) : "";
  if (percent.size() + left.size() > columns) return std::string(cut(percent + left, columns));
  size_t room = columns - percent.size() - left.size();
  const std::string what = shown_line(state.what);
  size_t wanted = std::max(kLeastWhat, display_width(what.substr(0, what.find("  "))));
  if (!state.alert.empty()) wanted += 2 + display_width(shown_line(state.alert));
  const bool with_bar = room >= kBarWidth + 4 + 2 + wanted;
  if (with_bar) room -= kBarWidth + 4;
  // The next text, as much of it as has room.
  const auto take = [&](const std::string& text) -> std::string {
    if (text.empty() || room <= 2) return "";
    const std::string taken = whole_parts(shown_line(text), room - 2);
    room -= 2 + display_width(taken);
    return taken;
  };
  std::string line = with_bar ? in_colour(kGreen, bar(share), colours) + percent : percent;
  if (const std::string alert = take(state.alert); !alert.empty()) {
    line += "  " + in_colour(kRed, alert, colours);
  }
  if (const std::string taken = take(state.what); !taken.empty()) line += "  " + taken;
  return line + left;
}

std::optional<double> estimate_left_s(const ProgressState& state, int64_t first_done,
                                      double elapsed_s) {
  const int64_t done_here = state.done - first_done;
  if (done_here <= 0 || elapsed_s < 0) return std::nullopt;
  const auto left = static_cast<double>(std::max<int64_t>(0, state.total - state.done));
  return elapsed_s / static_cast<double>(done_here) * left;
}

Progress::Progress(ProgressStyle style, Clock& clock, Sink sink)
    : style_(style), clock_(clock), sink_(std::move(sink)), started_ns_(clock.monotonic_ns()) {}

Progress::~Progress() {
  clear();
}

void Progress::update(const ProgressState& state) {
  if (!first_done_) first_done_ = state.done;
  const int64_t now_ns = clock_.monotonic_ns();
  const bool last = state.done >= state.total;
  const bool due =
      !shown_ns_ || static_cast<double>(now_ns - *shown_ns_) >= style_.interval_s * 1e9;
  if (!due && !last) return;
  shown_ns_ = now_ns;
  const double elapsed_s = static_cast<double>(now_ns - started_ns_) * 1e-9;
  const auto left_s = state.left_s ? state.left_s : estimate_left_s(state, *first_done_, elapsed_s);
  const std::string line = progress_line(state, left_s, style_.columns, style_.colours);
  sink_(style_.rewrite ? std::string(kWipe) + line : line + "\n");
  line_stands_ = style_.rewrite;
}

void Progress::clear() {
  if (line_stands_) sink_(kWipe);
  line_stands_ = false;
}

}  // namespace assay
