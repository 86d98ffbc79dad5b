// assay compare BASE CAND: whether a change made anything slower, with the exit status for CI.
#include <charconv>
#include <cstdio>

#include "analysis/compare.h"
#include "analysis/false_alarms.h"
#include "base/text.h"
#include "base/thread_pool.h"
#include "cli/command.h"
#include "cli/option_types.h"
#include "report/compare_report.h"

namespace assay::cli {
namespace {

struct Request {
  std::string base;
  std::string cand;
  CompareOptions options;
  std::string margin = "2%";
  std::vector<std::string> vary;
  bool fail_on_regression = false;
  bool self_test = false;
  int64_t splits = 1000;
  uint64_t seed = 42;
};

// "2%", "2 %" or "0.02".
Result<double> parse_margin(const std::string& text) {
  std::string number = text;
  double scale = 1;
  if (number.ends_with('%')) {
    number.pop_back();
    while (number.ends_with(' ')) number.pop_back();
    scale = 0.01;
  }
  double value = 0;
  const char* end = number.data() + number.size();
  const auto [stop, error] = std::from_chars(number.data(), end, value);
  const double share = value * scale;
  if (error != std::errc() || stop != end || !(share >= 1e-6) || share > 1) {
    return bad_input("--margin: expected a share such as 2% or 0.02, at most 1, found {}",
                     quoted_excerpt(text));
  }
  return share;
}

Result<int> run_self_test(const Request& request, OutputFormat format) {
  if (!request.cand.empty()) {
    return bad_input("--self-test: expected one bundle, found two");
  }
  ASSAY_TRY(const Bundle bundle, read_bundle(request.base));
  ThreadPool pool(available_cpus());
  ASSAY_TRY(const SelfTest test,
            self_test(bundle, request.options, request.splits, request.seed, &pool));
  fmt::print("{}", render_self_test(test, request.options, format));
  return test.alarm_interval && test.alarm_interval->low > request.options.alpha ? 1 : 0;
}

Result<int> run_compare(Request request, OutputFormat format) {
  ASSAY_TRY(request.options.margin, parse_margin(request.margin));
  if (request.self_test) return run_self_test(request, format);
  if (request.cand.empty()) {
    return bad_input("compare: expected two bundles, or one and --self-test, found one");
  }
  ASSAY_TRY(const Bundle base, read_bundle(request.base));
  ASSAY_TRY(const Bundle cand, read_bundle(request.cand));
  std::set<std::string> vary;
  for (const std::string& word : request.vary) {
    ASSAY_TRY(std::string axis, parse_axis(word, base, cand));
    vary.insert(std::move(axis));
  }
  ASSAY_TRY(const Comparison comparison, compare(base, cand, request.options, vary));
  fmt::print("{}", render_comparison(comparison, format, request.fail_on_regression));
  return comparison.failures(request.fail_on_regression).empty() ? 0 : 1;
}

}  // namespace

void add_compare_command(CLI::App& app, Selected& selected) {
  CLI::App* command = app.add_subcommand(
      "compare", "hold a bundle against a baseline bundle of the same study, for CI");
  const auto request = std::make_shared<Request>();
  command->add_option("base", request->base, "the baseline's folder")
      ->required()
      ->type_name("BASE");
  command->add_option("cand", request->cand, "the candidate's folder")->type_name("CAND");
  command->add_flag("--fail-on-regression", request->fail_on_regression,
                    "exit 1 also where a cell is slower by more than the margin, loses more rows, "
                    "or gives other output");
  command->add_option("--margin", request->margin, "2% (default) or 0.02")->type_name("SHARE");
  command
      ->add_option("--vary", request->vary,
                   "an identity axis on which the bundles may differ; may be repeated")
      ->type_name("AXIS")
      ->allow_extra_args(false);
  command->add_flag("--allow-single-process", request->options.allow_single_process,
                    "judge cells of one process a side by their rows, which can't show what "
                    "differs between processes");
  command->add_flag("--self-test", request->self_test,
                    "deal one bundle's processes to two halves, again and again, and report the "
                    "false-alarm rate");
  command->add_option("--splits", request->splits, "of --self-test, at most (default 1000)")
      ->check(count_between(10, 1'000'000))
      ->type_name("N");
  command->add_option("--seed", request->seed, "of --self-test (default 42)")
      ->check(seed_number())
      ->type_name("N");
  const auto format = add_output_format(*command);
  command->callback(
      [=, &selected] { selected.body = [=] { return run_compare(*request, *format); }; });
}

}  // namespace assay::cli
