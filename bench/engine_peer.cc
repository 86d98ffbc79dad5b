// The native engine as one arm of engine_vs_torch: answers one JSON request a line on stdin with
// one line on stdout, as peers.py describes.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/process/thread_pool.h"
#include "base/records/device_name.h"
#include "base/records/json.h"
#include "engine/codegen/kernel_cache.h"
#include "engine/device/cpu/bandwidth.h"
#include "engine/device/cuda/driver.h"
#include "engine/device/cuda/read_bandwidth.h"
#include "engine/session/session.h"
#include "samples.h"

namespace assay::bench {
namespace {

using engine::PromptBatch;
using engine::Session;

std::vector<int32_t> prompt_ids(int64_t tokens) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < tokens; ++i) ids.push_back(static_cast<int32_t>(100 + i * 7));
  return ids;
}

double ms_since(int64_t start_ns) {
  return static_cast<double>(monotonic_now_ns() - start_ns) * 1e-6;
}

class Arm {
 public:
  Result<Json> answer(const Json& request) {
    const auto what = json_string(request, "do", "request");
    if (!what) return std::unexpected(what.error());
    if (*what == "load") return load(request);
    if (*what == "read") return read_bandwidth(request);
    if (!session_) return bad_input("request: expected load before {}, found none", *what);
    if (*what == "decode") return decode(request);
    if (*what == "prefill") return prefill(request);
    return bad_input("do: expected load, read, decode or prefill, found {}", *what);
  }

 private:
  Result<Json> load(const Json& request) {
    ASSAY_TRY(const std::string folder, json_string(request, "folder", "request"));
    ASSAY_TRY(const std::string dtype, json_string(request, "dtype", "request"));
    ASSAY_TRY(const std::string arm, json_string(request, "arm", "request"));
    ASSAY_TRY(const int64_t threads, json_int(request, "threads", "request"));
    ASSAY_TRY(const auto device, device_of(request));
    engine::SessionOptions options;
    options.gpu = device.gpu;
    options.dtype = engine::parse_dtype(dtype);
    options.threads = static_cast<size_t>(threads);
    options.compile.prefill = options.compile.decode = compiled_ = arm == "compiled";
    options.compile.dynamic = engine::Dynamic::kFalse;
    if (options.gpu) options.compile.kernel_cache = engine::KernelCache::default_folder();
    ASSAY_TRY(Session session, Session::open(folder, options));
    session_ = std::make_unique<Session>(std::move(session));
    return Json{{"version", "assay"}};
  }

  // The processor's unless the request names a device.
  static Result<DeviceName> device_of(const Json& request) {
    ASSAY_TRY(const std::string name, json_string_or(request, "device", "cpu", "request"));
    return parse_device_name(name, "request device");
  }

  // On the processor one pass over a buffer far larger than the caches, by as many threads as the
  // engine has; on a GPU the best of some.
  Result<Json> read_bandwidth(const Json& request) {
    ASSAY_TRY(const auto device, device_of(request));
    if (device.gpu) {
      ASSAY_TRY(const auto gpu, engine::cuda::Driver::open(*device.gpu));
      ASSAY_TRY(const double gb_s, engine::cuda::measure_read_bandwidth(*gpu));
      return Json{{"gb_s", gb_s}, {"name", gpu->info().name}};
    }
    if (!probe_) {
      ASSAY_TRY(const int64_t threads, json_int(request, "threads", "request"));
      pool_ = std::make_unique<ThreadPool>(static_cast<size_t>(threads));
      ASSAY_TRY(auto probe, engine::BandwidthProbe::create(*pool_));
      probe_.emplace(std::move(probe));
    }
    return Json{{"gb_s", probe_->measure_once()}};
  }

  Result<Json> decode(const Json& request) {
    ASSAY_TRY(const int64_t prompt, json_int(request, "prompt", "request"));
    ASSAY_TRY(const int64_t steps, json_int(request, "steps", "request"));
    ASSAY_TRY(const int64_t batch, json_int_or(request, "batch", 1, "request"));
    ASSAY_CHECK(session_->prepare(batch, prompt + steps + 1));
    const std::vector<std::vector<int32_t>> rows(static_cast<size_t>(batch), prompt_ids(prompt));
    ASSAY_CHECK(session_->prefill(PromptBatch::of(rows)));
    // The first step after a prefill is nobody's steady state.
    const int64_t first_ns = monotonic_now_ns();
    ASSAY_CHECK(session_->decode(session_->next_tokens()));
    const double first_ms = ms_since(first_ns);
    std::vector<int32_t> tokens = {session_->next_tokens()[0]};
    const int64_t start_ns = monotonic_now_ns();
    ASSAY_CHECK(session_->decode_greedy(steps, [&](std::span<const int32_t> chosen) {
      tokens.push_back(chosen[0]);
      return true;
    }));
    const double ms = ms_since(start_ns) / static_cast<double>(steps);
    const int64_t middle = prompt + 1 + steps / 2;
    Json reply = {{"ms", ms},
                  {"first_ms", first_ms},
                  {"tokens", tokens},
                  {"bytes", session_->model().step_bytes(batch, middle)}};
    add_note(session_->decode_runs(), reply);
    return reply;
  }

  Result<Json> prefill(const Json& request) {
    ASSAY_TRY(const int64_t tokens, json_int(request, "tokens", "request"));
    ASSAY_TRY(const int64_t timed, json_int_or(request, "timed", 0, "request"));
    const PromptBatch prompt = PromptBatch::of({prompt_ids(tokens)});
    if (timed > 0) ASSAY_CHECK(prefill_ms(prompt));
    Samples all_ms;
    for (int64_t i = 0; i < std::max<int64_t>(timed, 1); ++i) {
      ASSAY_TRY(const double ms, prefill_ms(prompt));
      all_ms.add(ms);
    }
    Json reply = {{"ms", all_ms.median()}, {"tokens", {session_->next_tokens()[0]}}};
    add_note(session_->prefill_runs(), reply);
    return reply;
  }

  Result<double> prefill_ms(const PromptBatch& prompt) {
    ASSAY_CHECK(session_->prepare(1, prompt.padded_len));
    const int64_t start_ns = monotonic_now_ns();
    ASSAY_CHECK(session_->prefill(prompt));
    return ms_since(start_ns);
  }

  // An arm that asked for a compiler and didn't get one is no compiled arm.
  void add_note(const engine::FrameRuns& runs, Json& reply) const {
    if (compiled_ && (runs.fallbacks > 0 || runs.compiled == 0)) reply["note"] = "fell back";
  }

  std::unique_ptr<Session> session_;
  bool compiled_ = false;  // asked for
  std::unique_ptr<ThreadPool> pool_;
  std::optional<engine::BandwidthProbe> probe_;
};

}  // namespace
}  // namespace assay::bench

int main() {
  assay::bench::Arm arm;
  for (std::string line; std::getline(std::cin, line);) {
    const auto request = assay::parse_json(line, "request");
    const auto reply = request ? arm.answer(*request) : std::unexpected(request.error());
    fmt::print("{}\n",
               assay::to_json_line(reply ? *reply : assay::Json{{"error", reply.error().message}}));
    std::fflush(stdout);
  }
  return 0;
}
