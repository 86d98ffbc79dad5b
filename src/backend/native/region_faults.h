// Counts the page faults of timed regions.
//
// The kernel gives memory a page at a time, when it is first touched, and takes it away where it
// needs it: a region that meets such a page costs more than one that doesn't. Weights, arena and
// scratch are written before anything is timed, and warm-ups touch a region's other memory, so
// warm regions should have next to none.
#pragma once

#include <cstdint>

#include "base/records/json.h"

namespace assay {

class RegionFaults {
 public:
  // Around a timed region.
  void begin();
  void end();
  // Adds the faults of the region that has just ended.
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

  Faults begin_;
  Faults region_;
  Faults cold_;
  Faults warm_;
};

}  // namespace assay
