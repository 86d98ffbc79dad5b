// assay portability: judges if one bundle's findings hold in others too.
#include <set>

#include "artifact/each_once.h"
#include "base/process/thread_pool.h"
#include "cli/command.h"
#include "cli/option_types.h"
#include "cli/output_file.h"
#include "portability/portability.h"
#include "report/html/judgement_pages.h"
#include "report/judgements/portability_report.h"

namespace assay::cli {
namespace {

struct PortabilityArguments {
  std::vector<std::string> bundles;
  std::vector<std::string> vary;
  std::string claim;
  std::string heat_map;
  std::string page;
  PortabilityOptions options;
  RegimeOptions regimes;
};

// Several bundles at a time, as each is read and condensed by itself; the first error in their
// order.
Result<std::vector<Regime>> read_regimes(const std::vector<std::string>& folders,
                                         const RegimeOptions& options) {
  std::vector<std::optional<Result<Regime>>> read(folders.size());
  std::vector<RunMark> marks(folders.size());
  ThreadPool pool(std::min(available_cpus(), folders.size()));
  pool.parallel_for(folders.size(), 1, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const Result<Bundle> bundle = read_bundle_or_rows(folders[i]);
      if (bundle) marks[i] = run_mark(*bundle);
      read[i] = bundle ? condense(*bundle, options) : std::unexpected(bundle.error());
    }
  });
  std::vector<Regime> regimes;
  for (auto& each : read) {
    ASSAY_TRY(Regime regime, *std::move(each));
    regimes.push_back(std::move(regime));
  }
  ASSAY_CHECK(check_distinct_runs("portability", marks));
  return regimes;
}

// An axis of the identity, or a kind of them: "stack".
Result<std::set<std::string>> varied(const std::vector<std::string>& words,
                                     const std::vector<Regime>& regimes) {
  std::set<std::string> kinds;
  for (const std::string& axis : identity_axes()) kinds.insert(perturbation_of(axis));
  std::set<std::string> vary;
  for (const std::string& word : words) {
    if (kinds.contains(word)) {
      vary.insert(word);
      continue;
    }
    ASSAY_TRY(std::string axis, parse_axis(word, regimes.front().who, regimes.back().who));
    vary.insert(std::move(axis));
  }
  return vary;
}

Status check_arguments(const PortabilityArguments& arguments) {
  if (arguments.bundles.size() < 2) {
    return bad_input("portability: expected two bundles or more, found {}",
                     arguments.bundles.size());
  }
  ASSAY_CHECK(check_each_once("portability", arguments.bundles));
  if (!arguments.heat_map.empty()) {
    ASSAY_CHECK(check_output_file(arguments.heat_map, picture_output()));
  }
  ASSAY_CHECK(check_page_option(arguments.page));
  return {};
}

Result<int> run_portability(const PortabilityArguments& arguments, OutputFormat format) {
  ASSAY_CHECK(check_arguments(arguments));
  PortabilityRequest request{arguments.options, arguments.regimes, {}, {}};
  if (!arguments.claim.empty()) {
    ASSAY_TRY(request.claim, parse_claim(arguments.claim));
    ASSAY_CHECK(check_portable(*request.claim));
  }
  ASSAY_TRY(std::vector<Regime> regimes, read_regimes(arguments.bundles, arguments.regimes));
  ASSAY_TRY(request.vary, varied(arguments.vary, regimes));
  ASSAY_TRY(const Portability judged, judge_portability(std::move(regimes), request));
  if (!arguments.heat_map.empty()) {
    ASSAY_CHECK(
        write_output_file(arguments.heat_map, picture_output(), portability_heat_map(judged)));
  }
  if (!arguments.page.empty()) {
    ASSAY_CHECK(write_output_file(arguments.page, page_output(), portability_page(judged)));
  }
  fmt::print("{}", render_portability(judged, format, screen_columns()));
  return judged.failures().empty() ? 0 : 1;
}

}  // namespace

void add_portability_command(CLI::App& app, Selected& selected) {
  CLI::App* command = app.add_subcommand(
      "portability",
      "judge whether a bundle's results hold in other bundles, and which differences change them");
  const auto arguments = std::make_shared<PortabilityArguments>();
  command
      ->add_option("bundles", arguments->bundles,
                   "folders of bundles; each is compared with the first")
      ->required()
      ->type_name("BUNDLE");
  command
      ->add_option("--vary", arguments->vary,
                   "an identity axis, or stack, code or device, on which the bundles may differ; "
                   "any other difference is refused (default: on any); may be repeated")
      ->type_name("AXIS")
      ->allow_extra_args(false);
  command
      ->add_option(
          "--claim", arguments->claim,
          "judge one claim alone: \"ARM faster than ARM in PHASE\" (or slower than), and where "
          "wanted \"of MODEL\", \"at SCENARIO\", \"batch N\", \"new_tokens N\"")
      ->type_name("CLAIM");
  command
      ->add_option("--margin", arguments->options.margin,
                   "times within this share are similar, as 5% or 0.05 (default 5%)")
      ->transform(share_between(1e-6, 1))
      ->type_name("SHARE");
  command->add_flag("--allow-single-process", arguments->regimes.allow_single_process,
                    "compare cells of one process by their rows, although rows can't show how "
                    "processes differ");
  command
      ->add_option("--heat-map", arguments->heat_map,
                   "write the headline matrix (prefill gain, rows lost in decode) as an SVG file")
      ->type_name("FILE.svg");
  add_page_option(*command, arguments->page);
  const auto format = add_output_format(*command);
  command->footer(
      "Example: assay portability runs/torch-2.6 runs/torch-2.8 --vary stack --claim \"compiled "
      "faster than eager in prefill\"\nExit status: 1 if the named claim isn't portable or is "
      "undecided; without --claim, if any condition\nflips or any arm's claim isn't portable.");
  command->callback(
      [=, &selected] { selected.body = [=] { return run_portability(*arguments, *format); }; });
}

}  // namespace assay::cli
