// Published figures held against one another: what means, deviations and n say about the t, p, d
// and so on that stand beside them, the rounding of everything printed considered.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stats/intervals.h"
#include "stats/printed.h"

namespace assay::stats {

// The columns of a table that can be audited. Of two groups a and b; delta is a less b.
enum class Figure {
  kMeanA,
  kSdA,
  kNA,
  kMeanB,
  kSdB,
  kNB,
  kConfidence,  // of the interval, in percent; 95 if not given
  kMargin,      // of tost_p: equivalence is |delta| < margin
  kDelta,
  kPercentDelta,
  kRatio,
  kSe,
  kT,
  kDf,
  kP,
  kD,
  kG,
  kCiLow,
  kCiHigh,
  kF,
  kDf1,
  kDf2,
  kEtaSquared,
  kTostP,
};

struct FigureColumn {
  Figure figure;
  std::string_view name;     // in the table's header
  std::string_view meaning;  // one line for help and documentation
  bool is_claim;             // recomputed from the others
};
std::span<const FigureColumn> figure_columns();
std::string_view figure_name(Figure figure);

using PublishedRow = std::map<Figure, PrintedNumber>;

enum class Verdict { kConsistent, kInconsistent, kNotDetermined };
std::string_view verdict_name(Verdict verdict);

// One claimed figure. `recomputed` is that of the inputs as printed, `range` holds it for every
// value that is printed like them: its ends are those of the corners of the inputs' intervals, so
// an inconsistent figure can't be had from any such inputs. `as` names the convention (Welch or
// Student, sign, one- or two-sided, ...): of the conventions whose range meets the printed figure
// the first whose value is printed like it, else the first; if none meets it, the first of all.
// `also` names the other conventions that meet it.
struct AuditedFigure {
  Figure figure;
  Verdict verdict = Verdict::kNotDetermined;
  std::optional<double> recomputed;
  std::optional<Interval> range;
  std::string as;
  std::vector<std::string> also;
};

// Every claim of the row. A figure is held against means, deviations and n where the row has them,
// else against the other claims that determine it.
std::vector<AuditedFigure> audit_row(const PublishedRow& row);

}  // namespace assay::stats
