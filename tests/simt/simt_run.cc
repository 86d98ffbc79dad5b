// Blocks, or clusters of them, one after the other; a block's threads as fibers that go on in
// turns. A cluster's blocks take turns in the one memory that they share with themselves alone.
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "kernel_shim.h"
#include "simt.h"

namespace {

constexpr size_t kStackBytes = 256 << 10;
// Stacks of one size would begin in the same line of the caches: each begins so many lines lower
// than the one before.
constexpr size_t kLineBytes = 64, kLinesApart = 5, kLinesOfAWay = 64;
constexpr unsigned kWarp = 32;
constexpr int kMostIdle = 1000;  // turns of a cluster
constexpr int kIdleOfBlock = 8;  // of a block, before others have their turn

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

enum class State : unsigned char { kReady, kAtBlock, kAtWarp, kAtCluster, kEnded };

struct Fiber {
  Place here;
  unsigned meetings = 0;
  bool begun = false;
};

class Runner {
 public:
  void run(const SimtEntry& entry, const unsigned blocks[3], unsigned threads,
           const void* argument) {
    cluster_ = entry.cluster;
    if (cluster_ > kSimtCluster || blocks[1] % cluster_ != 0 || (cluster_ > 1 && threads % kWarp)) {
      fail("a cluster that the tests don't know");
    }
    prepare(threads);
    // Blocks of one y have no order: results that depend on one differ between repetitions, of
    // which each has a launch or two. A higher y begins behind lower ones, as on a GPU, and may
    // wait for what those leave.
    const bool backwards = launches_++ / 2 % 2 == 1;
    entry_ = &entry;
    argument_ = argument;
    *entry.state = &state_;
    state_.sync_block = [] { the_one().wait(State::kAtBlock); };
    state_.yield = [] { the_one().wait(State::kReady); };
    state_.sync_cluster = [] { the_one().wait(State::kAtCluster); };
    state_.in_block = [](unsigned number, char* here) { return the_one().in_block(number, here); };
    state_.meet = [](const void* mine, unsigned long bytes) { return the_one().meet(mine, bytes); };
    state_.grid = {blocks[0], blocks[1], blocks[2]};
    state_.size = {threads, 1, 1};
    for (state_.block.z = 0; state_.block.z < blocks[2]; ++state_.block.z) {
      for (unsigned y = 0; y < blocks[1]; y += cluster_) {
        for (unsigned i = 0; i < blocks[0]; ++i) {
          state_.block.x = backwards ? blocks[0] - 1 - i : i;
          run_cluster(y);
        }
      }
    }
  }

  static Runner& the_one() {
    static Runner runner;
    return runner;
  }

 private:
  void prepare(unsigned threads) {
    threads_ = threads;
    const unsigned all = threads * cluster_;
    while (starts_.size() < all) {
      void* stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (stack == MAP_FAILED) abort();
      auto start = std::make_unique<ucontext_t>();
      getcontext(start.get());
      start->uc_stack.ss_sp = stack;
      start->uc_stack.ss_size =
          kStackBytes - starts_.size() * kLinesApart % kLinesOfAWay * kLineBytes;
      makecontext(
          start.get(), [] { the_one().live(); }, 0);
      starts_.push_back(std::move(start));
    }
    fibers_.resize(std::max<size_t>(fibers_.size(), all));
    states_.assign(all, State::kEnded);
    warps_.resize((all + kWarp - 1) / kWarp);
  }

  // A fiber's life: block after block.
  SIMT_SWITCHES void live() {
    for (;;) {
      entry_->run(argument_);
      wait(State::kEnded);
    }
  }

  // To the next fiber that may go on, or to the scheduler, until this one is let go on.
  SIMT_SWITCHES void wait(State state) {
    states_[now_] = state;
    moved_ |= state != State::kReady;
    if (__builtin_setjmp(fibers_[now_].here) != 0) return;
    next();
  }

  const char* meet(const void* mine, unsigned long bytes) {
    const unsigned thread = now_;
    auto& values = warps_[thread / kWarp].values[fibers_[thread].meetings++ % 2];
    memcpy(values[thread % kWarp], mine, bytes);
    wait(State::kAtWarp);
    return values[0];
  }

  // Goes on with the next fiber of this round that is ready.
  void next() {
    // Past the first one backwards is past all.
    while ((now_ += step_) - first_ < threads_) {
      if (states_[now_] != State::kReady) continue;
      state_.thread = {now_ - first_, 0, 0};
      Fiber& fiber = fibers_[now_];
      if (!fiber.begun) {
        fiber.begun = true;
        setcontext(starts_[now_].get());
      }
      jump(fiber.here);
    }
    jump(scheduler_);
  }

  // One round over the block's fibers, from the first to the last or back.
  SIMT_SWITCHES void go_round(bool forwards) {
    step_ = forwards ? 1 : ~0u;
    now_ = forwards ? first_ - 1 : first_ + threads_;
    if (__builtin_setjmp(scheduler_) == 0) next();
  }

  size_t shared_bytes() const {
    return static_cast<size_t>(entry_->shared_end - entry_->shared_begin);
  }

  // The place in another block of the cluster of what lies here in this one.
  char* in_block(unsigned number, char* here) {
    if (number >= cluster_) fail("an address of no block of the cluster");
    const std::span block(states_.begin() + number * threads_, threads_);
    if (std::ranges::count(block, State::kEnded) == std::ssize(block)) {
      fail("a store to a block that has ended");
    }
    return number == state_.rank ? here : memories_[number].data() + (here - entry_->shared_begin);
  }

  // Makes a block the one whose fibers run and whose memory is there.
  void enter(unsigned number, unsigned first_y) {
    if (cluster_ > 1 && number != state_.rank) {
      std::copy_n(entry_->shared_begin, shared_bytes(), memories_[state_.rank].begin());
      std::ranges::copy(memories_[number], entry_->shared_begin);
    }
    state_.rank = number;
    state_.block.y = first_y + number;
    first_ = number * threads_;
  }

  void run_cluster(unsigned first_y) {
    state_.rank = 0;
    if (entry_->shared_begin != nullptr) memset(entry_->shared_begin, 0xff, shared_bytes());
    if (cluster_ > 1) memories_.assign(cluster_, std::vector<char>(shared_bytes(), '\xff'));
    std::ranges::fill(states_, State::kReady);
    for (size_t i = 0; i < states_.size(); ++i) fibers_[i].meetings = 0;
    int idle = 0;  // turns in which threads did nothing but wait for each other
    bool backwards = false;
    while (std::ranges::count(states_, State::kEnded) < std::ssize(states_)) {
      bool any = false;
      for (unsigned i = 0; i < cluster_; ++i) {
        enter(backwards ? cluster_ - 1 - i : i, first_y);
        any |= run_block();
      }
      backwards = !backwards;
      if (release_cluster()) any = true;
      idle = any ? 0 : idle + 1;
      if (idle == kMostIdle) fail("threads of a block or cluster wait for what none of them does");
    }
  }

  // Rounds until the block has ended, or its threads wait for what none of them does; whether there
  // was one that went on.
  bool run_block() {
    // To and fro, so that an order that is needed shows.
    bool forwards = true, any = false;
    int idle = 0;
    for (;;) {
      moved_ = false;
      go_round(forwards);
      forwards = !forwards;
      const bool more = release();
      any |= moved_;
      idle = moved_ ? 0 : idle + 1;
      if (!more || idle == kIdleOfBlock) return any;
    }
  }

  bool release_cluster() {
    const auto waiting = std::ranges::count(states_, State::kAtCluster);
    const auto ended = std::ranges::count(states_, State::kEnded);
    if (waiting == 0 || waiting + ended < std::ssize(states_)) return false;
    std::ranges::replace(states_, State::kAtCluster, State::kReady);
    return true;
  }

  // Lets those of the block go on who have all met; true if there are any, or some are ready
  // anyway.
  bool release() {
    bool any = false;
    std::ptrdiff_t ended = 0, at_block = 0, ready = 0, at_cluster = 0;
    const std::span block(states_.begin() + first_, threads_);
    for (auto first = block.begin(); first < block.end(); first += kWarp) {
      const std::span warp(first, std::min(first + kWarp, block.end()));
      const auto at_warp = std::ranges::count(warp, State::kAtWarp);
      const auto gone = std::ranges::count(warp, State::kEnded);
      ready += std::ranges::count(warp, State::kReady);
      ended += gone;
      at_block += std::ranges::count(warp, State::kAtBlock);
      at_cluster += std::ranges::count(warp, State::kAtCluster);
      if (at_warp == 0 || at_warp + gone < std::ssize(warp)) continue;
      std::ranges::replace(warp, State::kAtWarp, State::kReady);
      any = true;
    }
    const auto threads = std::ssize(block);
    if (any || ready > 0 || ended == threads) return ended < threads;
    if (at_cluster > 0 && at_cluster + ended == threads) return false;
    if (at_block + ended < threads) {
      fail("threads of a block wait for one another in different places");
    }
    std::ranges::replace(block, State::kAtBlock, State::kReady);
    return true;
  }

  [[noreturn]] static void fail(const char* what) {
    fprintf(stderr, "simt: %s\n", what);
    abort();
  }

  SimtState state_{};
  const SimtEntry* entry_ = nullptr;
  unsigned long launches_ = 0;
  const void* argument_ = nullptr;
  std::vector<std::unique_ptr<ucontext_t>> starts_;  // of fibers: their places are within them
  std::vector<Fiber> fibers_;
  std::vector<State> states_;  // of each fiber
  std::vector<Warp> warps_;
  std::vector<std::vector<char>> memories_;  // of a cluster's blocks, but of that which runs
  unsigned cluster_ = 1;                     // blocks of a cluster
  unsigned threads_ = 0;                     // of a block
  unsigned first_ = 0;                       // fiber of the block that runs
  unsigned now_ = 0;                         // the fiber that runs
  unsigned step_ = 1;                        // from a fiber to the next of the round
  bool moved_ = false;                       // some thread did more than wait in this round
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
