// The interface between a command and the program: it declares its options and hands over a body.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/tables/table.h"

namespace assay::cli {

// A command's body: 0 done, 1 a judgement failed; errors become exit 2 or 3 with one line on
// stderr.
using Body = std::function<Result<int>()>;

// Filled by the chosen subcommand's callback; main runs it.
struct Selected {
  Body body;
};

// "assay: TEXT" on stderr, and "assay: KIND: TEXT" for a remark that ends nothing ("note",
// "warning"); one line that a terminal shows and doesn't obey, whatever the text holds.
void print_error(std::string_view text);
void print_remark(std::string_view kind, std::string_view text);

// On stdout; a table for people keeps to the terminal's width.
void print_table(const Table& table, OutputFormat format);

// The width of one screen on stdout: the terminal's, within the 60 and 100 columns that a screen is
// made for.
size_t screen_columns();

// Declares -o/--output-format (or the given flags, if -o means something else); the pointed-to
// value is set before the body runs.
std::shared_ptr<OutputFormat> add_output_format(CLI::App& command,
                                                const std::string& flags = "-o,--output-format");

// Declares --html, for commands that judge: everything as one page, besides their output.
CLI::Option* add_page_option(CLI::App& command, std::string& page);
// Checks that the page can be written (cli/output_file.h); an empty path asks for none.
Status check_page_option(const std::string& page);

// Declares --only: AXIS=NAME, a part of the study (study/filter.h).
void add_only_option(CLI::App& command, std::vector<std::string>& only);

// Every add_*_command declares a subcommand of `app` that sets selected.body when chosen.
// One file a command: model_command.cc, run_command.cc, ...
void add_analyze_command(CLI::App& app, Selected& selected);
void add_bench_command(CLI::App& app, Selected& selected);
void add_cache_command(CLI::App& app, Selected& selected);
void add_completion_command(CLI::App& app, Selected& selected);
void add_compare_command(CLI::App& app, Selected& selected);
void add_doctor_command(CLI::App& app, Selected& selected);
void add_gate_command(CLI::App& app, Selected& selected);
void add_generate_command(CLI::App& app, Selected& selected);
void add_import_command(CLI::App& app, Selected& selected);
void add_init_command(CLI::App& app, Selected& selected);
void add_man_command(CLI::App& app, Selected& selected);
void add_model_command(CLI::App& app, Selected& selected);
void add_plan_command(CLI::App& app, Selected& selected);
void add_portability_command(CLI::App& app, Selected& selected);
void add_probe_command(CLI::App& app, Selected& selected);
void add_report_command(CLI::App& app, Selected& selected);
void add_route_command(CLI::App& app, Selected& selected);
void add_run_command(CLI::App& app, Selected& selected);
void add_serve_command(CLI::App& app, Selected& selected);
void add_stats_command(CLI::App& app, Selected& selected);
void add_verify_command(CLI::App& app, Selected& selected);
void add_worker_command(CLI::App& app, Selected& selected);

}  // namespace assay::cli
