// The kernel that draws tokens as requests ask for it: the same as serving/sampling.h draws on the
// host, to the last bit.
#pragma once

#include <cstdint>
#include <string>

#include "engine/codegen/cuda/print_cuda.h"

namespace assay::engine {

constexpr int64_t kCudaSamplingThreads = 512;
constexpr int64_t kCudaMostBiases = 512;  // of a slot

// The entry assay_run, a block for each row, behind the kernel that chooses the largest logits.
// `more` is as of print_cuda_rows(), and has `logits`, `positions` and `vocab`. Its struct Args
// begins with
//   void* buffers[1];              // int [batch]: the tokens that were chosen, and then are
//   const long* dims;              // the step's
//   const int *slots, *fed;        // [batch]; fed: the step's ids, or null: a prompt's run
//   const int* before;             // [batch]: positions of each row's slot ahead of the run
//   const Wishes* wishes;          // SampledSlot [slots]
//   unsigned* counts;              // [slots, vocab]: how often chosen; the highest bit: seen
//   const int* bias_ids; const double* bias_values;  // [slots, kCudaMostBiases]
//   unsigned long long* weights;   // [batch, vocab]: the kernel's own
std::string print_cuda_sampling(const CudaRowsMore& more);

// The entry assay_run, of any blocks of kCudaThreads threads: tokens that a slot has seen.
//   struct Args { unsigned* counts; const int* ids; long count; };  // [vocab], [count]
std::string print_cuda_seen();

}  // namespace assay::engine
