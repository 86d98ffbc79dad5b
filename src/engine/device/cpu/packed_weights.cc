// Copies of weights, each made once: in chunks of memory, or behind one another in a file.
#include "engine/device/cpu/packed_weights.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/files/hash.h"
#include "base/files/mapped_file.h"
#include "engine/model/convert.h"

namespace assay::engine {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kChunkBytes = size_t{32} << 20;
constexpr size_t kLongestLabel = 64;

size_t rounded_up(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// The checkpoint's name as a word.
std::string label_of(const Checkpoint& checkpoint) {
  const std::filesystem::path path = checkpoint.path();
  std::string name = path.has_filename() ? path.filename() : path.parent_path().filename();
  name.resize(std::min(name.size(), kLongestLabel));
  for (char& c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 126 || (std::isalnum(byte) == 0 && c != '.' && c != '-')) c = '_';
  }
  return name.empty() ? "model" : name;
}

}  // namespace

Status PackedWeights::pack(std::span<const ProductWeight> products, WeightCache* cache,
                           std::vector<std::string>& notes) {
  if (cache != nullptr) {
    const Status used = use_file(places(products), *cache);
    if (!used) notes.push_back("weight cache: not used: " + used.error().message);
    if (std::string refusal = cache->take_refusal(); !refusal.empty()) notes.push_back(refusal);
  }
  for (const ProductWeight& one : products)
    ASSAY_CHECK(product(one.source, one.layout, one.packing));
  return {};
}

std::vector<PackedWeights::Place> PackedWeights::places(
    std::span<const ProductWeight> products) const {
  std::vector<Place> places;
  std::map<Copy, bool> seen;
  size_t at = 0;
  for (const ProductWeight& one : products) {
    if (!seen.emplace(Copy{one.source.tensors, to_string(one.packing)}, true).second) continue;
    places.push_back({one, ProductPanels(weights_, one.source, one.layout, one.packing), at});
    const ProductPanels& panels = places.back().panels;
    at += rounded_up(static_cast<size_t>(panels.count()) * panels.bytes());
  }
  return places;
}

// Everything that the file's bytes depend on: of the code, all of the program. Without /proc, which
// has it, no file is kept (KeptFiles).
WeightFileKey PackedWeights::key_of(const std::vector<Place>& places,
                                    const std::string& checkpoint) const {
  const auto program = file_stamp("/proc/self/exe");
  std::string text = fmt::format("program {}\n{}", program ? program->text() : "", checkpoint);
  WeightFileKey key{.digest = {}, .label = label_of(weights_.checkpoint())};
  for (const Place& place : places) {
    for (const std::string& name : place.product.source.tensors) {
      const TensorView& view = weights_.view(name);
      text += fmt::format("{} {} {} ", name, traits(view.format).name, view.shape.to_string());
    }
    key.bytes = place.at + static_cast<size_t>(place.panels.count()) * place.panels.bytes();
    text +=
        fmt::format("{} {}\n", place.product.layout == WeightLayout::kOutIn ? "out_in" : "in_out",
                    to_string(place.product.packing));
  }
  key.digest = sha256_hex(text);
  return key;
}

Status PackedWeights::use_file(const std::vector<Place>& places, WeightCache& cache) {
  const auto checkpoint = weights_.checkpoint().identity();
  if (!checkpoint) {
    return environment_error("{}: expected files that stay as they were when they were opened",
                             weights_.checkpoint().path().string());
  }
  const WeightFileKey key = key_of(places, *checkpoint);
  if (key.bytes == 0) return {};
  std::optional<MappedFile> file = cache.find(key);
  if (file) {
    found_bytes_ += key.bytes;
  } else {
    ASSAY_TRY(file, make_file(places, key, *checkpoint, cache));
  }
  assay::page_in(file->bytes().first(key.bytes));
  for (const Place& place : places) {
    const ProductWeight& one = place.product;
    copies_[{one.source.tensors, to_string(one.packing)}] = file->bytes().data() + place.at;
  }
  bytes_ += key.bytes;
  files_.push_back(*std::move(file));
  return {};
}

Result<MappedFile> PackedWeights::make_file(const std::vector<Place>& places,
                                            const WeightFileKey& key, const std::string& checkpoint,
                                            WeightCache& cache) const {
  ASSAY_TRY(WeightFile file, cache.begin(key));
  for (const Place& place : places) {
    page_in(place.product.source);
    ASSAY_CHECK(file.skip_to(place.at));
    const ProductPanels& panels = place.panels;
    const auto at_once = static_cast<int64_t>(std::max<size_t>(1, kChunkBytes / panels.bytes()));
    for (int64_t first = 0; first < panels.count(); first += at_once) {
      const int64_t count = std::min(at_once, panels.count() - first);
      ASSAY_TRY(std::byte* const memory, file.next(static_cast<size_t>(count) * panels.bytes()));
      panels.pack(pool_, first, count, memory);
    }
  }
  if (weights_.checkpoint().identity() != checkpoint) {
    return environment_error("{}: expected a checkpoint that nobody writes to, found it changed",
                             weights_.checkpoint().path().string());
  }
  return cache.keep(std::move(file), key);
}

void PackedWeights::page_in(const WeightSource& source) const {
  for (const std::string& name : source.tensors) weights_.page_in(name);
}

Result<std::byte*> PackedWeights::allocate(size_t bytes) {
  const size_t rounded = rounded_up(bytes);
  if (chunks_.empty() || used_ + rounded > chunks_.back().size_bytes()) {
    ASSAY_TRY(HugeMemory chunk, HugeMemory::allocate(std::max(rounded, kChunkBytes)));
    chunks_.push_back(std::move(chunk));
    used_ = 0;
  }
  std::byte* memory = chunks_.back().data() + used_;
  used_ += rounded;
  bytes_ += bytes;
  return memory;
}

Result<const std::byte*> PackedWeights::product(const WeightSource& source, WeightLayout layout,
                                                const Packing& packing) {
  const std::byte*& copy = copies_[{source.tensors, to_string(packing)}];
  if (copy != nullptr) return copy;
  page_in(source);
  const ProductPanels panels(weights_, source, layout, packing);
  ASSAY_TRY(std::byte* const memory,
            allocate(static_cast<size_t>(panels.count()) * panels.bytes()));
  panels.pack(pool_, 0, panels.count(), memory);
  return copy = memory;
}

Result<DecodedTable*> PackedWeights::table(const WeightSource& source) {
  const std::string& name = source.tensors.front();
  auto found = tables_.find(name);
  if (found == tables_.end()) {
    page_in(source);
    ASSAY_TRY(DecodedTable made, DecodedTable::make(weights_.tensor(name)));
    found = tables_.emplace(name, std::move(made)).first;
  }
  return &found->second;
}

Result<const std::byte*> PackedWeights::plain(const WeightSource& source) {
  page_in(source);
  std::vector<TensorView> tensors;
  for (const std::string& name : source.tensors) tensors.push_back(weights_.tensor(name));
  if (tensors.size() == 1 && !tensors.front().in_blocks()) return tensors.front().data;
  const std::byte*& copy = copies_[{source.tensors, ""}];
  if (copy != nullptr) return copy;
  size_t total = 0;
  const auto bytes = [](const TensorView& tensor) {
    return static_cast<size_t>(tensor.shape.elements()) * dtype_size_bytes(tensor.element());
  };
  for (const TensorView& tensor : tensors) total += bytes(tensor);
  ASSAY_TRY(std::byte* const memory, allocate(total));
  std::byte* to = memory;
  for (const TensorView& tensor : tensors) {
    convert(tensor, tensor.element(), to);
    to += bytes(tensor);
  }
  return copy = memory;
}

}  // namespace assay::engine
