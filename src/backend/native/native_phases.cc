// Bytes of a phase, and untimed generation for parity.
#include "backend/native/native_phases.h"

#include <algorithm>
#include <numeric>

#include "engine/codegen/kernel.h"
#include "engine/ops/cpu/block_product.h"

namespace assay {

using engine::PromptBatch;
using engine::Session;

uint64_t phase_read_bytes(const Session& session, const WireShape& shape, int64_t padded_len) {
  uint64_t bytes = 0;
  if (shape.phase != Phase::kKvDecode) bytes += session.model().step_bytes(shape.batch, 0);
  for (int64_t step = 1; step <= shape.new_tokens; ++step) {
    bytes += session.model().step_bytes(shape.batch, padded_len + step);
  }
  return bytes;
}

namespace {

// Adds a choice to `steps`: its logit, and the tokens next to it with how far they were behind.
void add_choice(std::span<const float> logits, int32_t token, Json& steps) {
  constexpr size_t kRivals = 8;
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const size_t most = std::min(order.size(), kRivals + 1);
  std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(most), order.end(),
                    [&](int32_t a, int32_t b) {
                      return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
                    });
  const float chosen = logits[static_cast<size_t>(token)];
  Json others = Json::array(), margins = Json::array();
  for (size_t i = 0; i < most; ++i) {
    if (order[i] == token || others.size() == kRivals) continue;
    others.push_back(order[i]);
    margins.push_back(chosen - logits[static_cast<size_t>(order[i])]);
  }
  steps["others"].push_back(std::move(others));
  steps["margins"].push_back(std::move(margins));
  steps["logit"].push_back(chosen);
}

}  // namespace

Result<ParityReply> greedy_tokens(Session& session, const PromptBatch& prompts,
                                  int64_t new_tokens) {
  ParityReply reply;
  reply.tokens.resize(static_cast<size_t>(prompts.batch));
  if (!session.model().block_formats().empty()) {
    constexpr double kBf16 = 1.0 / 512;  // to which a GPU rounds the x of a prompt
    const bool on_cpu = session.device().info().kind == "cpu";
    const double rounding = on_cpu ? engine::cpu::block_rounding() : kBf16;
    reply.logit_stats.resize(reply.tokens.size(), {{"eps", rounding}, {"steps", Json::object()}});
  }
  ASSAY_CHECK(session.prefill(prompts));
  const auto vocab = static_cast<size_t>(session.config().vocab_size);
  for (int64_t step = 0; step < new_tokens; ++step) {
    if (step > 0) ASSAY_CHECK(session.decode(session.next_tokens()));
    const auto tokens = session.next_tokens();
    for (size_t row = 0; row < reply.tokens.size(); ++row) reply.tokens[row].push_back(tokens[row]);
    if (!session.logits_finite()) continue;  // the worker says so
    for (size_t row = 0; row < reply.logit_stats.size(); ++row) {
      add_choice(session.logits().subspan(row * vocab, vocab), tokens[row],
                 reply.logit_stats[row]["steps"]);
    }
  }
  return reply;
}

Result<Json> measure_fp8_error(engine::Session& session, const engine::PromptBatch& prompts) {
  constexpr int64_t kMostTokens = 256;
  const int64_t padding = prompts.batch == 0 ? 0 : prompts.pad.front();
  const int64_t tokens = std::min(prompts.padded_len - padding, kMostTokens);
  if (tokens <= engine::kProductRows) {
    return Json{{"problem", fmt::format("prompts: expected more than {} tokens for products in "
                                        "fp8, found {}",
                                        engine::kProductRows, tokens)}};
  }
  const auto first = prompts.ids.begin() + padding;
  const auto row = engine::PromptBatch::of({std::vector<int32_t>(first, first + tokens)});
  ASSAY_TRY(const engine::LogitsError error, session.fp8_error(row));
  return Json{{"reference", fmt::format("the same weights in {}, eager",
                                        engine::dtype_name(session.model().dtype()))},
              {"positions", error.positions},
              {"kl_mean", error.kl_mean},
              {"kl_most", error.kl_most},
              {"nll_reference_mean", error.nll_mean},
              {"nll_change_mean", error.nll_change_mean},
              {"nll_distance_mean", error.nll_distance_mean},
              {"same_choice", error.same_choice}};
}

}  // namespace assay
