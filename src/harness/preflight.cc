// Arms first, then each model as each of its backends sees it.
#include "harness/preflight.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <string>

#include "backend/worker_log.h"
#include "base/files/descriptor.h"
#include "base/text/text.h"

namespace assay {
namespace {

Status check_arms(const Study& study, const BackendSet& backends) {
  std::vector<std::string> known;
  for (const auto& [name, backend] : backends) known.push_back(name);
  for (const StudyArm& arm : study.arms) {
    const auto backend = backends.find(arm.backend);
    if (backend == backends.end()) {
      return bad_input("arm \"{}\": expected a backend of {}, found {}{}", arm.name,
                       join(known, ", "), arm.backend, nearest_hint(arm.backend, known));
    }
    ASSAY_CHECK(backend->second->check_arm(arm));
  }
  return {};
}

Status check_positions(const Study& study, const StudyModel& model, int64_t max_positions,
                       const std::vector<std::vector<PromptLength>>& lengths) {
  for (size_t scenario = 0; scenario < lengths.size(); ++scenario) {
    const auto longest = longest_generation(study, study.scenarios[scenario]);
    if (!longest) continue;
    const int64_t new_tokens = *longest;
    const int64_t needed = cache_capacity(lengths[scenario], new_tokens);
    if (needed <= max_positions) continue;
    return bad_input(
        "scenario \"{}\" on model \"{}\": expected at most the model's {} positions, found {} "
        "(prompt {}, new tokens {})",
        study.scenarios[scenario].name, model.name, max_positions, needed, needed - new_tokens,
        new_tokens);
  }
  return {};
}

// A run of which no arm can run would be a bundle of nothing.
Status check_gates(const Study& study, const BackendSet& backends, Preflight& preflight) {
  bool any = false;
  for (const StudyArm& arm : study.arms) {
    preflight.readiness.push_back(backends.at(arm.backend)->readiness(arm));
    any |= preflight.readiness.back().verdict != ArmReadiness::Verdict::kImpossible;
  }
  if (any) return {};
  const ArmReadiness& first = preflight.readiness.front();
  return environment_error("arm \"{}\": {}{}", study.arms.front().name, first.reason,
                           first.fix.empty() ? "" : "; " + first.fix);
}

}  // namespace

Result<Preflight> check_study(const Study& study, const BackendSet& backends) {
  ASSAY_CHECK(check_arms(study, backends));
  std::set<std::string> used;
  for (const StudyArm& arm : study.arms) used.insert(arm.backend);
  const std::vector<std::string> texts = scenario_texts(study);
  Preflight preflight;
  for (const StudyModel& model : study.models) {
    auto& lengths = preflight.lengths.emplace_back(prompt_lengths(study, {}));
    preflight.weight_bytes.push_back(0);
    for (const StudyArm& arm : study.arms) {
      ASSAY_CHECK(backends.at(arm.backend)->check_weights(arm, model));
    }
    for (const std::string& name : used) {
      ASSAY_TRY(const ModelFacts facts, backends.at(name)->inspect(model, texts));
      if (facts.weight_bytes) preflight.weight_bytes.back() = *facts.weight_bytes;
      if (!facts.text_tokens.empty()) lengths = prompt_lengths(study, facts.text_tokens);
      if (!facts.max_positions) continue;
      ASSAY_CHECK(check_positions(study, model, *facts.max_positions, lengths));
    }
  }
  ASSAY_CHECK(check_gates(study, backends, preflight));
  return preflight;
}

Status check_room(const Study& study) {
  ASSAY_TRY(const WorkerLog log, WorkerLog::create());
  // Descriptors of a living worker: its log, two pipes, its process. Descriptors of the run: the
  // bundle's files, and those that starting a process takes for a moment.
  constexpr size_t kOfWorker = 4;
  constexpr size_t kOfRun = 16;
  const size_t alive = study.order == RunOrder::kSequential ? 1 : study.arms.size();
  const size_t wanted = kOfRun + kOfWorker * alive;
  std::vector<Descriptor> taken;
  while (taken.size() < wanted) {
    taken.emplace_back(::fcntl(log.descriptor(), F_DUPFD_CLOEXEC, 3));
    if (taken.back().ok()) continue;
    return environment_error(
        "open files: expected room for {} more (a run with {} living {} needs them), found room "
        "for {}: {}; raise `ulimit -n`",
        wanted, alive, alive == 1 ? "worker" : "workers", taken.size() - 1, std::strerror(errno));
  }
  return {};
}

}  // namespace assay
