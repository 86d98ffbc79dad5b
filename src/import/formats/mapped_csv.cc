// Any CSV: rows to samples by a mapping, arrays unrolled in their order.
#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include "base/tables/csv.h"
#include "base/text/text.h"
#include "import/formats/readers.h"
#include "import/formats/sample_parts.h"
#include "import/formats/settings.h"
#include "import/formats/unmapped_columns.h"

namespace assay {
namespace {

// The place of each mapped column in the header.
struct CsvPlaces {
  std::map<ImportField, size_t> fields;
  std::map<CsvFigure, size_t> figures;
  std::vector<size_t> settings;  // as the mapping lists them
  std::vector<size_t> ignored;

  std::vector<size_t> all() const {
    std::vector<size_t> places = settings;
    places.insert(places.end(), ignored.begin(), ignored.end());
    for (const auto& [field, at] : fields) places.push_back(at);
    for (const auto& [figure, at] : figures) places.push_back(at);
    return places;
  }
};

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

Result<CsvPlaces> find_columns(const std::vector<std::string>& header, const CsvMapping& mapping,
                               const std::string& object) {
  const auto place = [&](const std::string& column) -> Result<size_t> {
    const auto at = std::ranges::find(header, column);
    if (at == header.end()) {
      return bad_input("{}: expected the column {} that the mapping names, found none{}", object,
                       quoted_excerpt(column), nearest_hint(column, header));
    }
    if (std::find(at + 1, header.end(), column) != header.end()) {
      return bad_input("{}: expected one column {}, found several", object, quoted_excerpt(column));
    }
    return static_cast<size_t>(at - header.begin());
  };
  CsvPlaces places;
  for (const auto& [field, column] : mapping.field_columns) {
    ASSAY_TRY(places.fields[field], place(column));
  }
  for (const auto& [figure, column] : mapping.figure_columns) {
    ASSAY_TRY(places.figures[figure], place(column));
  }
  for (const std::string& column : mapping.settings) {
    ASSAY_TRY(places.settings.emplace_back(), place(column));
  }
  for (const std::string& column : mapping.ignored) {
    ASSAY_TRY(places.ignored.emplace_back(), place(column));
  }
  return places;
}

// A number, or NaN for the words that stand for none.
Result<double> csv_number(std::string_view text, const std::string& object) {
  text = trimmed(text);
  for (const std::string_view none : {"nan", "NaN", "None", "null", "NULL", "NA", "inf", "-inf"}) {
    if (text == none) return std::numeric_limits<double>::quiet_NaN();
  }
  double value = 0;
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    return bad_input("{}: expected a number, found {}", object, quoted_excerpt(text));
  }
  return value;
}

// The mark between the numbers of a list, one throughout. A comma is a mark in brackets alone,
// since "0,19" is a number in half of the world. Absent: there are several, or such a comma.
std::optional<std::string_view> list_mark(std::string_view inner, bool in_brackets) {
  std::optional<std::string_view> mark;
  for (const std::string_view each : {",", ";", "|"}) {
    if (inner.find(each) == std::string_view::npos) continue;
    if (mark || (each == "," && !in_brackets)) return std::nullopt;
    mark = each;
  }
  return mark ? mark : " \t";
}

// "[1.5, 2]", "1.5;2" or "1.5 2".
Result<std::vector<double>> csv_array(std::string_view text, const std::string& object) {
  text = trimmed(text);
  const bool in_brackets = text.starts_with('[');
  const std::string_view inner =
      in_brackets && text.size() > 1 ? trimmed(text.substr(1, text.size() - 2)) : text;
  const auto mark = list_mark(inner, in_brackets);
  if (in_brackets != text.ends_with(']') || !mark) {
    return bad_input(
        "{}: expected a list of numbers ([1.5, 2], 1.5;2 or 1.5 2, with one mark between them), "
        "found {}",
        object, quoted_excerpt(text));
  }
  std::vector<double> values;
  std::string_view rest = inner;
  while (!rest.empty()) {
    const size_t end = std::min(rest.size(), rest.find_first_of(*mark));
    const std::string_view number = trimmed(rest.substr(0, end));
    rest.remove_prefix(std::min(rest.size(), end + 1));
    if (number.empty() && (*mark == " \t" || rest.empty()))
      continue;  // a run of spaces, a last mark
    ASSAY_TRY(const double value, csv_number(number, object));
    values.push_back(value);
  }
  return values;
}

class CsvImport {
 public:
  CsvImport(const SourceText& source, const CsvMapping& mapping, Imported& imported)
      : source_(source), mapping_(mapping), imported_(imported) {}

  Status read() {
    // RFC 4180 leaves the last line end out where a program likes; so does a file that was cut off.
    std::string ended;
    if (!source_.text.ends_with('\n')) {
      ended = source_.text + '\n';
      imported_.notes.push_back(
          fmt::format("{}: the last line has no line end: if the file was cut off, the last value "
                      "may be another",
                      source_.path));
    }
    const std::string_view text = ended.empty() ? source_.text : ended;
    CsvReader reader(text, source_.path, mapping_.delimiter, kMostCsvColumns);
    std::vector<std::string> header;
    while (header.size() < 2 && (header.empty() || header[0].empty()) && !reader.done()) {
      ASSAY_TRY(header, reader.next());  // behind empty lines
    }
    ASSAY_TRY(places_, find_columns(header, mapping_, source_.path));
    UnmappedColumns unmapped(header, places_.all());
    const size_t first_run = imported_.runs.size();
    std::vector<std::string_view> fields;
    while (!reader.done()) {
      ASSAY_CHECK(reader.next(fields));
      if (fields.size() == 1 && fields[0].empty()) continue;  // an empty line
      object_ = fmt::format("{} line {}", source_.path, reader.line());
      if (fields.size() != header.size()) {
        return bad_input("{}: expected {} fields, found {}", object_, header.size(), fields.size());
      }
      fields_ = fields;
      ASSAY_TRY(const std::string arm, add_row());
      unmapped.add_row(arm, fields);
      if (samples_ > kMostImportSamples) {
        return bad_input("{}: expected at most {} samples, found more", source_.path,
                         kMostImportSamples);
      }
    }
    return use_unmapped(unmapped, first_run);
  }

 private:
  using RunKey = std::tuple<RunFacts, std::string, std::vector<std::string>>;

  Status use_unmapped(const UnmappedColumns& unmapped, size_t first_run) {
    for (size_t i = first_run; i < imported_.runs.size(); ++i) {
      ImportedRun& run = imported_.runs[i];
      unmapped.state(run.facts.text(ImportField::kArm), run);
      ASSAY_CHECK(count_settings(run, imported_));
    }
    const std::vector<std::string> unused = unmapped.unused();
    if (unused.empty()) return {};
    constexpr size_t kShown = 10;
    const auto shown = std::span(unused).first(std::min(unused.size(), kShown));
    imported_.notes.push_back(fmt::format(
        "{}: the mapping doesn't name {}{}, which aren't the same in several rows of each arm: two "
        "imports aren't told apart by them",
        source_.path, join(shown, ", "),
        unused.size() > kShown ? fmt::format(" and {} more columns", unused.size() - kShown) : ""));
    return {};
  }

  std::optional<std::string_view> figure(CsvFigure which) const {
    const auto at = places_.figures.find(which);
    if (at == places_.figures.end()) return std::nullopt;
    return fields_[at->second];
  }
  std::string named(CsvFigure which) const {
    return fmt::format("{} column {}", object_, quoted_excerpt(mapping_.figure_columns.at(which)));
  }

  Result<RunFacts> facts() const {
    RunFacts facts;
    for (const auto& [field, value] : mapping_.constants) {
      ASSAY_CHECK(facts.state(field, value, "the mapping"));
    }
    for (const auto& [field, place] : places_.fields) {
      std::string_view text = trimmed(fields_[place]);
      if (const auto words = mapping_.words.find(field); words != mapping_.words.end()) {
        const auto word = words->second.find(std::string(text));
        if (word != words->second.end()) text = word->second;
      }
      ASSAY_CHECK(facts.state(field, text, object_));
    }
    return facts;
  }

  Result<RowStatus> status() const {
    const auto text = figure(CsvFigure::kStatus);
    if (!text) return RowStatus::kOk;
    const std::string word(trimmed(*text));
    if (const auto known = mapping_.statuses.find(word); known != mapping_.statuses.end()) {
      return known->second;
    }
    if (mapping_.other_status) return *mapping_.other_status;
    if (const auto own = parse_row_status(word)) return *own;
    return bad_input("{}: expected a word that the mapping's key status has, found {}",
                     named(CsvFigure::kStatus), quoted_excerpt(word));
  }

  // Absent: the field is empty.
  Result<std::optional<double>> time_ms(CsvFigure which) const {
    const auto text = figure(which);
    if (!text || trimmed(*text).empty()) return std::optional<double>();
    ASSAY_TRY(const double value, csv_number(*text, named(which)));
    return std::optional(value * mapping_.to_ms.at(which));
  }

  Status put_row_tokens(ImportedSample& sample) const {
    const auto text = figure(CsvFigure::kTokens);
    if (!text || trimmed(*text).empty()) return {};
    ASSAY_TRY(const double tokens, csv_number(*text, named(CsvFigure::kTokens)));
    if (std::isnan(tokens)) return {};
    if (tokens != std::floor(tokens) || std::abs(tokens) > 1e15) {
      return bad_input("{}: expected a whole number of tokens, found {}", named(CsvFigure::kTokens),
                       quoted_excerpt(*text));
    }
    put_tokens(sample, static_cast<int64_t>(tokens));
    return {};
  }

  // All of a row but its latency.
  Result<ImportedSample> row_sample() const {
    ImportedSample sample;
    ASSAY_TRY(sample.status, status());
    if (sample.status != RowStatus::kOk) {
      const auto error = figure(CsvFigure::kError);
      const std::string_view message = error ? trimmed(*error) : std::string_view();
      const std::string_view word = *figure(CsvFigure::kStatus);
      fail_sample(sample, sample.status, message.empty() ? trimmed(word) : message, message);
    }
    ASSAY_CHECK(put_row_tokens(sample));
    ASSAY_TRY(const auto ttft, time_ms(CsvFigure::kTtft));
    if (ttft) put_ttft(sample, *ttft);
    ASSAY_TRY(const auto device, time_ms(CsvFigure::kDeviceTime));
    if (device && std::isfinite(*device) && *device >= 0) sample.device_ms = *device;
    if (const auto id = figure(CsvFigure::kPromptId)) {
      ASSAY_TRY(sample.prompt_id, imported_name(trimmed(*id), object_, "a prompt's name"));
    }
    if (const auto started = figure(CsvFigure::kStartedAt)) {
      ASSAY_TRY(sample.started_at_ns, stated_time(trimmed(*started), named(CsvFigure::kStartedAt)));
    }
    return sample;
  }

  // Latencies of a row in ms; none: the row has none.
  Result<std::vector<double>> latencies(const RunFacts& facts, const ImportedSample& sample) const {
    if (const auto text = figure(CsvFigure::kLatencies)) {
      ASSAY_TRY(std::vector<double> values, csv_array(*text, named(CsvFigure::kLatencies)));
      for (double& value : values) value *= mapping_.to_ms.at(CsvFigure::kLatencies);
      return values;
    }
    if (const auto rate = figure(CsvFigure::kTokensPerS)) {
      if (trimmed(*rate).empty()) return std::vector<double>();
      ASSAY_TRY(const double tokens_per_s, csv_number(*rate, named(CsvFigure::kTokensPerS)));
      return time_of_rate(facts, sample, tokens_per_s);
    }
    ASSAY_TRY(const auto latency, time_ms(CsvFigure::kLatency));
    return latency ? std::vector<double>{*latency} : std::vector<double>();
  }

  // A rate is over the batch: of the prompt's tokens in prefill, else of those produced.
  Result<std::vector<double>> time_of_rate(const RunFacts& facts, const ImportedSample& sample,
                                           double tokens_per_s) const {
    const int64_t batch = facts.count(ImportField::kBatch).value_or(1);
    const auto each = facts.phase() == Phase::kPrefill ? facts.count(ImportField::kPromptTokens)
                                                       : facts.count(ImportField::kNewTokens);
    double tokens = each ? static_cast<double>(*each) * static_cast<double>(batch) : 0;
    if (facts.phase() != Phase::kPrefill && sample.tokens) {
      tokens = static_cast<double>(*sample.tokens);
    } else if (!each) {
      return bad_input(
          "{}: expected tokens, new_tokens or (in prefill) prompt_tokens beside a "
          "rate, found none",
          object_);
    }
    return std::vector<double>{tokens / tokens_per_s * 1e3};
  }

  // Values of the columns that the mapping calls settings.
  std::vector<std::string> row_settings() const {
    std::vector<std::string> values;
    for (const size_t place : places_.settings) values.emplace_back(trimmed(fields_[place]));
    return values;
  }

  // Rows of single latencies that state the same make one run, arrays one each.
  ImportedRun& run_of(const RunFacts& facts) {
    const auto series = figure(CsvFigure::kSeries);
    const bool array = places_.figures.contains(CsvFigure::kLatencies);
    const std::vector<std::string> settings = row_settings();
    const RunKey key(facts, series ? std::string(*series) : "", settings);
    const auto [at, fresh] = runs_.try_emplace(key, imported_.runs.size());
    if (fresh || array) {
      at->second = imported_.runs.size();
      imported_.runs.push_back(
          {.source = source_.path, .facts = facts, .warmed_up = mapping_.warmed_up});
      for (size_t i = 0; i < settings.size(); ++i) {
        add_setting(imported_.runs.back(), mapping_.settings[i], settings[i]);
      }
    }
    return imported_.runs[at->second];
  }

  // The row's arm.
  Result<std::string> add_row() {
    ASSAY_TRY(const RunFacts stated, facts());
    ASSAY_TRY(const ImportedSample sample, row_sample());
    ASSAY_TRY(const std::vector<double> times_ms, latencies(stated, sample));
    ImportedRun& run = run_of(stated);
    for (const CsvCompilerRule& rule : mapping_.compiler) {
      if (rule.arm == stated.text(ImportField::kArm)) run.compiler = rule.word;
    }
    // A row without a latency is one all the same: lost, or a success that shows nothing.
    if (times_ms.empty()) run.samples.push_back(sample);
    for (const double ms : times_ms) put_latency(run.samples.emplace_back(sample), ms);
    samples_ += static_cast<int64_t>(std::max<size_t>(1, times_ms.size()));
    return stated.text(ImportField::kArm);
  }

  const SourceText& source_;
  const CsvMapping& mapping_;
  Imported& imported_;
  CsvPlaces places_;
  std::vector<std::string_view> fields_;
  std::string object_;  // the line
  std::map<RunKey, size_t> runs_;
  int64_t samples_ = 0;
};

Status check_compiler_arms(const CsvMapping& mapping, const Imported& imported) {
  std::set<std::string> arms;
  for (const ImportedRun& run : imported.runs) arms.insert(run.facts.text(ImportField::kArm));
  for (const CsvCompilerRule& rule : mapping.compiler) {
    if (arms.contains(rule.arm)) continue;
    return bad_input("the mapping's key compiler: expected an arm of the table, found {}{}",
                     quoted_excerpt(rule.arm),
                     nearest_hint(rule.arm, std::vector<std::string>(arms.begin(), arms.end())));
  }
  return {};
}

}  // namespace

Result<Imported> read_mapped_csv(std::span<const SourceText> sources, const CsvMapping& mapping) {
  Imported imported{.format = "mapped-csv", .tool = {}};
  imported.name = mapping.name;
  imported.baseline = mapping.baseline;
  imported.order = mapping.order;
  imported.mapping = mapping.text;
  for (const SourceText& source : sources) {
    if (!source.documents.empty()) {
      return bad_input("{}: expected a CSV with a header, found JSON", source.path);
    }
    ASSAY_CHECK(CsvImport(source, mapping, imported).read());
  }
  ASSAY_CHECK(check_compiler_arms(mapping, imported));
  return imported;
}

}  // namespace assay
