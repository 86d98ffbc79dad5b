// Where threads are.
#include "base/shared_cpus.h"

namespace assay {

SharedCpus::SharedCpus(size_t threads)
    : threads_(threads), cpus_(std::make_unique<std::atomic<int>[]>(threads)) {
  for (size_t i = 0; i < threads; ++i) cpus_[i].store(-1, std::memory_order_relaxed);
}

bool SharedCpus::crowded(size_t thread) {
  const int here = sched_getcpu();
  // Written when it changes alone: all threads read the same cache line.
  if (cpus_[thread].load(std::memory_order_relaxed) != here) {
    cpus_[thread].store(here, std::memory_order_relaxed);
  }
  for (size_t i = 0; i < threads_; ++i) {
    if (i != thread && cpus_[i].load(std::memory_order_relaxed) == here) return true;
  }
  return false;
}

}  // namespace assay
