// Parity at once; profiles last, since a profiler that was attached may slow down later work.
#include "harness/after_timing.h"

#include <algorithm>

namespace assay {
namespace {

constexpr const char* kTraceName = "trace.json.gz";

}  // namespace

AfterTiming::AfterTiming(const Study& study, const Plan& plan, size_t model, BundleWriter& bundle,
                         RunContext& context, RunState& state, Workers& workers)
    : study_(study),
      plan_(plan),
      model_(model),
      bundle_(bundle),
      context_(context),
      state_(state),
      workers_(workers),
      parity_(study, plan, model, bundle, context.observer, state.cells_with_parity) {}

bool AfterTiming::owes() const {
  for (size_t arm = 0; arm < study_.arms.size(); ++arm) {
    const auto is_wanted = [&](const ParityKey& key) { return wanted(arm, key); };
    if (wants_parity() && std::ranges::any_of(parity_.keys(), is_wanted)) return true;
  }
  for (size_t cell = 0; cell < plan_.cells.size(); ++cell) {
    if (plan_.cells[cell].model == model_ && owes_profile(cell)) return true;
  }
  return false;
}

bool AfterTiming::owes_profile(size_t cell) const {
  return context_.profile && possible(study_.arms[plan_.cells[cell].arm], context_) &&
         state_.has_ok_rows(cell) && !state_.evidence.of(cell).profile;
}

Result<bool> AfterTiming::unit_over(const Unit& unit, const ModelSetup& setup) {
  const Cell& cell = plan_.cells[unit.cell];
  const ParityKey key{cell.scenario, cell.batch};
  if (!wants_parity() || !unit.last_of_cell || cell.new_tokens != parity_.longest(key) ||
      !state_.has_ok_rows(unit.cell) || !wanted(cell.arm, key)) {
    return true;
  }
  ASSAY_TRY(const bool went_on, ask_parity(cell.arm, key, setup));
  ASSAY_CHECK(keep_log(unit.cell));
  return went_on;
}

Result<bool> AfterTiming::run(size_t arm, const ModelSetup& setup) {
  if (!setup.prompts || !possible(study_.arms[arm], context_)) return true;
  size_t last_cell = plan_.cells.size();
  for (size_t cell = 0; cell < plan_.cells.size(); ++cell) {
    if (plan_.cells[cell].arm != arm || plan_.cells[cell].model != model_) continue;
    last_cell = cell;
    if (!context_.profile) continue;
    ASSAY_TRY(const bool went_on, profile(cell, setup));
    if (!went_on) return false;
  }
  if (!wants_parity() || last_cell == plan_.cells.size()) return true;
  for (const ParityKey& key : parity_.keys()) {
    if (!wanted(arm, key)) continue;
    ASSAY_TRY(const bool went_on, ask_parity(arm, key, setup));
    ASSAY_CHECK(keep_log(last_cell));
    if (!went_on) return false;
  }
  return true;
}

Status AfterTiming::record_lost() {
  if (!wants_parity()) return {};
  for (size_t arm = 0; arm < study_.arms.size(); ++arm) {
    if (!shows_tokens(study_.arms[arm], context_)) continue;
    for (const ParityKey& key : parity_.keys()) {
      const std::optional<int64_t> far = reach(arm, key);
      const std::string why = far ? fmt::format(
                                        "parity was requested for only {} of the tokens, because "
                                        "every row with more tokens was lost",
                                        generated_tokens(*far))
                                  : "parity was not requested, because every row was lost";
      ASSAY_CHECK(parity_.set_unasked(arm, key, far, {FailureKind::kError, "not_asked", why}));
    }
  }
  return {};
}

Status AfterTiming::record_uncompared() {
  return wants_parity() ? parity_.set_uncompared() : Status();
}

bool AfterTiming::wanted(size_t arm, const ParityKey& key) const {
  return parity_.wanted(arm, key, [&](size_t one) {
    return shows_tokens(study_.arms[one], context_) ? reach(one, key) : std::nullopt;
  });
}

// Every unit of the cell is over or dropped, and none has left an ok row.
bool AfterTiming::lost(size_t cell) const {
  if (state_.has_ok_rows(cell)) return false;
  return std::ranges::all_of(plan_.units, [&](const Unit& unit) {
    return unit.cell != cell || bundle_.committed_units().contains(unit.index) ||
           state_.dropped_units.contains(unit.index);
  });
}

// An arm that lost every row of a length would only be lost to it again: none if it lost them all.
std::optional<int64_t> AfterTiming::reach(size_t arm, const ParityKey& key) const {
  std::optional<int64_t> longest;
  for (size_t index = 0; index < plan_.cells.size(); ++index) {
    const Cell& cell = plan_.cells[index];
    if (cell.arm != arm || cell.model != model_ || cell.scenario != key.scenario ||
        cell.batch != key.batch || cell.new_tokens <= longest.value_or(-1) || lost(index)) {
      continue;
    }
    longest = cell.new_tokens;
  }
  return longest;
}

Result<bool> AfterTiming::ask_parity(size_t arm, const ParityKey& key, const ModelSetup& setup) {
  const int64_t new_tokens = reach(arm, key).value();
  auto worker = workers_.get(arm, model_);
  ParityAnswer answer = std::unexpected(ParityCheck::not_asked());
  if (worker) {
    (*worker)->prepared_cell.reset();  // parity may have used the cache for its own shape
    WorkerClient& client = *(*worker)->client;
    const auto before = parity_.compiler_seconds(client);
    answer = parity_.ask(client, *setup.prompts, key, new_tokens);
    const auto behind = answer ? parity_.compiler_seconds(client) : before;
    if (answer && before && behind && *before && *behind) {
      answer->cost->compile_seconds = std::max(0.0, **behind - **before);
    }
    if (!behind) workers_.discard(arm);
  } else {
    answer = std::unexpected(worker.error());
  }
  if (!answer) {
    if (answer.error().kind == FailureKind::kInterrupted) return false;
    workers_.discard(arm);
  }
  ASSAY_CHECK(parity_.set(arm, key, new_tokens, std::move(answer)));
  return true;
}

Result<bool> AfterTiming::profile(size_t cell, const ModelSetup& setup) {
  std::optional<EvidenceProfile>& profile = state_.evidence.of(cell).profile;
  if (profile) return true;  // an earlier run's
  if (!state_.has_ok_rows(cell)) {
    profile = EvidenceProfile{.skipped = "every row of the cell was lost"};
  } else {
    const std::string& id = plan_.cells[cell].id;
    ASSAY_TRY(const auto path, bundle_.offer_cell_file(id, kTraceName));
    auto summary = trace(cell, setup, path);
    if (!summary && summary.error().kind == FailureKind::kInterrupted) return false;
    if (summary) {
      ASSAY_CHECK(bundle_.take_cell_file(id, kTraceName));
      profile = std::move(summary).value();
    } else {
      workers_.discard(plan_.cells[cell].arm);
      profile = EvidenceProfile{
          .error = EvidenceError{summary.error().error_class, summary.error().message}};
    }
    ASSAY_CHECK(keep_log(cell));
  }
  ASSAY_CHECK(state_.evidence.write(cell, bundle_));
  ASSAY_CHECK(bundle_.commit_cells());
  return true;
}

ClientResult<EvidenceProfile> AfterTiming::trace(size_t index, const ModelSetup& setup,
                                                 const std::filesystem::path& path) {
  const Cell& cell = plan_.cells[index];
  auto worker = workers_.get(cell.arm, cell.model);
  if (!worker) return std::unexpected(std::move(worker).error());
  WorkerClient& client = *(*worker)->client;
  if (!announces_profile(client.hello())) {
    return EvidenceProfile{.skipped = "the worker has no profiler"};
  }
  const auto& lengths = setup.prompts->lengths(cell.scenario);
  const WireShape shape{cell.phase, cell.batch, cell.new_tokens,
                        cache_capacity(lengths, cell.new_tokens)};
  const auto prepared =
      prepare_worker(**worker, prepare_request(shape, lengths), index, study_, context_);
  if (!prepared) return std::unexpected(prepared.error());
  auto reply =
      client.profile({shape, setup.prompts->prompt(cell.scenario, 0, cell.batch), path.string()},
                     study_.timeout_s + study_.compile_timeout_s);
  if (!reply) return std::unexpected(std::move(reply).error());
  return EvidenceProfile{.summary = std::move(reply->summary)};
}

Status AfterTiming::keep_log(size_t cell) {
  WorkerLog* log = workers_.log_of(plan_.cells[cell].arm);
  return log == nullptr ? Status() : state_.evidence.keep_log(cell, *log, bundle_);
}

}  // namespace assay
