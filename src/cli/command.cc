// Options and messages that commands share.
#include "cli/command.h"

#include <algorithm>

#include "base/process/terminal.h"
#include "base/text/shown_text.h"
#include "cli/option_types.h"
#include "cli/output_file.h"
#include "cli/process.h"
#include "report/screen/fitter.h"

namespace assay::cli {

void print_error(std::string_view text) {
  tell(fmt::format("assay: {}\n", shown_line(text)));
}

void print_remark(std::string_view kind, std::string_view text) {
  tell(fmt::format("assay: {}: {}\n", kind, shown_line(text)));
}

void print_table(const Table& table, OutputFormat format) {
  fmt::print("{}", table.render(format, stdout_columns()));
}

size_t screen_columns() {
  constexpr size_t kNarrowest = 60;
  return std::clamp(stdout_columns().value_or(kScreenColumns), kNarrowest, kScreenColumns);
}

std::shared_ptr<OutputFormat> add_output_format(CLI::App& command, const std::string& flags) {
  auto format = std::make_shared<OutputFormat>(OutputFormat::kTable);
  command
      .add_option_function<std::string>(
          flags,
          [format](const std::string& name) {
            const auto parsed = parse_output_format(name);
            if (!parsed) throw CLI::ValidationError(parsed.error().message);
            *format = *parsed;
          },
          "table (default), json, csv or md")
      ->check(known_words({"table", "json", "csv", "md"}))
      ->type_name("FORMAT");
  return format;
}

CLI::Option* add_page_option(CLI::App& command, std::string& page) {
  return command
      .add_option("--html", page,
                  "also write everything as one HTML page, with figures and the tables behind them")
      ->type_name("FILE.html");
}

Status check_page_option(const std::string& page) {
  return page.empty() ? Status{} : check_output_file(page, page_output());
}

void add_only_option(CLI::App& command, std::vector<std::string>& only) {
  command
      .add_option(
          "--only", only,
          "measure only a part of the study: model=NAME, arm=NAME, phase=NAME or scenario=NAME; "
          "separate several names by commas, and repeat the option for another axis")
      ->type_name("AXIS=NAME,...")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace assay::cli
