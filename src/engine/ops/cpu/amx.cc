// Inline assembly, because the intrinsics take a tile's number as a macro's argument only.
#include "engine/ops/cpu/amx.h"

#include <cassert>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#define ASSAY_AMX
#endif

namespace assay::engine::cpu {

#if defined(ASSAY_AMX)
namespace {

#define ASSAY_TILE_INSTRUCTION ASSAY_TILES __attribute__((always_inline)) static inline void
struct AmxTiles {
  ASSAY_TILE_INSTRUCTION configure(const TileShapes& shapes) {
    asm volatile("ldtilecfg %0" : : "m"(shapes));
  }
  ASSAY_TILE_INSTRUCTION release() { asm volatile("tilerelease"); }
  template <int tile>
  ASSAY_TILE_INSTRUCTION zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(tile));
  }
  template <int tile>
  ASSAY_TILE_INSTRUCTION load(const void* from, int64_t row_bytes) {
    asm volatile("tileloadd (%1,%2,1), %%tmm%c0"
                 :
                 : "i"(tile), "r"(from), "r"(row_bytes)
                 : "memory");
  }
  template <int tile>
  ASSAY_TILE_INSTRUCTION store(void* to, int64_t row_bytes) {
    asm volatile("tilestored %%tmm%c0, (%1,%2,1)"
                 :
                 : "i"(tile), "r"(to), "r"(row_bytes)
                 : "memory");
  }
  template <int sums, int x, int weights>
  ASSAY_TILE_INSTRUCTION multiply() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sums), "i"(x), "i"(weights));
  }
};

bool processor_has_amx_bf16() {
  constexpr unsigned kOsXsave = 1u << 27;                  // leaf 1, ecx
  constexpr unsigned kBf16 = 1u << 22, kTiles = 1u << 24;  // leaf 7, edx
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kOsXsave) == 0) return false;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  return (d & kBf16) != 0 && (d & kTiles) != 0;
}

// The system saves both parts of the tiles' state between threads.
bool system_saves_tiles() {
  constexpr unsigned kTileState = 1u << 17 | 1u << 18;
  unsigned low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & kTileState) == kTileState;
}

// Since Linux 5.16 a process asks for the tiles' data once; it may be refused, for instance if a
// thread's signal stack is too small for it.
bool process_may_use_tiles() {
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;               // XFEATURE_XTILEDATA
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

bool has_amx_bf16() {
  static const bool has =
      processor_has_amx_bf16() && system_saves_tiles() && process_may_use_tiles();
  return has;
}

void amx_panel_product(const TileProduct& product) {
  TilePanel<AmxTiles>::multiply(product);
}

#else  // other processors and systems

bool has_amx_bf16() {
  return false;
}
void amx_panel_product(const TileProduct&) {
  assert(false);
}

#endif

}  // namespace assay::engine::cpu
