// Facts of a bundle, cell by cell.
#include "gates/facts.h"

#include <algorithm>

#include "analysis/compare/identity_axes.h"
#include "analysis/rows/summary.h"
#include "base/records/lenient_json.h"
#include "base/text/listed.h"
#include "base/text/text.h"
#include "crosscheck/crosscheck.h"
#include "gates/marked_facts.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

// The reason why the row's time isn't of its phase alone; empty: it is.
std::string mixing_of(const Row& row) {
  if (row.phase == Phase::kPrefill && row.new_tokens > 0) {
    return fmt::format("a row of prefill decodes {}", counted(row.new_tokens, "new token"));
  }
  if (row.phase == Phase::kKvDecode && row.ttft_ms) {
    return "a row of kv_decode has a time to the first token, so its time includes the prefill";
  }
  if (decodes(row.phase) && row.new_tokens == 0) {
    return fmt::format("a row of {} decodes no token", phase_name(row.phase));
  }
  return "";
}

// Looks a text up only where it isn't the one before: rows of a cell mostly agree.
class Stating {
 public:
  explicit Stating(std::set<std::string>& to) : to_(to) {}
  void add(const SharedText& text) {
    if (first_ || !(text == last_)) to_.insert(text.str());
    first_ = false;
    last_ = text;
  }

 private:
  std::set<std::string>& to_;
  SharedText last_;
  bool first_ = true;
};

void read_rows(const Group& group, GatedCell& cell) {
  Stating cache(cell.cache);
  Stating mode(cell.compile_mode);
  Stating dynamic(cell.dynamic);
  Stating quantization(cell.quantization);
  for (const Row* row : group.rows) {
    cache.add(row->cache);
    mode.add(row->compile_mode);
    dynamic.add(row->dynamic);
    quantization.add(row->quantization);
    if (std::string why = mixing_of(*row); !why.empty()) {
      if (cell.mixing_rows.empty()) cell.mixing = std::move(why);
      cell.mixing_rows.push_back(row->repetition);
    }
  }
  for (const Row* row : group.timed) {
    if (group.ran_eager(*row)) cell.eager_rows.push_back(row->repetition);
  }
}

void read_evidence(const Group& group, const Evidence& evidence, GatedCell& cell) {
  cell.has_evidence = true;
  if (evidence.worker) {
    cell.worker = evidence.worker->name;
    if (!evidence.worker->version.empty()) cell.worker += " " + evidence.worker->version;
    cell.worker_dtype = evidence.worker->dtype;
  }
  std::set<int64_t> known;
  for (const EvidenceProcess& process : evidence.processes) known.insert(process.process);
  std::set<int64_t> unknown;
  for (const Row* row : group.timed) {
    if (row->process && !known.contains(*row->process)) unknown.insert(*row->process);
  }
  cell.unknown_processes.assign(unknown.begin(), unknown.end());
  if (!evidence.reported) return;
  const Json& whole = evidence.reported->whole;
  cell.reported = whole.is_object() && !whole.empty();
  cell.toolchain = member(whole, "toolchain");
  cell.actual = member(whole, "actual");
  if (!evidence.reported->reasons.empty()) {
    cell.reason = first_line(evidence.reported->reasons.front());
  }
}

GatedCell cell_of(const Samples& samples, const Group& group) {
  GatedCell cell;
  const Row& first = *group.rows.front();
  cell.id = first.cell_id.str();
  cell.stratum = group.stratum;
  cell.phase = first.phase;
  cell.arm = samples.arms[group.arm];
  cell.backend = first.backend.str();
  cell.rows = std::ssize(group.rows);
  cell.timed = std::ssize(group.timed);
  cell.wants_compiler = group.wants_compiler;
  cell.execution = group.execution();
  read_rows(group, cell);
  if (group.evidence != nullptr) read_evidence(group, *group.evidence, cell);
  return cell;
}

// True if the findings contrast the claim's arms: one is their baseline, or it names but one.
bool is_contrasted(const SpeedClaim& claim, const StudySummary& study) {
  return claim.relation == ClaimRelation::kFastest || claim.arm == study.baseline ||
         claim.other == study.baseline;
}

bool has_arm(const StudySummary& study, const std::string& arm) {
  return std::ranges::find(study.arms, arm) != study.arms.end();
}

}  // namespace

const Findings& BundleFacts::findings_for(const SpeedClaim& claim) const {
  return of_claim && !is_contrasted(claim, findings.study) ? *of_claim : findings;
}

Result<BundleFacts> facts_of(Bundle bundle, const Samples& samples, BundleFindings findings,
                             std::vector<VerifyProblem> problems,
                             const std::optional<SpeedClaim>& claim, ThreadPool* pool) {
  BundleFacts facts;
  facts.name = bundle.folder.string();
  facts.findings = std::move(findings.findings);
  facts.findings_from_file = findings.from_file;
  facts.why_anew = std::move(findings.why_anew);
  facts.problems = std::move(problems);
  facts.rows_alone = bundle.rows_alone;
  const StudySummary& study = facts.findings.study;
  for (const Group& group : samples.groups) facts.cells.push_back(cell_of(samples, group));
  facts.bundle = identity_part(bundle);
  if (claim && !is_contrasted(*claim, study) && has_arm(study, claim->arm) &&
      has_arm(study, claim->other)) {
    ASSAY_TRY(facts.of_claim,
              findings_against(std::move(bundle), claim->other, claim->phase, pool));
  }
  return facts;
}

Result<BundleFacts> read_facts(const std::string& name, const std::optional<SpeedClaim>& claim,
                               ThreadPool* pool) {
  RunMark mark;
  return read_facts(name, claim, pool, mark);
}

Result<BundleFacts> read_facts(const std::string& name, const std::optional<SpeedClaim>& claim,
                               ThreadPool* pool, RunMark& mark) {
  std::vector<CommittedUnit> units;
  ASSAY_TRY(Bundle bundle, read_bundle_or_rows(name, units));
  mark = run_mark(bundle);
  std::vector<VerifyProblem> problems;
  if (!bundle.rows_alone) {
    ASSAY_TRY(problems, check_bundle(bundle, units));
  }
  ASSAY_TRY(const Samples samples, group_rows(bundle, summarize(bundle).arms));
  ASSAY_TRY(BundleFindings findings, findings_of_bundle(bundle, samples, pool));
  ASSAY_TRY(BundleFacts facts, facts_of(std::move(bundle), samples, std::move(findings),
                                        std::move(problems), claim, pool));
  facts.name = name;
  return facts;
}

std::string rows_text(const GatedCell& cell, const std::vector<int64_t>& repetitions) {
  constexpr size_t kMostRows = 8;
  std::vector<std::string> numbers;
  for (const int64_t repetition : repetitions) numbers.push_back(std::to_string(repetition));
  return fmt::format("{}/metrics.csv: cell {}, repetition{} {}", phase_name(cell.phase), cell.id,
                     repetitions.size() == 1 ? "" : "s", first_listed(numbers, kMostRows));
}

std::string evidence_member(const GatedCell& cell, std::string_view member_name) {
  return fmt::format("cells/{}/evidence.json: {}", cell.id, member_name);
}

}  // namespace assay
