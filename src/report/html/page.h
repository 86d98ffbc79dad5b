// Reports as HTML files: nothing is fetched, and all of it can be read without scripts.
#pragma once

#include <string>
#include <vector>

#include "analysis/findings/findings.h"
#include "analysis/findings/plotted.h"
#include "report/document.h"
#include "report/figures/figure.h"

namespace assay {

struct Judgement;
struct Route;

// The verdict first, as on the screen, then figures by phase, requirements, gates, policy and
// identity.
// `groups` are figure_groups() of the same findings, `judgement` and `route` are of the same
// bundle; null: there is none.
std::string render_page(const Findings& findings, const std::vector<FigureGroup>& groups,
                        const Judgement* judgement = nullptr, const Route* route = nullptr);

// A bundle as one of several.
struct NamedFindings {
  std::string name;  // as the user gave it
  Findings findings;
};

// Sections of portability_document() of the bundles, which tests the differences between them.
struct JudgedBeside {
  std::vector<ReportSection> sections;
  std::vector<Figure> figures;
};

// Verdicts, means, ratios and losses of two bundles or more beside one another, and the differences
// of their identities. `judged` is empty where nothing is tested.
std::string render_side_by_side(const std::vector<NamedFindings>& bundles,
                                const JudgedBeside& judged = {});

// A file beside the index, by its path from there.
struct ResultLink {
  std::string text;
  std::string path;
};

// A result as one of an index.
struct IndexedResult {
  std::string name;
  Findings findings;
  std::string page;               // the path of its report.html; empty: it has none
  std::vector<ResultLink> links;  // to the other files that are kept of it
};

// The index: each bundle's result in one sentence, with the measured models, the machine and the
// date; the newest first.
std::string render_index(const std::vector<IndexedResult>& results);

}  // namespace assay
