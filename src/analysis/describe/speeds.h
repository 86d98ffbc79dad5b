// Tokens per second of each arm, row by row: the figures that benchmarks print.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/rows/samples.h"

namespace assay {

// One arm on one stratum with the rows that its time is the mean of.
struct Speed {
  size_t stratum = 0;
  std::string arm;
  std::string backend;
  std::string device;  // of a GPU; empty: the processor
  std::string dtype;
  std::string quantization;  // of its weights; empty: they are of `dtype`
  std::optional<int64_t> threads;
  // Tokens of a repetition, over the batch: of the prompts in prefill, else produced. 0: prompts
  // differ in length, and their rows aren't of one test.
  int64_t tokens = 0;
  int64_t prompt_tokens = 0;         // of a sequence; 0 likewise
  std::vector<double> latencies_ms;  // of the warm rows, in the order of the run
  std::vector<double> tokens_per_s;  // the same rows; empty: tokens are 0
  std::optional<double> sd_tokens_per_s;
  int64_t lost = 0;  // rows, warm-ups included
  // Median over the warm rows of the bytes that had to be read, over the time it took, if the
  // worker tells them. On a processor only for kv_decode: arithmetic is what limits a prefill.
  std::optional<double> bytes_per_s;
  // On a GPU, the shortest region whose energy its counter resolves; absent: no counter.
  std::optional<double> least_energy_ms;
};

// The speeds in the order of the groups.
std::vector<Speed> speeds(const Samples& samples);

}  // namespace assay
