// The table of backends: facts about a backend that follow from its name in a study, row or bundle.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace assay {

// The program that computes for an arm.
enum class WorkerKind {
  kAssay,        // this program: its revision, build and code generator are the arm's
  kInterpreter,  // a script of this program's tree, in an interpreter with a framework of its own
  kCommand,      // a program that the study names; nothing of this program but the host is its
  kServer,       // a server that the study names, running or to be started; likewise
};

// Seconds by rules of thumb, for estimates before anything is loaded; backend_traits.cc has the
// measurements behind them.
struct BackendCosts {
  double gpu_start = 0;           // of a process whose arm computes on a GPU
  double gpu_eager_layer = 0;     // a forward pass, for each layer of the model
  double gpu_compiled_layer = 0;  // the same with generated kernels
  double gpu_graphed_layer = 0;   // the same, replayed from a CUDA graph
  double gpu_compile = 0;         // compiling one graph, however many its layers
  double gpu_compile_layer = 0;   // compiling one graph, for each layer
  double gpu_explain_layer = 0;   // torch._dynamo.explain, once a process, for each layer
  // Start of a process on the processor, without its weights; compiling in each preparation there.
  double processor_start = 0;
  double processor_compile = 0;
};

struct BackendTraits {
  std::string_view name;  // empty: no backend of this program, as in imported bundles
  WorkerKind worker = WorkerKind::kInterpreter;
  // Words of `mode`; none: any word, as the arm's author calls it.
  std::span<const std::string_view> modes = {};
  // Arm option that names the phases for which code is generated; empty: always all.
  std::string_view phases_option = {};
  std::string_view facts_name = {};  // member of environment.json with what its gate found
  bool takes_gpu_unasked = false;    // an arm without `device` computes on a GPU if there is one
  bool makes_models = false;         // a model may be the name of an architecture
  bool shows_tokens = false;         // workers answer `parity` and `tokenize`
  bool serves_load = false;          // workers answer `offer`: phase load
  // Processes of arms may be bound to the same processors, because they sleep between requests.
  bool shares_processors = false;
  bool maps_weights = false;  // a start's time grows with the weights: BackendCosts has the rest
  std::optional<BackendCosts> costs = {};  // absent: an arm may take any time
};

// All backends, in the order in which messages list them. Names are unique.
std::span<const BackendTraits> all_backends();

// Traits of the backend with this name; of no such backend, traits with an empty name and defaults.
const BackendTraits& backend_traits(std::string_view name);

// Adds a backend to the table while the object lives. For tests alone, one thread.
class ScopedBackend {
 public:
  explicit ScopedBackend(const BackendTraits& traits);
  ~ScopedBackend();
  ScopedBackend(const ScopedBackend&) = delete;
  ScopedBackend& operator=(const ScopedBackend&) = delete;
};

}  // namespace assay
