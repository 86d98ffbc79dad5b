#include "cli/habits.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "base/text/text.h"

namespace assay::cli {
namespace {

struct Habit {
  std::string_view command;  // empty: any
  std::string_view word;
  std::string_view here;
};

// From the help texts of llama-bench (build 4600), hyperfine 1.18, optimum-benchmark and vLLM's
// benchmark.
constexpr std::array<Habit, 20> kHabits = {{
    {"bench", "-ngl", "--device cuda"},
    {"bench", "--n-gpu-layers", "--device cuda"},
    {"bench", "-dev", "--device"},
    {"bench", "-pg", "-p and -n, which are measured apart"},
    {"bench", "-m", "the model as an argument"},
    {"bench", "--model", "the model as an argument"},
    {"bench", "--reps", "-r"},
    {"bench", "--num-iters", "-r"},
    {"bench", "--input-len", "-p"},
    {"bench", "--output-len", "-n"},
    {"bench", "--batch-size", "-b"},
    {"bench", "-ub", "-b, the number of sequences"},
    {"bench", "-ctk", "--dtype"},
    {"bench", "-fa", "--arms, whose compiled arm has its own attention"},
    {"bench", "--output", "-o"},
    {"run", "--output", "-o"},
    {"run", "--reps", "the study's key repetitions"},
    {"probe", "--runs", "-r"},
    {"probe", "--export-json", "-o json"},
    {"", "--format", "-o"},
}};

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

}  // namespace

std::string habit_hint(const CLI::App& command, std::span<char* const> words) {
  const std::vector<std::string> known = option_names(command);
  for (const std::string_view whole : words) {
    const std::string_view word = whole.substr(0, whole.find('='));
    if (!word.starts_with('-') || std::ranges::find(known, word) != known.end()) continue;
    const auto habit = std::ranges::find_if(kHabits, [&](const Habit& one) {
      return one.word == word && (one.command.empty() || one.command == command.get_name());
    });
    if (habit != kHabits.end()) return fmt::format(" (did you mean {}?)", habit->here);
    if (!word.starts_with("--")) continue;
    if (const std::string hint = nearest_hint(word, known); !hint.empty()) return hint;
  }
  return "";
}

}  // namespace assay::cli
