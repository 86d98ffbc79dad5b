// A small seeded generator whose output is the same on every machine and compiler.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

namespace assay {

// SplitMix64 (Steele, Lea, Flood 2014): one step of the stream that starts at `state`.
constexpr uint64_t splitmix64(uint64_t& state) {
  state += 0x9E3779B97F4A7C15ull;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

// xoshiro256** (Blackman, Vigna 2018). Satisfies UniformRandomBitGenerator, but prefer the members:
// std distributions differ between standard libraries.
class Random {
 public:
  using result_type = uint64_t;

  // Streams of one seed are independent: give each thread, block or tensor its own.
  explicit Random(uint64_t seed, uint64_t stream = 0) {
    uint64_t mix = seed;
    uint64_t state = splitmix64(mix) ^ (stream * 0xD1342543DE82EF95ull);
    for (uint64_t& word : state_) word = splitmix64(state);
  }

  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return UINT64_MAX; }

  uint64_t operator()() {
    const uint64_t result = rotate(state_[1] * 5, 7) * 9;
    const uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = rotate(state_[3], 45);
    return result;
  }

  // Uniform in [0, bound), bound > 0, without modulo bias beyond 2^-64 (Lemire's multiplication).
  uint64_t below(uint64_t bound) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>((*this)()) * bound) >> 64);
  }

  // Uniform in [0, 1), 53 bits.
  double uniform() { return static_cast<double>((*this)() >> 11) * 0x1p-53; }

  // Fisher-Yates.
  template <typename T>
  void shuffle(std::span<T> items) {
    for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  static constexpr uint64_t rotate(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

  uint64_t state_[4];
};

}  // namespace assay
