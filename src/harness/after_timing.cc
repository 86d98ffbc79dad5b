// Profiles first, because parity may use up what a worker has compiled.
#include "harness/after_timing.h"

#include <algorithm>

namespace assay {

AfterTiming::AfterTiming(const Study& study, const Plan& plan, size_t model, BundleWriter& bundle,
                         RunContext& context, RunState& state, Workers& workers)
    : study_(study),
      plan_(plan),
      model_(model),
      bundle_(bundle),
      context_(context),
      state_(state),
      workers_(workers),
      parity_(study, plan, model) {}

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
  if (!wants_parity()) return true;
  const bool went_on = ask_parity(arm, setup);
  ASSAY_CHECK(keep_log(last_cell));
  return went_on;
}

Status AfterTiming::write_parity() {
  if (!wants_parity()) return {};
  return parity_.write(bundle_, context_.observer);
}

// An arm that lost every row of a condition would only be lost to it again. Where the plan
// generates, generating is what has to have worked.
bool AfterTiming::survived(size_t arm, const ParityKey& key) const {
  const bool generates =
      std::ranges::any_of(plan_.cells, [](const Cell& cell) { return cell.new_tokens > 0; });
  for (const auto& [index, latencies] : state_.ok_latencies_ms) {
    const Cell& cell = plan_.cells[index];
    if (cell.arm == arm && cell.model == model_ && cell.scenario == key.scenario &&
        cell.batch == key.batch && (cell.new_tokens > 0 || !generates) && !latencies.empty()) {
      return true;
    }
  }
  return false;
}

bool AfterTiming::ask_parity(size_t arm, const ModelSetup& setup) {
  for (const ParityKey& key : parity_.keys()) {
    if (!survived(arm, key)) continue;
    auto worker = workers_.get(arm, model_);
    ParityAnswer answer = std::unexpected(ParityCheck::not_asked());
    if (worker) {
      (*worker)->prepared_cell.reset();  // parity may have used the cache for its own shape
      answer = parity_.ask(*(*worker)->client, *setup.prompts, key);
    } else {
      answer = std::unexpected(worker.error());
    }
    if (!answer) {
      if (answer.error().kind == FailureKind::kInterrupted) return false;
      workers_.discard(arm);
    }
    parity_.set(arm, key, std::move(answer));
  }
  return true;
}

Result<bool> AfterTiming::profile(size_t cell, const ModelSetup& setup) {
  Json& evidence = state_.evidence.of(cell);
  if (evidence.contains("profile")) return true;  // an earlier run's
  if (state_.ok_latencies_ms[cell].empty()) {
    evidence["profile"] = {{"skipped", "every row of the cell was lost"}};
  } else {
    ASSAY_TRY(const auto path, bundle_.cell_path(plan_.cells[cell].id, "trace.json.gz"));
    auto summary = trace(cell, setup, path);
    if (!summary && summary.error().kind == FailureKind::kInterrupted) return false;
    if (summary) {
      evidence["profile"] = std::move(summary).value();
    } else {
      workers_.discard(plan_.cells[cell].arm);
      evidence["profile"] = {
          {"error",
           {{"class", summary.error().error_class}, {"message", summary.error().message}}}};
    }
    ASSAY_CHECK(keep_log(cell));
  }
  ASSAY_CHECK(state_.evidence.write(cell, bundle_));
  return true;
}

ClientResult<Json> AfterTiming::trace(size_t index, const ModelSetup& setup,
                                      const std::filesystem::path& path) {
  const Cell& cell = plan_.cells[index];
  auto worker = workers_.get(cell.arm, cell.model);
  if (!worker) return std::unexpected(std::move(worker).error());
  WorkerClient& client = *(*worker)->client;
  if (!announces_profile(client.hello())) {
    return Json{{"skipped", "the worker has no profiler"}};
  }
  const auto& lengths = setup.prompts->lengths(cell.scenario);
  const WireShape shape{*parse_wire_phase(cell.phase), cell.batch, cell.new_tokens,
                        cache_capacity(lengths, cell.new_tokens)};
  const auto prepared = prepare_worker(**worker, prepare_request(shape, lengths), index, study_);
  if (!prepared) return std::unexpected(prepared.error());
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);
  auto reply = client.profile({shape, setup.prompts->prompt(cell.scenario, 0, cell.batch),
                               (error ? path : absolute).string()},
                              study_.timeout_s + study_.compile_timeout_s);
  if (!reply) return std::unexpected(std::move(reply).error());
  return Json{{"summary", std::move(reply->summary)}};
}

Status AfterTiming::keep_log(size_t cell) {
  ASSAY_TRY(const auto path, bundle_.cell_path(plan_.cells[cell].id, "stderr.log"));
  return workers_.move_log(plan_.cells[cell].arm, path);
}

}  // namespace assay
