// A run names its slots; which positions of a slot are in use is known here alone. So a prompt's
// run may be wider than the prompt: what it writes behind the prompt's end is in no use. Its logits
// are those of the last position, so that such a prompt's last token goes with the next step, whose
// run is needed anyway.
#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

#include "engine/serving/batch.h"
#include "engine/serving/run_sizes.h"

namespace assay::engine {
Status Batch::reuse(int64_t slot, std::span<const int32_t> ids) {
  ASSAY_CHECK(check_slots({&slot, 1}));
  ASSAY_CHECK(check_empty(slot));
  ASSAY_CHECK(check_room(slot, std::ssize(ids) + 1));
  ASSAY_CHECK(check_ids(ids));
  if (const Drawn& drawn = drawn_[static_cast<size_t>(slot)]; drawn.on_device && drawn.sees) {
    model_->device().enter_thread();
    ASSAY_CHECK(device_sampling_->saw_prompt(slot, ids));
  }
  saw({.slot = slot, .ids = ids});
  lengths_[static_cast<size_t>(slot)] = std::ssize(ids);
  return {};
}

Status Batch::tell_device(const Part& part, bool held_back) {
  const Drawn& drawn = drawn_[static_cast<size_t>(part.slot)];
  if (!drawn.on_device) return {};
  model_->device().enter_thread();
  if (drawn.sees) ASSAY_CHECK(device_sampling_->saw_prompt(part.slot, part.ids));
  return device_sampling_->set_prompt(part.slot, drawn.prompt_tokens + std::ssize(part.ids),
                                      held_back ? length(part.slot) : -1);
}

void Batch::saw(const Part& part) {
  const auto at = static_cast<size_t>(part.slot);
  if (!part.chosen) {
    if (samplers_[at]) samplers_[at]->saw_prompt(part.ids);
    drawn_[at].prompt_tokens += std::ssize(part.ids);
  } else if (samplers_[at]) {
    for (const int32_t id : part.ids) samplers_[at]->saw_chosen(id);
  }
}

Status Batch::extend(int64_t slot, std::span<const int32_t> ids) {
  const SlotPrompt part{slot, ids};
  return extend({&part, 1});
}

Status Batch::extend(std::span<const SlotPrompt> parts) {
  if (parts.empty()) return bad_input("slots: expected at least 1, found none");
  std::vector<int64_t> slots;
  for (const SlotPrompt& part : parts) slots.push_back(part.slot);
  for (const SlotPrompt& part : parts) {
    if (part.ids.empty()) return bad_input("tokens: expected at least 1, found none");
  }
  ASSAY_CHECK(check_slots(slots));
  for (const SlotPrompt& part : parts) {
    ASSAY_CHECK(check_room(part.slot, std::ssize(part.ids)));
    ASSAY_CHECK(check_ids(part.ids));
  }
  std::vector<Before> before;
  for (const int64_t slot : slots) {
    const auto at = static_cast<size_t>(slot);
    before.push_back({slot, lengths_[at], drawn_[at].prompt_tokens, next_[at], awaits_[at]});
  }
  const Status ran = extend_all(parts);
  if (ran) return {};
  for (const Before& one : before) {
    const auto at = static_cast<size_t>(one.slot);
    lengths_[at] = one.length;
    drawn_[at].prompt_tokens = one.prompt_tokens;
    next_[at] = one.next;
    awaits_[at] = one.awaits;
  }
  return ran;
}

Status Batch::extend_all(std::span<const SlotPrompt> parts, bool chosen) {
  std::vector<Part> left;
  for (const SlotPrompt& part : parts) {
    Part& one = left.emplace_back(part.slot, part.ids, chosen);
    if (awaits_end(part.slot)) one.left.push_back(next(part.slot));
    one.left.insert(one.left.end(), part.ids.begin(), part.ids.end());
    if (few_sizes_ && one.left.size() == 1) {
      ASSAY_CHECK(hold_back(one));
      left.pop_back();
    }
  }
  std::ranges::stable_sort(left, std::greater<>(),
                           [](const Part& part) { return part.left.size(); });
  while (!left.empty()) ASSAY_CHECK(run_parts(left));
  return {};
}

// The part's last token is for the next step.
Status Batch::hold_back(const Part& part) {
  const auto at = static_cast<size_t>(part.slot);
  ASSAY_CHECK(tell_device(part, true));
  saw(part);
  next_[at] = part.left.back();
  awaits_[at] = true;
  return {};
}

int64_t Batch::most_prompts(int64_t q_len) const {
  if (chunks_ == nullptr) return 1;
  const int64_t most = std::min(kMostPrompts, options_.chunk / q_len);
  return std::min(static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(most))),
                  power_of_two(slots()));
}

// Prompts that fill more than half of a row each go together.
std::pair<size_t, int64_t> Batch::next_run(std::vector<Part>& left) const {
  const int64_t first = std::min(std::ssize(left.front().left), options_.chunk);
  if (!few_sizes_) return {1, first};
  const int64_t q_len = std::min(wider(std::max(first, kFewestTokens)), options_.chunk);
  const auto has_room = [&](const Part& part) {
    return length(part.slot) + q_len <= options_.capacity;
  };
  if (!has_room(left.front())) return {1, first};
  const int64_t most = most_prompts(q_len);
  size_t rows = 1;
  for (size_t i = 1; i < left.size() && std::cmp_less(rows, most); ++i) {
    const int64_t count = std::ssize(left[i].left);
    if (2 * count > q_len && count <= q_len && has_room(left[i])) std::swap(left[rows++], left[i]);
  }
  return {rows, q_len};
}

Status Batch::run_parts(std::vector<Part>& left) {
  const auto [count, q_len] = next_run(left);
  const auto width = static_cast<size_t>(q_len);
  const int64_t rows = power_of_two(static_cast<int64_t>(count));
  rows_.clear();
  ids_.assign(static_cast<size_t>(rows) * width, 0);
  std::vector<size_t> choosing;
  bool draws = false;
  for (size_t row = 0; row < count; ++row) {
    const std::vector<int32_t>& ids = left[row].left;
    rows_.push_back(left[row].slot);
    std::copy_n(ids.begin(), std::min(ids.size(), width),
                ids_.begin() + static_cast<ptrdiff_t>(row * width));
    if (ids.size() != width) continue;  // it ends in a later run
    choosing.push_back(row);
    draws |= is_drawn(left[row].slot);
    ASSAY_CHECK(tell_device(left[row], width == 1));
  }
  ASSAY_CHECK(run_rows(rows, q_len, draws));
  ASSAY_TRY(const auto logits, logits_to_sample(choosing));
  for (size_t row = 0; row < count; ++row) {
    Part& part = left[row];
    const auto at = static_cast<size_t>(part.slot);
    awaits_[at] = false;
    if (part.left.size() < width) {
      lengths_[at] += std::ssize(part.left) - 1;
      ASSAY_CHECK(hold_back(part));
      part.left.clear();
      continue;
    }
    lengths_[at] += q_len;
    if (part.left.size() == width) saw(part);
    part.left.erase(part.left.begin(), part.left.begin() + q_len);
  }
  for (const size_t row : choosing) choose_next(row, logits);
  std::erase_if(left, [](const Part& part) { return part.left.empty(); });
  return {};
}

}  // namespace assay::engine
