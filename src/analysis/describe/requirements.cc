// Each criterion is a scope (which cells it is about) and a check of one cell.
#include "analysis/describe/requirements.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>

#include "base/records/backend_traits.h"
#include "base/records/lenient_json.h"
#include "base/text/counts.h"

namespace assay {
namespace {

// Fault of a cell, in words; empty: none.
using Check = std::function<std::string(const Group&)>;
using Scope = std::function<bool(const Group&)>;

bool has_entries(const Json& value) {
  return value.is_array() && !value.empty();
}

class Judge {
 public:
  Judge(const Bundle& bundle, const Samples& samples, const Json& wanted)
      : bundle_(bundle), samples_(samples), wanted_(wanted) {}

  Requirements run() {
    flag("cuda", "every arm computes on the processor", may_take_gpu(), cuda());
    at_least_triton();
    flag("compiler_real", "no arm requests compilation", compiled(), compiler_real());
    most_graph_breaks();
    flag("parity", "there is no arm beside the baseline", beside_baseline(), parity());
    flag("logit_stats", "there is no arm beside the baseline", beside_baseline(), logit_stats());
    flag("deterministic", "the run has no rows", all(), deterministic());
    decide();
    return std::move(result_);
  }

 private:
  void flag(const char* name, const char* nothing, const Scope& scope, const Check& check) {
    if (member(wanted_, name) == Json(true)) judge(name, "true", nothing, scope, check);
  }

  void at_least_triton() {
    const auto least = whole_member(wanted_, "triton");
    if (!least) return;
    judge("triton", fmt::format(">= {}", *least), "no arm generates code for a GPU",
          generates_for_gpu(), triton(*least));
  }

  void most_graph_breaks() {
    const auto most = whole_member(wanted_, "graph_breaks");
    if (!most) return;
    judge("graph_breaks", fmt::format("<= {}", *most), "no arm requests compilation", compiled(),
          graph_breaks(*most));
  }

  void judge(std::string name, std::string expected, const char* nothing, const Scope& scope,
             const Check& check) {
    Criterion criterion{.name = std::move(name), .expected = std::move(expected), .reason = ""};
    size_t cells = 0;
    size_t failed = 0;
    std::string first;
    for (const Group& group : samples_.groups) {
      if (!scope(group)) continue;
      ++cells;
      const std::string problem = group.timed.empty() ? lost(group) : check(group);
      if (problem.empty()) continue;
      if (failed++ == 0) first = fmt::format("{}: {}", group.rows.front()->cell_id, problem);
    }
    if (cells == 0) {
      criterion.reason = nothing;
    } else if (failed == 0) {
      criterion.status = Criterion::Status::kMet;
      criterion.reason = fmt::format("it holds in {} of {}", cells, counted(cells, "cell"));
    } else {
      criterion.status = Criterion::Status::kNotMet;
      criterion.reason =
          fmt::format("it does not hold in {} of {}; {}", failed, counted(cells, "cell"), first);
    }
    result_.criteria.push_back(std::move(criterion));
  }

  void decide() {
    const auto is = [](Criterion::Status status) {
      return [status](const Criterion& one) { return one.status == status; };
    };
    if (std::ranges::any_of(result_.criteria, is(Criterion::Status::kNotMet))) {
      result_.verdict = Requirements::Verdict::kFailed;
    } else if (bundle_.complete &&
               std::ranges::all_of(result_.criteria, is(Criterion::Status::kMet))) {
      result_.verdict = Requirements::Verdict::kPassed;
    }
  }

  const Json& record(const Group& group) const {
    static const Json kNone;
    const auto found = bundle_.parity.find(group.rows.front()->cell_id);
    return found == bundle_.parity.end() ? kNone : found->second;
  }
  // The option as the study asked for it.
  static std::string option(const Group& group, const char* name) {
    return group.evidence ? text_member(group.evidence->requested.options, name) : "";
  }

  static std::string lost(const Group& group) {
    return fmt::format("no row is ok ({})", group.rows.front()->error_class.str());
  }

  static Scope all() {
    return [](const Group&) { return true; };
  }
  static Scope beside_baseline() {
    return [](const Group& group) { return group.arm != 0; };
  }
  static Scope compiled() {
    return [](const Group& group) {
      return group.wants_compiler && group.rows.front()->compile_mode.str() != "manual-cudagraph";
    };
  }
  // An arm that asks for the processor by name can't show anything about a GPU.
  static Scope may_take_gpu() {
    return [](const Group& group) {
      return backend_traits(group.rows.front()->backend.str()).takes_gpu_unasked &&
             option(group, "device") != "cpu";
    };
  }
  static Scope generates_for_gpu() {
    return [](const Group& group) {
      const std::string generator = option(group, "torch_backend");
      return may_take_gpu()(group) && compiled()(group) &&
             (generator.empty() || generator == "inductor") && group.report().device != "cpu";
    };
  }

  static Check cuda() {
    return [](const Group& group) -> std::string {
      const std::string& device = group.report().device;
      if (device.starts_with("cuda")) return "";
      return fmt::format("the arm computed on {}", device.empty() ? "an unknown device" : device);
    };
  }
  static Check triton(int64_t least) {
    return [least](const Group& group) -> std::string {
      const std::string& version = group.report().triton_version;
      if (version.empty()) return "the worker found no Triton";
      if (std::atoll(version.c_str()) >= least) return "";
      return fmt::format("found Triton {}", version);
    };
  }
  static Check compiler_real() {
    return [](const Group& group) -> std::string {
      const Execution execution = group.execution();
      if (execution == Execution::kCompiled) return "";
      return fmt::format("found \"{}\"", execution_name(execution));
    };
  }
  static Check graph_breaks(int64_t most) {
    return [most](const Group& group) -> std::string {
      const std::optional<int64_t> count =
          group.evidence ? group.evidence->most_counted(Counter::kGraphBreaks) : std::nullopt;
      if (!count) return "nobody counted graph breaks";
      if (*count <= most) return "";
      const std::string& why = group.report().first_graph_break;
      return fmt::format("found {}{}", *count, why.empty() ? "" : ": " + first_line(why));
    };
  }
  Check parity() const {
    return [this](const Group& group) -> std::string {
      if (!group.parity_checked) {
        return fmt::format("its output was not compared with the baseline's{}{}",
                           group.parity_unchecked_why.empty() ? "" : ": ",
                           group.parity_unchecked_why);
      }
      if (group.parity_failed && !group.parity_error.empty()) {
        return "no tokens came to hold against the baseline's: " + group.parity_error;
      }
      if (group.parity_failed) return "its tokens differ from the baseline's";
      const Json& compared = member(record(group), "compared_tokens");
      if (compared == Json(0)) return "no token was compared";
      return "";
    };
  }
  Check logit_stats() const {
    return [this](const Group& group) -> std::string {
      const Json& stats = member(record(group), "logit_stats");
      for (const size_t arm : {size_t{0}, group.arm}) {
        const std::string& name = samples_.arms[arm];
        if (!has_entries(member(stats, name.c_str()))) {
          return fmt::format("the logit statistics lack {}", name);
        }
      }
      return "";
    };
  }
  static Check deterministic() {
    return [](const Group& group) -> std::string {
      if (group.failed() > 0) {
        return fmt::format("{} of {} {} lost", group.failed(), counted(group.rows.size(), "row"),
                           group.failed() == 1 ? "is" : "are");
      }
      std::map<std::string, int64_t> rows;  // by prompt
      for (const Row* row : group.timed) {
        if (row->output_hash.empty()) return "a row has no output hash";
        ++rows[row->prompt_id];
      }
      const auto outputs = most_varied_outputs(group);
      if (outputs && outputs->rows.size() > 1) {
        return fmt::format("{} different outputs of one prompt", outputs->rows.size());
      }
      const bool once = std::ranges::any_of(rows, [](const auto& row) { return row.second < 2; });
      return once ? "each prompt has one row only, which shows nothing" : "";
    };
  }

  const Bundle& bundle_;
  const Samples& samples_;
  const Json& wanted_;
  Requirements result_;
};

}  // namespace

std::optional<Requirements> judge_requirements(const Bundle& bundle, const Samples& samples) {
  const Json& wanted = member(member(bundle.manifest, "study"), "require");
  if (!wanted.is_object() || wanted.empty()) return std::nullopt;
  return Judge(bundle, samples, wanted).run();
}

}  // namespace assay
