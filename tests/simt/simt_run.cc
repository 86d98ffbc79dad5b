// Blocks, one after the other; a block's threads as fibers that go on in turns.
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "kernel_shim.h"
#include "simt.h"

namespace {

constexpr size_t kStackBytes = 256 << 10;
constexpr unsigned kWarp = 32;

// Place at which a fiber goes on: the registers that GCC's and Clang's own setjmp keep, a tenth of
// the library's and as much faster. Not inlined: the frame that is left is the one that is come
// back to.
using Place = void* [5];
#define SIMT_SWITCHES __attribute__((noinline))
SIMT_SWITCHES void jump(Place& to) {
  __builtin_longjmp(to, 1);
}

struct Warp {
  char values[2][kWarp][kSimtBytes];  // of every other meeting
};

struct Fiber {
  enum class State { kReady, kAtBlock, kAtWarp, kEnded };
  State state = State::kEnded;
  Place here;
  ucontext_t start;
  unsigned index = 0;
  unsigned meetings = 0;
  bool begun = false;
};

class Runner {
 public:
  void run(const SimtEntry& entry, const unsigned blocks[3], unsigned threads,
           const void* argument) {
    prepare(threads);
    entry_ = &entry;
    argument_ = argument;
    *entry.state = &state_;
    state_.sync_block = [] { the_one().wait(Fiber::State::kAtBlock); };
    state_.meet = [](const void* mine, unsigned long bytes) { return the_one().meet(mine, bytes); };
    state_.grid = {blocks[0], blocks[1], blocks[2]};
    state_.size = {threads, 1, 1};
    for (state_.block.z = 0; state_.block.z < blocks[2]; ++state_.block.z) {
      for (state_.block.y = 0; state_.block.y < blocks[1]; ++state_.block.y) {
        for (state_.block.x = 0; state_.block.x < blocks[0]; ++state_.block.x) run_block(threads);
      }
    }
  }

  static Runner& the_one() {
    static Runner runner;
    return runner;
  }

 private:
  void prepare(unsigned threads) {
    while (fibers_.size() < threads) {
      auto fiber = std::make_unique<Fiber>();
      fiber->index = static_cast<unsigned>(fibers_.size());
      void* stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (stack == MAP_FAILED) abort();
      getcontext(&fiber->start);
      fiber->start.uc_stack.ss_sp = stack;
      fiber->start.uc_stack.ss_size = kStackBytes;
      makecontext(
          &fiber->start, [] { the_one().live(); }, 0);
      fibers_.push_back(std::move(fiber));
    }
    warps_.resize((threads + kWarp - 1) / kWarp);
  }

  // A fiber's life: block after block.
  SIMT_SWITCHES void live() {
    for (;;) {
      entry_->run(argument_);
      wait(Fiber::State::kEnded);
    }
  }

  // To the scheduler, until it lets the fiber go on.
  SIMT_SWITCHES void wait(Fiber::State state) {
    Fiber& fiber = *now_;
    fiber.state = state;
    if (__builtin_setjmp(fiber.here) == 0) jump(scheduler_);
  }

  const char* meet(const void* mine, unsigned long bytes) {
    Fiber& fiber = *now_;
    auto& values = warps_[fiber.index / kWarp].values[fiber.meetings++ % 2];
    memcpy(values[fiber.index % kWarp], mine, bytes);
    wait(Fiber::State::kAtWarp);
    return values[0];
  }

  SIMT_SWITCHES void go_on(Fiber& fiber) {
    now_ = &fiber;
    state_.thread = {fiber.index, 0, 0};
    if (__builtin_setjmp(scheduler_) != 0) return;
    if (!fiber.begun) {
      fiber.begun = true;
      setcontext(&fiber.start);
    }
    jump(fiber.here);
  }

  void run_block(unsigned threads) {
    if (entry_->shared_begin != nullptr) {
      memset(entry_->shared_begin, 0xff,
             static_cast<size_t>(entry_->shared_end - entry_->shared_begin));
    }
    for (unsigned i = 0; i < threads; ++i) {
      fibers_[i]->state = Fiber::State::kReady;
      fibers_[i]->meetings = 0;
    }
    // From the first to the last and back in turn, so that an order that is needed shows.
    bool forwards = true;
    do {
      for (unsigned i = 0; i < threads; ++i) {
        Fiber& fiber = *fibers_[forwards ? i : threads - 1 - i];
        if (fiber.state == Fiber::State::kReady) go_on(fiber);
      }
      forwards = !forwards;
    } while (release(threads));
  }

  // Lets those go on who have all met; whether there are any.
  bool release(unsigned threads) {
    bool any = false;
    unsigned ended = 0, at_block = 0;
    for (unsigned first = 0; first < threads; first += kWarp) {
      const unsigned end = std::min(first + kWarp, threads);
      unsigned at_warp = 0, gone = 0;
      for (unsigned i = first; i < end; ++i) {
        at_warp += fibers_[i]->state == Fiber::State::kAtWarp;
        gone += fibers_[i]->state == Fiber::State::kEnded;
        at_block += fibers_[i]->state == Fiber::State::kAtBlock;
      }
      ended += gone;
      if (at_warp == 0 || at_warp + gone < end - first) continue;
      for (unsigned i = first; i < end; ++i) resume(*fibers_[i], Fiber::State::kAtWarp);
      any = true;
    }
    if (any || ended == threads) return any;
    if (at_block + ended < threads) {
      fprintf(stderr, "simt: threads of a block wait for one another in different places\n");
      abort();
    }
    for (unsigned i = 0; i < threads; ++i) resume(*fibers_[i], Fiber::State::kAtBlock);
    return true;
  }

  static void resume(Fiber& fiber, Fiber::State from) {
    if (fiber.state == from) fiber.state = Fiber::State::kReady;
  }

  SimtState state_{};
  const SimtEntry* entry_ = nullptr;
  const void* argument_ = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Warp> warps_;
  Fiber* now_ = nullptr;
  Place scheduler_;
};

}  // namespace

size_t simt_argument_bytes(const void* entry) {
  return static_cast<const SimtEntry*>(entry)->argument_bytes;
}

unsigned* simt_most_shared(void* entry) {
  return &static_cast<SimtEntry*>(entry)->most_shared;
}

void simt_run(const void* entry, const unsigned blocks[3], unsigned threads, const void* argument) {
  Runner::the_one().run(*static_cast<const SimtEntry*>(entry), blocks, threads, argument);
}
