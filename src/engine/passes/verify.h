// Checks that a rewritten graph computes the same as the original: both are run on random inputs,
// and every output and every written cache compared.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/result.h"
#include "engine/graph/graph.h"
#include "engine/graph/interpret.h"
#include "engine/passes/numbering.h"

namespace assay::engine {

// Tolerated difference, as a share of the largest magnitude in a tensor. A legal rewrite does the
// same arithmetic on each element; at most a library sums a product in another order once its shape
// changed. Small graphs are run by the reference operators, which sum in one order and in double:
// the slack covers single roundings, and a norm's epsilon of 1e-5 for 1e-6 is found. Large ones are
// run by the CPU operators: a sum of n terms in another order differs by about sqrt(n) roundings of
// 6e-8, 2e-6 for a thousand, and layers add theirs to a normalised stream like errors that don't
// know of each other, sqrt(28) times that in 28 layers. Here they didn't differ at all (gpt2-100m
// and qwen2.5-0.5b, bf16, 2026-11-20).
struct Slack {
  static constexpr double kReference = 1e-6;
  static constexpr double kLibrary = 2e-5;
};

class Verifier {
 public:
  // Runs the original, which must be valid: a decode step of one row, and a prefill of several rows
  // behind a filled cache, with padding. A graph with many weights is run with the second alone.
  Verifier(const Graph& original, uint64_t seed);

  // bad_input if the graph isn't valid, or says which output or cache differs, where and by how
  // much. A large graph that is, by value numbering, the one that passed last isn't run again.
  Status check(const Graph& rewritten);

 private:
  struct Run {
    InterpreterInputs inputs;
    InterpreterResult expected;  // its outputs: the graph's, then the operand of each argmax
  };

  std::vector<TensorType> output_types_;
  std::vector<Run> runs_;
  // For each output that is an argmax, the index of its operand in a run's outputs.
  std::map<size_t, size_t> argmax_operands_;
  bool reference_ = true;
  Numbering numbering_;
  std::vector<size_t> passed_;  // the results of the last graph that passed
};

}  // namespace assay::engine
