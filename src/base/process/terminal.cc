// isatty, the window's size, and three variables.
#include "base/process/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace assay {
namespace {

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

Terminal terminal_of(int descriptor) {
  Terminal terminal{.is_one = ::isatty(descriptor) != 0};
  if (!terminal.is_one) return terminal;
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    terminal.columns = size.ws_col;
  }
  const std::string_view given = variable("COLUMNS");
  size_t columns = 0;
  const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), columns);
  if (error == std::errc() && end == given.data() + given.size() && columns > 0) {
    terminal.columns = columns;
  }
  terminal.colours = variable("NO_COLOR").empty() && variable("TERM") != "dumb";
  return terminal;
}

std::optional<size_t> stdout_columns() {
  const Terminal terminal = terminal_of(STDOUT_FILENO);
  return terminal.is_one ? std::optional(terminal.columns) : std::nullopt;
}

}  // namespace assay
