// The program: picks the command, runs it, maps its error to the exit status.
#include <cstdio>

#include "cli/command.h"

namespace assay::cli {
namespace {

constexpr int kExitBadInput = 2;
constexpr int kExitEnvironment = 3;

int run_main(int argc, char** argv) {
  CLI::App app("measures LLM inference so that the result can be defended", "assay");
  app.set_version_flag("--version", "assay " ASSAY_VERSION);
  app.require_subcommand(1);
  Selected selected;
  add_analyze_command(app, selected);
  add_doctor_command(app, selected);
  add_generate_command(app, selected);
  add_init_command(app, selected);
  add_model_command(app, selected);
  add_plan_command(app, selected);
  add_report_command(app, selected);
  add_run_command(app, selected);
  add_verify_command(app, selected);
  add_worker_command(app, selected);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    fmt::print(stderr, "assay: {}\n", error.what());
    return kExitBadInput;
  }
  const Result<int> status = selected.body();
  if (status) return *status;
  fmt::print(stderr, "assay: {}\n", status.error().message);
  return status.error().kind == ErrorKind::kBadInput ? kExitBadInput : kExitEnvironment;
}

}  // namespace
}  // namespace assay::cli

int main(int argc, char** argv) {
  return assay::cli::run_main(argc, argv);
}
