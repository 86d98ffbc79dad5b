// The study that `assay bench` measures, as the text of a study file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/records/json.h"

namespace assay {

struct BenchModel {
  std::string name;
  std::string path;
};

// Load that a server is measured under, in the place of single requests.
struct BenchLoad {
  std::vector<int64_t> concurrency = {};
  std::vector<double> rates = {};     // requests a second
  std::string arrivals = {};          // empty: the study's default
  double duration_s = 0;              // of a run; 0: `requests` alone end it
  int64_t requests = 0;               // likewise
  std::map<std::string, double> slo;  // bounds in ms by the study's keys

  bool any() const { return !concurrency.empty() || !rates.empty(); }
};

// The tests: every test on every arm of every model. Words stand as in a study file, which checks
// them.
struct BenchTests {
  std::vector<BenchModel> models;
  std::string dtype = {};                     // empty: as stored
  std::vector<int64_t> prompts = {128, 512};  // prefill of so many tokens, each; may be empty
  std::vector<int64_t> generations = {64};    // decoding of so many tokens, each; may be empty
  std::vector<int64_t> depths = {1};          // tokens in the cache before them, each
  std::vector<int64_t> batches = {1};
  std::vector<std::string> arms = {"eager", "compiled"};  // MODE of native arms, or torch:MODE
  std::vector<std::string> caches = {"static"};
  // For arms that compile: false, true or auto. Empty: the value with which a cell's kernels don't
  // depend on the cells that its process ran before. A native arm then specialises on the sizes of
  // each cell over a static cache, and on none over a cache that grows.
  std::string dynamic = {};
  std::string device = {};  // empty: the processor
  std::vector<int64_t> threads =
      {};  // of each arm, an arm each; empty: as many as the process may run on
  int64_t repetitions = 20;
  // Keys of an arm of backend http, which then is the only one; null: none.
  Json server = nullptr;
  BenchLoad load = {};  // of a server; its requests' lengths are drawn from prompts and generations
};

// The text of a study that prefills a prompt only, and decodes behind those of `depths` only.
// Parity comes after timing: in the processes that were timed, so that it costs no further starts.
std::string bench_study(const BenchTests& tests);

}  // namespace assay
