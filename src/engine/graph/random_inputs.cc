// Random inputs for the interpreter: a function of the seed and of names, never of the graph's
// form.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/random.h"
#include "engine/graph/flatten.h"
#include "engine/graph/interpret.h"
#include "engine/model/convert.h"

namespace assay::engine {
namespace {

constexpr size_t kPeriod = 4099;  // a prime: rows of common widths don't repeat each other

uint64_t stream_of(std::string_view name) {
  uint64_t state = name.size();
  for (const char c : name) {
    state ^= static_cast<unsigned char>(c);
    splitmix64(state);
    state *= 0x100000001B3ull;
  }
  return state;
}

double between(Random& random, double low, double high) {
  return low + (high - low) * random.uniform();
}

// Vectors (norms, biases) lie around 1. A matrix about keeps the size of the values it multiplies.
std::vector<float> random_weight(uint64_t seed, const std::string& name,
                                 const std::vector<int64_t>& shape) {
  double count = 1;
  for (const int64_t size : shape) count *= static_cast<double>(size);
  const bool vector = shape.size() < 2;
  const double spread = vector ? 0.5 : std::sqrt(3 / std::sqrt(count));
  Random random(seed, stream_of(name));
  std::vector<float> values(static_cast<size_t>(count));
  const size_t fresh = std::min(values.size(), kPeriod);
  for (size_t i = 0; i < fresh; ++i) {
    values[i] = static_cast<float>((vector ? 1 : 0) + between(random, -spread, spread));
  }
  for (size_t i = fresh; i < values.size(); i += kPeriod) {
    std::copy_n(values.data(), std::min(kPeriod, values.size() - i), values.data() + i);
  }
  return values;
}

std::vector<float> random_floats(Random& random, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = static_cast<float>(between(random, -1, 1));
  return values;
}

// Rounds to values of the type.
std::vector<float> rounded(std::vector<float> values, DType dtype) {
  const Shape shape{static_cast<int64_t>(values.size())};
  std::vector<std::byte> stored(values.size() * dtype_size_bytes(dtype));
  convert({reinterpret_cast<const std::byte*>(values.data()), DType::kF32, shape}, dtype,
          stored.data());
  convert({stored.data(), dtype, shape}, DType::kF32, reinterpret_cast<std::byte*>(values.data()));
  return values;
}

// The rows of the smallest table that anything is looked up in.
int64_t table_rows(const Graph& flat) {
  int64_t rows = std::numeric_limits<int32_t>::max();
  for (const Node& node : flat.nodes) {
    if (node.op != OpKind::kEmbedding) continue;
    rows = std::min(rows, flat.values[node.inputs[1]].type.shape[0].factor());
  }
  return rows;
}

int64_t below(Random& random, int64_t bound) {
  return static_cast<int64_t>(random.below(static_cast<uint64_t>(bound)));
}

void fill_rows(InterpreterInputs& inputs, int64_t limit, Random& random) {
  const DimValues& dims = inputs.dims;
  const int64_t longest = dims.kv_len - dims.q_len, its_row = below(random, dims.batch);
  for (int64_t b = 0; b < dims.batch; ++b) {
    const int64_t length = b == its_row ? longest : below(random, longest + 1);
    const int64_t end = length + dims.q_len, least = std::max<int64_t>(end - limit, 0);
    const int64_t pad = below(random, 2) == 1 ? least + below(random, end - least) : least;
    inputs.lengths.push_back(static_cast<int32_t>(length));
    inputs.pad.push_back(static_cast<int32_t>(pad));
    for (int64_t q = 0; q < dims.q_len; ++q) {
      inputs.ids.push_back(static_cast<int32_t>(below(random, limit)));
    }
  }
}

void fill_slots(InterpreterInputs& inputs, uint64_t seed) {
  Random random(seed, 4);
  for (int32_t slot = 0; slot < inputs.dims.batch; ++slot) {
    inputs.slots.insert(inputs.slots.begin() + below(random, slot + 1), slot);
  }
}

}  // namespace

InterpreterInputs random_inputs(const Graph& graph, const DimValues& dims, uint64_t seed) {
  const Graph flat = flatten(graph);
  InterpreterInputs inputs;
  inputs.dims = dims;
  Random rows(seed, 1);
  fill_rows(inputs, table_rows(flat), rows);
  fill_slots(inputs, seed);
  inputs.weight = [seed](const std::string& name, const std::vector<int64_t>& shape) {
    return random_weight(seed, name, shape);
  };
  for (const Value& value : flat.values) {
    if (const auto* cache = std::get_if<CacheSource>(&value.source)) {
      Random random(seed, static_cast<uint64_t>(2 * cache->layer) +
                              (cache->part == CachePart::kKeys ? 16 : 17));
      inputs.caches[{cache->layer, cache->part}] =
          rounded(random_floats(random, elements(value.type.shape).value(dims)), value.type.dtype);
    } else if (std::holds_alternative<ConstantSource>(value.source) && inputs.rope_cos.empty()) {
      Random random(seed, 2);
      for (int64_t i = 0; i < dims.kv_len * value.type.shape[1].factor(); ++i) {
        const double angle = between(random, 0, 2 * std::numbers::pi);
        inputs.rope_cos.push_back(static_cast<float>(std::cos(angle)));
        inputs.rope_sin.push_back(static_cast<float>(std::sin(angle)));
      }
    }
  }
  return inputs;
}

}  // namespace assay::engine
