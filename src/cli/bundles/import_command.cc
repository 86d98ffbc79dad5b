// assay import FILE... -o BUNDLE: other tools' results as a sealed bundle, which names the facts
// that they lack.
#include <memory>

#include "base/clock.h"
#include "base/records/json.h"
#include "base/text/listed.h"
#include "base/text/text.h"
#include "cli/command.h"
#include "cli/option_types.h"
#include "import/import.h"
#include "import/import_bundle.h"

namespace assay::cli {
namespace {

struct ImportArguments {
  std::vector<std::string> files;
  std::string bundle;
  std::string format;
  std::string mapping;
  std::vector<std::string> asserted;
  std::string first_samples = "by-file";
  std::string name;
  std::string baseline;
};

FirstSamples first_samples_of(const std::string& word) {
  if (word == "cold") return FirstSamples::kCold;
  return word == "warm" ? FirstSamples::kWarm : FirstSamples::kByFile;
}

constexpr size_t kMostShown = 12;        // names in one line
constexpr int kImportSchemaVersion = 1;  // of the document that --output-format json prints

Json summary_json(const ImportSummary& summary, const Imported& imported,
                  const std::string& bundle) {
  return {{"schema_version", kImportSchemaVersion},
          {"bundle", bundle},
          {"format", imported.format},
          {"rows", summary.rows},
          {"rows_by_status", status_counts_to_json(summary.rows_by_status)},
          {"lost_by_class", summary.lost_by_class},
          {"cells", summary.cells},
          {"arms", summary.arms},
          {"unknown", summary.unknown},
          {"cold", summary.cold},
          {"means", summary.means},
          {"warnings", summary.warnings}};
}

Table summary_table(const ImportSummary& summary, const Imported& imported,
                    const std::string& bundle) {
  Table table;
  table.columns = columns_of("<what|<value");
  const auto add = [&](const char* what, std::string value) {
    table.rows.push_back({what, std::move(value)});
  };
  add("bundle", bundle);
  add("format", imported.format);
  add("rows", fmt::format("{} of {}", summary.rows, counted(summary.cells, "cell")));
  add("arms", first_listed(summary.arms, kMostShown));
  std::vector<std::string> lost;
  for (const auto& [cause, rows] : summary.lost_by_class) {
    lost.push_back(fmt::format("{} {}", rows, cause));
  }
  add("lost", lost.empty() ? "none" : first_listed(lost, kMostShown));
  add("cold", counted(summary.cold, "first or warm-up sample"));
  add("means", summary.means == 0 ? "none" : counted(summary.means, "row"));
  add("unknown",
      summary.unknown.empty()
          ? "nothing"
          : join(std::vector<std::string>(summary.unknown.begin(), summary.unknown.end()), ", "));
  return table;
}

Result<int> import_files(const ImportArguments& arguments, OutputFormat format) {
  ImportRequest request;
  request.files.assign(arguments.files.begin(), arguments.files.end());
  request.format = parse_import_format(arguments.format);
  if (!arguments.mapping.empty()) request.mapping = arguments.mapping;
  request.asserted = arguments.asserted;
  ASSAY_TRY(const Imported imported, read_imported(request));
  const ImportOptions options{.first = first_samples_of(arguments.first_samples),
                              .name = arguments.name,
                              .baseline = arguments.baseline,
                              .assay_version = ASSAY_VERSION,
                              .now_ns = system_clock().wall_ns()};
  ASSAY_TRY(const ImportSummary summary,
            write_imported(imported, options, disk(), arguments.bundle));
  if (format == OutputFormat::kJson) {
    fmt::print("{}", to_json_text(summary_json(summary, imported, arguments.bundle)));
  } else {
    print_table(summary_table(summary, imported, arguments.bundle), format);
  }
  return 0;
}

}  // namespace

void add_import_command(CLI::App& app, Selected& selected) {
  CLI::App* command = app.add_subcommand(
      "import",
      "make a bundle of other tools' result files; it lists the facts that the files don't state");
  const auto arguments = std::make_shared<ImportArguments>();
  command->add_option("file", arguments->files, "result files of one format, or criterion's folder")
      ->required()
      ->type_name("FILE");
  command->add_option("-o,--output", arguments->bundle, "folder of the bundle to write")
      ->required()
      ->type_name("BUNDLE");
  command
      ->add_option("--format", arguments->format,
                   "format of the files (default: recognised from their content)")
      ->check(word_of(import_format_names()));
  command
      ->add_option("--mapping", arguments->mapping,
                   "YAML file that assigns the columns of a CSV to fields")
      ->type_name("FILE");
  command
      ->add_option("--set", arguments->asserted,
                   "a fact that the files don't state, such as cache=static")
      ->type_name("FIELD=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      ->add_option("--first-samples", arguments->first_samples,
                   "whether the first sample of each run counts as cold")
      ->check(word_of({"by-file", "cold", "warm"}))
      ->capture_default_str();
  command->add_option("--name", arguments->name, "name of the study in reports");
  command->add_option("--baseline", arguments->baseline, "the arm that others are compared with");
  const auto format = add_output_format(*command, "--output-format");
  command->callback(
      [=, &selected] { selected.body = [=] { return import_files(*arguments, *format); }; });
}

}  // namespace assay::cli
