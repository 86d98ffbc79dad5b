#include "apart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

namespace assay::bench {
namespace {

using Logits = std::span<const float>;

double root_mean_square(Logits a, Logits b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::pow(double{a[i]} - double{b[i]}, 2);
  return std::sqrt(sum / static_cast<double>(a.size()));
}

double largest(Logits a, Logits b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(double{a[i]} - b[i]));
  return most;
}

}  // namespace

Result<std::vector<std::vector<float>>> logits_behind(engine::Session& session,
                                                      const engine::PromptBatch& prompts,
                                                      const std::vector<int32_t>& tokens,
                                                      size_t most_steps) {
  const auto batch = static_cast<size_t>(prompts.batch);
  const size_t steps = std::min(tokens.size() / batch, most_steps);
  std::vector<std::vector<float>> logits;
  ASSAY_CHECK(session.prefill(prompts));
  while (true) {
    logits.emplace_back(session.logits().begin(), session.logits().end());
    if (logits.size() == steps) return logits;
    ASSAY_CHECK(session.decode(std::span(tokens).subspan((logits.size() - 1) * batch, batch)));
  }
}

size_t first_difference(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

std::string describe_difference(const Generated& eager, const std::vector<int32_t>& tokens,
                                const std::vector<float>& compiled, const std::vector<float>& exact,
                                int64_t batch) {
  const size_t at = first_difference(eager.tokens, tokens);
  const size_t step = at / static_cast<size_t>(batch), row = at % static_cast<size_t>(batch);
  const size_t vocab = compiled.size() / static_cast<size_t>(batch);
  const Logits ours = Logits(eager.logits[step]).subspan(row * vocab, vocab);
  const Logits theirs = Logits(compiled).subspan(row * vocab, vocab);
  const Logits fp32 = Logits(exact).subspan(row * vocab, vocab);
  std::vector<float> sorted(ours.begin(), ours.end());
  std::ranges::partial_sort(sorted, sorted.begin() + 2, std::greater());
  return fmt::format(
      "token {} of row {}: the best two logits of eager are {:.2g} apart, the two executors' "
      "logits up to {:.2g} (rms {:.2g}); from fp32's: rms {:.2g} eager, {:.2g} compiled",
      step, row, sorted[0] - sorted[1], largest(ours, theirs), root_mean_square(ours, theirs),
      root_mean_square(ours, fp32), root_mean_square(theirs, fp32));
}

}  // namespace assay::bench
