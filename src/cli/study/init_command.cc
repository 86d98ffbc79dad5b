// assay init: writes a commented study file to start from.
#include <filesystem>
#include <memory>
#include <string>

#include "base/files/files.h"
#include "base/text/shown_text.h"
#include "cli/command.h"
#include "study/study.h"

namespace assay::cli {
namespace {

Result<int> run_init(const std::string& file) {
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::symlink_status(file, error))) {
    return bad_input("{}: expected a file that doesn't exist yet, found one", file);
  }
  ASSAY_CHECK(write_file(file, study_template()));
  fmt::print("{}: edit it, then `assay plan {}`\n", shown_line(file), shown_line(file));
  return 0;
}

}  // namespace

void add_init_command(CLI::App& app, Selected& selected) {
  CLI::App* command = app.add_subcommand("init", "write a commented study file");
  auto file = std::make_shared<std::string>("study.yaml");
  command->add_option("file", *file, "file to write (default study.yaml)")->type_name("FILE");
  command->callback([=, &selected] { selected.body = [=] { return run_init(*file); }; });
}

}  // namespace assay::cli
