// Takes the pages of a worker's memory before anything is timed, and counts the page faults of what
// is timed.
//
// The kernel gives memory a page at a time, when it is first touched. A cache's tail or an arena
// that is touched within a timed region costs the region these faults, and which region that is
// depends on the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/json.h"

namespace assay {

// Touches every page of this process' own writable memory that isn't a thread's stack, in mappings
// of 1 MiB or more, and locks it where the limit on locked memory allows; all that was touched
// before is left as it is. Returns the bytes of these mappings. Nobody else may unmap memory
// meanwhile.
int64_t hold_memory();

// Files that are mapped to be read, such as weights.
struct HeldFiles {
  int64_t bytes = 0;         // of the files: all their pages were taken
  int64_t locked_bytes = 0;  // of these, those that the kernel may not drop
};

// Takes every page of these mappings, so that no timed region reads it from the disk or meets it
// for the first time. Locks them, as far as the limit on locked memory allows and only if twice as
// much memory is available: what is locked can't be given to anybody else.
HeldFiles hold_files(std::span<const std::span<const std::byte>> files);

// Faults of this process within timed regions.
class TimedMemory {
 public:
  // Holds what there is; `what` names it, and a second call for the same does nothing.
  void hold(int64_t batch, int64_t capacity);
  // Around a timed region.
  void begin();
  void end();
  // Of the region that has just ended.
  void count(bool cold);
  // "memory" of docs/worker-protocol.md.
  Json to_json() const;

 private:
  struct Faults {
    int64_t rows = 0;
    int64_t minor = 0;
    int64_t major = 0;
  };
  static Faults now();
  static Json faults_to_json(const Faults& faults);

  int64_t held_bytes_ = -1;  // nothing is held
  int64_t batch_ = 0;
  int64_t capacity_ = 0;
  Faults begin_;
  Faults region_;
  Faults cold_;
  Faults warm_;
};

}  // namespace assay
