// Weights are laid out on the host, a part at a time, while the part before is uploaded.
#include "engine/device/cuda/gpu_weights.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "engine/codegen/cuda/block_slots.h"
#include "engine/codegen/cuda/fp8_product.h"
#include "engine/codegen/cuda/print_cuda.h"
#include "engine/device/cpu/packed_weights.h"

namespace assay::engine::cuda {

Staging::~Staging() {
  for (const Event event : read_) {
    if (event == nullptr) continue;
    (void)driver_.wait(event);
    driver_.destroy(event);
  }
}

Result<std::span<std::byte>> Staging::half(size_t bytes) {
  HostBlock& block = halves_[turn_];
  Event& read = read_[turn_];
  if (read == nullptr) {
    ASSAY_TRY(read, driver_.make_event());
  } else {
    ASSAY_CHECK(driver_.wait(read));
  }
  if (block.bytes().size() < bytes) {
    ASSAY_TRY(block, HostBlock::allocate(driver_, bytes));
  }
  return block.bytes().first(bytes);
}

::assay::Status Staging::send(Address to, size_t bytes) {
  ASSAY_CHECK(driver_.upload(to, halves_[turn_].bytes().first(bytes)));
  ASSAY_CHECK(driver_.record(read_[turn_]));
  turn_ = 1 - turn_;
  return {};
}

Result<Address> GpuWeights::address(const WeightSource& source, const WeightBinding& binding) {
  // A table in blocks is read like a product's weight, and is often one: a column for each row.
  if (!binding.product && traits(source.format).in_blocks()) {
    WeightBinding columns = binding;
    const Shape& shape = weights_.view(source.tensors.front()).shape;
    columns.product = {WeightLayout::kOutIn, {.segments = {shape[0]}, .layout = TileLayout::kRows}};
    return address(source, columns);
  }
  const std::string layout = binding.product ? to_string(binding.product->packing) : "";
  GpuBlock& copy = copies_[{source.tensors, layout}];
  if (copy.address() != 0) return copy.address();
  ASSAY_TRY(copy, binding.product ? product(source, binding) : plain(source));
  bytes_ += copy.size_bytes();
  return copy.address();
}

Result<GpuBlock> GpuWeights::product(const WeightSource& source, const WeightBinding& binding) {
  const auto& [in_memory, packing] = *binding.product;
  const ProductPanels panels(weights_, source, in_memory, packing);
  const size_t panels_bytes = static_cast<size_t>(panels.count()) * panels.bytes();
  std::span<const int32_t> order;
  if (source.input_order != nullptr) {
    const Shape& shape = weights_.view(source.tensors.front()).shape;
    order = {source.input_order, static_cast<size_t>(shape[1])};
  }
  ASSAY_TRY(GpuBlock block, GpuBlock::allocate(driver_, panels_bytes + order.size_bytes()));
  const auto most = std::max<int64_t>(static_cast<int64_t>(Staging::kMost / panels.bytes()), 1);
  for (int64_t first = 0; first < panels.count(); first += most) {
    const int64_t count = std::min(most, panels.count() - first);
    const size_t bytes = static_cast<size_t>(count) * panels.bytes();
    ASSAY_TRY(const auto half, staging_.half(bytes));
    panels.pack(pool_, first, count, half.data());
    ASSAY_CHECK(
        staging_.send(block.address() + static_cast<size_t>(first) * panels.bytes(), bytes));
  }
  // Where block_slots.h has it: a kernel's columns are those of the panels.
  if (!order.empty()) {
    assert(panels.count() * Packing::kPanel == packed_columns(packing));
    ASSAY_CHECK(driver_.upload(block.address() + panels_bytes, std::as_bytes(order)));
  }
  return block;
}

// Its tensors behind one another.
Result<GpuBlock> GpuWeights::plain(const WeightSource& source) {
  size_t bytes = 0;
  for (const std::string& name : source.tensors) bytes += weights_.tensor(name).size_bytes();
  ASSAY_TRY(GpuBlock block, GpuBlock::allocate(driver_, bytes));
  Address to = block.address();
  for (const std::string& name : source.tensors) {
    const TensorView& tensor = weights_.tensor(name);
    for (size_t done = 0; done < tensor.size_bytes();) {
      const size_t count = std::min(Staging::kMost, tensor.size_bytes() - done);
      ASSAY_TRY(const auto half, staging_.half(count));
      const size_t share = (count + pool_.size() - 1) / pool_.size();
      pool_.run([&](size_t thread) {
        const size_t begin = std::min(thread * share, count);
        std::memcpy(half.data() + begin, tensor.data + done + begin,
                    std::min(share, count - begin));
      });
      ASSAY_CHECK(staging_.send(to, count));
      to += count;
      done += count;
    }
  }
  return block;
}

Result<Fp8Weight> GpuWeights::fp8(const WeightSource& source, const WeightBinding& binding,
                                  KernelStore& kernels) {
  const auto& [in_memory, packing] = *binding.product;
  const TensorView first = weights_.view(source.tensors.front());
  const int64_t inputs = first.shape[in_memory == WeightLayout::kOutIn ? 1 : 0];
  const int64_t columns = packed_elements(packing, inputs) / Packing::padded_inputs(inputs);
  const Fp8Rows places = fp8_rows(columns, inputs);
  GpuBlock& block = rounded_[{source.tensors, to_string(packing)}];
  const auto scales_at = static_cast<size_t>(places.scales_at);
  if (block.address() == 0) {
    struct {
      Address from, codes, scales;
    } arguments{};
    ASSAY_TRY(arguments.from, address(source, binding));
    const bool in_blocks = traits(source.format).in_blocks();
    ASSAY_TRY(const Module module,
              kernels.load(in_blocks ? print_fp8_blocks(source.format, inputs)
                                     : print_fp8_weight(first.element(), inputs),
                           false));
    ASSAY_TRY(const Function function, driver_.function(module, "assay_round"));
    const auto bytes = static_cast<size_t>(places.wide_at);
    ASSAY_TRY(GpuBlock made, GpuBlock::allocate(driver_, bytes));
    arguments.codes = made.address();
    arguments.scales = made.address() + scales_at;
    const int64_t launched = in_blocks ? columns / CudaSlot::kColumns : columns;
    ASSAY_CHECK(driver_.launch(function, {static_cast<unsigned>(launched), 1, 1}, kCudaThreads,
                               &arguments, false));
    bytes_ += bytes;
    block = std::move(made);
  }
  return Fp8Weight{block.address(), block.address() + scales_at};
}

}  // namespace assay::engine::cuda
