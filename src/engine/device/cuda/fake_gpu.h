// For tests: sessions on a driver of the tests' own (fake_cuda.c), which counts calls and makes any
// of them fail.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "engine/serving/batch.h"
#include "engine/session/session.h"
#include "engine/session/tiny_checkpoint.h"
#include "tests/support/places.h"

namespace assay::engine {

// Values of CUresult that a call may fail with.
inline constexpr int kIllegalAddress = 700, kOutOfMemory = 2;

class FakeCuda {
  template <typename Function, typename... Arguments>
  auto call(const char* name, Arguments... arguments) {
    return reinterpret_cast<Function>(dlsym(library_, name))(arguments...);
  }

 public:
  FakeCuda() : library_(dlopen(built("libfake_cuda.so").c_str(), RTLD_NOW | RTLD_LOCAL)) {
    EXPECT_NE(library_, nullptr) << dlerror();
    setenv("ASSAY_CUDA_DRIVER", built("libfake_cuda.so").c_str(), 1);
    setenv("ASSAY_NVRTC", built("libfake_cuda.so").c_str(), 1);
    setenv("ASSAY_CUBLASLT", built("libfake_cuda.so").c_str(), 1);
    unset_failures();
  }
  ~FakeCuda() {  // other tests of this process find what is really here
    unsetenv("ASSAY_CUDA_DRIVER");
    unsetenv("ASSAY_NVRTC");
    unsetenv("ASSAY_CUBLASLT");
    unset_failures();
  }

  // From here on; `at`: the call that fails, counted from 1; 0: none.
  void reset(int at = 0, int status = 0) {
    call<void (*)(int, int)>("fake_cuda_reset", at, status);
  }
  int live() { return call<int (*)()>("fake_cuda_live"); }
  int calls() { return call<int (*)()>("fake_cuda_calls"); }
  std::string name(int number) { return call<const char* (*)(int)>("fake_cuda_call", number); }
  // Calls of this name behind number `from`.
  int count(const std::string& of, int from) {
    int found = 0;
    for (int call = from + 1; call <= calls(); ++call) found += name(call) == of ? 1 : 0;
    return found;
  }
  long launches() { return call<long (*)()>("fake_cuda_launches"); }
  long recorded() { return call<long (*)()>("fake_cuda_recorded"); }
  long replays() { return call<long (*)()>("fake_cuda_replays"); }
  long products() { return call<long (*)()>("fake_cuda_products"); }
  int last_algorithm() { return call<int (*)()>("fake_cuda_last_algorithm"); }

 private:
  static void unset_failures() {
    unsetenv("FAKE_NVRTC_FAILS");
    unsetenv("FAKE_CUBLASLT_FINDS");
    unsetenv("FAKE_CUBLASLT_FAST");
    unsetenv("FAKE_CUBLASLT_SLOW");
  }
  void* library_;
};

class CudaDeviceTest : public ::testing::Test {
 protected:
  SessionOptions options(CacheKind cache, bool compiled) {
    SessionOptions options{.cache = cache, .threads = 1, .gpu = 0};
    options.compile.prefill = options.compile.decode = compiled;
    options.compile.dynamic = Dynamic::kTrue;
    options.compile.verify_passes = false;
    return options;
  }

  // A prompt of ten rows or more and four steps; the first error.
  Status generate(const SessionOptions& options,
                  std::vector<Prompt> prompts = {{1, 2, 3, 4, 5}, {6, 7}}) {
    ASSAY_TRY(Session session, Session::open(checkpoint_.folder(), options));
    ASSAY_CHECK(session.prepare(2, 12));
    ASSAY_CHECK(session.prefill(PromptBatch::of(prompts)));
    for (int step = 0; step < 4; ++step) {
      const std::vector<int32_t> tokens(session.next_tokens().begin(), session.next_tokens().end());
      ASSAY_CHECK(session.decode(tokens));
    }
    ASSAY_CHECK(session.decode_greedy(2, [](auto) { return true; }));
    fallbacks_ = session.counters().fallbacks;
    captures_ = session.counters().graph_captures;
    const CompileEvidence evidence = session.compile_evidence();
    reason_ = evidence.prefill.fallback + evidence.decode.fallback;
    notes_ = session.compile_evidence().notes;
    return {};
  }

  Result<Batch> make_batch(const BatchOptions& options) {
    ModelOptions asked{.rows = CacheRows::kNamed, .threads = 1, .gpu = 0};
    asked.compiler.verify_passes = false;
    ASSAY_TRY(Checkpoint checkpoint, Checkpoint::open(checkpoint_.folder()));
    ASSAY_TRY(auto device, open_device(asked));
    ASSAY_TRY(auto model, Model::load(std::move(checkpoint), asked, std::move(device)));
    return Batch::create(std::move(model), options);
  }

  FakeCuda fake_;
  TinyCheckpoint checkpoint_{families()[1]};
  int64_t fallbacks_ = 0, captures_ = 0;
  std::string reason_;  // of the frames that fell back
  std::vector<std::string> notes_;
};

}  // namespace assay::engine
