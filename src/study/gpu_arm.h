// The time of an arm on a GPU, by rules of thumb: the backend's costs
// (base/records/backend_traits.h), which are nearly all the host's work except for replays of CUDA
// graphs, and hosts differ.
#pragma once

#include <cstdint>

#include "study/study.h"

namespace assay {

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
  double prefill_floor_ = 0;  // seconds of a pass
  double decode_floor_ = 0;
  double prefill_compile_ = 0;  // seconds until its graph is there
  double decode_compile_ = 0;   // for each graph
  int64_t decode_graphs_;       // at most
  double start_ = 0;
  double explain_ = 0;
};

}  // namespace assay
