// assay completion SHELL and assay man [COMMAND]: made from the options that the program has, so
// that they can't be of another version.
#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/files/folder.h"
#include "base/text/text.h"
#include "cli/command.h"
#include "cli/option_types.h"
#include "cli/output_file.h"
#include "cli/shell/completion.h"
#include "cli/shell/manual.h"

namespace assay::cli {
namespace {

Result<int> print_completion(CLI::App& app, const std::string& shell) {
  const TreeCommand root = command_tree(app);
  fmt::print("{}", shell == "bash"  ? bash_completion(root)
                   : shell == "zsh" ? zsh_completion(root)
                                    : fish_completion(root));
  return 0;
}

// The program's page and one of each command right below it.
Status write_pages(const TreeCommand& root, const std::filesystem::path& folder) {
  ASSAY_CHECK(disk().make_folder(folder));
  const auto write = [&](const TreeCommand& command) {
    return write_output_file(folder / (manual_name(command) + ".1"), manual_output(),
                             manual_page(command));
  };
  ASSAY_CHECK(write(root));
  for (const TreeCommand& command : root.commands) {
    ASSAY_CHECK(write(command));
  }
  return {};
}

Result<int> print_manual(CLI::App& app, const std::string& name, const std::string& folder) {
  const TreeCommand root = command_tree(app);
  if (!folder.empty()) {
    ASSAY_CHECK(write_pages(root, folder));
    return 0;
  }
  const auto command = std::ranges::find(root.commands, name, &TreeCommand::name);
  if (name.empty() || command != root.commands.end()) {
    fmt::print("{}", manual_page(name.empty() ? root : *command));
    return 0;
  }
  std::vector<std::string> names;
  for (const TreeCommand& each : root.commands) names.push_back(each.name);
  return bad_input("command: expected one of {}, found {}{}", join(names, ", "),
                   quoted_excerpt(name), nearest_hint(name, names));
}

}  // namespace

void add_completion_command(CLI::App& app, Selected& selected) {
  CLI::App* command =
      app.add_subcommand("completion", "print the script that completes command lines in a shell");
  const auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(word_of({"bash", "zsh", "fish"}))
      ->type_name("SHELL");
  command->callback([=, &app, &selected] {
    selected.body = [=, &app] { return print_completion(app, *shell); };
  });
}

void add_man_command(CLI::App& app, Selected& selected) {
  CLI::App* command = app.add_subcommand(
      "man", "print the manual page of a command, else of the program: `assay man run | man -l -`");
  const auto name = std::make_shared<std::string>();
  const auto folder = std::make_shared<std::string>();
  command->add_option("command", *name, "command to describe")->type_name("COMMAND");
  command->add_option("--folder", *folder, "write all pages into this folder instead")
      ->type_name("DIR");
  command->callback([=, &app, &selected] {
    selected.body = [=, &app] { return print_manual(app, *name, *folder); };
  });
}

}  // namespace assay::cli
