// The weights that a session computes with: the checkpoint's own mapped bytes, or a copy in another
// type.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/memory/buffer_pool.h"
#include "engine/model/checkpoint.h"
#include "engine/tensor.h"

namespace assay::engine {

class Weights {
 public:
  // Without a dtype weights are read in place from the file's mapping, so that processes on the
  // same checkpoint share one copy in memory; so are those that have the dtype in the file, and
  // others are converted once, here. Either way every page is touched before this returns: loading
  // ends here, not in the first step. `memory` must outlive the object.
  static Result<Weights> load(Checkpoint checkpoint, std::optional<DType> dtype,
                              BufferPool& memory);

  const ModelConfig& config() const { return checkpoint_.config(); }
  DType dtype() const { return dtype_; }     // as asked for, or the config's
  std::vector<TensorSpec> tensors() const;   // tensor_specs(config()), each in its format here
  uint64_t bytes() const { return bytes_; }  // in memory, all tensors
  // The name must be one of the model's: assert. Valid as long as the object, also when it is
  // moved.
  const TensorView& tensor(const std::string& name) const;

 private:
  explicit Weights(Checkpoint checkpoint) : checkpoint_(std::move(checkpoint)) {}
  Status convert_tensor(const std::string& name, BufferPool& memory);

  Checkpoint checkpoint_;
  DType dtype_ = DType::kF32;
  uint64_t bytes_ = 0;
  std::map<std::string, TensorView> converted_;  // others are the checkpoint's own
  std::vector<Buffer> buffers_;
};

}  // namespace assay::engine
