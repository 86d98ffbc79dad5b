// The commented study file that `assay init` writes.
#include "study/study.h"

namespace assay {

std::string_view study_template() {
  return R"(# A study: what to measure, how often, in which order. Check it with `assay plan FILE`, run it with
# `assay run FILE -o BUNDLE`. Unknown keys are errors, so a typing error can't change a study.
name: my-study

# Checkpoint folders in the layout of Hugging Face: config.json, *.safetensors, tokenizer.json.
# dtype: fp32 | fp16 | bf16; left out: as stored. name: left out: the folder's last part.
# {arch: llama3.2-1b, dtype: fp16}: random weights without a file; of backend torch alone.
models:
  - {path: models/gpt2-25m, dtype: fp32}

# What is compared. A list in an arm stands for one arm a value: this makes eager-dynamic and
# eager-static. backend: native | torch. mode of native: eager | compiled; of torch: eager | default |
# reduce-overhead | max-autotune | max-autotune-no-cudagraphs | manual-cudagraph. cache: dynamic | static.
# threads: left out: as many as the process may run on. device: of native arms cpu (left out), cuda
# or cuda:N. Keys of compiled arms, with their defaults:
#   dynamic: auto           # sizes: specialise on each (false), symbols (true), a symbol once one
#                           # has changed (auto)
#   recompile_limit: 8      # graphs of a phase, after which it runs eager for good
#   split: prefill          # or decode: the phase that is compiled; left out: both
#   bucket: 16              # prompts are padded to a multiple of it; left out: as they come
#   disabled_passes: "fuse_norm, merge_products"   # left out: none
#   kernel_cache: true      # false: each process compiles its own kernels
# Keys of torch arms: python (an interpreter, or $NAME: that variable's), device: auto | cpu | cuda,
# attn_implementation, step_times, and of those that compile dynamic, recompile_limit, torch_backend,
# fullgraph, compile_target, compile_phases, cudagraph_trees, mark_step_begin, keep_cache, explain:
# docs/worker-protocol.md says what each does.
arms:
  - {name: eager, backend: native, mode: eager, cache: [dynamic, static]}
  - {name: compiled, backend: native, mode: compiled, cache: static}

# The arm that the others are compared with; left out: the first.
baseline: eager-dynamic

# prefill: one pass over the prompt. kv_decode: generation over the cache, its prefill untimed.
# e2e_kv: both together.
phases: [prefill, kv_decode, e2e_kv]

# Built in, with their prompt tokens: single_micro 10, single_short 30, single_medium 80,
# single_long 200, stress_single 400. Others are maps:
#   - {name: ramp, prompt_tokens: [16, 32, 64]}   # repetitions cycle through the lengths
#   - {name: mine, text: "Once upon a time"}
scenarios: [single_micro, single_short, single_medium, single_long, stress_single]

# New tokens in kv_decode and e2e_kv, and prompts at once; each value is a condition of its own.
token_lengths: [64]
batch: [1]

# scope: none | scenario | global: whether prompts are padded to one length, for each scenario or
# for all of them, rounded up to multiple_of.
padding: {scope: none, multiple_of: 8}

# Measured repetitions of each cell, after warm-ups that are kept apart.
repetitions: 30
warmup: 3

# Worker processes of each arm, one after the other, that share every cell's repetitions; each prepares
# and warms up anew. Two processes of one arm differ by more than their repetitions show, so that
# `assay compare` needs several of each bundle to call anything slower.
processes: 1

# Goes on past `repetitions` until the 95 % interval of the mean is within +- this share.
# stopping: {max_repetitions: 200, relative_ci: 0.01}

# sequential | shuffled | interleaved: the last alternates the arms in random blocks, so that a
# drift of the machine meets all of them alike.
order: interleaved

# Seconds for one repetition, and for loading; compile_timeout_s, for preparing, is the same unless given.
timeout_s: 120

# When the arms' tokens are compared: before timing, in processes of their own, or after it, in those
# that were timed.
parity: before
seed: 42

# What the stack has to show, else `assay analyze` says FAILED and exits with 1; a criterion that nothing
# in the run could show is "not applicable here", and never passed. Left out: nothing.
# require:
#   cuda: true            # every torch arm computed on a GPU
#   triton: 3             # its code came from Triton of at least this major version
#   compiler_real: true   # what was to be compiled provably was
#   graph_breaks: 0       # at most
#   parity: true          # every arm's greedy tokens are the baseline's,
#   logit_stats: true     # with statistics of the logits beside them
#   deterministic: true   # every repetition of a prompt gave the same output
)";
}

}  // namespace assay
