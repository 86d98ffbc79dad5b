// One walk over the commands, three dialects.
#include "cli/shell/completion.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/text.h"

namespace assay::cli {
namespace {

// The text in single quotes, for all three shells; a quote in it stands outside of them.
std::string shell_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::vector<std::string> command_names(const TreeCommand& command) {
  std::vector<std::string> names;
  for (const TreeCommand& below : command.commands) names.push_back(below.name);
  return names;
}

// Values that a positional argument of the command may have.
struct Positionals {
  std::vector<std::string> words;
  bool paths = false;
};

Positionals positionals_of(const TreeCommand& command) {
  Positionals found{command_names(command)};
  for (const TreeOption& option : command.options) {
    if (!option.positional) continue;
    found.words.insert(found.words.end(), option.words.begin(), option.words.end());
    found.paths |= option.takes_path();
  }
  return found;
}

// "'assay run'|'assay plan'": the paths of all commands but the program itself, as a pattern.
std::string path_pattern(const TreeCommand& root) {
  std::vector<std::string> paths;
  for (const TreeCommand* command : all_commands(root)) {
    if (command != &root) paths.push_back(shell_quoted(command->path));
  }
  return join(paths, "|");
}

// The same of an option's names behind its command: "'assay run -o'|'assay run --output'".
std::string option_pattern(const TreeCommand& command, const TreeOption& option) {
  std::vector<std::string> patterns;
  for (const std::string& name : option.names) {
    patterns.push_back(shell_quoted(command.path + " " + name));
  }
  return join(patterns, "|");
}

// Calls `each` with every option that takes a value, and its command.
template <typename Each>
void for_each_value(const TreeCommand& root, const Each& each) {
  for (const TreeCommand* command : all_commands(root)) {
    for (const TreeOption& option : command->options) {
      if (!option.positional && !option.flag) each(*command, option);
    }
  }
}

// The line that says where the script comes from.
std::string generated_by(std::string_view shell) {
  return fmt::format("# Made by `assay completion {}` from the program's own options.\n", shell);
}

// The shell's cases that complete each option's value: `words` makes the line for a list of words,
// `paths` is the one for files; `before` opens a pattern.
std::string value_cases(const TreeCommand& root, const char* before, const auto& words,
                        const std::string& paths) {
  std::string text;
  for_each_value(root, [&](const TreeCommand& command, const TreeOption& option) {
    const std::string action = !option.words.empty() ? words(option.words) + "; return"
                               : option.takes_path() ? paths + "; return"
                                                     : "return";
    text += fmt::format("    {}{}) {} ;;\n", before, option_pattern(command, option), action);
  });
  return text;
}

std::string bash_cases(const TreeCommand& root) {
  std::string text;
  for (const TreeCommand* command : all_commands(root)) {
    std::vector<std::string> options;
    for (const TreeOption& option : command->options) {
      if (option.positional) continue;
      options.insert(options.end(), option.names.begin(), option.names.end());
    }
    const Positionals positionals = positionals_of(*command);
    text +=
        fmt::format("    {}) options={} words={}{} ;;\n", shell_quoted(command->path),
                    shell_quoted(join(options, " ")), shell_quoted(join(positionals.words, " ")),
                    positionals.paths ? "; [[ $cur == -* ]] || _assay_files \"$cur\"" : "");
  }
  return text;
}

// "'--resume:continue a bundle'": a colon ends the word that a description is of.
std::string described(std::string word, const std::string& description) {
  for (size_t at = 0; (at = word.find(':', at)) != std::string::npos; at += 2) {
    word.insert(at, "\\");
  }
  return shell_quoted(word + ":" + description);
}

std::string zsh_cases(const TreeCommand& root) {
  std::string text;
  for (const TreeCommand* command : all_commands(root)) {
    text += fmt::format("    ({})\n      options=(", shell_quoted(command->path));
    for (const TreeOption& option : command->options) {
      if (option.positional) continue;
      for (const std::string& name : option.names) {
        text += "\n        " + described(name, option.description);
      }
    }
    text += ")\n      commands=(";
    for (const TreeCommand& below : command->commands) {
      text += "\n        " + described(below.name, below.summary);
    }
    const Positionals positionals = positionals_of(*command);
    text += ")\n";
    if (command->commands.empty() && !positionals.words.empty()) {
      text += fmt::format("      values=({})\n", join(positionals.words, " "));
    }
    if (positionals.paths) text += "      [[ $PREFIX == -* ]] || _files\n";
    text += "      ;;\n";
  }
  return text;
}

constexpr std::string_view kBash = R"(_assay_files() {{
  local IFS=$'\n'
  compopt -o filenames 2>/dev/null
  COMPREPLY+=($(compgen -f -- "$1"))
}}
_assay() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} path=assay options words i
  # --option=value comes as three words.
  if [[ $cur == = ]]; then
    cur=
  elif [[ $prev == = ]]; then
    prev=${{COMP_WORDS[COMP_CWORD-2]}}
  fi
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$path ${{COMP_WORDS[i]}}" in
      {}) path+=" ${{COMP_WORDS[i]}}" ;;
    esac
  done
  case "$path $prev" in
{}  esac
  case "$path" in
{}  esac
  [[ $cur == -* ]] && words=$options
  COMPREPLY+=($(compgen -W "$words" -- "$cur"))
}}
complete -F _assay assay
)";

constexpr std::string_view kZsh = R"(_assay() {{
  local at=assay prev=${{words[CURRENT-1]}} i
  local -a options commands values
  for ((i = 2; i < CURRENT; i++)); do
    case "$at ${{words[i]}}" in
      ({}) at+=" ${{words[i]}}" ;;
    esac
  done
  case "$at $prev" in
{}  esac
  case $at in
{}  esac
  if [[ $PREFIX == -* ]]; then
    _describe -o option options
  else
    (( $#commands )) && _describe command commands
    (( $#values )) && compadd -- $values
  fi
}}
if [[ $funcstack[1] == _assay ]]; then
  _assay "$@"
else
  compdef _assay assay
fi
)";

}  // namespace

std::string bash_completion(const TreeCommand& root) {
  const auto words = [](const std::vector<std::string>& each) {
    return fmt::format("COMPREPLY=($(compgen -W {} -- \"$cur\"))", shell_quoted(join(each, " ")));
  };
  return generated_by("bash") + fmt::format(kBash, path_pattern(root),
                                            value_cases(root, "", words, "_assay_files \"$cur\""),
                                            bash_cases(root));
}

std::string zsh_completion(const TreeCommand& root) {
  const auto words = [](const std::vector<std::string>& each) {
    return "compadd -- " + join(each, " ");
  };
  return "#compdef assay\n" + generated_by("zsh") +
         fmt::format(kZsh, path_pattern(root), value_cases(root, "(", words, "_files"),
                     zsh_cases(root));
}

std::string fish_completion(const TreeCommand& root) {
  std::string text = generated_by("fish");
  std::vector<std::string> paths;
  for (const TreeCommand* command : all_commands(root)) {
    if (command != &root) paths.push_back(shell_quoted(command->path));
  }
  text += fmt::format(R"(function __assay_at
    set -l at assay
    for word in (commandline -opc)[2..-1]
        switch "$at $word"
            case {}
                set at "$at $word"
        end
    end
    test "$at" = "$argv"
end
complete -c assay -f
)",
                      join(paths, " "));
  for (const TreeCommand* command : all_commands(root)) {
    const std::string where = fmt::format("complete -c assay -n '__assay_at {}'", command->path);
    for (const TreeCommand& below : command->commands) {
      text += fmt::format("{} -a {} -d {}\n", where, below.name, shell_quoted(below.summary));
    }
    for (const TreeOption& option : command->options) {
      text += where;
      for (const std::string& name : option.names) {
        if (option.positional) break;
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (!option.positional && !option.flag) text += option.takes_path() ? " -r" : " -x";
      if (!option.words.empty()) text += " -a " + shell_quoted(join(option.words, " "));
      if (option.takes_path()) text += " -F";
      text += fmt::format(" -d {}\n", shell_quoted(option.description));
    }
  }
  return text;
}

}  // namespace assay::cli
