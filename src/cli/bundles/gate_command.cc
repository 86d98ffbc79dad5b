// assay gate BUNDLE...: the five gates that a claim must pass, of every decision of the bundles'
// reports or of one claim. Exit status 1: a gate fails, or the claim doesn't hold.
#include <cstdio>

#include "analysis/compare/identity_axes.h"
#include "cli/command.h"
#include "cli/option_types.h"
#include "cli/output_file.h"
#include "gates/judge.h"
#include "report/html/judgement_pages.h"
#include "report/judgements/gate_report.h"

namespace assay::cli {
namespace {

Result<int> judge_gates(const JudgeRequest& request, const std::string& page, OutputFormat format) {
  ASSAY_CHECK(check_page_option(page));
  ASSAY_TRY(const Judgement judgement, judge_bundles(request));
  if (!page.empty()) ASSAY_CHECK(write_output_file(page, page_output(), gate_page(judgement)));
  fmt::print("{}", render_judgement(judgement, format, screen_columns()));
  return judgement.verdict() == GateVerdict::kFail ? 1 : 0;
}

}  // namespace

void add_gate_command(CLI::App& app, Selected& selected) {
  CLI::App* command = app.add_subcommand(
      "gate", "judge the claims of bundles by five gates, and exit 1 if a gate fails");
  const auto request = std::make_shared<JudgeRequest>();
  command
      ->add_option("bundle", request->bundles,
                   "folders of bundles; the fifth gate needs two that differ on one axis")
      ->required()
      ->type_name("BUNDLE");
  command
      ->add_option_function<std::string>(
          "--claim", [request](const std::string& text) { request->claim = text; },
          "judge this claim alone: \"ARM faster than ARM in PHASE\" (or slower than, equivalent "
          "to, fastest), and where wanted \"of MODEL\", \"at SCENARIO\", \"batch N\", "
          "\"new_tokens N\"")
      ->type_name("CLAIM");
  command
      ->add_option("--vary", request->axis,
                   "the identity axis on which the bundles are declared to differ (default: the "
                   "only axis on which they do)")
      ->check(known_words(identity_axes()))
      ->type_name("AXIS");
  const auto page = std::make_shared<std::string>();
  add_page_option(*command, *page);
  const auto format = add_output_format(*command);
  command->footer(
      "Example: assay gate bundles/base bundles/cand --claim \"compiled faster than eager in "
      "kv_decode\"\nExit status: 1 if a gate fails or the named claim doesn't hold. What isn't "
      "decided is no failure.");
  command->callback(
      [=, &selected] { selected.body = [=] { return judge_gates(*request, *page, *format); }; });
}

}  // namespace assay::cli
