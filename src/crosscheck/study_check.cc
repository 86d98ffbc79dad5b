// The study as its file, the manifest and the rows have it.
#include <algorithm>
#include <optional>

#include "artifact/manifest.h"
#include "base/files/hash.h"
#include "base/records/lenient_json.h"
#include "base/text/text.h"
#include "crosscheck/checks.h"
#include "study/filter.h"
#include "study/plan.h"
#include "study/prompt_index.h"
#include "study/sides.h"

namespace assay::crosscheck {
namespace {

// JSON behind lines of comments, as an import leaves it.
Result<Json> commented_json(std::string_view text) {
  while (text.starts_with('#')) {
    const size_t end = text.find('\n');
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return parse_json(text, kStudyName);
}

void check_import(const Checked& checked, Problems& problems) {
  const Json& manifest = checked.bundle.manifest;
  const auto plan = commented_json(checked.bundle.study_yaml);
  if (!plan) {
    problems.add(kStudyName, "expected the JSON of an import, found " + plan.error().message);
    return;
  }
  problems.hold(kStudyName, "an import from", text_member(manifest["identity"], "imported_from"),
                text_member(*plan, "imported"));
  if (checked.schema_version < kKnownVersion) return;
  problems.hold(kManifestName, "plan_sha256 of study.yaml", sha256_hex(to_json_text(*plan)),
                text_member(manifest, "plan_sha256"));
  if (member(*plan, "study") != member(manifest, "study")) {
    problems.add(kManifestName, "expected the study of study.yaml, found another");
  }
}

std::vector<std::string> texts_of(const Json& list) {
  std::vector<std::string> texts;
  for (const Json& one : list) {
    if (one.is_string()) texts.push_back(one.get<std::string>());
  }
  return texts;
}

// Takes settings that the run chose itself: processes, and options from a command's output.
void take_settled(const Json& said, Study& study) {
  if (!study.processes_given) {
    study.processes = whole_member(said, "processes").value_or(study.processes);
  }
  for (const Json& arm : member(said, "arms")) {
    const auto own = std::ranges::find(study.arms, text_member(arm, "name"), &StudyArm::name);
    if (own != study.arms.end() && member(arm, "options").is_object()) {
      own->options = member(arm, "options");
    }
  }
}

// The study that was run, from its file and the manifest's settled values.
Result<Study> study_of(const Bundle& bundle) {
  const Json& said = member(bundle.manifest, "study");
  ASSAY_TRY(Study study, parse_study(bundle.study_yaml, kStudyName));
  const std::vector<std::string> only = texts_of(member(bundle.environment, "only"));
  ASSAY_CHECK(keep_only(study, only));
  if (const Json& sides = member(said, "sides"); sides.is_object()) {
    ASSAY_TRY(study, two_sided(std::move(study),
                               {text_member(sides, "base"), text_member(sides, "cand")}));
  }
  take_settled(said, study);
  return study;
}

void check_said(const Study& study, const Json& said, Problems& problems) {
  const auto hold = [&](const char* name, std::string_view expected) {
    problems.hold(kManifestName, fmt::format("study.{}", name), expected,
                  shown_text(member(said, name)));
  };
  hold("name", study.name);
  hold("baseline", study.baseline);
  hold("order", run_order_name(study.order));
  hold("seed", fmt::format("{}", study.seed));
  hold("warmup", fmt::format("{}", study.warmup));
  hold("repetitions", fmt::format("{}", study.repetitions));
  hold("processes", fmt::format("{}", study.processes));
  std::vector<std::string> expected;
  std::vector<std::string> found;
  const auto words = [](const auto& name, const auto& backend, const auto& mode, const auto& cache,
                        const auto& dynamic) {
    return fmt::format("{} ({} {} {} {})", name, backend, mode, cache, dynamic);
  };
  for (const StudyArm& arm : study.arms) {
    expected.push_back(words(arm.name, arm.backend, arm.mode, arm.cache, arm.dynamic));
  }
  for (const Json& arm : member(said, "arms")) {
    found.push_back(words(text_member(arm, "name"), text_member(arm, "backend"),
                          text_member(arm, "mode"), text_member(arm, "cache"),
                          text_member(arm, "dynamic")));
  }
  if (expected != found) {
    problems.add(kManifestName,
                 fmt::format("expected the arms {}, found {}", quoted_excerpt(join(expected, ", ")),
                             quoted_excerpt(join(found, ", "))));
  }
}

// Rows, unit by unit, as the plan has them.
class PlannedRows {
 public:
  PlannedRows(const Study& study, const Plan& plan, Problems& problems)
      : study_(study), plan_(plan), problems_(problems), extra_(plan.cells.size()) {}

  void check(const Bundle& bundle, std::span<const CommittedUnit> units) {
    size_t row = 0;
    int64_t last = -1;
    for (const CommittedUnit& unit : units) {
      const auto end = static_cast<size_t>(std::max<int64_t>(0, unit.rows_after));
      if (unit.index <= last || unit.index >= std::ssize(plan_.units) || end > bundle.rows.size()) {
        problems_.add("commits.jsonl",
                      fmt::format("expected units of the plan in their order, found {} behind {}",
                                  unit.index, last));
        return;
      }
      last = unit.index;
      check_unit(plan_.units[static_cast<size_t>(unit.index)],
                 std::span(bundle.rows).subspan(row, end - row), static_cast<int64_t>(row));
      row = end;
    }
  }

 private:
  void check_unit(const Unit& unit, std::span<const Row> rows, int64_t place) {
    const int64_t extra = std::ssize(rows) - unit.rows();
    const bool may_add = unit.last_of_round && study_.stopping && !study_.stopping->decide;
    if (extra < 0 || (extra > 0 && !may_add)) {
      problems_.add("commits.jsonl",
                    fmt::format("expected {} of unit {} as planned, found {}",
                                counted(unit.rows(), "row"), unit.index, rows.size()));
    }
    const int64_t first = unit.first_repetition + extra_[unit.cell];
    for (int64_t i = 0; i < std::ssize(rows); ++i) {
      const int64_t repetition =
          i < unit.warmups ? unit.first_warmup + i : first + i - unit.warmups;
      check_row(unit, rows[static_cast<size_t>(i)], repetition, place + i);
    }
    extra_[unit.cell] += std::max<int64_t>(0, extra);
  }

  void check_row(const Unit& unit, const Row& row, int64_t repetition, int64_t place) {
    const Cell& cell = plan_.cells[unit.cell];
    const StudyArm& arm = study_.arms[cell.arm];
    const auto text = [&](const char* column, std::string_view expected, std::string_view found) {
      if (expected != found) problems_.hold(row_object(row), column, expected, found);
    };
    const auto count = [&](const char* column, int64_t expected, int64_t found) {
      if (expected == found) return;
      problems_.add(row_object(row),
                    fmt::format("expected {} {} as planned, found {}", column, expected, found));
    };
    text("cell_id", cell.id, row.cell_id.str());
    text("arm", arm.name, row.arm.str());
    text("backend", arm.backend, row.backend.str());
    text("cache", arm.cache, row.cache.str());
    text("compile_mode", arm.mode, row.compile_mode.str());
    text("dynamic", arm.dynamic, row.dynamic.str());
    text("model", study_.models[cell.model].name, row.model.str());
    text("phase", phase_name(cell.phase), phase_name(row.phase));
    text("padding", padding_scope_name(study_.padding_scope), row.padding.str());
    text("scenario", study_.scenarios[cell.scenario].name, row.scenario.str());
    count("batch", cell.batch, row.batch);
    count("new_tokens", cell.new_tokens, row.new_tokens);
    count("repetition", repetition, row.repetition);
    count("block", unit.block, row.block);
    count("order_index", place, row.order_index);
    check_prompt(study_.scenarios[cell.scenario], row, count);
  }

  template <typename Count>
  void check_prompt(const StudyScenario& scenario, const Row& row, const Count& count) {
    const size_t prompts = scenario.text.empty() ? scenario.prompt_tokens.size() : 1;
    if (prompts == 0) return;
    const size_t prompt = prompt_index(row.repetition, prompts);
    if (row.prompt_id.str() != std::to_string(prompt)) {
      problems_.hold(row_object(row), "prompt_id", std::to_string(prompt), row.prompt_id.str());
    }
    if (scenario.text.empty()) {
      count("prompt_tokens", scenario.prompt_tokens[prompt], row.prompt_tokens);
    }
    if (study_.padding_scope == PaddingScope::kNone) {
      count("padded_tokens", row.prompt_tokens, row.padded_tokens);
    } else if (row.padded_tokens < row.prompt_tokens ||
               row.padded_tokens % study_.padding_multiple_of != 0) {
      problems_.add(row_object(row),
                    fmt::format("expected padded_tokens from {} on, a multiple of {}, found {}",
                                row.prompt_tokens, study_.padding_multiple_of, row.padded_tokens));
    }
  }

  const Study& study_;
  const Plan& plan_;
  Problems& problems_;
  std::vector<int64_t> extra_;  // by cell: rows that optional stopping has added so far
};

}  // namespace

void check_study(const Checked& checked, Problems& problems) {
  const Bundle& bundle = checked.bundle;
  if (checked.imported) return check_import(checked, problems);
  if (!checked.is_known_run()) return;
  const auto study = study_of(bundle);
  if (!study) {
    problems.add(kStudyName, "expected the study that was run, found " + study.error().message);
    return;
  }
  check_said(*study, member(bundle.manifest, "study"), problems);
  const Plan plan = make_plan(*study);
  problems.hold(kManifestName, "plan_sha256 of the study's plan",
                sha256_hex(to_json_text(plan_to_json(*study, plan))),
                text_member(bundle.manifest, "plan_sha256"));
  PlannedRows(*study, plan, problems).check(bundle, checked.units);
}

}  // namespace assay::crosscheck
