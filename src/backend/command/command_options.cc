// Reading options and filling placeholders.
#include "backend/command/command_options.h"

#include <algorithm>

#include "study/placeholders.h"

namespace assay {
namespace {

// A text that a shell takes as one word, whatever it holds.
std::string shell_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

Status read_argv(const Json& options, CommandOptions& read) {
  const auto command = options.find("command");
  if (command == options.end()) return bad_input("options: expected \"command\", found none");
  if (command->is_string()) {
    read.argv = {command->get<std::string>()};
    return {};
  }
  if (!command->is_array() || command->empty()) {
    return bad_input("options: expected \"command\" to be a text or a list, found {}",
                     to_json_line(*command).substr(0, 80));
  }
  for (const Json& argument : *command) {
    if (!argument.is_string()) {
      return bad_input("options: expected a text for each element of \"command\", found {}",
                       to_json_line(argument).substr(0, 80));
    }
    read.argv.push_back(argument.get<std::string>());
  }
  return {};
}

Result<std::string> text_option(const Json& options, const char* key) {
  const auto value = options.find(key);
  if (value == options.end()) return std::string();
  if (value->is_string()) return value->get<std::string>();
  return bad_input("options: expected \"{}\" to be a text, found {}", key,
                   to_json_line(*value).substr(0, 80));
}

Status read_patterns_option(const Json& options, CommandOptions& read) {
  const auto patterns = options.find("patterns");
  if (patterns == options.end() || !patterns->is_array() || patterns->empty()) {
    return bad_input("options: expected \"patterns\" to be a list, found none");
  }
  for (const Json& pattern : *patterns) {
    if (!pattern.is_string()) return bad_input("options: expected \"patterns\" of texts");
    ASSAY_TRY(TextPattern compiled,
              TextPattern::compile(pattern.get<std::string>(), "options: patterns"));
    read.patterns.push_back(std::move(compiled));
  }
  return {};
}

}  // namespace

Result<CommandOptions> command_options(const Json& options) {
  CommandOptions read;
  ASSAY_CHECK(read_argv(options, read));
  ASSAY_CHECK(read_patterns_option(options, read));
  const auto shell = options.find("shell");
  read.shell = shell != options.end() && *shell == true;
  ASSAY_TRY(read.workdir, text_option(options, "workdir"));
  ASSAY_TRY(read.side, text_option(options, kSideOption));
  const auto seed = options.find(kSeedOption);
  if (seed != options.end()) read.seed = to_json_line(*seed);
  ASSAY_TRY(read.timeout_s, json_number_or(options, kTimeoutOption, 0, "options"));
  if (const auto samples = options.find("samples"); samples != options.end()) {
    ASSAY_TRY(read.samples, json_int(options, "samples", "options"));
  }
  if (const auto variables = options.find("env"); variables != options.end()) {
    for (const auto& [name, value] : variables->items()) {
      if (!value.is_string()) return bad_input("options: expected \"env\" of texts");
      read.environment.emplace_back(name, value.get<std::string>());
    }
  }
  if (const auto checkout = options.find(kCheckedOutOption); checkout != options.end()) {
    ASSAY_TRY(read.checkout.folder, json_string(*checkout, "folder", "options"));
    ASSAY_TRY(read.checkout.sha, json_string(*checkout, "sha", "options"));
  }
  return read;
}

InvocationSpec fill_command(const CommandOptions& options,
                            std::map<std::string, std::string> values) {
  values["seed"] = options.seed;
  values["samples"] = std::to_string(options.samples);
  values["side"] = options.side;
  values["checkout"] = options.checkout.folder;
  InvocationSpec spec;
  spec.timeout_s = std::max(options.timeout_s * 0.95, options.timeout_s - 1);
  for (const auto& [name, value] : options.environment) {
    spec.environment.emplace_back(name, fill_placeholders(value, values));
  }
  const std::string workdir = fill_placeholders(options.workdir, values);
  spec.folder = std::filesystem::path(options.checkout.folder) / workdir;
  if (workdir.empty()) spec.folder = options.checkout.folder;
  if (!options.shell) {
    for (const std::string& argument : options.argv) {
      spec.argv.push_back(fill_placeholders(argument, values));
    }
    return spec;
  }
  for (auto& [name, value] : values) value = shell_quoted(value);
  spec.argv = {"/bin/sh", "-c", fill_placeholders(options.argv.front(), values)};
  return spec;
}

}  // namespace assay
