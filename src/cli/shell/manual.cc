// The tree in man(7)'s macros.
#include "cli/shell/manual.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/text.h"

namespace assay::cli {
namespace {

// Text that roff prints as it stands: no escape, no request at the start of a line, and minus signs
// that can be searched for and copied.
std::string roff(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (safe.empty() || safe.ends_with('\n'))) safe += "\\&";
    if (c == '\\') {
      safe += "\\e";
    } else if (c == '-') {
      safe += "\\-";
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string option_names(const TreeOption& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) names.push_back("\\fB" + roff(name) + "\\fR");
  std::string text = option.positional ? "" : join(names, ", ");
  if (option.flag) return text;
  if (!text.empty()) text += " ";
  return text + "\\fI" + roff(option.type.empty() ? option.names.front() : option.type) + "\\fR";
}

std::string synopsis(const TreeCommand& command) {
  std::string text = fmt::format(".B {}\n", roff(command.path));
  for (const TreeOption& option : command.options) {
    if (!option.positional && !option.required) continue;
    text += option.required ? option_names(option) : "[" + option_names(option) + "]";
    if (option.several) text += " ...";
    text += "\n";
  }
  if (command.commands.empty()) return text + "[\\fIOPTIONS\\fR]\n";
  const bool runs_itself = std::ranges::any_of(command.options, &TreeOption::positional);
  if (runs_itself) text += fmt::format("[\\fIOPTIONS\\fR]\n.br\n.B {}\n", roff(command.path));
  return text + "\\fICOMMAND\\fR ...\n";
}

std::string options_text(const TreeCommand& command) {
  std::string text;
  for (const TreeOption& option : command.options) {
    text += fmt::format(".TP\n{}\n{}", option_names(option), roff(option.description));
    if (!option.words.empty() &&
        option.description.find(option.words.back()) == std::string::npos) {
      text += fmt::format(" ({})", roff(join(option.words, ", ")));
    }
    text += option.required ? " (required)\n" : "\n";
  }
  if (!command.footer.empty()) text += fmt::format(".PP\n.nf\n{}\n.fi\n", roff(command.footer));
  return text;
}

// The commands below, each with all that it takes.
std::string sections_of_commands(const TreeCommand& command) {
  std::string text;
  for (const TreeCommand& below : command.commands) {
    text += fmt::format(".SS {}\n{}.PP\n{}.\n{}", roff(below.path), synopsis(below),
                        roff(below.summary), options_text(below));
    text += sections_of_commands(below);
  }
  return text;
}

// The program's commands, which have pages of their own.
std::string list_of_commands(const TreeCommand& root) {
  std::string text = ".SH COMMANDS\n";
  for (const TreeCommand& command : root.commands) {
    text += fmt::format(".TP\n.BR {} (1)\n{}\n", roff(manual_name(command)), roff(command.summary));
  }
  return text;
}

constexpr const char* kExitStatus = R"(.SH EXIT STATUS
.TP
0
done
.TP
1
a judgement failed
.TP
2
bad input; one line on standard error names it
.TP
3
the environment does not allow it
)";

}  // namespace

std::string manual_name(const TreeCommand& command) {
  std::string name = command.path;
  std::ranges::replace(name, ' ', '-');
  return name;
}

std::string manual_page(const TreeCommand& command) {
  const bool program = command.path == command.name;
  std::string text =
      fmt::format(".TH {} 1 \"\" \"assay {}\" \"assay\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n{}",
                  roff(manual_name(command)), ASSAY_VERSION, roff(manual_name(command)),
                  roff(command.summary), synopsis(command));
  if (!command.options.empty()) text += ".SH OPTIONS\n" + options_text(command);
  if (program) {
    text += list_of_commands(command);
  } else if (!command.commands.empty()) {
    text += ".SH COMMANDS\n" + sections_of_commands(command);
  }
  return text + kExitStatus;
}

}  // namespace assay::cli
