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
  // others are converted once, here. Rows that lie in another order
  // than the engine's are copied: RoPE then has one order in every kernel, for a tenth of the
  // weights or less. Either way every page is touched before this returns: loading ends here, not
  // in the first step; kWhenAsked leaves those of the file to page_in(), for a user who may have
  // most weights from elsewhere. `memory` must outlive the object.
  enum class Paging { kNow, kWhenAsked };
  static Result<Weights> load(Checkpoint checkpoint, std::optional<DType> dtype, BufferPool& memory,
                              Paging paging = Paging::kNow);
  // Touches the pages of a tensor that is read in place, or of all, once.
  void page_in(const std::string& name) const;
  void page_in() const;

  const ModelConfig& config() const { return checkpoint_.config(); }
  DType dtype() const { return dtype_; }    // as asked for, or the config's
  std::vector<TensorSpec> tensors() const;  // tensor_specs(config()), each in its format here
  // Names of the formats of blocks, of most weights first: "q4_k+q6_k"; empty: none has blocks.
  std::string block_formats() const;
  // The name of the mix as the file states it, else block_formats(); empty: none has blocks.
  std::string quantization() const;
  uint64_t bytes() const { return bytes_; }  // in memory, all tensors
  const Checkpoint& checkpoint() const { return checkpoint_; }
  // The name must be one of the model's: assert. Valid as long as the object, also when it is
  // moved. One of quantised safetensors, whose bytes no file has so, is made when it is first asked
  // for: by one thread at a time.
  const TensorView& tensor(const std::string& name) const;
  // The same without its bytes, where nobody has asked for them.
  const TensorView& view(const std::string& name) const;
  // Makes rows of a tensor that isn't made; null: tensor() has them.
  const RowReader* rows(const std::string& name) const;

 private:
  explicit Weights(Checkpoint checkpoint) : checkpoint_(std::move(checkpoint)) {}
  // Copies a tensor in this format, its rows in the engine's order.
  Status copy_tensor(const std::string& name, WeightFormat format, BufferPool& memory);
  // Makes a tensor that the file has in another form, on all processors.
  static void repack(const TensorView& from, const RowReader& reader, const TensorView& to,
                     std::byte* bytes);

  Checkpoint checkpoint_;
  mutable bool paged_in_ = false;  // every tensor
  DType dtype_ = DType::kF32;
  uint64_t bytes_ = 0;
  mutable std::map<std::string, TensorView> copied_;  // others are the checkpoint's own
  std::vector<Buffer> buffers_;
  // Memory of tensors that nobody has asked for: it takes none before it is written.
  mutable std::map<std::string, std::byte*> unmade_;
};

}  // namespace assay::engine
