// One arm after the other, the baseline first, so that its vocabulary makes the prompts.
#include "harness/model_setup.h"

#include <algorithm>

#include "harness/parity_check.h"
#include "harness/workers.h"

namespace assay {
namespace {

class Setup {
 public:
  Setup(const Study& study, const Plan& plan, size_t model, BundleWriter& bundle,
        RunContext& context, Workers& workers, CellEvidence& evidence, std::set<size_t>& recorded)
      : study_(study),
        plan_(plan),
        model_(model),
        bundle_(bundle),
        context_(context),
        workers_(workers),
        evidence_(evidence),
        parity_(study, plan, model, bundle, context.observer, recorded) {}

  Result<std::optional<ModelSetup>> run() {
    std::vector<size_t> arms = arms_baseline_first(study_);
    std::erase_if(arms, [&](size_t arm) { return !possible(study_.arms[arm], context_); });
    std::set<size_t> asked;
    for (const size_t arm : arms) {
      if (study_.parity != ParityTime::kBefore || wanted_of(arm).empty()) continue;
      asked.insert(arm);
      ASSAY_CHECK(ask_arm(arm));
      ASSAY_CHECK(keep_log(arm));
      if (interrupted_) return std::optional<ModelSetup>();
    }
    for (const size_t arm : arms) {
      if (setup_.prompts || asked.contains(arm)) continue;
      greet_arm(arm);
      if (interrupted_) return std::optional<ModelSetup>();
    }
    if (!setup_.prompts && takes_no_ids_) {
      setup_.prompts.emplace(study_, model_, Vocabulary{1, {}},
                             std::vector<std::vector<int32_t>>());
    }
    if (!arms.empty() && unstarted_.size() == arms.size()) {
      return environment_error("no arm's worker could be started: {}", unstarted_why_);
    }
    for (const auto& [arm, key, why] : unanswered_) {
      ASSAY_CHECK(parity_.set(arm, key, parity_.longest(key), std::unexpected(why)));
    }
    ASSAY_CHECK(parity_.set_uncompared());
    return std::optional<ModelSetup>(std::move(setup_));
  }

 private:
  std::vector<ParityKey> wanted_of(size_t arm) const {
    std::vector<ParityKey> keys;
    std::ranges::copy_if(parity_.keys(), std::back_inserter(keys), [&](const ParityKey& key) {
      return parity_.wanted(arm, key, [&](size_t one) {
        return shows_tokens(study_.arms[one], context_) ? std::optional(parity_.longest(key))
                                                        : std::nullopt;
      });
    });
    return keys;
  }

  bool note(size_t arm, const WorkerFailure& failure) {
    interrupted_ |= failure.kind == FailureKind::kInterrupted;
    setup_.last_failure = failure.message;
    if (failure.error_class == kSpawnError) {
      unstarted_.insert(arm);
      unstarted_why_ = failure.message;
    }
    return !interrupted_;
  }

  // Learns the vocabulary and the texts' tokens, from the first worker that tells them.
  ClientResult<void> learn(WorkerClient& client, const LoadedReply& loaded) {
    if (setup_.model_hash.empty()) setup_.model_hash = loaded.model_hash;
    if (loaded.vocab_size == 0) return {};  // takes no ids; another arm may know some
    Vocabulary vocabulary{loaded.vocab_size, loaded.special_ids};
    if (!can_draw(vocabulary)) {
      return std::unexpected(WorkerFailure{FailureKind::kError, "empty_vocabulary",
                                           "every id of the vocabulary is special"});
    }
    if (setup_.prompts) return {};
    std::vector<std::vector<int32_t>> texts;
    for (const std::string& text : scenario_texts(study_)) {
      auto ids = client.tokenize({text}, study_.timeout_s);
      if (!ids) return std::unexpected(std::move(ids).error());
      texts.push_back(std::move(ids->ids));
    }
    setup_.prompts.emplace(study_, model_, std::move(vocabulary), std::move(texts));
    return {};
  }

  ClientResult<WorkerClient> start(size_t arm) {
    LoadedReply loaded;
    const bool want_hash = setup_.model_hash.empty();
    auto client = start_worker(study_, arm, model_, want_hash, *log_, context_, loaded);
    if (!client) return client;
    if (auto learned = learn(*client, loaded); !learned) {
      return std::unexpected(std::move(learned).error());
    }
    return client;
  }

  // The process that will be timed: it has loaded the model and done no more.
  void greet_arm(size_t arm) {
    const auto worker = workers_.get(arm, model_, setup_.model_hash.empty());
    const auto learned = worker ? learn(*(*worker)->client, (*worker)->loaded)
                                : ClientResult<void>(std::unexpected(worker.error()));
    if (learned) {
      takes_no_ids_ |= (*worker)->loaded.vocab_size == 0;
      return;
    }
    note(arm, learned.error());
    workers_.discard(arm);
  }

  // A worker that answers with an error is asked on; one that is lost is replaced, until it is lost
  // twice in a row.
  Status ask_arm(size_t arm) {
    std::optional<WorkerClient> client;
    int lost_in_a_row = 0;
    double compiled_s = 0;  // by the process so far
    WorkerFailure last = ParityCheck::not_asked();
    for (const ParityKey& key : wanted_of(arm)) {
      if (!client && lost_in_a_row < Workers::kLoadAttempts) {
        auto started = start_with_own_log(arm);
        if (started) {
          client = std::move(started).value();
          compiled_s = 0;
        } else if (note(arm, last = started.error())) {
          ++lost_in_a_row;
        }
      }
      if (interrupted_) break;
      if (!client && unstarted_.contains(arm)) {
        unanswered_.push_back({arm, key, last});
        continue;
      }
      if (!client) {
        ASSAY_CHECK(parity_.set(arm, key, parity_.longest(key), std::unexpected(last)));
        continue;
      }
      if (!setup_.prompts) {  // it started, and takes no ids
        takes_no_ids_ = true;
        ASSAY_CHECK(parity_.set(
            arm, key, parity_.longest(key),
            std::unexpected(WorkerFailure{FailureKind::kError, kNoIds,
                                          "the worker takes no token ids, so that it has none to "
                                          "compare"})));
        continue;
      }
      ParityAnswer answer = parity_.ask(*client, *setup_.prompts, key, parity_.longest(key));
      if (answer) {
        lost_in_a_row = 0;
      } else if (note(arm, last = answer.error())) {
        ++lost_in_a_row;
        client.reset();
      }
      if (answer && !add_compiler_seconds(arm, *client, compiled_s, *answer->cost)) client.reset();
      if (interrupted_) break;
      ASSAY_CHECK(parity_.set(arm, key, parity_.longest(key), std::move(answer)));
    }
    if (client) client->shutdown(kGrace_s);
    return {};
  }

  // The compiler's part of the answer's cost. False: the process isn't to be asked on.
  bool add_compiler_seconds(size_t arm, WorkerClient& client, double& compiled_s,
                            ParityCost& cost) {
    const auto in_all = parity_.compiler_seconds(client);
    if (!in_all) {
      note(arm, in_all.error());
      return false;
    }
    if (!*in_all) return true;
    cost.compile_seconds = std::max(0.0, **in_all - compiled_s);
    compiled_s = **in_all;
    return true;
  }

  // Every process prints to a file of its own; the output of the one before is kept first.
  ClientResult<WorkerClient> start_with_own_log(size_t arm) {
    const Status kept = keep_log(arm);
    auto fresh = WorkerLog::create();
    if (!kept || !fresh) {
      const std::string& message = kept ? fresh.error().message : kept.error().message;
      return std::unexpected(WorkerFailure{FailureKind::kError, kSpawnError, message});
    }
    log_ = std::move(fresh).value();
    return start(arm);
  }

  Status keep_log(size_t arm) {
    if (!log_ || !log_->has_more()) return {};
    const auto cell = std::ranges::find_if(plan_.cells, [&](const Cell& candidate) {
      return candidate.arm == arm && candidate.model == model_;
    });
    return evidence_.keep_log(static_cast<size_t>(cell - plan_.cells.begin()), *log_, bundle_);
  }

  static constexpr double kGrace_s = 2;

  const Study& study_;
  const Plan& plan_;
  size_t model_;
  BundleWriter& bundle_;
  RunContext& context_;
  Workers& workers_;
  CellEvidence& evidence_;
  ParityCheck parity_;
  ModelSetup setup_;
  // Arms whose process couldn't be started, and why: if that are all, the run ends before anything
  // is recorded of the model, so that it can be resumed where there is room for processes.
  std::set<size_t> unstarted_;
  std::string unstarted_why_;
  struct Unanswered {
    size_t arm;
    ParityKey key;
    WorkerFailure why;
  };
  std::vector<Unanswered> unanswered_;
  std::optional<WorkerLog> log_;  // of the process that was started last
  bool takes_no_ids_ = false;     // an arm's worker needs prompts' lengths alone
  bool interrupted_ = false;
};

}  // namespace

Result<std::optional<ModelSetup>> set_up_model(const Study& study, const Plan& plan, size_t model,
                                               BundleWriter& bundle, RunContext& context,
                                               Workers& workers, CellEvidence& evidence,
                                               std::set<size_t>& recorded) {
  return Setup(study, plan, model, bundle, context, workers, evidence, recorded).run();
}

}  // namespace assay
