// `assay probe --save`: a probe measured as a study of one command arm, and read back from its
// rows.
#include <map>

#include "artifact/bundle.h"
#include "artifact/new_bundle.h"
#include "base/text/shown_text.h"
#include "base/text/text.h"
#include "cli/bundle_analysis.h"
#include "cli/command.h"
#include "cli/probe/probe.h"
#include "cli/process.h"
#include "cli/study/measure.h"
#include "study/command_arm.h"
#include "study/study.h"

namespace assay::cli {
namespace {

// The name in errors of the study that the probe writes.
constexpr const char* kSavedStudy = "`assay probe --save`";

Result<std::string_view> figure_of(const ProbeOptions& options, const TextPattern& pattern) {
  const std::string& group = pattern.names().front();
  for (const std::string_view figure : kFigureNames) {
    if (figure == group && figure != "tokens") return figure;
  }
  if (const auto figure = figure_of_unit(options.unit)) return *figure;
  return bad_input(
      "--save: expected a figure that a row can hold (a group of --pattern named after it, "
      "(?<latency_ms>...), or --unit {}), found the group {} and {}",
      join(figure_units(), ", "), quoted_excerpt(group),
      options.unit.empty() ? "no --unit" : "--unit " + quoted_excerpt(options.unit));
}

// The samples that each invocation has to print.
int64_t samples_asked(const ProbeOptions& options, const std::vector<Probed>& warmups) {
  if (options.save.samples) return *options.save.samples;
  const int64_t printed = warmups.empty() ? 0 : std::ssize(warmups.back().values);
  return options.skip + std::max<int64_t>(1, printed);
}

Result<std::string> study_text(const ProbeOptions& options, const TextPattern& pattern,
                               std::string_view figure, int64_t samples) {
  ASSAY_TRY(std::string named, with_group_named(pattern.text(), pattern.names().front(), figure));
  ProbedCommand command{.argv = options.command,
                        .workdir = options.workdir,
                        .pattern = std::move(named),
                        .samples = samples,
                        .skip = options.skip,
                        .invocations = options.repetitions,
                        .timeout_s = options.timeout_s,
                        .cell = options.save.cell};
  command.cell.prompt_tokens = options.save.prompt_tokens.value_or(1);
  command.cell.new_tokens = options.save.new_tokens.value_or(1);
  return probe_study(command);
}

// The figure that the command printed, from the row's latency, which was made of it
// (backend/command/figures.h) in whole nanoseconds.
double figure_of_row(const Row& row, std::string_view figure) {
  const double ms = row.latency_ms.value_or(0);
  const auto of_prompt = static_cast<double>(row.batch * row.prompt_tokens);
  const auto made = static_cast<double>(row.batch * row.new_tokens);
  const double tokens = row.phase == Phase::kPrefill ? of_prompt : made;
  if (figure == "latency_ns") return ms * 1e6;
  if (figure == "latency_us") return ms * 1e3;
  if (figure == "latency_s" || figure == "ttft_s") return ms / 1e3;
  if (figure == "tokens_per_s") return tokens / ms * 1e3;
  if (figure == "ms_per_token") return ms * static_cast<double>(row.batch) / tokens;
  return ms;
}

// Whole, as the evidence has it; else the class alone.
std::string message_of(const Bundle& bundle, const Row& row) {
  const auto evidence = bundle.evidence.find(row.cell_id.str());
  if (evidence == bundle.evidence.end()) return row.error_class.str();
  for (const EvidenceFailure& failure : evidence->second.failures) {
    if (failure.error_class == row.error_class.str()) return failure.message;
  }
  return row.error_class.str();
}

// An invocation that lost a row is lost: the worker gives all of its samples or none.
std::vector<Probed> invocations_of(const Bundle& bundle, std::string_view figure) {
  std::map<int64_t, Probed> by_process;
  for (const Row& row : bundle.rows) {
    Probed& probed = by_process[row.process.value_or(-1)];
    if (row.status == RowStatus::kOk) {
      if (!row.cold) probed.values.push_back(figure_of_row(row, figure));
    } else if (probed.status == "ok") {
      probed.status = row_status_name(row.status);
      probed.error_class = row.error_class.str();
      probed.message = message_of(bundle, row);
    }
  }
  std::vector<Probed> invocations;
  for (auto& [process, probed] : by_process) {
    if (probed.status != "ok") probed.values.clear();
    invocations.push_back(std::move(probed));
  }
  return invocations;
}

void tell_interrupted(const ProbeOptions& options, const Measured& measured) {
  const std::string where = shown_line(options.save.bundle);
  tell(fmt::format(
      "assay: interrupted with {} committed; continue with: assay run {}/study.yaml -o {} "
      "--resume\n",
      counted(measured.rows, "row"), where, where));
}

void tell_kept(const ProbeOptions& options) {
  const ProbeSave& save = options.save;
  std::string note = "the bundle is kept in " + save.bundle;
  const bool prefill = save.cell.phase == Phase::kPrefill;
  if (!save.prompt_tokens || (!prefill && !save.new_tokens)) {
    note += fmt::format("; its rows say {}{}, as nothing else was given (--prompt-tokens{})",
                        counted(save.prompt_tokens.value_or(1), "prompt token"),
                        prefill ? "" : " and " + counted(save.new_tokens.value_or(1), "new token"),
                        prefill ? "" : ", --new-tokens");
  }
  print_remark("note", note);
}

}  // namespace

Status check_probe_save(const ProbeOptions& options, const TextPattern& pattern) {
  ASSAY_CHECK(check_new_bundle(options.save.bundle));
  ASSAY_TRY(const std::string_view figure, figure_of(options, pattern));
  if (options.save.samples && *options.save.samples <= options.skip) {
    return bad_input("--samples: expected more than the {} that --skip leaves out, found {}",
                     options.skip, *options.save.samples);
  }
  if (figure.starts_with("ttft") && options.save.cell.phase != Phase::kPrefill) {
    return bad_input("--save: expected --phase prefill for {}, found {}", figure,
                     phase_name(options.save.cell.phase));
  }
  // The study's reader refuses here, before anything has run, all that it doesn't take.
  ASSAY_TRY(const std::string text,
            study_text(options, pattern, figure, samples_asked(options, {})));
  const auto study = parse_study(text, kSavedStudy);
  return study ? Status() : std::unexpected(study.error());
}

Result<std::optional<std::vector<Probed>>> probe_into_bundle(const ProbeOptions& options,
                                                             const TextPattern& pattern) {
  using Invocations = std::vector<Probed>;
  ASSAY_TRY(auto invocations, probe_invocations(options, &pattern, options.warmup, 0));
  if (!invocations) {
    tell("assay: interrupted; nothing is measured yet\n");
    return std::optional<Invocations>();
  }
  ASSAY_TRY(const std::string_view figure, figure_of(options, pattern));
  ASSAY_TRY(const std::string text,
            study_text(options, pattern, figure, samples_asked(options, *invocations)));
  ASSAY_TRY(const Measured measured, measure_study({.study = kSavedStudy,
                                                    .study_text = text,
                                                    .bundle = options.save.bundle,
                                                    .only = {},
                                                    .every_arm_runs = true}));
  if (measured.interrupted) {
    tell_interrupted(options, measured);
    return std::optional<Invocations>();
  }
  ASSAY_TRY(const Bundle bundle, read_bundle(options.save.bundle));
  for (Probed& probed : invocations_of(bundle, figure)) invocations->push_back(std::move(probed));
  ASSAY_TRY(const AnalyzedBundle analyzed, analyze_folder(options.save.bundle, {}));
  ASSAY_CHECK(write_analysis(analyzed, options.save.bundle));
  tell_kept(options);
  return invocations;
}

}  // namespace assay::cli
