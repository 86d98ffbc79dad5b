// An arm's time on a GPU, by rules of thumb. PyTorch's time at batch 1 goes into launching kernels,
// so that it grows with the number of layers, and not with their size.
//
// Measured with torch 2.11 on one H200 (16 CPU cores, fp16): llama3.2-1b (16 layers) and
// qwen2.5-1.5b (28) take 10.4 and 18 ms a decoded token eager, 4.4 and 9 under `default`, 1.5 and
// 2.4 from CUDA graphs, and 15 and 25 s to compile one graph of the model; to explain a call takes
// 5 to 8 s on the first. All of it but the replays is the host's work, and hosts differ.
//
// The native engine, on such a machine (16 CPU cores, bf16, batch 1, 2026-11-23): 1.97 ms a decoded
// token eager and 0.73 compiled for llama3.2-1b's 16 layers, 1.2 s to compile a phase's kernels
// if none are on disk.
#pragma once

#include <cstdint>

#include "study/study.h"

namespace assay {

// A forward pass, for each layer.
inline constexpr double kEagerLayerSeconds = 0.65e-3;
inline constexpr double kCompiledLayerSeconds = 0.3e-3;
inline constexpr double kGraphedLayerSeconds = 0.1e-3;
// Inductor, for each layer of each graph.
inline constexpr double kCompileLayerSeconds = 0.9;
// torch._dynamo.explain, once a process, for each layer.
inline constexpr double kExplainLayerSeconds = 0.35;
// The native engine's.
inline constexpr double kNativeEagerLayerSeconds = 0.12e-3;
inline constexpr double kNativeCompiledLayerSeconds = 0.045e-3;
inline constexpr double kNativeCompileSeconds = 1.2;  // of a graph, however many its layers
inline constexpr double kNativeStartSeconds = 4;
// Importing torch, opening the device, building the model.
inline constexpr double kStartSeconds = 15;
// The same on the processor: importing torch 2.11 and transformers 5.17 takes 3.2 to 3.7 s of one
// core of an Intel Xeon (2026-11-26), and gpt2-25m is built in half a second.
inline constexpr double kTorchProcessorStartSeconds = 4.5;
// Inductor's C++ of a cell on the processor: a cell of gpt2-25m takes 34 s of one core of an AMD
// EPYC (torch 2.11, 2026-11-26). Each process compiles anew, because its cache folders are its own.
inline constexpr double kTorchProcessorCompileSeconds = 30;
// Time on another host with an H200, as a multiple of these, on 16 cores with a second study on the
// other 16: about 1.55 for 31 cells of tr147-static-cache, 1.75 for 29 of tr147-token-sweep
// (2026-11-22).
inline constexpr double kSlowerHost = 1.8;

// One arm on one model.
class GpuArm {
 public:
  GpuArm(const StudyArm& arm, int64_t layers, double model_bytes, double read_bytes_per_s);

  // A prefill of so many tokens, over the batch, and so many decode steps after it. No pass is
  // faster than reading the weights; a pass over more than kTokensPerGpuRead tokens takes longer.
  double seconds(double prompt_tokens, int64_t new_tokens) const;
  // Seconds to prepare a prefill alone (no new tokens), or prefill and decode steps. Prefill is one
  // graph. A decode step over a static cache is another; over a growing one each is a shape of its
  // own: one graph of symbolic shapes takes them all, the second where torch makes sizes symbolic
  // once they have changed, and with dynamic: false there are as many graphs as shapes, up to the
  // limit.
  double prepare_seconds(int64_t new_tokens) const;
  double start_seconds() const { return start_; }  // of a process
  double explain_seconds() const { return explain_; }

 private:
  double read_seconds_;
  double prefill_floor_;  // seconds of a pass
  double decode_floor_;
  double prefill_compile_;  // seconds until its graph is there
  double decode_compile_;   // for each graph
  int64_t decode_graphs_;   // at most
  double start_;
  double explain_;
};

}  // namespace assay
