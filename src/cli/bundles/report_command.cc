// assay report BUNDLE: writes report.html, report.md and plots/ into the bundle and prints the two
// paths. From the findings that an analysis left there (--from-findings), it needs nothing else of
// the bundle, and of a findings.json alone it makes a page.
// assay report BUNDLE BUNDLE... -o FILE.html: one page of all of them.
// assay report --index FOLDER... -o FILE.html: a sentence and the links of each of them.
#include <algorithm>
#include <cstdio>
#include <set>

#include "analysis/findings/plotted_json.h"
#include "artifact/each_once.h"
#include "base/files/folder.h"
#include "base/records/phase.h"
#include "base/text/text.h"
#include "cli/bundle_analysis.h"
#include "cli/output_file.h"
#include "portability/portability.h"
#include "report/figures/judgement_figures.h"
#include "report/html/page.h"
#include "report/judgements/portability_report.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

struct ReportArguments {
  std::vector<std::string> bundles;
  std::string page;  // empty: into the bundle
  bool from_findings = false;
  bool index = false;
};

// The bundle, with its rows unless only its findings are wanted.
struct Read {
  AnalyzedBundle bundle;
  bool with_rows = false;
  bool with_plotted = false;  // also where an analysis left them beside its findings
};

Result<Read> read(const std::string& folder, const ReportArguments& arguments,
                  const AnalysisOptions& options) {
  Read read;
  if (arguments.from_findings) {
    ASSAY_TRY(FindingsWithRows found, read_findings_with_rows(folder));
    read.bundle.findings = std::move(found.findings);
    read.with_plotted = found.plotted.has_value();
    if (found.plotted) read.bundle.plotted = *std::move(found.plotted);
    return read;
  }
  ASSAY_TRY(read.bundle, analyze_folder(folder, options));
  read.with_rows = read.with_plotted = true;
  return read;
}

Result<int> write_page(const std::string& page, std::string_view html) {
  ASSAY_CHECK(write_output_file(page, page_output(), html));
  fmt::print("{}\n", page);
  return 0;
}

Result<int> report_one(const ReportArguments& arguments, const AnalysisOptions& options) {
  const std::string& folder = arguments.bundles.front();
  if (arguments.from_findings && arguments.page.empty() && !is_bundle(folder)) {
    return bad_input(
        "{}: expected -o FILE.html for the report of a file that is not in a bundle, found none",
        folder);
  }
  ASSAY_TRY(const Read of, read(folder, arguments, options));
  const Findings& findings = of.bundle.findings;
  const PlottedRows* plotted = of.with_plotted ? &of.bundle.plotted : nullptr;
  const Judgement* judgement = of.with_rows ? &of.bundle.judgement : nullptr;
  // A policy routes single requests.
  const bool loads_alone = std::ranges::all_of(
      findings.strata, [](const Stratum& stratum) { return stratum.phase == Phase::kLoad; });
  const Route* route =
      of.with_rows && (!loads_alone || findings.strata.empty()) ? &of.bundle.route : nullptr;
  if (!arguments.page.empty()) {
    return write_page(arguments.page,
                      render_page(findings, figure_groups(findings, plotted), judgement, route));
  }
  if (of.with_rows) {
    ASSAY_CHECK(write_findings_with_rows(findings, of.bundle.findings_json, *plotted, folder));
  }
  ASSAY_TRY(const WrittenReport written, write_report(findings, plotted, judgement, route, folder));
  fmt::print("{}\n{}\n", written.page.string(), written.markdown.string());
  return 0;
}

// The folders' own names where they differ, else the paths as given.
std::vector<std::string> names_of(const std::vector<std::string>& bundles) {
  std::vector<std::string> names;
  for (const std::string& bundle : bundles) {
    const fs::path path = fs::path(bundle).lexically_normal();
    names.push_back((path.has_filename() ? path : path.parent_path()).filename().string());
  }
  return std::set<std::string>(names.begin(), names.end()).size() == names.size() ? names : bundles;
}

// Checks the request for one page about all bundles.
Status check_several(const ReportArguments& arguments) {
  if (arguments.page.empty()) {
    return bad_input("report of {}: expected -o FILE.html for the page, found none",
                     counted(std::ssize(arguments.bundles), "bundle"));
  }
  return check_each_once("report", arguments.bundles);
}

// Links to those files of the folder that an index leads to, by their paths from the index.
std::vector<ResultLink> result_links(const fs::path& folder, const fs::path& from_index) {
  std::vector<ResultLink> links;
  const auto add = [&](const std::string& text, const std::string& name) {
    std::error_code unknown;
    if (fs::is_regular_file(folder / name, unknown)) links.push_back({text, from_index / name});
  };
  add("what it means", "README.md");
  add("tables in Markdown", "report.md");
  add("findings as JSON", "analysis/findings.json");
  for (const Phase phase : kPhases) {
    add(fmt::format("rows of {}", phase_name(phase)),
        fmt::format("{}/metrics.csv", phase_name(phase)));
  }
  return links;
}

Result<int> report_index(const ReportArguments& arguments, const AnalysisOptions& options) {
  ASSAY_CHECK(check_several(arguments));
  const std::vector<std::string> names = names_of(arguments.bundles);
  const fs::path beside = fs::absolute(arguments.page).lexically_normal().parent_path();
  std::vector<IndexedResult> results;
  for (size_t i = 0; i < names.size(); ++i) {
    const fs::path folder = arguments.bundles[i];
    ASSAY_TRY(Read of, read(folder, arguments, options));
    const fs::path path = fs::absolute(folder).lexically_normal().lexically_relative(beside);
    std::error_code unknown;
    const bool has_page = fs::is_regular_file(folder / "report.html", unknown);
    results.push_back({names[i], std::move(of.bundle.findings),
                       has_page ? (path / "report.html").string() : "",
                       result_links(folder, path)});
  }
  return write_page(arguments.page, render_index(results));
}

// Judges if the first bundle's findings hold in the others. Empty with findings alone; bundles that
// can't be matched stand side by side all the same, with the reason.
JudgedBeside judged_beside(const ReportArguments& arguments) {
  if (arguments.from_findings) return {};
  ReportSection outcome{.title = "Portability", .id = "portability"};
  const auto judge = [&]() -> Result<Portability> {
    std::vector<Regime> regimes;
    for (const std::string& folder : arguments.bundles) {
      ASSAY_TRY(Regime regime, read_regime(folder, {}));
      regimes.push_back(std::move(regime));
    }
    return judge_portability(std::move(regimes), {});
  };
  const Result<Portability> judged = judge();
  if (!judged) {
    outcome.lines.push_back(fmt::format("Not judged: {}.", judged.error().message));
    return {{std::move(outcome)}, {}};
  }
  const Document document = portability_document(*judged);
  outcome.lines = {document.outcome.front(),
                   "Every other bundle is held against the first; `assay portability` prints the "
                   "same and exits 1 where it fails."};
  JudgedBeside beside{{std::move(outcome)}, all_figures(*judged)};
  for (const ReportSection& section : document.sections) {
    if (section.id != "identity") beside.sections.push_back(section);  // the page has its own
  }
  return beside;
}

Result<int> report_several(const ReportArguments& arguments, const AnalysisOptions& options) {
  ASSAY_CHECK(check_several(arguments));
  const std::vector<std::string> names = names_of(arguments.bundles);
  std::vector<NamedFindings> bundles;
  std::vector<RunMark> marks;
  for (size_t i = 0; i < names.size(); ++i) {
    ASSAY_TRY(Read of, read(arguments.bundles[i], arguments, options));
    if (of.with_rows) marks.push_back(std::move(of.bundle.mark));
    bundles.push_back({names[i], std::move(of.bundle.findings)});
  }
  ASSAY_CHECK(check_distinct_runs("report", marks));
  return write_page(arguments.page, render_side_by_side(bundles, judged_beside(arguments)));
}

}  // namespace

void add_report_command(CLI::App& app, Selected& selected) {
  CLI::App* command = app.add_subcommand(
      "report",
      "write a bundle's report.html, report.md and plots/, or one page of several bundles");
  const auto arguments = std::make_shared<ReportArguments>();
  command->add_option("bundle", arguments->bundles, "folders of bundles that `assay run` wrote")
      ->required()
      ->type_name("BUNDLE");
  command
      ->add_option("-o,--output", arguments->page,
                   "write only the page, to this file (required for several bundles)")
      ->type_name("FILE.html");
  command->add_flag("--index", arguments->index,
                    "write an index of the folders: for each, a sentence with its main finding, "
                    "and links to its page and rows");
  const auto options = add_analysis_options(*command);
  const auto from_findings = add_from_findings(*command);
  command->callback([=, &selected] {
    selected.body = [=]() -> Result<int> {
      arguments->from_findings = *from_findings;
      if (!arguments->page.empty()) {
        ASSAY_CHECK(check_output_file(arguments->page, page_output()));
      }
      if (arguments->index) return report_index(*arguments, *options);
      return arguments->bundles.size() == 1 ? report_one(*arguments, *options)
                                            : report_several(*arguments, *options);
    };
  });
}

}  // namespace assay::cli
