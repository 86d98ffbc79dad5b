// Runs to cells and rows.
#include "import/import_rows.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "artifact/row_rule.h"
#include "base/add_once.h"
#include "base/text/text.h"
#include "import/source_text.h"
#include "load/load_run.h"

namespace assay {
namespace {

using Field = ImportField;

// Fields without which an arm's identity, or the condition of its rows, is incomplete.
constexpr std::array kWantedFields = {
    Field::kModel,         Field::kDtype,          Field::kQuantization, Field::kCache,
    Field::kCompileMode,   Field::kDynamic,        Field::kPadding,      Field::kPhase,
    Field::kBatch,         Field::kPromptTokens,   Field::kNewTokens,    Field::kDevice,
    Field::kCodeGenerator, Field::kFrameworkBuild, Field::kCodeSha};

bool is_wanted(const RunFacts& facts, Field field) {
  if (field == Field::kNewTokens) return facts.phase() != Phase::kPrefill;
  if (field == Field::kDynamic) return facts.text(Field::kCompileMode) != "eager";
  const std::string& quantization = facts.text(Field::kQuantization);
  if (field == Field::kDtype) return quantization.empty() || quantization == "none";
  return true;
}

std::string folder_part(std::string_view name) {
  constexpr size_t kLongestPart = 40;
  std::string part(name.substr(0, kLongestPart));
  for (char& c : part) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!letter && !(c >= '0' && c <= '9') && c != '.' && c != '_' && c != '-') c = '_';
  }
  return part;
}

// Tokens that a row must have produced.
int64_t tokens_wanted(const Row& row) {
  return row.phase == Phase::kPrefill ? row.batch : row.batch * row.new_tokens;
}

class RowMaker {
 public:
  RowMaker(const Imported& imported, FirstSamples first)
      : imported_(imported), first_(first), names_(name_runs(imported)) {
    for (const ImportedRun& run : imported.runs) {
      longest_ = std::max(longest_, static_cast<int64_t>(run.samples.size()));
      count_produced(run);
    }
  }

  Result<ImportedRows> make() {
    for (size_t r = 0; r < imported_.runs.size(); ++r) {
      ASSAY_CHECK(add_run(imported_.runs[r], names_[r]));
    }
    if (made_.rows.empty()) return bad_input("import: expected samples, found none in the files");
    return std::move(made_);
  }

 private:
  using CellKey = std::tuple<std::string, std::string, Phase, std::string, int64_t, int64_t>;

  Status add_run(const ImportedRun& run, const RunNames& names) {
    if (run.samples.empty()) {
      ++made_.empty_runs[names.arm];
      return {};
    }
    note_unknown(run, names.arm);
    std::set<size_t> cells;  // that the run has rows of
    for (size_t i = 0; i < run.samples.size(); ++i) {
      if (static_cast<int64_t>(made_.rows.size()) >= kMostImportSamples) {
        return bad_input("import: expected at most {} samples, found more", kMostImportSamples);
      }
      Row row = row_of(run, names, run.samples[i]);
      ASSAY_TRY(const size_t c, cell_of(run, names, row));
      if (cells.insert(c).second || run.own_processes) ++processes_[c];
      place(run, i, c, row);
      judge(run.samples[i], c, row);
      if (run.offered) add_requests(run, row);
      made_.rows.push_back(std::move(row));
    }
    return {};
  }

  void add_requests(const ImportedRun& run, Row& row) {
    if (const auto figures = load_run_figures(*run.offered, {}, run.sent))
      row.tokens_per_s = figures->tokens_per_s;
    made_.offered[row.scenario.str()] = *run.offered;
    for (const SentRequest& sent : run.sent)
      made_.requests.push_back({row.cell_id.str(), row.repetition, sent});
  }

  // Counts how often each number of tokens was produced, for runs that don't state the number asked
  // for.
  void count_produced(const ImportedRun& run) {
    if (run.facts.knows(Field::kNewTokens)) return;
    const int64_t batch = run.facts.count(Field::kBatch).value_or(1);
    for (const ImportedSample& sample : run.samples) {
      if (sample.tokens && *sample.tokens >= batch) ++produced_[run.facts][*sample.tokens / batch];
    }
  }

  // The number of tokens that calls under these conditions produced most often, else `other`: calls
  // that produced nothing get it, so that the losses are of the same stratum.
  int64_t usual_tokens(const RunFacts& facts, int64_t other) const {
    const auto found = produced_.find(facts);
    if (found == produced_.end()) return other;
    return std::ranges::max_element(found->second, {},
                                    [](const auto& number) { return number.second; })
        ->first;
  }

  // A condition that differs from call to call is known if each successful call states it.
  static bool states_itself(const ImportedRun& run, Field field) {
    const auto member = field == Field::kPromptTokens ? &ImportedSample::prompt_tokens
                                                      : &ImportedSample::new_tokens;
    if (field != Field::kPromptTokens && field != Field::kNewTokens) return false;
    return std::ranges::all_of(run.samples, [&](const ImportedSample& sample) {
      return sample.status != RowStatus::kOk || (sample.*member).has_value();
    });
  }

  void note_unknown(const ImportedRun& run, const std::string& arm) {
    add_once(made_.arms, arm);
    std::set<std::string>& unknown = made_.unknown[arm];
    for (const Field field : kWantedFields) {
      if (is_wanted(run.facts, field) && !run.facts.knows(field) && !states_itself(run, field)) {
        unknown.emplace(import_field_name(field));
      }
    }
    for (const std::string& name : run.unstated) unknown.insert("setting." + name);
  }

  void stand_in(const std::string& column, const std::string& value) {
    made_.stand_ins.try_emplace(column, value);
  }

  int64_t count_or(const RunFacts& facts, Field field, int64_t other) {
    if (const auto count = facts.count(field)) return *count;
    stand_in(std::string(import_field_name(field)), fmt::format("{}", other));
    return other;
  }

  // The number that the caller asked for; if the file doesn't say, the number produced. If the file
  // counts tokens at all, that is at least one for each sequence: none is too few.
  int64_t new_tokens_of(const RunFacts& facts, const ImportedSample& sample, const Row& row) {
    if (row.phase == Phase::kPrefill) return 0;
    if (sample.new_tokens) return *sample.new_tokens;
    if (const auto asked = facts.count(Field::kNewTokens)) return *asked;
    stand_in("new_tokens", "the number of tokens produced, or the usual number if none were");
    if (sample.tokens && *sample.tokens >= row.batch) return *sample.tokens / row.batch;
    return usual_tokens(facts, sample.tokens ? 1 : 0);
  }

  Row row_of(const ImportedRun& run, const RunNames& names, const ImportedSample& sample) {
    const RunFacts& facts = run.facts;
    Row row;
    row.backend =
        share(facts.knows(Field::kBackend) ? facts.text(Field::kBackend) : imported_.format);
    row.arm = share(names.arm);
    row.model = share(names.model);
    row.dtype = share(facts.text(Field::kDtype));
    const std::string& quantization = facts.text(Field::kQuantization);
    row.quantization = share(quantization == "none" ? "" : quantization);
    row.cache = share(facts.text(Field::kCache));
    row.compile_mode = share(facts.text(Field::kCompileMode));
    row.dynamic = share(facts.text(Field::kDynamic));
    if (!facts.knows(Field::kPadding)) stand_in("padding", "none");
    row.padding = share(facts.knows(Field::kPadding) ? facts.text(Field::kPadding) : "none");
    if (!facts.phase()) stand_in("phase", "e2e_kv");
    row.phase = facts.phase().value_or(Phase::kE2eKv);
    row.scenario = share(names.scenario);
    row.prompt_id = sample.prompt_id;
    row.batch = count_or(facts, Field::kBatch, 1);
    row.prompt_tokens =
        sample.prompt_tokens ? *sample.prompt_tokens : count_or(facts, Field::kPromptTokens, 0);
    row.padded_tokens = facts.count(Field::kPaddedTokens).value_or(row.prompt_tokens);
    row.new_tokens = new_tokens_of(facts, sample, row);
    return row;
  }

  Result<size_t> cell_of(const ImportedRun& run, const RunNames& names, Row& row) {
    const CellKey key{names.arm,          names.model, row.phase,
                      row.scenario.str(), row.batch,   row.new_tokens};
    const auto [at, fresh] = cells_.try_emplace(key, made_.cells.size());
    if (fresh) {
      if (made_.cells.size() >= kMostImportCells) {
        return bad_input(
            "import: expected at most {} conditions (arm, model, phase, scenario, "
            "batch, new tokens), found more",
            kMostImportCells);
      }
      made_.cells.push_back(make_cell(run, names, row));
      processes_.push_back(-1);
      repetitions_.push_back(0);
    }
    ImportedCell& cell = made_.cells[at->second];
    if (cell.means != run.means) {
      return bad_input(
          "{}: expected samples or means of one condition, found both for arm {} in {}", run.source,
          quoted_excerpt(names.arm), quoted_excerpt(row.scenario.str()));
    }
    row.cell_id = share(cell.id);
    row.compile_mode = share(cell.compile_mode);
    return at->second;
  }

  ImportedCell make_cell(const ImportedRun& run, const RunNames& names, const Row& row) {
    ImportedCell cell;
    cell.names = names;
    cell.id = fmt::format("c{:03}-{}-{}-{}-{}-b{}", made_.cells.size(), folder_part(names.arm),
                          folder_part(names.model), phase_name(row.phase),
                          folder_part(row.scenario.str()), row.batch);
    if (row.new_tokens > 0) cell.id += fmt::format("-n{}", row.new_tokens);
    cell.phase = row.phase;
    cell.backend = row.backend;
    cell.dtype = row.dtype;
    cell.quantization = row.quantization;
    cell.cache = row.cache;
    cell.compile_mode = row.compile_mode;
    cell.dynamic = row.dynamic;
    cell.means = run.means;
    judge_compiler(run.compiler, cell);
    return cell;
  }

  // No file that is imported proves a compiler. A name or a rule of the mapping that speaks of one
  // is a claim, even if the file states a mode.
  void judge_compiler(const std::optional<CompilerWord>& rule, ImportedCell& cell) const {
    const std::string stated = cell.compile_mode;
    const bool named = !imported_.arms_are_code &&
                       (names_a_compiler(cell.names.arm) || names_a_compiler(cell.backend));
    const bool unstated = stated.empty() || stated == "eager";
    if (unstated && (named || rule)) cell.compile_mode = "compiled";
    cell.named_compiled = stated.empty() && named;
    if (rule) {
      cell.compiler = *rule;
    } else if (stated == "eager" && named) {
      cell.compiler = {CompilerReal::kLabelOnly,
                       fmt::format("the name \"{}\" claims one, and the file says that the mode is "
                                   "eager",
                                   cell.names.arm)};
    } else if (stated == "eager") {
      cell.compiler = {CompilerReal::kNotApplicable, "the file says that the mode is eager"};
    } else if (named && stated.empty()) {
      cell.compiler.reason =
          fmt::format("only the name \"{}\" says so, and the file has no evidence of a compiler",
                      cell.names.arm);
    } else if (stated.empty()) {
      cell.compiler.reason = "the file doesn't say whether a compiler was asked for";
    } else {
      cell.compiler.reason =
          fmt::format("the file names the mode {} and has no evidence of a compiler", stated);
    }
  }

  // Each run is taken for a process of its cell, unless the tool starts one for each sample: its
  // samples share that process's conditions. Runs of one number in different cells have the same
  // repetitions, however long they are.
  void place(const ImportedRun& run, size_t i, size_t cell, Row& row) {
    const bool candidate = i == 0 && !run.means;
    const bool warmup = run.samples[i].cold;
    row.process = processes_[cell];
    row.repetition = run.own_processes ? processes_[cell]
                                       : processes_[cell] * longest_ + static_cast<int64_t>(i);
    row.block = repetitions_[cell]++;
    row.order_index = static_cast<int64_t>(made_.rows.size());
    row.cold = warmup || (candidate && (first_ == FirstSamples::kCold ||
                                        (first_ == FirstSamples::kByFile && !run.warmed_up)));
    made_.cold += row.cold ? 1 : 0;
    made_.means += run.means ? 1 : 0;
  }

  void judge(const ImportedSample& sample, size_t cell, Row& row) {
    row.status = sample.status;
    row.error_class = sample.error_class;
    static_cast<Measured&>(row) = sample;
    if (row.phase != Phase::kE2eKv && row.phase != Phase::kLoad) row.ttft_ms.reset();
    row.started_at_ns = sample.started_at_ns.value_or(0);
    put_produced(sample, row);
    if (row.status == RowStatus::kOk) mark_false_success(row, {});
    if (row.status == RowStatus::kOk) {
      if (*row.tokens > 0) {
        row.tokens_per_s = static_cast<double>(*row.tokens) / *row.latency_ms * 1e3;
      }
      return;
    }
    if (row.error_class.empty()) row.error_class = "unknown";
    keep_failure(sample, row, made_.cells[cell]);
  }

  // A prefill's tokens are the first of each sequence, even if the file counts others.
  void put_produced(const ImportedSample& sample, Row& row) {
    if (sample.tokens && row.phase != Phase::kPrefill) {
      row.tokens = *sample.tokens;
    } else if (row.status == RowStatus::kOk) {
      row.tokens = tokens_wanted(row);
      if (row.phase == Phase::kPrefill) return;
      stand_in("tokens", "the number of tokens requested");
      made_.unknown[row.arm].insert("tokens");
    }
  }

  static void keep_failure(const ImportedSample& sample, const Row& row, ImportedCell& cell) {
    constexpr size_t kMostFailures = 1000;
    const std::string& message = sample.message.str();
    if (cell.failures.size() < kMostFailures) {
      cell.failures.push_back({.unit = 0,
                               .repetition = row.repetition,
                               .status = std::string(row_status_name(row.status)),
                               .error_class = row.error_class,
                               .message = message});
    }
    if (!message.empty()) cell.log += fmt::format("{}: {}\n", row.repetition, message);
  }

  SharedText share(std::string_view text) { return texts_.share(text); }

  const Imported& imported_;
  FirstSamples first_;
  std::vector<RunNames> names_;
  int64_t longest_ = 1;
  std::map<RunFacts, std::map<int64_t, int64_t>> produced_;
  std::map<CellKey, size_t> cells_;
  std::vector<int64_t> processes_;    // last number, by cell
  std::vector<int64_t> repetitions_;  // next number, by cell
  TextPool texts_;
  ImportedRows made_;
};

}  // namespace

Result<ImportedRows> make_rows(const Imported& imported, FirstSamples first) {
  return RowMaker(imported, first).make();
}

}  // namespace assay
