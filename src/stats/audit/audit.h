// Published figures held against one another: means, deviations and n against the t, p, d and so on
// that stand beside them, the rounding of everything printed considered.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stats/audit/columns.h"
#include "stats/audit/conventions.h"
#include "stats/audit/printed.h"
#include "stats/samples/intervals.h"

namespace assay::stats {

struct PublishedRow {
  std::map<Figure, PrintedNumber> numbers;
  std::map<Figure, std::vector<PrintedNumber>> lists;  // of columns with is_list
  Declared declared;
};

enum class Verdict { kConsistent, kInconsistent, kNotDetermined };
std::string_view verdict_name(Verdict verdict);

// One claimed figure (of a list: one element).
//
// `from` names the figures that it was recomputed from, `as` the conventions. `recomputed` is the
// value for those as printed, `range` holds it for every value that is printed like them.
// - consistent: under one set of conventions that fits the whole row, every way to recompute the
//   figure meets it. `as` names the row's own set; `also` names the values that other fitting sets
//   give.
// - inconsistent: no known set fits the row, and under a set with the fewest contradictions this
//   figure is one. `from`, `as`, `recomputed` and `range` are of the first way that fails. Not the
//   figure but the row is proven wrong: the error may be in another of its figures.
// - not determined: the row's figures don't determine it, or a set fits in which something isn't
//   printed (then `as` names it, and `range` has the figure's possible values). No `recomputed`.
struct AuditedFigure {
  Figure figure;
  std::optional<size_t> element;  // of a list, from 1
  std::string claimed;
  Verdict verdict = Verdict::kNotDetermined;
  std::optional<double> recomputed;  // absent where only bounds are known, as of percentiles
  std::optional<Interval> range;
  std::string from;
  std::string as;
  std::vector<std::string> also;
  // For machines: every convention that `from` needs, the usual ones included; the interval's
  // confidence.
  std::map<Axis, std::string> conventions;
  std::optional<double> confidence;
};

// Every claim of the row, in the order of the columns.
std::vector<AuditedFigure> audit_row(const PublishedRow& row);

}  // namespace assay::stats
