// Cells by their place in two sets of samples.
#include "analysis/compare/pairing.h"

#include <limits>
#include <map>

#include "analysis/contrast/contrast.h"
#include "analysis/rows/gpu_neighbours.h"
#include "base/add_once.h"
#include "base/text/text.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

using Places = std::map<std::pair<Stratum, std::string>, const Group*>;
Places by_place(const Samples& samples) {
  Places places;
  for (const Group& group : samples.groups) {
    places[{samples.strata[group.stratum], samples.arms[group.arm]}] = &group;
  }
  return places;
}

// `all`, then the elements that only `more` has.
template <typename T>
std::vector<T> united(std::vector<T> all, const std::vector<T>& more) {
  add_each_once(all, more);
  return all;
}

// True if the latencies can be told apart from 0 and from one another.
bool has_moments(const Group& group) {
  const auto moments = stats::moments(group.warm_ms);
  return group.warm_ms.size() < 2 ||
         (moments && moments->mean >= std::numeric_limits<double>::min());
}

std::string why_not(const CellPair& pair, const Comparison& of, bool prompts_matter) {
  AnalysisOptions needs;
  needs.minimum_rows = of.options.minimum_rows;
  std::vector<std::string> reasons;
  for (const auto& [name, group] : {std::pair{"base", pair.base}, {"candidate", pair.cand}}) {
    for (const std::string& reason : reasons_against_survivors(*group, needs)) {
      reasons.push_back(fmt::format("{}: {}", name, reason));
    }
  }
  for (const auto& [name, group] : {std::pair{"base", pair.base}, {"candidate", pair.cand}}) {
    if (!of.in_one_run && shared_gpu(*group)) {
      reasons.push_back(
          fmt::format("{}: another program computed on the GPU (gpu_shared), which the other run "
                      "doesn't share",
                      name));
    }
    if (!has_moments(*group)) {
      reasons.push_back(fmt::format(
          "{}: its latencies are too large or too small for a mean and a variance", name));
    }
  }
  if (reasons.empty() && prompts_matter && !same_prompts(*pair.base, *pair.cand)) {
    reasons.emplace_back("the bundles answered different prompts");
  }
  return join(reasons, "; ");
}

// True if what it lost is why it can't be compared.
bool kept_too_few(const Group& group, const CompareOptions& options) {
  return group.failed() > 0 && std::ssize(group.warm) < options.minimum_rows;
}

// Notes changes of a cell besides its speed.
void note_changes(const CellPair& pair, Comparison& out) {
  if (pair.cand->parity_failed && !pair.base->parity_failed) {
    out.broken.push_back({pair.stratum, pair.arm, "its output no longer passes parity"});
  }
  const Execution before = pair.base->execution();
  const Execution after = pair.cand->execution();
  if (before != after) {
    out.notes.push_back({pair.stratum, pair.arm,
                         fmt::format("ran {} in the base, {} in the candidate",
                                     execution_name(before), execution_name(after))});
  }
}

}  // namespace

Pairing pair_cells(const Samples& base, const Samples& cand) {
  Pairing pairing{united(base.strata, cand.strata), united(base.arms, cand.arms), {}};
  const auto left = by_place(base);
  const auto right = by_place(cand);
  for (size_t stratum = 0; stratum < pairing.strata.size(); ++stratum) {
    for (const std::string& arm : pairing.arms) {
      const auto l = left.find({pairing.strata[stratum], arm});
      const auto r = right.find({pairing.strata[stratum], arm});
      if (l == left.end() && r == right.end()) continue;
      pairing.pairs.push_back({stratum, arm, l == left.end() ? nullptr : l->second,
                               r == right.end() ? nullptr : r->second});
    }
  }
  return pairing;
}

std::vector<CellPair> sort_out(const std::vector<CellPair>& pairs, bool prompts_matter,
                               Comparison& out) {
  std::vector<CellPair> comparable;
  for (const CellPair& pair : pairs) {
    if (pair.cand == nullptr) {
      out.missing.push_back({pair.stratum, pair.arm, "the candidate has no rows of it"});
    } else if (pair.base == nullptr) {
      out.added.push_back({pair.stratum, pair.arm, "the base has no rows of it"});
    } else {
      note_changes(pair, out);
      std::string reason = why_not(pair, out, prompts_matter);
      if (kept_too_few(*pair.cand, out.options) && !kept_too_few(*pair.base, out.options)) {
        out.lost.push_back({pair.stratum, pair.arm, reason});
      }
      if (!reason.empty()) {
        out.not_comparable.push_back({pair.stratum, pair.arm, std::move(reason)});
        continue;
      }
      comparable.push_back(pair);
    }
  }
  return comparable;
}

}  // namespace assay
