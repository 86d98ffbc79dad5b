// Runs the engine for test_model.py and half_precision: one JSON request a line in, one reply a
// line out.
//   {"folder": PATH, "cache": "dynamic"|"static", "dtype": NAME or null, "prompts": [[ID...]...],
//    "steps": N, "pad_to": N, "threads": N, "feed": [[ID...]...] or null, "logits": PATH or null,
//    "kernels": PATH or null, "gpu": N or null, "prefixes": BOOLEAN}
//   > {"tokens": [[ID...]...], "compiled": N, "fallbacks": N}, or {"error": MESSAGE}
// "tokens" are each row's N greedy choices; the row is fed with them, or with "feed" where that is
// given. With "kernels", a folder that keeps them, both phases are compiled; "compiled" counts the
// runs of either that were, "fallbacks" those that weren't though they should. "logits" gets the
// logits behind each choice as raw fp32, [steps, batch, vocab]. With "prefixes" the one prompt's
// first N tokens are a prompt each, of 1 to N tokens, and nothing is fed: [N, 1, vocab].
#include <algorithm>
#include <fstream>
#include <iostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/records/json.h"
#include "engine/session/session.h"

namespace assay {
namespace {

using Rows = std::vector<std::vector<int32_t>>;

struct Request {
  std::string folder;
  engine::SessionOptions options;
  Rows prompts;
  Rows feed;  // empty: the choices themselves
  int64_t steps = 0;
  int64_t pad_to = 0;
  std::string logits;  // empty: not asked for
  bool prefixes = false;
};

Result<Rows> read_rows(const Json& json, std::string_view key) {
  Rows rows;
  if (!json.contains(key) || json[std::string(key)].is_null()) return rows;
  for (const Json& list : json[std::string(key)]) {
    std::vector<int32_t> row;
    for (const Json& id : list) {
      if (!id.is_number_integer()) return bad_input("request: expected ids at \"{}\"", key);
      row.push_back(id.get<int32_t>());
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Result<Request> read_request(const std::string& line) {
  ASSAY_TRY(const Json json, parse_json(line, "request"));
  Request request;
  ASSAY_TRY(request.folder, json_string(json, "folder", "request"));
  ASSAY_TRY(const std::string cache, json_string(json, "cache", "request"));
  request.options.cache =
      cache == "dynamic" ? engine::CacheKind::kDynamic : engine::CacheKind::kStatic;
  ASSAY_TRY(const std::string dtype, json_string_or(json, "dtype", "", "request"));
  request.options.dtype = engine::parse_dtype(dtype);
  ASSAY_TRY(request.prompts, read_rows(json, "prompts"));
  ASSAY_TRY(request.feed, read_rows(json, "feed"));
  ASSAY_TRY(request.steps, json_int(json, "steps", "request"));
  ASSAY_TRY(const int64_t threads, json_int_or(json, "threads", 1, "request"));
  request.options.threads = static_cast<size_t>(threads);
  ASSAY_TRY(request.pad_to, json_int_or(json, "pad_to", 0, "request"));
  ASSAY_TRY(const std::string kernels, json_string_or(json, "kernels", "", "request"));
  if (!kernels.empty()) {
    request.options.compile.prefill = true;
    request.options.compile.decode = true;
    request.options.compile.kernel_cache = kernels;
  }
  ASSAY_TRY(request.logits, json_string_or(json, "logits", "", "request"));
  ASSAY_TRY(const int64_t gpu, json_int_or(json, "gpu", -1, "request"));
  if (gpu >= 0) request.options.gpu = static_cast<int>(gpu);
  ASSAY_TRY(request.prefixes, json_bool_or(json, "prefixes", false, "request"));
  if (request.prefixes && (request.prompts.size() != 1 || request.steps < 1 ||
                           static_cast<size_t>(request.steps) > request.prompts[0].size())) {
    return bad_input("request: expected prefixes of one prompt, found {} of {} prompts",
                     request.steps, request.prompts.size());
  }
  return request;
}

// The prompts of a run of their own each.
std::vector<engine::PromptBatch> batches_of(const Request& request) {
  if (!request.prefixes) return {engine::PromptBatch::of(request.prompts, request.pad_to)};
  std::vector<engine::PromptBatch> batches;
  for (int64_t length = 1; length <= request.steps; ++length) {
    std::vector<int32_t> prefix = request.prompts[0];
    prefix.resize(static_cast<size_t>(length));
    batches.push_back(engine::PromptBatch::of({std::move(prefix)}));
  }
  return batches;
}

Result<Json> answer(const std::string& line) {
  ASSAY_TRY(const Request request, read_request(line));
  ASSAY_TRY(auto session, engine::Session::open(request.folder, request.options));
  const auto batches = batches_of(request);
  const int64_t steps = request.prefixes ? 1 : request.steps;
  ASSAY_CHECK(session.prepare(batches.back().batch, batches.back().padded_len + request.steps));
  std::ofstream logits;
  if (!request.logits.empty()) logits.open(request.logits, std::ios::binary);
  Rows chosen(request.prompts.size());
  for (const engine::PromptBatch& batch : batches) {
    ASSAY_CHECK(session.prefill(batch));
    for (int64_t step = 0; step < steps; ++step) {
      std::vector<int32_t> next(session.next_tokens().begin(), session.next_tokens().end());
      const std::span<const float> row = session.logits();
      logits.write(reinterpret_cast<const char*>(row.data()),
                   static_cast<std::streamsize>(row.size_bytes()));
      for (size_t i = 0; i < next.size(); ++i) {
        chosen[i].push_back(next[i]);
        if (!request.feed.empty()) next[i] = request.feed.at(i).at(static_cast<size_t>(step));
      }
      if (step + 1 < steps) ASSAY_CHECK(session.decode(next));
    }
  }
  const engine::CompileEvidence evidence = session.compile_evidence();
  return Json{{"tokens", chosen},
              {"compiled", evidence.prefill.runs.compiled + evidence.decode.runs.compiled},
              {"fallbacks", session.counters().fallbacks}};
}

}  // namespace
}  // namespace assay

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const auto reply = assay::answer(line);
    std::cout << assay::to_json_line(reply ? *reply : assay::Json{{"error", reply.error().message}})
              << "\n";
  }
}
