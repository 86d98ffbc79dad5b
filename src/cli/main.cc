// The program: picks the command, runs it, maps its error to the exit status.
#include <algorithm>
#include <cstdio>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/text.h"
#include "cli/command.h"
#include "cli/habits.h"
#include "cli/process.h"

namespace assay::cli {
namespace {

// One line for a command line that doesn't parse. CLI11 itself only says that a subcommand is
// required, also where the word is one that it doesn't know.
std::string parse_message(const CLI::App& app, const CLI::ParseError& error, int argc,
                          char** argv) {
  const CLI::App* at = &app;
  int next = 1;  // the word behind the commands that were recognised
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    ++next;
  }
  if (at->get_require_subcommand_min() == 0) {
    const std::span<char* const> words(argv, static_cast<size_t>(argc));
    return error.what() + habit_hint(*at, words.subspan(static_cast<size_t>(next)));
  }
  std::vector<std::string> names;
  for (const CLI::App* command : at->get_subcommands({})) names.push_back(command->get_name());
  const std::string found = argc > next ? fmt::format("\"{}\"", argv[next]) : "nothing";
  return fmt::format("{}: expected one of {}, found {}{}", at == &app ? "command" : at->get_name(),
                     join(names, ", "), found, argc > next ? nearest_hint(argv[next], names) : "");
}

// `compare BASE... -- CAND...`: the parser drops the "--" and with it where the candidates begin.
std::vector<char*> spell_out_candidates(int argc, char** argv) {
  static char option[] = "--candidates";
  std::vector<char*> arguments(argv, argv + argc);
  if (argc < 2 || std::string_view(argv[1]) != "compare") return arguments;
  const auto marker = std::ranges::find(arguments, std::string_view("--"));
  if (marker != arguments.end()) *marker = option;
  return arguments;
}

int run_main(int argc, char** argv) {
  CLI::App app("Measures LLM inference so that the result can be defended.", "assay");
  app.set_version_flag("--version", "assay " ASSAY_VERSION);
  app.require_subcommand(1);
  Selected selected;
  add_analyze_command(app, selected);
  add_bench_command(app, selected);
  add_cache_command(app, selected);
  add_compare_command(app, selected);
  add_completion_command(app, selected);
  add_doctor_command(app, selected);
  add_gate_command(app, selected);
  add_generate_command(app, selected);
  add_import_command(app, selected);
  add_init_command(app, selected);
  add_man_command(app, selected);
  add_model_command(app, selected);
  add_plan_command(app, selected);
  add_portability_command(app, selected);
  add_probe_command(app, selected);
  add_report_command(app, selected);
  add_route_command(app, selected);
  add_run_command(app, selected);
  add_serve_command(app, selected);
  add_stats_command(app, selected);
  add_verify_command(app, selected);
  add_worker_command(app, selected);
  std::vector<char*> arguments = spell_out_candidates(argc, argv);
  try {
    app.parse(argc, arguments.data());
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) {
      print_error(parse_message(app, error, argc, argv));
      return kExitBadInput;
    }
    std::ostringstream text;  // of --help or --version
    const int status = app.exit(error, text, text);
    fmt::print("{}", text.str());
    return status;
  }
  const Result<int> status = selected.body();
  if (status) return *status;
  // close_output() says why, once.
  const bool unprinted = status.error().kind == ErrorKind::kEnvironment && std::ferror(stdout) != 0;
  if (unprinted) return kExitEnvironment;
  print_error(status.error().message);
  return status.error().kind == ErrorKind::kBadInput ? kExitBadInput : kExitEnvironment;
}

}  // namespace
}  // namespace assay::cli

int main(int argc, char** argv) {
  using namespace assay::cli;
  prepare_process();
  int status = 0;
  try {
    status = run_main(argc, argv);
  } catch (...) {
    status = report_exception();
  }
  return close_output(status);
}
