// assay run: measures a study into a bundle, and prints its findings as `assay analyze` does; in
// JSON with the run itself.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "artifact/signature.h"
#include "base/text/shown_text.h"
#include "base/text/text.h"
#include "cli/bundle_analysis.h"
#include "cli/command.h"
#include "cli/process.h"
#include "cli/study/measure.h"
#include "report/phase_answers.h"
#include "report/report.h"

namespace assay::cli {
namespace {

constexpr int kRunSchemaVersion = 1;  // of the document that -o json prints

// The run and all it found, as one document.
Json run_json(const MeasureOptions& options, const Measured& summary, const Findings& findings) {
  const SittingSummary& last = findings.sittings.back();
  return {{"schema_version", kRunSchemaVersion},
          {"bundle", options.bundle},
          {"rows", summary.rows},
          {"rows_by_status", status_counts_to_json(summary.rows_by_status)},
          {"sitting",
           {{"number", findings.sittings.size()},
            {"started_at", last.started_at},
            {"first_row", last.first_row},
            {"rows", last.rows}}},
          {"answers", phase_answers_json(phase_answers(findings))},
          {"findings", findings_to_json(findings)}};
}

// Analyses the bundle, and prints it in the format asked for.
Result<int> finish(const MeasureOptions& options, const Measured& summary, OutputFormat format) {
  ASSAY_TRY(const AnalyzedBundle analyzed, analyze_folder(options.bundle, {}));
  ASSAY_CHECK(write_analysis(analyzed, options.bundle));
  if (format == OutputFormat::kTable) {
    fmt::print("{}", screen_text(analyzed.findings, options.bundle));
  } else if (format == OutputFormat::kJson) {
    fmt::print("{}", to_json_text(run_json(options, summary, analyzed.findings)));
  } else {
    fmt::print("{}", render_report(analyzed.findings, format));
  }
  return 0;
}

// Signs the manifest, which vouches for every file.
Status sign(const std::string& folder, const std::string& key) {
  if (key.empty()) return {};
  ASSAY_TRY(const Bundle bundle, read_bundle(folder));
  return sign_bundle(system_spawner(), bundle, key);
}

Result<int> run(const MeasureOptions& options, const std::string& key, OutputFormat format) {
  if (!key.empty()) ASSAY_CHECK(check_signing_key(system_spawner(), key));
  ASSAY_TRY(const Measured summary, measure_study(options));
  if (summary.interrupted) {
    tell(fmt::format(
        "assay: interrupted with {} committed; continue with: assay run {} -o {} --resume\n",
        counted(summary.rows, "row"), shown_line(options.study), shown_line(options.bundle)));
    return kExitInterrupted;
  }
  ASSAY_CHECK(sign(options.bundle, key));
  return finish(options, summary, format);
}

}  // namespace

void add_run_command(CLI::App& app, Selected& selected) {
  CLI::App* command =
      app.add_subcommand("run", "measure a study, write a bundle, and print the findings");
  auto options = std::make_shared<MeasureOptions>();
  command->add_option("study", options->study, "study file")->required()->type_name("STUDY");
  command->add_option("-o,--output", options->bundle, "folder of the bundle to write")
      ->required()
      ->type_name("BUNDLE");
  command->add_flag("--resume", options->resume, "continue a bundle that was interrupted");
  command->add_flag("--profile", options->profile,
                    "trace one repetition of each cell after its timing, if the backend can");
  const auto key = std::make_shared<std::string>();
  command
      ->add_option("--seal", *key,
                   "sign the bundle with this OpenSSH key when it is sealed (assay verify "
                   "--signers checks it)")
      ->type_name("KEY");
  add_only_option(*command, options->only);
  const auto format = add_output_format(*command, "--output-format");
  command->callback(
      [=, &selected] { selected.body = [=] { return run(*options, *key, *format); }; });
}

}  // namespace assay::cli
