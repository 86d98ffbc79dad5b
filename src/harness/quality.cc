// Runs the backend's command and keeps what it prints.
#include "harness/quality.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/text/text.h"

namespace assay {
namespace {

// A hang ends here; a large model on few cores takes its time.
constexpr double kTimeout_s = 3600;

// Waits for the end of the child. False: the user wants the run to stop.
bool await_end(Child& child, int interrupt_fd, int64_t deadline_ns) {
  constexpr int kWait_ms = 200;
  while (monotonic_now_ns() < deadline_ns) {
    std::array<pollfd, 2> waits{{{child.end_descriptor(), POLLIN, 0}, {interrupt_fd, POLLIN, 0}}};
    ::poll(waits.data(), waits.size(), kWait_ms);
    if (child.wait(0)) return true;
    if (waits[1].revents != 0) return false;
  }
  return true;
}

std::string last_line(const std::string& text) {
  const std::vector<std::string> lines = split(text, '\n');
  const auto last = std::ranges::find_if(lines.rbegin(), lines.rend(),
                                         [](const std::string& line) { return !line.empty(); });
  return last == lines.rend() ? "" : *last;
}

ModelQuality without_figures(std::string problem) {
  ModelQuality quality;
  quality.problem = std::move(problem);
  return quality;
}

// Absent: interrupted.
std::optional<ModelQuality> measure(const WorkerCommand& command, RunContext& context) {
  ChildSpec spec{.argv = command.argv};
  spec.image = command.image;
  spec.environment = command.environment;
  auto child = context.spawner.spawn(spec);
  if (!child) return without_figures(child.error().message);
  const bool ended = await_end(**child, context.interrupt_fd, deadline_after(kTimeout_s));
  if (!ended || !(*child)->wait(0)) (*child)->kill();
  const ChildEnd end = (*child)->wait(kNoDeadline).value_or(ChildEnd());
  if (!ended) return std::nullopt;
  if (!end.ok()) {
    const std::string said = last_line((*child)->captured_stderr());
    return without_figures(end.text() + (said.empty() ? "" : ": " + said));
  }
  const auto json = parse_json((*child)->captured_stdout(), "model quality");
  if (!json) return without_figures(json.error().message);
  auto quality = quality_from_json(*json, "model quality");
  return quality ? *std::move(quality) : without_figures(quality.error().message);
}

}  // namespace

Result<bool> measure_quality(const Study& study, const Plan& plan, size_t model,
                             BundleWriter& bundle, RunContext& context, Workers& workers,
                             CellEvidence& evidence) {
  if (!study.quality) return true;
  std::map<std::vector<std::string>, ModelQuality> measured;  // by the command
  bool wrote = false;
  for (size_t index = 0; index < plan.cells.size(); ++index) {
    const Cell& cell = plan.cells[index];
    if (cell.model != model || evidence.of(index).quality) continue;
    const StudyArm& arm = study.arms[cell.arm];
    const StudyModel& of = study.models[model];
    const auto command =
        context.backends.at(arm.backend)->quality_command(arm, of, *study.quality, study.seed);
    if (!command || !possible(arm, context)) continue;
    if (!measured.contains(command->argv)) {
      workers.retire_all();
      context.observer.on_note(
          fmt::format("model \"{}\": comparing the predictions of arm \"{}\" "
                      "with those of the model's own weights",
                      of.name, arm.name));
      auto quality = measure(*command, context);
      if (!quality) return false;
      measured.emplace(command->argv, *std::move(quality));
    }
    evidence.of(index).quality = measured.at(command->argv);
    ASSAY_CHECK(evidence.write(index, bundle));
    wrote = true;
  }
  if (wrote) ASSAY_CHECK(bundle.commit_cells());
  return true;
}

}  // namespace assay
