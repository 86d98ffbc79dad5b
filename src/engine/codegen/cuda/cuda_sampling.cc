// Sums are of whole numbers, so that no order of threads changes them; every other operation is
// rounded as IEEE 754 has it and never fused with another, as the host's are.
#include "engine/codegen/cuda/cuda_sampling.h"

#include <fmt/format.h>

#include "engine/codegen/cuda/print_cuda.h"

namespace assay::engine {
namespace {

constexpr std::string_view kSampling = R"(
typedef unsigned long long u64;
struct Wishes {
  long samples, prompt_tokens, held_at, penalties, biases;
  double temperature, repetition, presence, frequency, top_p;
  long top_k;
  u64 least, seed;
};
enum : unsigned { SEEN = 1u << 31 };

// A sum over the block, the same in every thread.
__device__ __forceinline__ u64 block_total(u64 x) {
  __shared__ u64 totals[WARPS];
  #pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(~0u, x, offset);
  __syncthreads();
  if (lane_of_thread() == 0) totals[warp_of_thread()] = x;
  __syncthreads();
  x = 0;
  for (int i = 0; i < WARPS; ++i) x += totals[i];
  return x;
}
// The sum of the lanes through this one.
__device__ __forceinline__ u64 warp_through(u64 x) {
  #pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    const u64 other = __shfl_sync(~0u, x, lane_of_thread() - offset & 31);
    if (lane_of_thread() >= offset) x += other;
  }
  return x;
}
// Calls `use` for elements begin, begin + step ... below `end`; loads are a batch ahead of it.
template <typename T, typename Use>
__device__ __forceinline__ void each(const T* values, long begin, long end, int step, const Use& use) {
  enum { BATCH = 8 };
  long i = begin;
  for (; i + (BATCH - 1) * step < end; i += BATCH * step) {
    T batch[BATCH];
    #pragma unroll
    for (int k = 0; k < BATCH; ++k) batch[k] = values[i + k * step];
    #pragma unroll
    for (int k = 0; k < BATCH; ++k) use(i + k * step, batch[k]);
  }
  for (; i < end; i += step) use(i, values[i]);
}
// The first of the largest values, NaN above all.
__device__ __forceinline__ bool comes_first(double x, long i, double y, long j) {
  const bool x_nan = x != x, y_nan = y != y;
  if (x_nan != y_nan) return x_nan;
  return x > y || ((x == y || x_nan) && i < j);
}
__device__ __forceinline__ long block_largest(double& x, long i) {
  __shared__ double values[WARPS];
  __shared__ long indices[WARPS];
  #pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    const double y = __shfl_xor_sync(~0u, x, offset);
    const long j = __shfl_xor_sync(~0u, i, offset);
    if (comes_first(y, j, x, i)) x = y, i = j;
  }
  __syncthreads();
  if (lane_of_thread() == 0) values[warp_of_thread()] = x, indices[warp_of_thread()] = i;
  __syncthreads();
  x = values[0], i = indices[0];
  for (int w = 1; w < WARPS; ++w) {
    if (comes_first(values[w], indices[w], x, i)) x = values[w], i = indices[w];
  }
  return i;
}

// e^x in units of 2^-40, for x <= 0: Sampler's.
__device__ u64 weight_of(double x) {
  if (!(x > -28.0)) return 0;
  const double scaled = __dadd_rn(__dmul_rn(x, 1.4426950408889634), -0.5);
  const int k = (int)scaled;
  double r = __dadd_rn(x, -__dmul_rn((double)k, 0.693147180369123816490e+00));
  r = __dadd_rn(r, -__dmul_rn((double)k, 1.90821492927058770002e-10));
  const double parts[11] = {1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720,
                            1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1.0};
  double p = parts[0];
  #pragma unroll
  for (int i = 1; i < 11; ++i) p = __dadd_rn(__dmul_rn(p, r), parts[i]);
  p = __dadd_rn(__dmul_rn(p, r), 1.0);
  return (u64)__dmul_rn(p, __longlong_as_double((long long)(1023 + 40 + k) << 52));
}

// The number of chosen tokens names it.
__device__ u64 mix_of(u64& state) {
  state += 0x9E3779B97F4A7C15ull;
  u64 z = state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}
__device__ u64 stream_of(u64 seed, u64 stream) {
  u64 mix = seed;
  u64 state = mix_of(mix) ^ (stream * 0xD1342543DE82EF95ull);
  mix_of(state);
  const u64 five = mix_of(state) * 5;
  return (five << 7 | five >> 57) * 9;
}
// -ln u: Sampler's.
__device__ double minus_ln(double u) {
  const u64 word = (u64)__double_as_longlong(u);
  int exponent = (int)(word >> 52) - 1023;
  double m = __longlong_as_double((long long)((word & 0xFFFFFFFFFFFFFull) | 1023ull << 52));
  if (m > 1.4142135623730951) m = __dmul_rn(m, 0.5), ++exponent;
  const double r = __ddiv_rn(__dadd_rn(m, -1.0), __dadd_rn(m, 1.0)), square = __dmul_rn(r, r);
  const double parts[10] = {1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3, 1.0};
  double p = 1.0 / 21;
  #pragma unroll
  for (int i = 0; i < 10; ++i) p = __dadd_rn(__dmul_rn(p, square), parts[i]);
  const double low = __dadd_rn(__dmul_rn((double)exponent, 1.90821492927058770002e-10), __dmul_rn(__dmul_rn(2.0, r), p));
  return -__dadd_rn(__dmul_rn((double)exponent, 0.693147180369123816490e+00), low);
}

// Tokens in the order of their weights, equal ones in that of ids: a cut keeps those above `weight`,
// which weigh `above` together, and the first `equal` of those that have it.
struct Cut {
  u64 weight, equal, above;
};
__device__ u64 mass_of(const Cut& cut) { return cut.above + cut.equal * cut.weight; }
// Where tokens above `low.weight`, counted or weighed, reach `wanted`, which they do.
__device__ Cut find_cut(const u64* weights, long vocab, const Cut& low, u64 wanted, bool by_weight) {
  enum { BITS = 11, BINS = 1 << BITS, BINS_OF_LANE = BINS / 32 };
  __shared__ u64 bins[BINS];
  __shared__ u64 chosen, above_chosen;
  u64 prefix = 0, above = 0;
  for (int shift = 3 * BITS; shift >= 0; shift -= BITS) {
    for (int i = threadIdx.x; i < BINS; i += THREADS) bins[i] = 0;
    __syncthreads();
    each(weights, threadIdx.x, vocab, THREADS, [&](long, u64 weight) {
      const u64 digit = weight >> shift & BINS - 1;
      if (weight > low.weight && weight >> shift >> BITS == prefix && digit != 0) {
        atomicAdd(&bins[digit], by_weight ? weight : 1ull);
      }
    });
    __syncthreads();
    if (warp_of_thread() == 0) {
      u64 own = 0;  // of the lane's bins, the highest first
      const int first = BINS - 1 - lane_of_thread() * BINS_OF_LANE;
      for (int i = 0; i < BINS_OF_LANE; ++i) own += bins[first - i];
      const u64 through = above + warp_through(own);
      u64 before = through - own;
      if (lane_of_thread() == 31) chosen = 0, above_chosen = through;
      __syncwarp();
      if (before < wanted && through >= wanted) {
        for (int i = 0; i < BINS_OF_LANE; ++i) {
          if (before + bins[first - i] >= wanted) {
            chosen = first - i, above_chosen = before;
            break;
          }
          before += bins[first - i];
        }
      }
    }
    __syncthreads();
    prefix = prefix << BITS | chosen, above = above_chosen;
    __syncthreads();
  }
  if (by_weight) return {prefix, (wanted - above + prefix - 1) / prefix, above};
  u64 sum = 0;
  each(weights, threadIdx.x, vocab, THREADS, [&](long, u64 weight) { sum += weight > prefix ? weight : 0; });
  return {prefix, wanted - above, block_total(sum)};
}

// The id of the last token that a cut keeps of its own weight; `vocab` where there is no cut. Each warp
// counts a run of ids.
__device__ long last_of_equal(const u64* weights, long vocab, const Cut& cut) {
  __shared__ u64 equal_of[WARPS];
  __shared__ long last;
  if (cut.weight == 0) return vocab;
  const long run = (vocab + WARPS - 1) / WARPS;
  const long begin = warp_of_thread() * run < vocab ? warp_of_thread() * run : vocab;
  const long end = begin + run < vocab ? begin + run : vocab;
  u64 equal = 0;
  each(weights, begin + lane_of_thread(), end, 32, [&](long, u64 weight) { equal += weight == cut.weight; });
  #pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) equal += __shfl_xor_sync(~0u, equal, offset);
  __syncthreads();
  if (lane_of_thread() == 0) equal_of[warp_of_thread()] = equal;
  if (threadIdx.x == 0) last = vocab;
  __syncthreads();
  u64 before = 0;  // equal ones ahead of the warp's
  for (int w = 0; w < warp_of_thread(); ++w) before += equal_of[w];
  if (before < cut.equal && before + equal >= cut.equal) {
    for (long row = begin; row < end; row += 32) {
      const long i = row + lane_of_thread();
      const u64 is_equal = i < end && weights[i] == cut.weight;
      const u64 through = before + warp_through(is_equal);
      if (is_equal && through == cut.equal) last = i;
      before = __shfl_sync(~0u, through, 31);
      if (before >= cut.equal) break;
    }
  }
  __syncthreads();
  return last;
}

// The token that is drawn; the same in every thread. `count` and `mass`: of all that have a weight.
__device__ long draw(const Wishes& wishes, const u64* weights, long vocab, u64 count, u64 mass, u64 chosen_before) {
  Cut cut = {0, 0, mass};
  if (wishes.top_k > 0 && (u64)wishes.top_k < count) cut = find_cut(weights, vocab, cut, wishes.top_k, false);
  if (wishes.top_p < 1) {
    u64 enough = (u64)__dmul_rn(wishes.top_p, (double)mass_of(cut));
    if (enough == 0) enough = 1;
    if (enough > cut.above) {
      cut.equal = (enough - cut.above + cut.weight - 1) / cut.weight;
    } else {
      cut = find_cut(weights, vocab, cut, enough, true);
    }
  }
  const long last = last_of_equal(weights, vocab, cut);
  const u64 stream = stream_of(wishes.seed, chosen_before);
  double least = __longlong_as_double(0x7ffll << 52);
  long drawn = vocab;
  each(weights, threadIdx.x, vocab, THREADS, [&](long i, u64 weight) {
    if (weight == 0 || weight < cut.weight || (weight == cut.weight && i > last)) return;
    u64 state = stream + (u64)i * 0x9E3779B97F4A7C15ull;
    const double u = __dmul_rn(__dadd_rn((double)(mix_of(state) >> 11), 0.5), 1.1102230246251565e-16);
    if (__dadd_rn(0.9999, -u) >= __dmul_rn(least, (double)weight)) return;  // Sampler's short cut
    const double at = __ddiv_rn(minus_ln(u), (double)weight);
    if (at < least) least = at, drawn = i;
  });
  double first = -least;
  return block_largest(first, drawn);
}

// A row's logits with the slot's biases, where it has some, and behind its penalties.
struct Values {
  const Wishes& wishes;
  const float* logits;
  const double* biased;
  const unsigned* counts;
};
__device__ __forceinline__ double penalised(const Values& of, long i, double value) {
  const unsigned count = of.wishes.penalties ? of.counts[i] : 0;
  if (!(count & SEEN)) return value;
  value = value > 0 ? __ddiv_rn(value, of.wishes.repetition) : __dmul_rn(value, of.wishes.repetition);
  const unsigned often = count & ~SEEN;
  if (often == 0) return value;
  return __dadd_rn(value, -__dadd_rn(of.wishes.presence, __dmul_rn((double)often, of.wishes.frequency)));
}
template <typename Use>
__device__ __forceinline__ void each_value(const Values& of, long vocab, const Use& use) {
  if (of.wishes.biases > 0) {
    each(of.biased, threadIdx.x, vocab, THREADS, [&](long i, double value) { use(i, penalised(of, i, value)); });
  } else {
    each(of.logits, threadIdx.x, vocab, THREADS, [&](long i, float value) { use(i, penalised(of, i, (double)value)); });
  }
}

// The row's token as its slot wishes it.
__device__ long sample_row(const Args& args, const Wishes& wishes, long b, long slot) {
  const float* logits = args.logits + ((b + 1) * args.positions - 1) * args.vocab;
  const long vocab = args.vocab;
  u64* weights = args.weights + b * vocab;
  double* biased = (double*)weights;
  unsigned* counts = args.counts + slot * vocab;
  const long before = args.before[b];
  const long chosen_before = before + (args.fed ? 1 : args.dims[1]) - wishes.prompt_tokens;
  if (wishes.penalties && args.fed && threadIdx.x == 0 && before != wishes.held_at) {
    const unsigned count = counts[args.fed[b]];
    counts[args.fed[b]] = (count | SEEN) + 1;
  }
  if (wishes.biases > 0) {
    each(logits, threadIdx.x, vocab, THREADS, [&](long i, float logit) { biased[i] = (double)logit; });
    __syncthreads();
    for (long i = threadIdx.x; i < wishes.biases; i += THREADS) {
      const int id = args.bias_ids[slot * MOST_BIASES + i];
      biased[id] = __dadd_rn(biased[id], args.bias_values[slot * MOST_BIASES + i]);
    }
  }
  __syncthreads();
  const Values values = {wishes, logits, biased, counts};
  double largest = -__longlong_as_double(0x7ffll << 52);
  long at = vocab;
  each_value(values, vocab, [&](long i, double value) {
    if (at == vocab || comes_first(value, i, largest, at)) largest = value, at = i;
  });
  at = block_largest(largest, at);
  if (wishes.temperature == 0 || !(largest - largest == 0)) return at;
  const double scale = __ddiv_rn(1.0, wishes.temperature);
  u64 count = 0, mass = 0;
  each_value(values, vocab, [&](long i, double value) {
    const u64 weight = weight_of(__dmul_rn(__dadd_rn(value, -largest), scale));
    const bool may_be = weight >= wishes.least;
    weights[i] = may_be ? weight : 0;
    count += may_be, mass += may_be ? weight : 0;
  });
  count = block_total(count), mass = block_total(mass);
  return draw(wishes, weights, vocab, count, mass, chosen_before);
}
)";

}  // namespace

std::string print_cuda_sampling(const CudaRowsMore& more) {
  return cuda_prelude(kCudaSamplingThreads) +
         fmt::format("\nenum {{ MOST_BIASES = {} }};\n", kCudaMostBiases) +
         fmt::format(
             "\nstruct Wishes;\nstruct Args {{ void* buffers[1]; const long* dims; const int "
             "*slots, "
             "*fed, *before; const Wishes* wishes; unsigned* counts; const int* bias_ids; const "
             "double* bias_values; unsigned long long* weights; {}}};\n",
             more.members) +
         std::string(kSampling) + cuda_entry("assay_run") + R"() {
  wait_for_kernels_ahead();
)" + std::string(more.ahead) +
         R"(  const long row = blockIdx.x, slot = args.slots[row];
  if (args.wishes[slot].samples) {
    const long token = sample_row(args, args.wishes[slot], row, slot);
    if (threadIdx.x == 0) ((int*)args.buffers[0])[row] = (int)token;
  }
)" + std::string(more.behind) +
         "}\n";
}

std::string print_cuda_seen() {
  return cuda_prelude(kCudaThreads) +
         "\nstruct Args { unsigned* counts; const int* ids; long count; };\n" +
         cuda_entry("assay_run") + R"() {
  wait_for_kernels_ahead();
  const long i = (long)blockIdx.x * THREADS + threadIdx.x;
  if (i < args.count) args.counts[args.ids[i]] |= 1u << 31;
}
)";
}

}  // namespace assay::engine
