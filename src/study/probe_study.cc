// Texts that stand for themselves, and one line a key.
#include "study/probe_study.h"

#include <algorithm>
#include <array>

#include "base/records/json.h"
#include "base/text/text.h"
#include "base/text/text_pattern.h"

namespace assay {
namespace {

struct UnitFigure {
  std::string_view unit;
  std::string_view figure;
};
constexpr std::array kUnits = {
    UnitFigure{"ns", "latency_ns"},
    UnitFigure{"us", "latency_us"},
    UnitFigure{"µs", "latency_us"},
    UnitFigure{"ms", "latency_ms"},
    UnitFigure{"s", "latency_s"},
    UnitFigure{"sec", "latency_s"},
    UnitFigure{"seconds", "latency_s"},
    UnitFigure{"t/s", "tokens_per_s"},
    UnitFigure{"tok/s", "tokens_per_s"},
    UnitFigure{"tok/sec", "tokens_per_s"},
    UnitFigure{"token/s", "tokens_per_s"},
    UnitFigure{"tokens/s", "tokens_per_s"},
    UnitFigure{"tokens/sec", "tokens_per_s"},
    UnitFigure{"ms/tok", "ms_per_token"},
    UnitFigure{"ms/token", "ms_per_token"},
};

// A scalar as YAML reads it back: JSON's strings are among YAML's.
Result<std::string> quoted_scalar(const std::string& text) {
  std::string quoted = to_json_line(Json(text));
  const Json back = Json::parse(quoted, nullptr, false);
  if (back.is_string() && back.get<std::string>() == text) return quoted;
  return bad_input("--save: expected a command in UTF-8, which a study file is, found {}",
                   quoted_excerpt(text));
}

bool is_word_letter(char c) {
  return (c >= 'a' && c <= 'z') || c == '_';
}

// A word in braces would be a placeholder; in two pairs of them it is itself.
std::string without_placeholders(const std::string& text) {
  std::string escaped;
  for (size_t i = 0; i < text.size(); ++i) {
    size_t end = i + 1;
    while (text[i] == '{' && end < text.size() && is_word_letter(text[end])) ++end;
    if (end > i + 1 && end < text.size() && text[end] == '}') {
      escaped += fmt::format("{{{}}}", text.substr(i, end - i + 1));
      i = end;
    } else {
      escaped += text[i];
    }
  }
  return escaped;
}

// An invocation is ended a second, or a twentieth, before the study's time is over.
double study_timeout(double seconds) {
  return std::min(seconds / 0.95, seconds + 1);
}

}  // namespace

Result<std::string> probe_study(const ProbedCommand& command) {
  const ProbedCell& cell = command.cell;
  std::vector<std::string> argv;
  for (const std::string& argument : command.argv) {
    ASSAY_TRY(std::string quoted, quoted_scalar(without_placeholders(argument)));
    argv.push_back(std::move(quoted));
  }
  ASSAY_TRY(const std::string model, quoted_scalar(cell.model));
  ASSAY_TRY(const std::string pattern, quoted_scalar(command.pattern));
  std::string text = fmt::format(
      "name: probe\nmodels:\n  - {{path: {0}, name: {0}}}\narms:\n  - name: {1}\n"
      "    backend: command\n    command: [{2}]\n    patterns: [{3}]\n    samples: {4}\n",
      model, kProbedArm, join(argv, ", "), pattern, command.samples);
  if (!command.workdir.empty()) {
    ASSAY_TRY(const std::string folder, quoted_scalar(without_placeholders(command.workdir)));
    text += fmt::format("    workdir: {}\n", folder);
  }
  text += fmt::format("phases: [{}]\nscenarios: [prompt_{}]\n", phase_name(cell.phase),
                      cell.prompt_tokens);
  if (cell.phase != Phase::kPrefill) text += fmt::format("token_lengths: [{}]\n", cell.new_tokens);
  text += fmt::format("repetitions: {}\nprocesses: {}\nwarmup: {}\ntimeout_s: {}\n",
                      command.invocations * (command.samples - command.skip), command.invocations,
                      command.skip, study_timeout(command.timeout_s));
  // Samples of one invocation can't alternate with anything.
  if (command.invocations == 1) text += "order: sequential\n";
  return text;
}

std::optional<std::string_view> figure_of_unit(std::string_view unit) {
  const auto found = std::ranges::find(kUnits, unit, &UnitFigure::unit);
  return found == kUnits.end() ? std::nullopt : std::optional(found->figure);
}

std::vector<std::string> figure_units() {
  std::vector<std::string> units;
  for (const UnitFigure& each : kUnits) units.emplace_back(each.unit);
  return units;
}

Result<std::string> with_group_named(const std::string& pattern, const std::string& group,
                                     std::string_view figure) {
  if (group == figure) return pattern;
  for (const auto& [open, close] :
       {std::pair{"(?<", ">"}, std::pair{"(?P<", ">"}, std::pair{"(?'", "'"}}) {
    const std::string named = open + group + close;
    for (size_t at = pattern.find(named); at != std::string::npos;
         at = pattern.find(named, at + 1)) {
      std::string renamed = pattern;
      renamed.replace(at, named.size(), fmt::format("{}{}{}", open, figure, close));
      const auto compiled = TextPattern::compile(renamed, "--pattern");
      if (compiled && compiled->names().size() == 1 && compiled->names().front() == figure) {
        return renamed;
      }
    }
  }
  return bad_input("--pattern: expected a group (?<{}>...) for --save, found (?<{}>...) in {}",
                   figure, group, quoted_excerpt(pattern));
}

}  // namespace assay
