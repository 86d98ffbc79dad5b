// assay verify: whether a bundle is byte for byte what its run wrote.
#include <cstdio>

#include "artifact/bundle.h"
#include "base/shown_text.h"
#include "base/text.h"
#include "cli/command.h"

namespace assay::cli {
namespace {

Result<int> verify(const std::string& folder, OutputFormat format) {
  ASSAY_TRY(const std::vector<VerifyProblem> problems, verify_bundle(folder));
  if (problems.empty() && format == OutputFormat::kTable) {
    ASSAY_TRY(const Bundle bundle, read_bundle(folder));
    fmt::print("{}: intact: {}, {}\n", shown_line(folder), counted(std::ssize(bundle.rows), "row"),
               counted(std::ssize(bundle.manifest["files"]) + 1, "file"));
    if (bundle.speed_unjudged > 0) {
      fmt::print(
          "{} can't be checked against the memory's read bandwidth, because the evidence lacks "
          "read_limit or read_bytes\n",
          counted(bundle.speed_unjudged, "ok row"));
    }
    return 0;
  }
  Table table;
  table.columns = {{"object", Align::kLeft}, {"problem", Align::kLeft}};
  for (const VerifyProblem& problem : problems) {
    table.rows.push_back({TableCell::of(problem.object), TableCell::of(problem.problem)});
  }
  print_table(table, format);
  return problems.empty() ? 0 : 1;
}

}  // namespace

void add_verify_command(CLI::App& app, Selected& selected) {
  CLI::App* command = app.add_subcommand(
      "verify", "check a bundle's files against their hashes and its rows against the schema");
  auto folder = std::make_shared<std::string>();
  command->add_option("bundle", *folder, "the bundle's folder")->required();
  auto format = add_output_format(*command);
  command->callback(
      [&selected, folder, format] { selected.body = [=] { return verify(*folder, *format); }; });
}

}  // namespace assay::cli
