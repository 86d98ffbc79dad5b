// Barriers in shared memory and products of warpgroups, a part of kernel_shim.h.
#pragma once

// Barriers in shared memory: arrivals that a phase waits for, those still to come, bytes of copies
// in bulk likewise, and the phase's number.
struct SimtBarrier {
  unsigned short all, missing;
  int bytes : 24;
  unsigned phase : 8;
  void end_phase() {
    if (missing == 0 && bytes == 0) missing = all, ++phase;
  }
};
inline SimtBarrier& simt_barrier(unsigned address) {
  return *(SimtBarrier*)simt_shared(address);
}
static void ptx_mbarrier_init_shared__cta_b64(unsigned address, unsigned arrivals) {
  simt_barrier(address) = {(unsigned short)arrivals, (unsigned short)arrivals, 0, 0};
}
static void ptx_mbarrier_arrive_shared__cta_b64(unsigned address) {
  SimtBarrier& barrier = simt_barrier(address);
  if (barrier.missing == 0) simt_fail("mbarrier: more threads arrive than it waits for");
  --barrier.missing;
  barrier.end_phase();
}
static void ptx_mbarrier_arrive_expect_tx_shared__cta_b64(unsigned address, unsigned bytes) {
  simt_barrier(address).bytes += (int)bytes;
  ptx_mbarrier_arrive_shared__cta_b64(address);
}
static void ptx_cp_async_bulk_shared__cluster_global_mbarrier__complete_tx__bytes(
    unsigned to, const void* from, unsigned bytes, unsigned address) {
  if (to % 16 != 0 || bytes % 16 != 0 || (unsigned long)from % 16 != 0) {
    simt_fail("cp.async.bulk: an address or a size that isn't a multiple of 16");
  }
  memcpy(simt_shared(to), from, bytes);
  simt_barrier(address).bytes -= (int)bytes;
  simt_barrier(address).end_phase();
}
// As the simulated driver's cuTensorMapEncodeTiled() fills it in: sizes in elements of 16 bits, and
// bytes from a line to the next.
struct SimtTensorMap {
  const char* begin;
  unsigned long long elements, lines, pitch;
  unsigned box_elements, box_lines;
};
// In the swizzle of 128 bytes; zeros behind the last line.
static void ptx_cp_async_bulk_tensor_2d_shared__cluster_global_tile_mbarrier__complete_tx__bytes(
    unsigned to, const void* map_at, int at, int line, unsigned address) {
  SimtTensorMap map;
  memcpy(&map, map_at, sizeof map);
  if (to % 1024 != 0 || map.box_elements != 64 || at % 64 != 0) {
    simt_fail("cp.async.bulk.tensor: a place or a box that the tests don't know");
  }
  for (unsigned i = 0; i < map.box_lines; ++i) {
    for (unsigned piece = 0; piece < 8; ++piece) {
      const unsigned element = (unsigned)at + piece * 8;
      char* const place = simt_shared(to + i * 128 + (piece ^ i % 8) * 16);
      const bool there = (unsigned)line + i < map.lines && element < map.elements;
      if (!there)
        memset(place, 0, 16);
      else
        memcpy(place, map.begin + ((unsigned)line + i) * map.pitch + element * 2ul, 16);
    }
  }
  simt_barrier(address).bytes -= (int)(map.box_lines * 128);
  simt_barrier(address).end_phase();
}
// Addresses in shared memory of a cluster's blocks: 28 bits, and behind them 1 + the block's
// number.
static void ptx_mapa_shared__cluster_u32(unsigned& there, unsigned address, unsigned number) {
  there = (address & 0xfffffff) | (number + 1) << 28;
  if ((unsigned)((int)(there << 4) >> 4) != address) simt_fail("mapa: an address of over 28 bits");
}
inline char* simt_in_cluster(unsigned address) {
  return simt_state->in_block((address >> 28) - 1,
                              simt_shared((unsigned)((int)(address << 4) >> 4)));
}
static void ptx_st_async_weak_shared__cluster_mbarrier__complete_tx__bytes_v4_f32(
    unsigned to, float a, float b, float c, float d, unsigned address) {
  const float4 all = {a, b, c, d};
  memcpy(simt_in_cluster(to), &all, sizeof all);
  SimtBarrier& barrier = *(SimtBarrier*)simt_in_cluster(address);
  barrier.bytes -= (int)sizeof all;
  barrier.end_phase();
}
static void ptx_fence_mbarrier_init_release_cluster() {}
static void ptx_barrier_cluster_arrive_relaxed_aligned() {}
static void ptx_barrier_cluster_wait_acquire_aligned() {
  simt_state->sync_cluster();
}
// A barrier of some of a block's warps.
static void ptx_barrier_sync_aligned(int number, unsigned threads) {
  static struct { unsigned come, phase; } barriers[kSimtCluster][16];
  auto& barrier = barriers[simt_state->rank][number];
  const unsigned phase = barrier.phase;
  if (++barrier.come == threads) {
    barrier.come = 0, ++barrier.phase;
    return;
  }
  while (barrier.phase == phase) simt_state->yield();
}
static void ptx_mbarrier_test_wait_parity_shared__cta_b64(unsigned& come, unsigned address,
                                                          unsigned parity) {
  come = (simt_barrier(address).phase & 1) != parity;
}
static void ptx_mbarrier_try_wait_parity_shared__cta_b64(unsigned& come, unsigned address,
                                                         unsigned parity) {
  ptx_mbarrier_test_wait_parity_shared__cta_b64(come, address, parity);
  if (!come) simt_state->yield();
}
static void ptx_fence_proxy_async_shared__cta() {}
static void ptx_setmaxnreg_inc_sync_aligned_u32() {}
static void ptx_setmaxnreg_dec_sync_aligned_u32() {}

// Products of a warpgroup. Operands are read when a product begins; sums are numbers only once
// their last group has been waited for. When a group has, what the right operands' memory holds
// must not have changed: the first lane of each warp looks.
struct SimtOperand {
  unsigned long b, hash;
  long group;
  bool transposed;
};
struct SimtProduct {
  enum { kMostOperands = 64 };
  float* sums;
  float values[128];
  int count;
  long group;
  SimtOperand operands[kMostOperands];
  int pending;  // operands that no wait has covered yet
};
struct SimtProducts {
  enum { kMost = 4 };
  SimtProduct running[kMost];
  long groups;
};
static SimtProducts simt_all_products[kSimtCluster][kSimtThreads];
static SimtProducts& simt_products() {
  return simt_all_products[simt_state->rank][threadIdx.x];
}
static void simt_begin_products() {
  for (SimtProduct& product : simt_products().running) product.sums = nullptr;
  simt_products().groups = 0;
}
struct SimtMatrix {
  unsigned long bits;
  // In shared memory, of which it has 18 bits.
  unsigned start() const {
    const unsigned begin = (unsigned)__cvta_generic_to_shared(__start_simt_shared);
    return begin + (((unsigned)(bits & 0x3fff) * 16 - begin) & 0x3ffff);
  }
  // Element [row, k] of 16 k, with neighbours along k or, transposed, along the rows, in the
  // swizzle of 128 bytes: eight lines of 128 bytes, 1024-byte aligned, whose 16 bytes p are at p ^
  // line % 8.
  unsigned short at(int row, int k, bool transposed) const {
    const unsigned line_step = (unsigned)(bits >> 32 & 0x3fff) * 16,
                   band = (unsigned)(bits >> 16 & 0x3fff) * 16;
    const int line = transposed ? k : row, along = transposed ? row : k;
    unsigned address = start() + (unsigned)(line / 8) * line_step + (unsigned)(line % 8) * 128 +
                       (unsigned)(along / 64) * band + (unsigned)(along % 64) * 2;
    address ^= address >> 3 & 0x70;
    unsigned short value;
    memcpy(&value, simt_shared(address), 2);
    return value;
  }
  unsigned long hash(int rows, bool transposed) const {
    unsigned long sum = 0;
    for (int row = 0; row < rows; ++row) {
      for (int k = 0; k < 16; ++k) sum = (sum ^ at(row, k, transposed)) * 0x100000001b3;
    }
    return sum;
  }
};
static SimtProduct& simt_product_on(float* sums, int count) {
  SimtProducts& products = simt_products();
  SimtProduct* unused = nullptr;
  for (SimtProduct& product : products.running) {
    if (product.sums == sums) return product;
    if (product.sums == nullptr) unused = &product;
  }
  if (unused == nullptr) simt_fail("more products run than the tests know");
  unused->sums = sums, unused->count = count, unused->pending = 0;
  for (int i = 0; i < count; ++i) unused->values[i] = sums[i], sums[i] = __builtin_nanf("");
  return *unused;
}
// Thread 4 r + t of a warp has rows r and r + 8 of its 16, and of eight columns 2 t and 2 t + 1.
template <float (*WIDEN)(unsigned short)>
static void simt_add_product(SimtProduct& product, const unsigned short (&a)[2][16], SimtMatrix b,
                             bool adds, bool b_transposed) {
  float line[16];
  for (int i = 0; i < product.count; ++i) {
    float sum = adds ? product.values[i] : 0.0f;
    const int column = i / 4 * 8 + simt_lane() % 4 * 2 + i % 2;
    for (int k = 0; k < 16; ++k)
      sum += WIDEN(a[i / 2 % 2][k]) * WIDEN(b.at(column, k, b_transposed));
    product.values[i] = sum;
  }
  product.group = simt_products().groups;
  if (simt_lane() != 0) return;
  if (product.pending == SimtProduct::kMostOperands) {
    simt_fail("wgmma: more products run than the tests know");
  }
  product.operands[product.pending++] = {b.bits, b.hash(product.count * 2, b_transposed),
                                         product.group, b_transposed};
}
static void simt_check_operands(SimtProduct& product, long below) {
  int kept = 0;
  for (int i = 0; i < product.pending; ++i) {
    const SimtOperand operand = product.operands[i];
    if (operand.group >= below) {
      product.operands[kept++] = operand;
    } else if (operand.hash != SimtMatrix{operand.b}.hash(product.count * 2, operand.transposed)) {
      simt_fail("wgmma: a matrix in shared memory has changed before the product was waited for");
    }
  }
  product.pending = kept;
}
template <float (*WIDEN)(unsigned short)>
static void simt_wgmma(float* sums, int count, unsigned long a, unsigned long b, int adds,
                       int a_transposed, int b_transposed) {
  unsigned short rows[2][16];
  for (int half = 0; half < 2; ++half) {
    const int row = (int)(threadIdx.x / 32 % 4) * 16 + simt_lane() / 4 + half * 8;
    for (int k = 0; k < 16; ++k) rows[half][k] = SimtMatrix{a}.at(row, k, a_transposed != 0);
  }
  simt_add_product<WIDEN>(simt_product_on(sums, count), rows, {b}, adds != 0, b_transposed != 0);
}
template <float (*WIDEN)(unsigned short)>
static void simt_wgmma(float* sums, int count, const unsigned (&a)[4], unsigned long b, int adds,
                       int b_transposed) {
  const SimtFragments mine = {{a[0], a[1], a[2], a[3]}, {}};
  const char* all = simt_state->meet(&mine, sizeof mine);
  unsigned short rows[2][16];
  for (int half = 0; half < 2; ++half) {
    for (int k = 0; k < 16; ++k) {
      const auto of_lane = simt_of_lane<SimtFragments>(all, simt_lane() / 4 * 4 + k % 8 / 2);
      rows[half][k] = (unsigned short)(of_lane.a[k / 8 * 2 + half] >> k % 2 * 16);
    }
  }
  simt_add_product<WIDEN>(simt_product_on(sums, count), rows, {b}, adds != 0, b_transposed != 0);
}
inline unsigned long simt_operand(float) {
  return 0;
}
template <typename T>
inline unsigned long simt_operand(T x) {
  return (unsigned long)x;
}
// A call has COUNT sums of one array; behind them A and B in shared memory, or A in four registers;
// whether it adds, both signs, and which of what lies in shared memory are transposed.
template <float (*WIDEN)(unsigned short), int COUNT, typename... Others>
static void simt_wgmma_call(float& first, const Others&... others) {
  const unsigned long all[] = {simt_operand(others)...};
  const unsigned long* rest = all + COUNT - 1;
  if constexpr (sizeof...(others) == COUNT - 1 + 7) {
    if (rest[3] != 1 || rest[4] != 1) simt_fail("wgmma: a sign that isn't 1");
    simt_wgmma<WIDEN>(&first, COUNT, rest[0], rest[1], (int)rest[2], (int)rest[5], (int)rest[6]);
  } else {
    static_assert(sizeof...(others) == COUNT - 1 + 9);
    if (rest[6] != 1 || rest[7] != 1) simt_fail("wgmma: a sign that isn't 1");
    const unsigned a[4] = {(unsigned)rest[0], (unsigned)rest[1], (unsigned)rest[2],
                           (unsigned)rest[3]};
    simt_wgmma<WIDEN>(&first, COUNT, a, rest[4], (int)rest[5], (int)rest[8]);
  }
}
#define SIMT_WGMMA(columns)                                                                        \
  template <typename... T>                                                                         \
  static void ptx_wgmma_mma_async_sync_aligned_m64n##columns##k16_f32_bf16_bf16(T&&... operands) { \
    simt_wgmma_call<simt_bf16, columns / 2>(operands...);                                          \
  }                                                                                                \
  template <typename... T>                                                                         \
  static void ptx_wgmma_mma_async_sync_aligned_m64n##columns##k16_f32_f16_f16(T&&... operands) {   \
    simt_wgmma_call<simt_f16, columns / 2>(operands...);                                           \
  }
SIMT_WGMMA(32)
SIMT_WGMMA(64)
SIMT_WGMMA(72)
SIMT_WGMMA(96)
SIMT_WGMMA(128)
SIMT_WGMMA(224)
SIMT_WGMMA(256)
static void ptx_wgmma_fence_sync_aligned() {}
static void ptx_wgmma_commit_group_sync_aligned() {
  ++simt_products().groups;
}
template <typename... T>
static void ptx_wgmma_wait_group_sync_aligned(T&&... operands) {
  const unsigned long all[] = {simt_operand(operands)...};
  const long below = simt_products().groups - (long)all[sizeof...(operands) - 1];
  for (SimtProduct& product : simt_products().running) {
    if (product.sums == nullptr) continue;
    simt_check_operands(product, below);
    if (product.group >= below) continue;
    memcpy(product.sums, product.values, (size_t)product.count * sizeof(float));
    product.sums = nullptr;
  }
}
