// Rows are arrays, since a study has many of them; the records have the order of their members.
#include "analysis/findings/plotted_json.h"

#include <algorithm>
#include <cmath>

#include "analysis/findings/record_entries.h"
#include "base/files/files.h"
#include "base/files/folder.h"
#include "base/files/hash.h"

namespace assay {

std::string_view row_mark_name(RowMark mark) {
  return word_of(mark, {"warm", "cold", "throttled", "recompiled", "lost"});
}
template <>
struct EnumWords<RowMark> : WordsByName<RowMark, row_mark_name, 5> {};
template <>
struct Record<PlottedRow> {
  using T = PlottedRow;
  static constexpr bool kIsArray = true;
  static constexpr auto kMembers = std::tuple(
      field("cell", &T::cell), field("repetition", &T::repetition), field("place", &T::place),
      field("rank", &T::rank), field("latency_ms", &T::latency_ms), field("mark", &T::mark),
      field("error_class", &T::error_class));
};
template <>
struct Record<EcdfStep> {
  using T = EcdfStep;
  static constexpr bool kIsArray = true;
  static constexpr auto kMembers = std::tuple(field("ms", &T::ms), field("share", &T::share));
};
template <>
struct Record<PlottedGroup> {
  using T = PlottedGroup;
  static constexpr auto kMembers = std::tuple(
      findings_record::Place<T>{}, field("arm", &T::arm), field("cells", &T::cells),
      field("rows", &T::rows), field("warm", &T::warm), field("order", &T::order),
      field("ecdf", &T::ecdf), field("slowest", &T::slowest), field("marked", &T::marked));
};
template <>
struct Record<TimelineLane::Span> {
  using T = TimelineLane::Span;
  static constexpr auto kMembers = std::tuple(
      field("begin_ms", &T::begin_ms), field("end_ms", &T::end_ms), field("busy_ms", &T::busy_ms),
      field("name", &T::name), field("events", &T::events));
};
template <>
struct Record<TimelineLane> {
  using T = TimelineLane;
  static constexpr auto kMembers =
      std::tuple(field("name", &T::name), field("spans", &T::spans), field("busy_ms", &T::busy_ms),
                 field("events", &T::events));
};
template <>
struct Record<Timeline> {
  using T = Timeline;
  static constexpr auto kMembers =
      std::tuple(findings_record::Place<T>{}, field("arm", &T::arm), field("cell", &T::cell),
                 field("length_ms", &T::length_ms), field("lanes", &T::lanes));
};
template <>
struct Record<LoadTimeline> {
  using T = LoadTimeline;
  static constexpr auto kMembers =
      std::tuple(findings_record::Place<T>{}, field("arm", &T::arm), field("run", &T::run),
                 field("slice_s", &T::slice_s), field("window_begin_s", &T::window_begin_s),
                 field("window_end_s", &T::window_end_s), field("in_flight", &T::in_flight),
                 field("tokens_per_s", &T::tokens_per_s), field("failed", &T::failed));
};
template <>
struct Record<PlottedRows> {
  using T = PlottedRows;
  static constexpr auto kMembers =
      std::tuple(field("groups", &T::groups), field("timelines", &T::timelines),
                 field_may_lack("load", &T::load));
};

namespace {

constexpr const char* kFindingsFile = "analysis/findings.json";
constexpr const char* kPlottedFile = "analysis/plotted.json";
constexpr const char* kPlottedName = "plotted.json";

Fit row_misfit(const PlottedRow& row, const PlottedGroup& group) {
  if (row.cell >= group.cells.size()) {
    return misfit(fmt::format("a cell below {}", group.cells.size()), Json(row.cell));
  }
  if (row.rank < 0 || row.place < 0) return misfit("places from 0 on", Json(row.rank));
  if (row.mark != RowMark::kLost && !(row.latency_ms.value_or(0) > 0)) {
    return misfit("a latency above 0 of a row that isn't lost", Json(row.repetition));
  }
  return std::nullopt;
}

Fit group_misfit(const PlottedGroup& group) {
  for (size_t i = 0; i < group.order.size(); ++i) {
    if (Fit fit = row_misfit(group.order[i], group)) return within("order", within(i, fit));
  }
  if (group.slowest) {
    if (Fit fit = row_misfit(*group.slowest, group)) return within("slowest", fit);
  }
  EcdfStep last;
  for (size_t i = 0; i < group.ecdf.size(); ++i) {
    const EcdfStep& step = group.ecdf[i];
    const bool rises = step.ms > 0 && step.ms >= last.ms && step.share > last.share;
    if (!rises || step.share > 1) {
      return within("ecdf", within(i, misfit("steps that rise to a share of 1", Json(step.share))));
    }
    last = step;
  }
  return std::nullopt;
}

Fit timeline_misfit(const Timeline& timeline) {
  if (!(timeline.length_ms > 0)) return misfit("a length above 0", Json(timeline.length_ms));
  for (size_t l = 0; l < timeline.lanes.size(); ++l) {
    for (size_t s = 0; s < timeline.lanes[l].spans.size(); ++s) {
      const TimelineLane::Span& span = timeline.lanes[l].spans[s];
      if (span.begin_ms >= 0 && span.begin_ms <= span.end_ms && span.events >= 0) continue;
      return within("lanes", within(l, within("spans", within(s, misfit("a span that begins before "
                                                                        "it ends",
                                                                        Json(span.begin_ms))))));
    }
  }
  return std::nullopt;
}

// The first member that contradicts another, so that no figure can be drawn though every member is
// of its type.
Fit contradiction_of(const PlottedRows& plotted, const Findings& findings) {
  const std::vector<std::string>& arms = findings.study.arms;
  std::optional<std::pair<size_t, size_t>> last;
  for (size_t i = 0; i < plotted.groups.size(); ++i) {
    const PlottedGroup& group = plotted.groups[i];
    const auto arm = std::ranges::find(arms, group.arm);
    const std::pair place(group.stratum, static_cast<size_t>(arm - arms.begin()));
    Fit fit;
    if (arm == arms.end()) fit = misfit("an arm of the study", Json(group.arm));
    if (!fit && last && *last >= place) {
      fit = misfit("groups in the order of strata and arms", Json(group.arm));
    }
    if (!fit) fit = group_misfit(group);
    if (fit) return within("groups", within(i, fit));
    last = place;
  }
  for (size_t i = 0; i < plotted.timelines.size(); ++i) {
    if (Fit fit = timeline_misfit(plotted.timelines[i])) {
      return within("timelines", within(i, fit));
    }
  }
  return std::nullopt;
}

}  // namespace

std::string plotted_text(const PlottedRows& plotted, const Findings& findings,
                         const std::string& findings_sha256) {
  JsonText out(JsonText::Layout::kLine);
  out.begin_object();
  out.member("schema_version");
  out.number(int64_t{kPlottedSchemaVersion});
  out.member("findings_sha256");
  out.quoted(findings_sha256);
  record::append_entries(plotted, Record<PlottedRows>::kMembers, out,
                         StrataContext{findings.strata});
  out.end();
  return out.take();
}

Result<PlottedRows> plotted_from_json(const Json& json, const Findings& findings,
                                      std::string_view findings_sha256, std::string_view object) {
  if (!json.is_object()) return misfit_error(object, *misfit("an object", json));
  ASSAY_TRY(const int64_t version, json_int(json, "schema_version", object));
  if (version != kPlottedSchemaVersion) {
    return bad_input("{}: expected plotted rows of schema version {}, found version {}", object,
                     kPlottedSchemaVersion, version);
  }
  if (text_member(json, "findings_sha256") != findings_sha256) {
    return bad_input(
        "{}: expected the rows of the findings.json beside it, found those of another "
        "(`assay analyze` makes both anew)",
        object);
  }
  PlottedRows plotted;
  Fit fit = record::read_object(json, plotted, StrataContext{findings.strata});
  if (!fit) fit = contradiction_of(plotted, findings);
  if (fit) return misfit_error(object, *fit);
  return plotted;
}

Result<FindingsWithRows> read_findings_with_rows(const std::filesystem::path& path) {
  std::error_code unknown;  // whoever opens it says so
  const bool bundle = std::filesystem::is_directory(path, unknown);
  const std::filesystem::path file = bundle ? path / kFindingsFile : path;
  const std::filesystem::path rows = file.parent_path() / kPlottedName;
  const auto read = [&](const std::filesystem::path& from,
                        const char* name) -> Result<std::string> {
    if (!bundle) return read_file(from);
    ASSAY_TRY(const Folder folder, Folder::open(path));
    return folder.read(name);
  };
  ASSAY_TRY(const std::string text, read(file, kFindingsFile));
  ASSAY_TRY(const Json json, parse_json(text, file.string()));
  FindingsWithRows found;
  ASSAY_TRY(found.findings, findings_from_json(json, file.string()));
  if (!std::filesystem::exists(rows, unknown)) return found;
  ASSAY_TRY(const std::string rows_text, read(rows, kPlottedFile));
  ASSAY_TRY(const Json rows_json, parse_json(rows_text, rows.string()));
  ASSAY_TRY(found.plotted,
            plotted_from_json(rows_json, found.findings, sha256_hex(text), rows.string()));
  return found;
}

Status write_findings_with_rows(const Findings& findings, const std::string& text,
                                const PlottedRows& plotted, const std::filesystem::path& folder) {
  ASSAY_TRY(Folder bundle, Folder::open(folder));
  ASSAY_CHECK(bundle.make_folder("analysis"));
  ASSAY_CHECK(bundle.write_atomic(kFindingsFile, text));
  return bundle.write_atomic(kPlottedFile, plotted_text(plotted, findings, sha256_hex(text)));
}

}  // namespace assay
