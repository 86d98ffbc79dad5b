// Counts the timed rows of a compiled arm that ran eager, and puts them into words.
#pragma once

#include <cstdint>
#include <string>

#include "analysis/findings/execution.h"

namespace assay {

struct Group;

// Counts of the warm rows of one arm on one stratum. A row of which a single call ran eager is one
// of `rows`, whatever its other calls did.
struct EagerRows {
  int64_t rows = 0;          // that had calls that ran eager (Group::ran_eager)
  int64_t timed = 0;         // all of them
  int64_t fewest_calls = 0;  // in one of `rows` that counted them; 0: none did
  int64_t most_calls = 0;
  int64_t decode_steps = 0;  // of each row; 0: its phase has none
  bool prefills = false;     // each row has a prefill besides its decode steps
};
EagerRows eager_rows(const Group& group);

// "calls ran eager in 20 of 20 timed rows": of an arm that neither ran eager by its mode nor
// compiled; else empty.
std::string shortfall_text(Execution execution, const EagerRows& eager);
// The same after "requested a compiler, but ".
std::string unearned_text(Execution execution, const EagerRows& eager);
// "1 a row, of 8 steps". There is such a row.
std::string eager_calls_text(const EagerRows& eager);

}  // namespace assay
