// Names of the arms and models of imported runs, so that no arm mixes runs that the files tell
// apart.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "import/imported.h"

namespace assay {

struct RunNames {
  std::string arm;
  std::string model;
  std::string scenario;
};

// One a run. An arm is called as its file calls it (else as its backend, else as the format). If
// runs of one name differ in an arm's identity or in a setting, values that tell them apart are put
// behind it: CPU-t1, CPU-t4. If one arm has a model in several types of weights, the type is put
// behind the model's name, on every arm; likewise other statements about a model in which the files
// differ, and behind a scenario's name the settings of its load.
std::vector<RunNames> name_runs(const Imported& imported);

// True if a name says that a compiler was at work: one of its words is compile, compiled, inductor
// or the like, or they are a mode of torch.compile (reduce-overhead, max-autotune), and the word
// before or behind doesn't deny it (no-compile, compile=false). CamelCase counts as several words.
bool names_a_compiler(std::string_view name);

}  // namespace assay
