// Rules that hold between members of a message.
#include "backend/protocol_records.h"

namespace assay::wire {
namespace {

Fit wrong(std::string_view name, std::string expected, int64_t found) {
  return Misfit{std::string(name), std::move(expected), fmt::format("{}", found)};
}

// `unfed`: the new tokens that are chosen and take no place in the cache.
Fit broken_rule(const WireShape& shape, int64_t unfed) {
  const bool any_new = decodes(shape.phase);
  const int64_t least = any_new ? 1 : 0;
  const int64_t most = any_new ? kMaxPositions + unfed : 0;
  if (shape.new_tokens < least || shape.new_tokens > most) {
    return wrong("new_tokens", range_text(least, most), shape.new_tokens);
  }
  const int64_t room = shape.new_tokens - unfed + 1;
  if (shape.capacity >= room) return std::nullopt;
  return wrong("capacity", range_text(room, 2 * kMaxPositions), shape.capacity);
}

// The prompt must fit its shape: its batch, and the cache beside the new tokens.
Fit broken_rule(const WirePrompt& prompt, const WireShape& shape, int64_t unfed) {
  const auto batch = static_cast<size_t>(shape.batch);
  if (prompt.ids.size() != batch || prompt.pad.size() != batch) {
    return Misfit{"ids", fmt::format("{} of ids and pads", counted(shape.batch, "row")),
                  fmt::format("{} and {}", prompt.ids.size(), prompt.pad.size())};
  }
  for (const int32_t pad : prompt.pad) {
    if (pad < prompt.padded_len()) continue;
    return wrong("pad", fmt::format("fewer than {} padding ids", prompt.padded_len()), pad);
  }
  const int64_t room = shape.capacity - shape.new_tokens + unfed;
  if (prompt.padded_len() <= room) return std::nullopt;
  return wrong("ids", fmt::format("a prompt of at most {} ids", room), prompt.padded_len());
}

}  // namespace

Fit broken_rule(const HelloRequest& hello) {
  if (hello.protocol_max >= hello.protocol_min) return std::nullopt;
  return wrong("protocol_max", range_text(hello.protocol_min, kMaxCount), hello.protocol_max);
}

Fit broken_rule(const PrepareRequest& prepare) {
  if (Fit fit = broken_rule(prepare.shape, 0)) return fit;
  const int64_t room = prepare.shape.capacity - prepare.shape.new_tokens;
  for (const int64_t length : prepare.padded_lens) {
    if (length > room) {
      return wrong("padded_lens", "every element to be " + range_text(1, room), length);
    }
  }
  return std::nullopt;
}

Fit broken_rule(const MeasureRequest& measure) {
  if (Fit fit = broken_rule(measure.shape, 0)) return fit;
  for (const WirePrompt& prompt : measure.prompts) {
    if (Fit fit = broken_rule(prompt, measure.shape, 0)) return within("prompts", std::move(fit));
  }
  const auto prompts = std::ssize(measure.prompts);
  for (const WireRepetition& repetition : measure.repetitions) {
    if (repetition.prompt >= prompts) {
      return wrong("prompt", range_text(0, prompts - 1), repetition.prompt);
    }
  }
  if (!measure.repetitions.empty()) return std::nullopt;
  return Misfit{"repetitions", "at least one repetition", "none"};
}

Fit broken_rule(const OfferRequest& offer) {
  if (Fit fit = broken_rule(offer.shape, 0)) return fit;
  if (offer.shape.phase != Phase::kLoad || offer.shape.batch != 1) {
    return Misfit{"phase", "load, at batch 1",
                  fmt::format("{}, {}", phase_name(offer.shape.phase), offer.shape.batch)};
  }
  const std::string wrong = wrong_load(offer.load);
  return wrong.empty() ? Fit() : Misfit{"load", "a load that can be offered", wrong};
}

Fit broken_rule(const RequestReply& reply) {
  const std::string wrong = wrong_request(reply.request);
  return wrong.empty() ? Fit() : Misfit{"request", "a request that can be", wrong};
}

Fit broken_rule(const ParityRequest& parity) {
  if (Fit fit = broken_rule(parity.shape, kUnfedInParity)) return fit;
  if (parity.shape.phase != Phase::kKvDecode) {
    return Misfit{"phase", "kv_decode", std::string(phase_name(parity.shape.phase))};
  }
  return within("prompt", broken_rule(parity.prompt, parity.shape, kUnfedInParity));
}

Fit broken_rule(const ProfileRequest& profile) {
  if (Fit fit = broken_rule(profile.shape, 0)) return fit;
  return within("prompt", broken_rule(profile.prompt, profile.shape, 0));
}

Fit broken_rule(const ParityReply& parity) {
  const bool whole =
      parity.logit_stats.empty() || parity.logit_stats.size() == parity.tokens.size();
  if (whole) return std::nullopt;
  return wrong("logit_stats",
               fmt::format("as many as tokens, {},", counted(std::ssize(parity.tokens), "row")),
               std::ssize(parity.logit_stats));
}

Fit broken_rule(const ErrorReply& error) {
  if (error.error_class.empty()) return Misfit{"class", "a class", "\"\""};
  const std::string& outcome = error.outcome;
  if (outcome.empty() || outcome == "crash" || outcome == "timeout" || outcome == "false_success") {
    return std::nullopt;
  }
  return Misfit{"outcome", "one of crash, timeout, false_success", to_json_line(Json(outcome))};
}

}  // namespace assay::wire
