// Findings as JSON and back: analysis/findings.json of a bundle. Absent values are null.
#include <algorithm>
#include <set>

#include "analysis/findings/bounds.h"
#include "analysis/findings/findings_text.h"
#include "analysis/findings/records.h"
#include "base/files/folder.h"
#include "base/records/record_text.h"

namespace assay {
namespace {

constexpr const char* kFile = "analysis/findings.json";

// The first member that contradicts another, so that no report can be made though every member is
// of its type.
Fit contradiction(const Findings& findings) {
  for (const auto& [name, contrasts, of_strata] :
       {std::tuple("contrasts", &findings.contrasts, true),
        std::tuple("combined", &findings.combined, false)}) {
    for (size_t i = 0; i < contrasts->size(); ++i) {
      if ((*contrasts)[i].stratum.has_value() == of_strata) continue;
      return within(name, within(i, Misfit{"", of_strata ? "a stratum's members" : "a phase alone",
                                           of_strata ? "a phase alone" : "a stratum's members"}));
    }
  }
  std::set<std::pair<size_t, std::string>> counted;
  for (const OutcomeCounts& outcome : findings.outcomes) {
    if (outcome.stratum) counted.emplace(*outcome.stratum, outcome.arm);
  }
  for (size_t i = 0; i < findings.latencies.size(); ++i) {
    const Latency& latency = findings.latencies[i];
    if (counted.contains({latency.stratum, latency.arm})) continue;
    return within("latencies", within(i, Misfit{"", "an entry of \"outcomes\" beside it", "none"}));
  }
  for (size_t i = 0; i < findings.decisions.size(); ++i) {
    const Decision& decision = findings.decisions[i];
    if (decision.kind != Decision::Kind::kBest || decision.runner_up) continue;
    return within("decisions", within(i, Misfit{"runner_up", "an arm", "null"}));
  }
  if (findings.requirements) {
    const bool failed = findings.requirements->verdict == Requirements::Verdict::kFailed;
    const bool broken = std::ranges::any_of(
        findings.requirements->criteria,
        [](const Criterion& one) { return one.status == Criterion::Status::kNotMet; });
    if (failed != broken) {
      return within("requirements",
                    Misfit{"verdict",
                           broken ? "failed, since a criterion isn't met"
                                  : "another one, since no criterion is broken",
                           std::string(requirements_verdict_name(findings.requirements->verdict))});
    }
  }
  return std::nullopt;
}

}  // namespace

std::string_view contrast_unit_name(ContrastUnit unit) {
  return word_of(unit, {"rows", "repetitions", "processes"});
}

std::string_view block_state_name(BlockState state) {
  return word_of(state,
                 {"whole_blocks", "several_repetitions", "not_side_by_side", "order_not_recorded"});
}

std::string_view verdict_name(Verdict verdict) {
  return word_of(verdict, {"faster", "slower", "equivalent", "inconclusive"});
}

std::string_view decision_name(Decision::Kind kind) {
  return word_of(kind, {"best", "no_difference", "ahead", "undecided", "only_one", "none", "void"});
}

std::string_view execution_name(Execution execution) {
  return word_of(execution, {"eager", "compiled", "partly eager", "fell back", "another mode",
                             "label-only", "unproven"});
}

Json findings_to_json(const Findings& findings) {
  Json json = Json::object();  // one that grows copies its members, deeply
  json.get_ref<Json::object_t&>().reserve(2 + record::described_count<Findings>());
  json["schema_version"] = kFindingsSchemaVersion;
  record::write_entries(findings, Record<Findings>::kMembers, json, StrataContext{findings.strata});
  return json;
}

std::string findings_text(const Findings& findings) {
  JsonText out(JsonText::Layout::kIndented);
  out.begin_object();
  out.member("schema_version");
  out.number(int64_t{kFindingsSchemaVersion});
  record::append_entries(findings, Record<Findings>::kMembers, out, StrataContext{findings.strata});
  out.end();
  return out.take();
}

Result<Findings> findings_from_json(const Json& json, std::string_view object) {
  if (!json.is_object()) return misfit_error(object, *misfit("an object", json));
  ASSAY_TRY(const int64_t version, json_int(json, "schema_version", object));
  if (version != kFindingsSchemaVersion) {
    return bad_input("{}: expected findings of schema version {}, found version {}{}", object,
                     kFindingsSchemaVersion, version,
                     version < kFindingsSchemaVersion ? " (`assay analyze` makes them anew)" : "");
  }
  Findings findings;
  const StrataContext context{findings.strata};
  Fit fit = record::read_object(json, findings, context);
  if (!fit) fit = out_of_bounds(json);
  if (!fit) fit = contradiction(findings);
  if (!fit) fit = figures_at_odds(findings);
  if (fit) return misfit_error(object, *fit);
  const bool imported = std::ranges::any_of(
      findings.identity, [](const auto& line) { return line.first == "imported_from"; });
  if (!imported) name_prompts(findings.prompts, findings.strata);
  return findings;
}

Result<Findings> read_findings(const std::filesystem::path& path) {
  std::error_code unknown;  // whoever opens it says so
  if (!std::filesystem::is_directory(path, unknown)) {
    ASSAY_TRY(const Json json, read_json_file(path));
    return findings_from_json(json, path.string());
  }
  ASSAY_TRY(const Folder bundle, Folder::open(path));
  ASSAY_TRY(const std::string text, bundle.read(kFile));
  const std::string name = bundle.path_of(kFile).string();
  ASSAY_TRY(const Json json, parse_json(text, name));
  return findings_from_json(json, name);
}

}  // namespace assay
