// Page faults as the operating system's kernel counts them.
#include "backend/native/region_faults.h"

#include <sys/resource.h>

namespace assay {

RegionFaults::Faults RegionFaults::now() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {0, usage.ru_minflt, usage.ru_majflt};
}

void RegionFaults::begin() {
  begin_ = now();
}

void RegionFaults::end() {
  const Faults at_end = now();
  region_ = {1, at_end.minor - begin_.minor, at_end.major - begin_.major};
}

void RegionFaults::count(bool cold) {
  Faults& sum = cold ? cold_ : warm_;
  sum = {sum.rows + region_.rows, sum.minor + region_.minor, sum.major + region_.major};
}

Json RegionFaults::faults_to_json(const Faults& faults) {
  return {{"rows", faults.rows}, {"minor", faults.minor}, {"major", faults.major}};
}

Json RegionFaults::to_json() const {
  return {{"cold_faults", faults_to_json(cold_)}, {"warm_faults", faults_to_json(warm_)}};
}

}  // namespace assay
