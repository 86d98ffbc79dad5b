// Keys of command arms, and the checks of a study that has such arms.
#include "study/command_arm.h"

#include <algorithm>

#include "base/records/backend_traits.h"
#include "base/text/text.h"
#include "base/text/text_pattern.h"
#include "study/placeholders.h"
#include "study/program_keys.h"

namespace assay {
namespace {

constexpr size_t kMaxPatterns = 16;
constexpr int64_t kMaxSamples = 1'000'000;

// A text that may have placeholders, which are known.
Result<std::string> read_filled_text(const YamlValue& value) {
  ASSAY_TRY(std::string text, value.any_text());
  const auto placeholders = placeholders_of(text);
  if (!placeholders) return with_context(value.where(), placeholders.error());
  return text;
}

// A revision is one word of git's command line, and no option of it.
Result<std::string> read_revision(const YamlValue& value) {
  ASSAY_TRY(std::string text, value.text());
  if (text.starts_with('-')) return value.error("a revision of git");
  return text;
}

bool tells_time(std::string_view figure, bool prefill_alone) {
  if (figure == "tokens") return false;
  return prefill_alone || !figure.starts_with("ttft");
}

// Figures of all patterns of the arm, which compiled when they were read.
std::vector<std::string> figures_of(const StudyArm& arm) {
  std::vector<std::string> figures;
  for (const Json& pattern : arm.options["patterns"]) {
    const auto compiled = TextPattern::compile(pattern.get<std::string>(), arm.name);
    if (!compiled) continue;
    figures.insert(figures.end(), compiled->names().begin(), compiled->names().end());
  }
  return figures;
}

// The most repetitions that one process of a cell has.
int64_t largest_share(const Study& study) {
  return (study.repetitions + study.processes - 1) / study.processes;
}

Status check_scenarios(const Study& study, const StudyArm& arm, std::string_view object) {
  for (const StudyScenario& scenario : study.scenarios) {
    if (scenario.prompt_tokens.size() == 1) continue;
    return bad_input(
        "{}: scenario \"{}\": expected one prompt length (arm \"{}\" of backend command runs a "
        "program for one prompt at a time), found {}",
        object, scenario.name, arm.name,
        scenario.text.empty() ? fmt::format("{} lengths", scenario.prompt_tokens.size())
                              : std::string("a text"));
  }
  return {};
}

Status check_samples(const Study& study, const StudyArm& arm, std::string_view object) {
  const auto samples = fixed_samples(arm);
  if (!samples) return {};
  if (*samples <= study.warmup) {
    return bad_input(
        "{}: arm \"{}\": expected at most {} warm-ups (an invocation prints {}; key `samples`), "
        "found warmup: {}",
        object, arm.name, *samples - 1, counted(*samples, "sample"), study.warmup);
  }
  if (!study.processes_given || study.warmup + largest_share(study) <= *samples) return {};
  return bad_input(
      "{}: arm \"{}\": expected at least {} processes (an invocation prints {}, {} of them "
      "warm-ups, and there are {} repetitions), found {}",
      object, arm.name, processes_for_samples(study), counted(*samples, "sample"), study.warmup,
      study.repetitions, study.processes);
}

}  // namespace

Result<Json> read_command(const YamlValue& value) {
  if (!value.is_list()) {
    ASSAY_TRY(std::string text, read_filled_text(value));
    return Json(std::move(text));
  }
  return read_arguments(value, read_filled_text);
}

Result<Json> read_workdir(const YamlValue& value) {
  ASSAY_TRY(std::string text, read_filled_text(value));
  if (text.empty()) return value.error("a folder", "nothing");
  return Json(std::move(text));
}

Result<Json> read_command_environment(const YamlValue& value) {
  return read_variables(value, read_filled_text);
}

Result<Json> read_patterns(const YamlValue& value) {
  ASSAY_TRY(const std::vector<YamlValue> items, value.items());
  if (items.size() > kMaxPatterns) {
    return value.error(fmt::format("at most {} patterns", kMaxPatterns),
                       fmt::format("{}", items.size()));
  }
  const std::vector<std::string> known(kFigureNames.begin(), kFigureNames.end());
  Json patterns = Json::array();
  std::vector<std::string> taken;
  for (const YamlValue& item : items) {
    ASSAY_TRY(std::string text, item.any_text());
    ASSAY_TRY(const TextPattern pattern, TextPattern::compile(text, item.where()));
    if (pattern.names().empty()) {
      return item.error(
          fmt::format("a group named after its figure, (?<tokens_per_s>...) or one "
                      "of {}",
                      join(known, ", ")));
    }
    for (const std::string& name : pattern.names()) {
      if (std::ranges::find(known, name) == known.end()) {
        return item.error("groups of " + join(known, ", "),
                          quoted_excerpt(name) + nearest_hint(name, known));
      }
      if (std::ranges::find(taken, name) != taken.end()) {
        return item.error("each figure in one pattern", quoted_excerpt(name) + " again");
      }
    }
    taken.insert(taken.end(), pattern.names().begin(), pattern.names().end());
    patterns.push_back(std::move(text));
  }
  return patterns;
}

Result<Json> read_samples(const YamlValue& value) {
  ASSAY_TRY(const int64_t samples, value.integer(1, kMaxSamples));
  return Json(samples);
}

Result<std::optional<YamlValue>> checkout_revisions(const YamlValue& checkout) {
  static const std::vector<std::string> known = {"repo", "revisions"};
  ASSAY_TRY(const YamlMap map, checkout.map(known));
  return map.find("revisions");
}

Result<Json> read_checkout(const YamlValue& checkout, const YamlValue* revision) {
  static const std::vector<std::string> known = {"repo", "revisions"};
  ASSAY_TRY(const YamlMap map, checkout.map(known));
  ASSAY_TRY(const YamlValue repo, map.require("repo"));
  ASSAY_TRY(const std::string folder, repo.text());
  Json json = {{"repo", folder}};
  if (revision == nullptr) return json;
  ASSAY_TRY(json["revision"], read_revision(*revision));
  return json;
}

Status check_command_arm(const StudyArm& arm, const YamlValue& value) {
  for (const char* key : {"command", "patterns"}) {
    if (arm.options.contains(key)) continue;
    return value.error(fmt::format("the key \"{}\" in an arm of backend command", key), "none");
  }
  const bool shell = arm.options.value("shell", false);
  const Json& command = arm.options["command"];
  if (shell && !command.is_string()) {
    return value.error("a command of one text with shell: true", "a list");
  }
  if (!shell && command.is_string()) {
    return value.error(
        "a command that is a list of arguments, [python, bench.py], or shell: true for a shell's "
        "text",
        quoted_excerpt(command.get<std::string>()));
  }
  if (has_placeholder(arm, "samples") && arm.options.contains("samples")) {
    return value.error("the key \"samples\" or the placeholder {samples}", "both");
  }
  if (has_placeholder(arm, "checkout") && !arm.options.contains("checkout")) {
    return value.error("the key \"checkout\" for the placeholder {checkout}", "none");
  }
  return {};
}

bool is_command(const StudyArm& arm) {
  return backend_traits(arm.backend).worker == WorkerKind::kCommand;
}

bool is_foreign(const StudyArm& arm) {
  return is_command(arm) || backend_traits(arm.backend).worker == WorkerKind::kServer;
}

bool has_command_arms(const Study& study) {
  return std::ranges::any_of(study.arms, is_command);
}

bool has_placeholder(const StudyArm& arm, std::string_view name) {
  const auto holds = [&](const Json& text) {
    if (!text.is_string()) return false;
    const auto found = placeholders_of(text.get<std::string>());
    return found && std::ranges::find(*found, name) != found->end();
  };
  for (const char* key : {"command", "workdir", "env"}) {
    const auto option = arm.options.find(key);
    if (option == arm.options.end()) continue;
    if (holds(*option)) return true;
    if (option->is_structured() && std::ranges::any_of(*option, holds)) return true;
  }
  return false;
}

std::optional<int64_t> fixed_samples(const StudyArm& arm) {
  if (has_placeholder(arm, "samples")) return std::nullopt;
  return arm.options.value("samples", int64_t{1});
}

int64_t default_warmup(const Study& study, int64_t usual) {
  int64_t warmup = usual;
  for (const StudyArm& arm : study.arms) {
    if (!is_command(arm)) continue;
    if (const auto samples = fixed_samples(arm)) warmup = std::min(warmup, *samples - 1);
  }
  return warmup;
}

Status check_commands(const Study& study, std::string_view object) {
  for (const StudyArm& arm : study.arms) {
    if (!is_command(arm)) continue;
    ASSAY_CHECK(check_scenarios(study, arm, object));
    ASSAY_CHECK(check_samples(study, arm, object));
    const bool prefill_alone =
        std::ranges::all_of(study.phases, [](Phase phase) { return phase == Phase::kPrefill; });
    const std::vector<std::string> figures = figures_of(arm);
    if (std::ranges::none_of(figures, [&](const std::string& figure) {
          return tells_time(figure, prefill_alone);
        })) {
      return bad_input(
          "{}: arm \"{}\": expected patterns with a time or a rate (latency_ms, tokens_per_s, "
          "...), "
          "found {} alone",
          object, arm.name, join(figures, ", "));
    }
    if (study.stopping && !study.stopping->decide) {
      return bad_input(
          "{}: arm \"{}\": expected no stopping by relative_ci (a command that has ended gives no "
          "more samples; decide: true adds invocations), found it",
          object, arm.name);
    }
    const bool one_invocation = study.processes_given && study.processes == 1;
    if (one_invocation && study.repetitions > 1 && study.order == RunOrder::kInterleaved) {
      return bad_input(
          "{}: arm \"{}\": expected processes: 2 or more, or order: sequential (samples of one "
          "invocation can't alternate with other arms' samples), found 1 process",
          object, arm.name);
    }
  }
  return {};
}

int64_t processes_for_samples(const Study& study) {
  int64_t processes = 1;
  for (const StudyArm& arm : study.arms) {
    if (!is_command(arm)) continue;
    const auto samples = fixed_samples(arm);
    if (!samples) continue;
    const int64_t each = std::max<int64_t>(1, *samples - study.warmup);
    processes = std::max(processes, (study.repetitions + each - 1) / each);
  }
  return processes;
}

void settle_samples(Study& study) {
  for (StudyArm& arm : study.arms) {
    if (is_foreign(arm)) arm.options[kTimeoutOption] = study.timeout_s;
    if (!is_command(arm)) continue;
    arm.options["samples"] = fixed_samples(arm).value_or(study.warmup + largest_share(study));
  }
}

}  // namespace assay
