// The kind of a descriptor's other end: a terminal with its columns and colours, or none.
#pragma once

#include <cstddef>
#include <optional>

namespace assay {

struct Terminal {
  bool is_one = false;   // else a file or pipe: no width to keep to, no colours
  size_t columns = 80;   // by $COLUMNS, else as the terminal says
  bool colours = false;  // not where $NO_COLOR is set (no-color.org), nor on a dumb terminal
};

Terminal terminal_of(int descriptor);

// The width that tables on stdout keep to; absent: it is no terminal.
std::optional<size_t> stdout_columns();

}  // namespace assay
