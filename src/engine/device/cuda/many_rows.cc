// Values between a library's product and the kernels around it are in the weight's type.
#include "engine/device/cuda/many_rows.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/add_once.h"
#include "engine/codegen/cuda/cuda_attention.h"
#include "engine/codegen/cuda/cuda_tiles.h"
#include "engine/codegen/cuda/cuda_warpgroup_product.h"
#include "engine/codegen/cuda/fp8_product.h"
#include "engine/codegen/cuda/print_cuda.h"
#include "engine/codegen/cuda/unit_epilogue.h"

namespace assay::engine::cuda {
namespace {

size_t aligned(int64_t bytes) {
  constexpr size_t kAlignment = 256;
  return (static_cast<size_t>(bytes) + kAlignment - 1) / kAlignment * kAlignment;
}

const ProductKernel* product_in(const Kernel& kernel) {
  const auto* product = std::get_if<ProductKernel>(&kernel.body);
  return product != nullptr && may_have_many_rows(kernel, *product) ? product : nullptr;
}

// Which values may be narrow, and of which type.
class Narrowing {
 public:
  Narrowing(const StepPlan& plan, bool eager)
      : eager_(eager), prompt_(!eager && plan.dims.q_len != 1) {
    for (const ValueId output : plan.graph->outputs) kept_.insert(plan.bases[output]);
    for (const PlannedKernel& planned : plan.kernels) {
      for (size_t i = 0; i < planned.bindings.size(); ++i) {
        if (const ValueId* value = value_of(planned, i)) study(*value, planned.kernel, i);
      }
    }
  }

  std::optional<DType> type_of(const PlannedKernel& planned, size_t buffer) const {
    const ValueId* value = value_of(planned, buffer);
    if (value == nullptr || kept_.contains(*value)) return std::nullopt;
    const auto type = types_.find(*value);
    return type == types_.end() ? std::nullopt : std::optional(type->second);
  }

 private:
  static const ValueId* value_of(const PlannedKernel& planned, size_t buffer) {
    const auto* value = std::get_if<ArenaBinding>(&planned.bindings[buffer]);
    const bool floats = planned.kernel.buffers[buffer].dtype == DType::kF32;
    return value != nullptr && floats ? &value->value : nullptr;
  }

  void study(ValueId value, const Kernel& kernel, size_t buffer) {
    if (kernel.buffers[buffer].writable) {
      if (!may_be_stored_narrow(kernel)) kept_.insert(value);
      return;
    }
    const std::optional<DType> wanted = type_read(kernel, buffer);
    if (!wanted) {
      kept_.insert(value);
      return;
    }
    const DType type = *wanted;
    const DType known = types_.emplace(value, type).first->second;
    if (type == DType::kF32 || type != known) kept_.insert(value);
  }

  // The type that the kernel rounds the buffer's values to by itself: a product its weight's, and
  // attention of a prompt on tensor cores queries to the cache's.
  std::optional<DType> type_read(const Kernel& kernel, size_t buffer) const {
    if (const auto* product = std::get_if<ProductKernel>(&kernel.body)) {
      const bool whole = !product->has_prologue && product->x == buffer;
      if (!whole || is_loaded(kernel, product->x)) return std::nullopt;
      const KernelBuffer& weight = kernel.buffers[product->weight];
      // Few rows of an eager step keep more of x than codes' type has.
      return eager_ && weight.blocks ? DType::kF32 : weight.dtype;
    }
    const auto* attention = std::get_if<AttentionKernel>(&kernel.body);
    const bool rounded = prompt_ && attention != nullptr && attention->q == buffer &&
                         cuda_attention_on_tensor_cores(kernel, *attention);
    return rounded ? std::optional(kernel.buffers[attention->keys].dtype) : std::nullopt;
  }

  // Attention of an eager step may be one of decoding, which keeps fp32.
  bool may_be_stored_narrow(const Kernel& kernel) const {
    return !eager_ || !std::holds_alternative<AttentionKernel>(kernel.body);
  }

  // True if the epilogue loads the buffer, to add it to the product.
  static bool is_loaded(const Kernel& kernel, ir::BufferId buffer) {
    for (ir::ExprId id = 0; id < kernel.exprs.size(); ++id) {
      if (kernel.exprs[id].op == ir::Op::kLoad && kernel.exprs[id].symbol == buffer) return true;
    }
    return false;
  }

  bool eager_, prompt_;
  std::set<ValueId> kept_;  // as they are
  std::map<ValueId, DType> types_;
};

}  // namespace

Result<std::shared_ptr<const GpuBlock>> DecodedWeight::room(size_t bytes) {
  std::shared_ptr<const GpuBlock> memory = memory_.lock();
  if (memory && memory->size_bytes() >= bytes) return memory;
  memory.reset();  // before the new one: where no step has it, the two need not fit side by side
  ASSAY_TRY(GpuBlock allocated, GpuBlock::allocate(driver_, bytes));
  memory = std::make_shared<const GpuBlock>(std::move(allocated));
  memory_ = memory;
  return memory;
}

CublasLt* LazyCublasLt::get() {
  if (!tried_) {
    tried_ = true;
    auto opened = CublasLt::open(driver_, cache_);
    if (opened) {
      library_ = std::move(opened).value();
    } else {
      note(opened.error());
      driver_.forget_fault();  // the kernels go on without the library
    }
  }
  return library_.get();
}

void LazyCublasLt::note(const Error& error) {
  std::string text = error.message + "; products of many rows run by kernels made for a few";
  add_once(notes_, std::move(text));
}

Result<bool> ManyRows::reserve(const StepPlan& plan, const DimValues& dims) {
  int64_t x_bytes = 0, product_bytes = 0, decoded_bytes = 0;
  for (const PlannedKernel& planned : plan.kernels) {
    const ProductKernel* product = product_in(planned.kernel);
    if (product == nullptr || product->rows.value(dims) <= kProductRows) continue;
    if (library_.get() == nullptr) return false;
    const LibraryProduct parts = library_product(planned.kernel, *product);
    const auto element =
        static_cast<int64_t>(dtype_size_bytes(planned.kernel.buffers[product->weight].dtype));
    const int64_t row_elements = product->rows.value(dims) * element;
    if (parts.fp8) {
      x_bytes = std::max(x_bytes, fp8_rows(product->rows.value(dims), product->inputs).bytes);
    } else if (parts.prologue) {
      x_bytes = std::max(x_bytes, row_elements * Packing::padded_inputs(product->inputs));
    }
    if (!parts.direct) {
      product_bytes = std::max(product_bytes, row_elements * packed_columns(product->packing));
    }
    if (planned.kernel.buffers[product->weight].blocks && !parts.fp8) {
      decoded_bytes = std::max(decoded_bytes, packed_columns(product->packing) * element *
                                                  Packing::padded_inputs(product->inputs));
    }
  }
  const std::pair decoded_before(decoded(0), decoded(1));
  if (decoded_bytes > 0) {
    // Places stay where they are in runs of fewer rows, whose recordings would have to go
    // otherwise.
    second_at_ = std::max(second_at_, aligned(decoded_bytes));
    if (decoded_ && decoded_->size_bytes() < 2 * second_at_) decoded_.reset();
    ASSAY_TRY(decoded_, library_.decoded().room(2 * second_at_));
  }
  const bool decodes_elsewhere = std::pair(decoded(0), decoded(1)) != decoded_before;
  const size_t x_room = aligned(x_bytes);
  const auto products_room = static_cast<size_t>(product_bytes);
  if (x_room <= products_at_ && products_room <= products_bytes_) return decodes_elsewhere;
  products_at_ = std::max(products_at_, x_room);
  products_bytes_ = std::max(products_bytes_, products_room);
  const size_t bytes = products_at_ + products_bytes_;
  memory_ = GpuBlock();  // before the new one: the two need not fit side by side
  auto allocated = GpuBlock::allocate(driver_, bytes);
  if (!allocated) {
    products_at_ = products_bytes_ = 0;
    return std::unexpected(allocated.error());
  }
  memory_ = std::move(allocated).value();
  return true;
}

std::optional<LtShape> ManyRows::shape(const Kernel& kernel, const DimValues& dims) {
  const ProductKernel* product = product_in(kernel);
  if (product == nullptr || product->rows.value(dims) <= kProductRows) return std::nullopt;
  CublasLt* library = library_.get();
  if (library == nullptr) return std::nullopt;
  const LibraryProduct parts = library_product(kernel, *product);
  const int64_t padded = Packing::padded_inputs(product->inputs);
  LtShape shape{.dtype = kernel.buffers[product->weight].dtype,
                .out_dtype = kernel.buffers[product->weight].dtype,
                .fp8 = parts.fp8,
                .fast_sums = parts.fp8 && library_.fp8().fast_sums,
                .rows = product->rows.value(dims),
                .outputs = packed_columns(product->packing),
                .inputs = product->inputs,
                .x_pitch = parts.prologue && !parts.fp8 ? padded : product->inputs,
                .weight_pitch = padded,
                .out_pitch = packed_columns(product->packing)};
  if (parts.direct) {
    shape.outputs = shape.out_pitch = product->packing.segments[0];
    shape.out_dtype = kernel.buffers[parts.direct->out].dtype;
    shape.adds = parts.direct->addend.has_value();
    shape.bias = parts.direct->bias.has_value();
  }
  if (const auto ready = library->prepare(shape); !ready) {
    library_.note(ready.error());
    return std::nullopt;
  }
  return shape;
}

// A kernel more in a step takes its launch, and the bytes that it reads and writes.
Result<bool> ManyRows::pays_in_fp8(const Kernel& kernel, const DimValues& dims, bool rounds) {
  // In 16 bits it would be decoded first.
  const auto* of_kernel = std::get_if<ProductKernel>(&kernel.body);
  if (kernel.buffers[of_kernel->weight].blocks) return true;
  constexpr double kLaunchUs = 2.5, kBytesPerUs = 7e6, kBytesPerElement = 3;
  Kernel in_wide = kernel;
  auto& product_in_wide = std::get<ProductKernel>(in_wide.body);
  product_in_wide.fp8 = product_in_wide.codes_output = false;
  Kernel of_our_own = in_wide;
  of_our_own.target = driver_.info().target;
  in_wide.target.clear();  // as the library computes it, whatever is faster here
  const auto fp8 = shape(kernel, dims), wide = shape(in_wide, dims);
  if (!fp8 || !wide) return true;
  ASSAY_TRY(const auto contest, library_.get()->contest(*fp8, *wide));
  if (!contest) return true;
  const auto elements = static_cast<double>(fp8->rows * fp8->inputs);
  TypeContest said{
      .rows = fp8->rows,
      .outputs = fp8->outputs,
      .inputs = fp8->inputs,
      .fp8_us = contest->fp8_us,
      .wide_us = cuda_beside_library_us(of_our_own, std::get<ProductKernel>(of_our_own.body),
                                        fp8->rows, contest->wide_us),
      .rounding_us = rounds ? kLaunchUs + elements * kBytesPerElement / kBytesPerUs : 0};
  add_once(library_.contests(), said);
  return said.fp8_wins();
}

::assay::Status ManyRows::multiply(const Kernel& kernel, const LtShape& shape,
                                   std::span<const Address> arguments, Address decoded,
                                   const Fp8Weight& rounded) {
  const auto& product = std::get<ProductKernel>(kernel.body);
  const LibraryProduct parts = library_product(kernel, product);
  LtOperands operands{
      .x = parts.prologue ? inputs() : arguments[product.x],
      .weight = kernel.buffers[product.weight].blocks ? decoded : arguments[product.weight],
      .out = products()};
  if (shape.fp8) {
    operands.weight = rounded.codes;
    operands.weight_scales = rounded.scales;
    operands.x_scales =
        inputs() + static_cast<size_t>(fp8_rows(shape.rows, shape.inputs).scales_at);
  }
  if (parts.direct) {
    operands.out = arguments[parts.direct->out];
    if (parts.direct->addend) operands.addend = arguments[*parts.direct->addend];
    if (parts.direct->bias) operands.bias = arguments[*parts.direct->bias];
  }
  return library_.get()->multiply(shape, operands);
}

std::vector<NarrowBuffer> narrow_buffers(const StepPlan& plan, bool eager) {
  const Narrowing narrowing(plan, eager);
  std::vector<NarrowBuffer> buffers;
  for (size_t kernel = 0; kernel < plan.kernels.size(); ++kernel) {
    const PlannedKernel& planned = plan.kernels[kernel];
    for (size_t i = 0; i < planned.bindings.size(); ++i) {
      if (const auto type = narrowing.type_of(planned, i)) buffers.push_back({kernel, i, *type});
    }
  }
  return buffers;
}

namespace {

// Calls `pair` with the kernels of each two of which the second alone reads what the first, a
// product, writes: `may` says of two that the second's x might be that, the one output.
template <typename May, typename Pair>
void pair_products(StepPlan& plan, May may, Pair pair) {
  std::map<ValueId, int> readers;
  for (const ValueId output : plan.graph->outputs) ++readers[plan.bases[output]];
  const auto value_of = [&](size_t kernel, size_t buffer) -> const ValueId* {
    const auto* value = std::get_if<ArenaBinding>(&plan.kernels[kernel].bindings[buffer]);
    return value != nullptr ? &value->value : nullptr;
  };
  for (size_t i = 0; i < plan.kernels.size(); ++i) {
    for (size_t b = 0; b < plan.kernels[i].bindings.size(); ++b) {
      const ValueId* value = value_of(i, b);
      if (value != nullptr && !plan.kernels[i].kernel.buffers[b].writable) ++readers[*value];
    }
  }
  for (size_t i = 0; i + 1 < plan.kernels.size(); ++i) {
    Kernel& first = plan.kernels[i].kernel;
    Kernel& second = plan.kernels[i + 1].kernel;
    if (!may(first, second)) continue;
    auto& reader = std::get<ProductKernel>(second.body);
    const ValueId* written = value_of(i, only_output(first));
    const ValueId* read = value_of(i + 1, reader.x);
    if (written == nullptr || read == nullptr || *written != *read || readers[*read] != 1) continue;
    pair(std::get<ProductKernel>(first.body), reader);
  }
}

}  // namespace

void pair_codes(StepPlan& plan) {
  for (PlannedKernel& planned : plan.kernels) {
    if (auto* of = std::get_if<ProductKernel>(&planned.kernel.body)) of->codes_output = false;
  }
  pair_products(plan, &may_write_codes,
                [](ProductKernel& first, ProductKernel&) { first.codes_output = true; });
}

void pair_tiles(StepPlan& plan) {
  for (PlannedKernel& planned : plan.kernels) {
    auto* of = std::get_if<ProductKernel>(&planned.kernel.body);
    if (of != nullptr) of->tiled_output = of->tiled_input = false;
  }
  pair_products(plan, &may_write_tiled_rows, [](ProductKernel& first, ProductKernel& second) {
    first.tiled_output = second.tiled_input = true;
  });
}

void narrow_values(StepPlan& plan, bool eager) {
  if (plan.dims.q_len == 1) return;  // a step of decoding
  for (const NarrowBuffer& narrow : narrow_buffers(plan, eager)) {
    plan.kernels[narrow.kernel].kernel.buffers[narrow.buffer].dtype = narrow.dtype;
  }
}

}  // namespace assay::engine::cuda
