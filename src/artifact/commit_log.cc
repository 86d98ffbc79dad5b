// Commit records: written as canonical JSON lines, so that a byte that differs always shows.
#include "artifact/commit_log.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/files/hash.h"
#include "base/text/text.h"

namespace assay {
namespace {

constexpr const char* kChainKey = "chain";

Json record_to_json(const CommitRecord& record) {
  Json files = Json::object();
  for (const auto& [name, added] : record.added) {
    files[name] = {{"bytes", added.end}, {"sha256", added.sha256}};
  }
  Json json = {{"unit", nullptr}, {"rows", record.rows}, {"files", files}};
  if (record.unit) json["unit"] = *record.unit;
  if (!record.replaced.empty()) json["replaced"] = file_entries_to_json(record.replaced);
  json["note"] = record.note;
  return json;
}

// True for names below cells/ without a step out of it: files are read by these names. A cell's id
// may hold "..", as a model's name may.
bool is_of_cell(std::string_view name) {
  if (!name.starts_with("cells/")) return false;
  const std::vector<std::string> components = split(name, '/');
  return std::ranges::find(components, "..") == components.end();
}

Result<CommitRecord> record_from_json(const Json& json, const std::string& object) {
  CommitRecord record;
  if (!json.contains("unit") || !json["unit"].is_null()) {
    ASSAY_TRY(record.unit, json_int(json, "unit", object));
  }
  ASSAY_TRY(record.rows, json_int(json, "rows", object));
  record.note = json.value("note", Json());
  if (!json.contains("files") || !json["files"].is_object()) {
    return bad_input("{}: expected an object at \"files\", found none", object);
  }
  for (const auto& [name, content] : json["files"].items()) {
    if (!is_of_rows(name) && !is_of_cell(name)) {
      return bad_input("{}: expected a file of rows or one of a cell, found {}", object,
                       json_quoted(name));
    }
    ASSAY_TRY(const int64_t end, json_int(content, "bytes", object));
    ASSAY_TRY(const std::string sha256, json_string(content, "sha256", object));
    if (end < 0) return bad_input("{}: expected a length, found {}", object, end);
    record.added[name] = {static_cast<uint64_t>(end), sha256};
  }
  if (!json.contains("replaced")) return record;
  ASSAY_TRY(record.replaced, file_entries_from_json(json, object, "replaced"));
  for (const auto& [name, entry] : record.replaced) {
    if (!is_of_cell(name)) {
      return bad_input("{}: expected a file of a cell, found {}", object, json_quoted(name));
    }
  }
  return record;
}

std::string next_chain(const std::string& chain, const Json& record) {
  return sha256_hex(chain + "\n" + to_json_line(record));
}

// Reads one line, checks it against the chain so far, and advances the chain.
Result<CommitRecord> parse_record(std::string_view line, std::string& chain,
                                  const std::string& object) {
  ASSAY_TRY(Json json, parse_json(line, object));
  ASSAY_TRY(const std::string claimed, json_string(json, kChainKey, object));
  if (to_json_line(json) != line) {
    return bad_input("{}: expected the record as it was written, found changed bytes", object);
  }
  json.erase(kChainKey);
  chain = next_chain(chain, json);
  if (chain != claimed) {
    return bad_input("{}: expected chain {}, found {}", object, chain, claimed);
  }
  return record_from_json(json, object);
}

Status check_follows(const CommitLog& log, const CommitRecord& record, const std::string& object) {
  if (record.rows < log.rows()) {
    return bad_input("{}: expected at least {}, found {}", object, counted(log.rows(), "row"),
                     record.rows);
  }
  for (const auto& [name, added] : record.added) {
    if (added.end < log.committed_bytes(name)) {
      return bad_input("{}: expected {} to grow from {} bytes, found {}", object, name,
                       log.committed_bytes(name), added.end);
    }
  }
  return {};
}

}  // namespace

std::string metrics_name(Phase phase) {
  return std::string(phase_name(phase)) + "/metrics.csv";
}

bool is_of_rows(std::string_view name) {
  return name == kRequestsName || name == kTokenTimesName ||
         std::ranges::any_of(kPhases, [&](Phase phase) { return name == metrics_name(phase); });
}

uint64_t CommitLog::committed_bytes(const std::string& name) const {
  const auto it = ends.find(name);
  return it == ends.end() ? 0 : it->second;
}

std::string commit_line(const CommitRecord& record, std::string& chain) {
  // Through text and back: a note's invalid UTF-8 is replaced once, and the chain is over the text
  // that a reader will see.
  Json json = Json::parse(to_json_line(record_to_json(record)));
  chain = next_chain(chain, json);
  json[kChainKey] = chain;
  return to_json_line(json) + "\n";
}

Result<CommitLog> parse_commit_log(std::string_view text, const std::string& plan_hash,
                                   std::string_view object) {
  CommitLog log;
  log.chain = plan_hash;
  std::set<int64_t> units;
  for (size_t end; (end = text.find('\n')) != std::string_view::npos;) {
    const std::string name = fmt::format("{} line {}", object, log.records.size() + 1);
    ASSAY_TRY(CommitRecord record, parse_record(text.substr(0, end), log.chain, name));
    ASSAY_CHECK(check_follows(log, record, name));
    if (record.unit && !units.insert(*record.unit).second) {
      return bad_input("{}: expected each unit once, found unit {} again", name, *record.unit);
    }
    if (record.unit) log.units.push_back(log.records.size());
    for (const auto& [file, added] : record.added) {
      log.ends[file] = added.end;
      log.grew[file].push_back(log.records.size());
    }
    for (const auto& [file, entry] : record.replaced) log.replaced[file] = entry;
    log.records.push_back(std::move(record));
    log.size_bytes += end + 1;
    text.remove_prefix(end + 1);
  }
  return log;
}

Status check_committed_bytes(const CommitLog& log, const std::string& name,
                             std::string_view content, std::string_view object) {
  const auto grew = log.grew.find(name);
  if (grew == log.grew.end()) return {};
  uint64_t begin = 0;
  for (const size_t i : grew->second) {
    const CommitRecord& record = log.records[i];
    const auto& [end, expected] = record.added.at(name);
    const std::string commit =
        record.unit ? fmt::format("unit {}", *record.unit) : fmt::format("commit {}", i + 1);
    if (content.size() < end) {
      return bad_input("{}: expected {} bytes after {}, found {}", object, end, commit,
                       content.size());
    }
    const std::string found = sha256_hex(content.substr(begin, end - begin));
    if (found != expected) {
      return bad_input("{}: expected bytes {} to {} ({}) with sha256 {}, found {}", object, begin,
                       end, commit, expected, found);
    }
    begin = end;
  }
  return {};
}

}  // namespace assay
