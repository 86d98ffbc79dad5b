// Calls that ran eager, counted and told.
#include "analysis/rows/eager_rows.h"

#include <algorithm>

#include "analysis/rows/samples.h"
#include "artifact/row.h"
#include "base/text/text.h"

namespace assay {

EagerRows eager_rows(const Group& group) {
  EagerRows eager;
  eager.timed = std::ssize(group.warm);
  if (!group.warm.empty() && decodes(group.warm.front()->phase)) {
    eager.decode_steps = group.warm.front()->new_tokens;
    eager.prefills = group.warm.front()->phase == Phase::kE2eKv;
  }
  for (const Row* row : group.warm) {
    if (!group.ran_eager(*row)) continue;
    ++eager.rows;
    const auto& calls = row->counts[Counter::kFallbacks];
    if (!calls) continue;
    eager.fewest_calls = eager.most_calls == 0 ? *calls : std::min(eager.fewest_calls, *calls);
    eager.most_calls = std::max(eager.most_calls, *calls);
  }
  return eager;
}

std::string eager_calls_text(const EagerRows& eager) {
  std::string text = eager.fewest_calls == eager.most_calls
                         ? std::to_string(eager.most_calls)
                         : fmt::format("{} to {}", eager.fewest_calls, eager.most_calls);
  text += " a row";
  if (eager.decode_steps > 0) {
    text += fmt::format(", of {}{}", eager.prefills ? "a prefill and " : "",
                        counted(eager.decode_steps, "step"));
  }
  return text;
}

std::string shortfall_text(Execution execution, const EagerRows& eager) {
  switch (execution) {
    case Execution::kEager:
    case Execution::kCompiled:
      return "";
    case Execution::kPartly:
    case Execution::kFellBack:
      if (eager.most_calls > 0) {
        return fmt::format("calls ran eager in {} of {}", eager.rows,
                           counted(eager.timed, "timed row"));
      }
      return execution == Execution::kPartly ? "some of its calls ran eager"
                                             : "its worker says that it ran eager";
    case Execution::kOtherMode:
      return "ran in another mode";
    case Execution::kLabelOnly:
      return "is compiled by its label alone";
    case Execution::kUnproven:
      return "nothing proves that it ran compiled";
  }
  return "";
}

std::string unearned_text(Execution execution, const EagerRows& eager) {
  const std::string shortfall = shortfall_text(execution, eager);
  return shortfall.empty() ? "" : "requested a compiler, but " + shortfall;
}

}  // namespace assay
