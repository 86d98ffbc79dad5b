// Sittings: written by name, read back in the order of their numbers.
#include "artifact/sittings.h"

#include <charconv>

#include "base/clock.h"
#include "base/text/text.h"

namespace assay {
namespace {

constexpr std::string_view kPrefix = "environment-";
constexpr std::string_view kSuffix = ".json";
constexpr const char* kKey = "sitting";

// The members started_at and started_at_ns, which say the same.
Status read_start(const Json& json, const std::string& object, Sitting& sitting) {
  ASSAY_TRY(sitting.started_at, json_string(json, "started_at", object));
  ASSAY_TRY(sitting.started_at_ns, json_int(json, "started_at_ns", object));
  const std::string expected = format_utc(sitting.started_at_ns);
  if (sitting.started_at == expected) return {};
  return bad_input("{}: expected {} at \"started_at\", as \"started_at_ns\" says, found {}", object,
                   expected, quoted_excerpt(sitting.started_at));
}

Result<Sitting> parse_sitting(Json json, int64_t number, const std::string& object) {
  if (!json.is_object() || !json.contains(kKey) || !json[kKey].is_object()) {
    return bad_input("{}: expected an object at \"{}\", found none", object, kKey);
  }
  const Json& member = json[kKey];
  Sitting sitting;
  ASSAY_TRY(const int64_t found, json_int(member, "number", object));
  if (found != number) {
    return bad_input("{}: expected sitting {}, found {}", object, number, found);
  }
  ASSAY_CHECK(read_start(member, object, sitting));
  ASSAY_TRY(sitting.units_before, json_int(member, "units_before", object));
  ASSAY_TRY(sitting.rows_before, json_int(member, "rows_before", object));
  json.erase(kKey);
  sitting.environment = std::move(json);
  return sitting;
}

// Checks that so many units and rows had been committed when the sitting began.
Status check_place(const Sitting& sitting, const Sitting& before, const CommitLog& log,
                   const std::string& object) {
  const auto units = static_cast<int64_t>(log.units.size());
  if (sitting.units_before < before.units_before || sitting.units_before > units) {
    return bad_input("{}: expected {} to {} committed units before it, found {}", object,
                     before.units_before, units, sitting.units_before);
  }
  const int64_t rows =
      sitting.units_before == 0
          ? 0
          : log.records[log.units[static_cast<size_t>(sitting.units_before - 1)]].rows;
  if (sitting.rows_before != rows) {
    return bad_input("{}: expected {} before it, found {}", object, counted(rows, "committed row"),
                     sitting.rows_before);
  }
  return {};
}

}  // namespace

std::string sitting_name(int64_t number) {
  return fmt::format("{}{}{}", kPrefix, number, kSuffix);
}

std::optional<int64_t> sitting_number(std::string_view path) {
  if (!path.starts_with(kPrefix) || !path.ends_with(kSuffix)) return std::nullopt;
  path.remove_prefix(kPrefix.size());
  if (path.size() <= kSuffix.size()) return std::nullopt;
  path.remove_suffix(kSuffix.size());
  int64_t number = 0;
  const auto [end, error] = std::from_chars(path.data(), path.data() + path.size(), number);
  if (error != std::errc() || number < 2 || std::to_string(number) != path) return std::nullopt;
  return number;
}

Json sitting_to_json(int64_t number, const Sitting& sitting) {
  Json json = {{kKey,
                {{"number", number},
                 {"started_at", sitting.started_at},
                 {"started_at_ns", sitting.started_at_ns},
                 {"units_before", sitting.units_before},
                 {"rows_before", sitting.rows_before}}}};
  if (sitting.environment.is_object()) json.update(sitting.environment);
  return json;
}

Result<std::vector<Sitting>> read_sittings(const Folder& folder, const Json& manifest,
                                           const CommitLog& log) {
  const auto read_json = [&](const std::string& name) -> Result<Json> {
    ASSAY_TRY(const std::string text, folder.read(name));
    return parse_json(text, folder.path_of(name).string());
  };
  const std::string name = folder.path_of(kManifestName).string();
  std::vector<Sitting> sittings(1);
  ASSAY_CHECK(read_start(manifest, name, sittings[0]));
  ASSAY_TRY(sittings[0].environment, read_json(kEnvironmentName));
  ASSAY_TRY(const FileEntries listed, file_entries_from_json(manifest, name));
  int64_t count = 1;
  for (const auto& [path, entry] : listed) count += sitting_number(path) ? 1 : 0;
  for (int64_t number = 2; number <= count; ++number) {
    const std::string file = sitting_name(number);
    if (!listed.contains(file)) {
      return bad_input("{}: expected the {} sittings to be numbered without a gap, found no {}",
                       name, count, file);
    }
    ASSAY_TRY(Json json, read_json(file));
    const std::string object = folder.path_of(file).string();
    ASSAY_TRY(Sitting sitting, parse_sitting(std::move(json), number, object));
    ASSAY_CHECK(check_place(sitting, sittings.back(), log, object));
    sittings.push_back(std::move(sitting));
  }
  return sittings;
}

}  // namespace assay
