// Progress of a long run.
#include "base/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "base/shown_text.h"
#include "base/text.h"

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
  size_t end = 0;
  for (size_t shown = 0; end < text.size(); ++end) {
    const bool starts = (static_cast<unsigned char>(text[end]) & 0xC0) != 0x80;
    if (starts && shown++ == columns) break;
  }
  return text.substr(0, end);
}

}  // namespace

ProgressStyle stderr_style() {
  if (::isatty(STDERR_FILENO) == 0) return {};
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  // One column less: a full last column makes some terminals wrap.
  return {.rewrite = true, .columns = known ? size.ws_col - size_t{1} : 79, .interval_s = 0.1};
}

std::string progress_line(const ProgressState& state, std::optional<double> left_s,
                          size_t columns) {
  const double share = share_done(state);
  const std::string percent = fmt::format("{:3} %", static_cast<int>(share * 100));
  const std::string left = left_s ? fmt::format("  {} left", format_duration(*left_s)) : "";
  const size_t fixed = percent.size() + 2 + left.size();
  std::string line;
  if (fixed + kBarWidth + 4 + kLeastWhat <= columns) line = bar(share);
  line += percent;
  const size_t room =
      columns > line.size() + 2 + left.size() ? columns - line.size() - 2 - left.size() : 0;
  if (room > 0 && !state.what.empty())
    line += fmt::format("  {}", cut(shown_line(state.what), room));
  return std::string(cut(line + left, columns));
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
  const std::string line = progress_line(state, left_s, style_.columns);
  sink_(style_.rewrite ? std::string(kWipe) + line : line + "\n");
  line_stands_ = style_.rewrite;
}

void Progress::clear() {
  if (line_stands_) sink_(kWipe);
  line_stands_ = false;
}

}  // namespace assay
