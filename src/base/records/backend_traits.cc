// The backends of this program, one entry each.
#include "base/records/backend_traits.h"

#include <algorithm>
#include <vector>

namespace assay {
namespace {

constexpr std::string_view kNativeModes[] = {"eager", "compiled"};
constexpr std::string_view kTorchModes[] = {
    "eager",           "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs",
    "manual-cudagraph"};

// On 16 CPU cores beside one H200 in bf16 at batch 1 (2026-11-23), llama3.2-1b's 16 layers took
// 1.97 ms a decoded token eager and 0.73 compiled; a phase's kernels took 1.2 s to compile where
// none were on disk. On the processor a process starts in 8 ms (studies/tiny.yaml, two virtual
// cores of a Xeon, 2026-11-24).
constexpr BackendCosts kNativeCosts = {.gpu_start = 4,
                                       .gpu_eager_layer = 0.12e-3,
                                       .gpu_compiled_layer = 0.045e-3,
                                       .gpu_compile = 1.2,
                                       .processor_start = 0.01};

// On a GPU: torch 2.11 on 16 CPU cores beside one H200 in fp16 (2026-11-22). llama3.2-1b (16
// layers) and qwen2.5-1.5b (28) took 10.4 and 18 ms a decoded token eager, 4.4 and 9 under
// `default`, 1.5 and 2.4 from CUDA graphs, and 15 and 25 s to compile one graph of the model; to
// explain a call took 5 to 8 s on the first. At batch 1 a step's time goes into launching kernels,
// so that it grows with the number of layers and not with their size.
// On the processor: importing torch 2.11 and transformers 5.17 takes 3.2 to 3.7 s of one core of an
// Intel Xeon (2026-11-26), and gpt2-25m is built in half a second; Inductor's C++ of a cell of
// gpt2-25m takes 34 s of one core of an AMD EPYC (2026-11-26), in each process anew, because a
// process has cache folders of its own.
constexpr BackendCosts kTorchCosts = {.gpu_start = 15,
                                      .gpu_eager_layer = 0.65e-3,
                                      .gpu_compiled_layer = 0.3e-3,
                                      .gpu_graphed_layer = 0.1e-3,
                                      .gpu_compile_layer = 0.9,
                                      .gpu_explain_layer = 0.35,
                                      .processor_start = 4.5,
                                      .processor_compile = 30};

std::vector<BackendTraits>& table() {
  static std::vector<BackendTraits> backends = {
      {.name = "native",
       .worker = WorkerKind::kAssay,
       .modes = kNativeModes,
       .phases_option = "split",
       .facts_name = "gpu",
       .shows_tokens = true,
       .serves_load = true,
       .shares_processors = true,
       .maps_weights = true,
       .costs = kNativeCosts},
      {.name = "torch",
       .worker = WorkerKind::kInterpreter,
       .modes = kTorchModes,
       .phases_option = "compile_phases",
       .facts_name = "interpreter",
       .takes_gpu_unasked = true,
       .makes_models = true,
       .shows_tokens = true,
       .costs = kTorchCosts},
      {.name = "command", .worker = WorkerKind::kCommand, .facts_name = "command"},
      {.name = "http",
       .worker = WorkerKind::kServer,
       .facts_name = "server",
       .shows_tokens = true,
       .serves_load = true}};
  return backends;
}

}  // namespace

std::span<const BackendTraits> all_backends() {
  return table();
}

const BackendTraits& backend_traits(std::string_view name) {
  static const BackendTraits unknown;
  const auto found = std::ranges::find(table(), name, &BackendTraits::name);
  return found == table().end() ? unknown : *found;
}

ScopedBackend::ScopedBackend(const BackendTraits& traits) {
  table().push_back(traits);
}

ScopedBackend::~ScopedBackend() {
  table().pop_back();
}

}  // namespace assay
