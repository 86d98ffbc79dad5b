// One arm after the other, the baseline first, so that its vocabulary makes the prompts.
#include "harness/model_setup.h"

#include <algorithm>
#include <set>

#include "harness/workers.h"

namespace assay {
namespace {

struct ParityKey {
  size_t scenario = 0;
  int64_t batch = 1;
  friend auto operator<=>(const ParityKey&, const ParityKey&) = default;
};
using Answers = std::map<ParityKey, ParityAnswer>;

const WorkerFailure kNotAsked{FailureKind::kError, "not_asked", "the worker could not be asked"};

class Setup {
 public:
  Setup(const Study& study, const Plan& plan, size_t model, BundleWriter& bundle,
        RunContext& context)
      : study_(study), plan_(plan), model_(model), bundle_(bundle), context_(context) {
    for (const Cell& cell : plan.cells) {
      if (cell.model != model) continue;
      keys_.insert({cell.scenario, cell.batch});
      tokens_ = std::max(tokens_, cell.new_tokens);
    }
    tokens_ = std::clamp<int64_t>(tokens_, 1, kMostParityTokens);
  }

  Result<std::optional<ModelSetup>> run() {
    for (const size_t arm : arms_baseline_first()) {
      answers_[arm] = ask_arm(arm);
      ASSAY_CHECK(keep_log(arm));
      if (interrupted_) return std::optional<ModelSetup>();
    }
    ASSAY_CHECK(write_parity());
    return std::optional<ModelSetup>(std::move(setup_));
  }

 private:
  std::vector<size_t> arms_baseline_first() const {
    std::vector<size_t> arms;
    for (size_t arm = 0; arm < study_.arms.size(); ++arm) arms.push_back(arm);
    std::ranges::stable_partition(
        arms, [&](size_t arm) { return study_.arms[arm].name == study_.baseline; });
    return arms;
  }

  bool note(const WorkerFailure& failure) {
    interrupted_ |= failure.kind == FailureKind::kInterrupted;
    return !interrupted_;
  }

  // Starts a worker, and learns from the first one what prompts are made of.
  ClientResult<WorkerClient> start(size_t arm) {
    LoadedReply loaded;
    const bool want_hash = setup_.model_hash.empty();
    auto client = start_worker(study_, arm, model_, want_hash, *log_, context_, loaded);
    if (!client) return client;
    if (setup_.model_hash.empty()) setup_.model_hash = loaded.model_hash;
    Vocabulary vocabulary{loaded.vocab_size, loaded.special_ids};
    if (!can_draw(vocabulary)) {
      return std::unexpected(WorkerFailure{FailureKind::kError, "empty_vocabulary",
                                           "every id of the vocabulary is special"});
    }
    if (setup_.prompts) return client;
    std::vector<std::vector<int32_t>> texts;
    for (const std::string& text : scenario_texts(study_)) {
      auto ids = client->tokenize({text}, study_.timeout_s);
      if (!ids) return std::unexpected(std::move(ids).error());
      texts.push_back(std::move(ids->ids));
    }
    setup_.prompts.emplace(study_, model_, std::move(vocabulary), std::move(texts));
    return client;
  }

  ParityAnswer ask(WorkerClient& client, const ParityKey& key) {
    ParityRows rows;
    const auto& lengths = setup_.prompts->lengths(key.scenario);
    for (size_t prompt = 0; prompt < lengths.size(); ++prompt) {
      ParityRequest request;
      request.prompt = setup_.prompts->prompt(key.scenario, prompt, key.batch);
      request.shape = {WirePhase::kKvDecode, key.batch, tokens_,
                       request.prompt.padded_len() + tokens_};
      auto reply = client.parity(request, study_.timeout_s);
      if (!reply) return std::unexpected(std::move(reply).error());
      for (auto& row : reply->tokens) rows.push_back(std::move(row));
    }
    return rows;
  }

  // A worker that answers with an error is asked on; one that is lost is replaced, until it is lost
  // twice in a row.
  Answers ask_arm(size_t arm) {
    Answers answers;
    std::optional<WorkerClient> client;
    int lost_in_a_row = 0;
    WorkerFailure last = kNotAsked;
    for (const ParityKey& key : keys_) {
      if (!client && lost_in_a_row < Workers::kLoadAttempts && !interrupted_) {
        auto started = start_with_own_log(arm);
        if (started) {
          client = std::move(started).value();
        } else if (note(last = started.error())) {
          ++lost_in_a_row;
        }
      }
      if (!client) {
        answers.emplace(key, std::unexpected(last));
        continue;
      }
      ParityAnswer answer = ask(*client, key);
      if (answer) {
        lost_in_a_row = 0;
      } else if (note(last = answer.error())) {
        ++lost_in_a_row;
        client.reset();
      }
      answers.emplace(key, std::move(answer));
      if (interrupted_) break;
    }
    if (client) client->shutdown(kGrace_s);
    return answers;
  }

  // Every process prints to a file of its own; what the one before printed is kept first.
  ClientResult<WorkerClient> start_with_own_log(size_t arm) {
    const Status kept = keep_log(arm);
    auto fresh = WorkerLog::create();
    if (!kept || !fresh) {
      const std::string& message = kept ? fresh.error().message : kept.error().message;
      return std::unexpected(WorkerFailure{FailureKind::kError, "spawn_error", message});
    }
    log_ = std::move(fresh).value();
    return start(arm);
  }

  Status keep_log(size_t arm) {
    if (!log_ || !log_->has_more()) return {};
    const auto cell = std::ranges::find_if(plan_.cells, [&](const Cell& candidate) {
      return candidate.arm == arm && candidate.model == model_;
    });
    ASSAY_TRY(const auto path, bundle_.stderr_path(cell->id));
    ASSAY_TRY(const auto out, context_.files.open_append(path));
    return log_->move_to(*out);
  }

  Status write_parity() {
    const size_t baseline = arms_baseline_first().front();
    std::set<size_t> failed;
    for (const Cell& cell : plan_.cells) {
      if (cell.model != model_) continue;
      const ParityKey key{cell.scenario, cell.batch};
      const std::string& arm = study_.arms[cell.arm].name;
      const Json result = compare_parity(arm, answers_.at(cell.arm).at(key), study_.baseline,
                                         answers_.at(baseline).at(key));
      if (result["passed"].is_null()) continue;
      ASSAY_CHECK(bundle_.write_cell_json(cell.id, "parity.json", result));
      if (result["passed"] == false) failed.insert(cell.arm);
    }
    for (const size_t arm : failed) {
      context_.observer.on_note(fmt::format("arm \"{}\" fails parity with \"{}\" on model \"{}\"",
                                            study_.arms[arm].name, study_.baseline,
                                            study_.models[model_].name));
    }
    return {};
  }

  static constexpr double kGrace_s = 2;

  const Study& study_;
  const Plan& plan_;
  size_t model_;
  BundleWriter& bundle_;
  RunContext& context_;
  std::set<ParityKey> keys_;
  int64_t tokens_ = 1;
  ModelSetup setup_;
  std::map<size_t, Answers> answers_;  // by arm
  std::optional<WorkerLog> log_;       // of the process that was started last
  bool interrupted_ = false;
};

}  // namespace

Result<std::optional<ModelSetup>> set_up_model(const Study& study, const Plan& plan, size_t model,
                                               BundleWriter& bundle, RunContext& context) {
  return Setup(study, plan, model, bundle, context).run();
}

}  // namespace assay
