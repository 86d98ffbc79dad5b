// Folders named twice, and runs that are there twice.
#include "artifact/each_once.h"

#include <algorithm>
#include <array>
#include <bit>
#include <filesystem>
#include <set>
#include <system_error>

#include "base/files/hash.h"
#include "base/records/lenient_json.h"
#include "base/text/text.h"

namespace assay {
namespace {

// Rows without starts of their own, as some imported files have them, may agree by chance where
// they take few different values.
constexpr size_t kFewTimes = 8;

uint64_t bits_of(const std::optional<double>& ms) {
  return ms ? std::bit_cast<uint64_t>(*ms) : 0;
}

// The finaliser of splitmix64 (Steele, Lea and Flood 2014).
uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

void add_numbers(Sha256& hash, std::span<const uint64_t> numbers) {
  hash.update(std::as_bytes(numbers));
}

std::string digest_of(std::span<const Row> rows) {
  Sha256 hash;
  std::set<uint64_t> times;  // up to kFewTimes of them
  bool started = false;
  for (const Row& row : rows) {
    const uint64_t latency = bits_of(row.latency_ms);
    if (row.latency_ms && times.size() < kFewTimes) times.insert(latency);
    started = started || row.started_at_ns != rows.front().started_at_ns;
    add_numbers(
        hash,
        std::array{static_cast<uint64_t>(row.phase), static_cast<uint64_t>(row.batch),
                   static_cast<uint64_t>(row.prompt_tokens), static_cast<uint64_t>(row.new_tokens),
                   static_cast<uint64_t>(row.repetition), static_cast<uint64_t>(row.status),
                   latency, bits_of(row.device_ms), bits_of(row.ttft_ms),
                   static_cast<uint64_t>(row.started_at_ns) -
                       static_cast<uint64_t>(rows.front().started_at_ns)});
  }
  return times.size() >= kFewTimes || (started && !times.empty()) ? hash.finish_hex() : "";
}

std::string shared_of(const RunMark& a, const RunMark& b) {
  std::vector<uint64_t> shared;
  std::ranges::set_intersection(a.rows, b.rows, std::back_inserter(shared));
  if (!shared.empty()) return counted(std::ssize(shared), "row");
  if (!a.digest.empty() && a.digest == b.digest) return "the times of all rows";
  const bool same_start = a.started_at_ns != 0 && a.started_at_ns == b.started_at_ns;
  return same_start && !a.plan.empty() && a.plan == b.plan ? "plan and start" : "";
}

}  // namespace

Status check_each_once(std::string_view command, std::span<const std::string> folders) {
  std::set<std::filesystem::path> seen;
  for (const std::string& folder : folders) {
    std::error_code unreadable;
    std::filesystem::path path = std::filesystem::weakly_canonical(folder, unreadable);
    if (unreadable) path = std::filesystem::path(folder).lexically_normal();
    if (!path.has_filename()) path = path.parent_path();  // "folder/"
    if (!seen.insert(path).second) {
      return bad_input("{}: expected each bundle once, found {} twice", command,
                       quoted_excerpt(folder));
    }
  }
  return {};
}

RunMark run_mark(const Bundle& bundle) {
  RunMark mark{.folder = bundle.folder.string(),
               .plan = text_member(bundle.manifest, "plan_sha256"),
               .started_at_ns = whole_member(bundle.manifest, "started_at_ns").value_or(0)};
  for (const Row& row : bundle.rows) {
    if (!row.latency_ms || row.started_at_ns == 0) continue;
    mark.rows.push_back(
        mixed(mixed(static_cast<uint64_t>(row.started_at_ns)) + bits_of(row.latency_ms)));
  }
  std::ranges::sort(mark.rows);
  mark.digest = digest_of(bundle.rows);
  return mark;
}

Status check_distinct_runs(std::string_view command, std::span<const RunMark> marks) {
  for (size_t i = 1; i < marks.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const std::string shared = shared_of(marks[j], marks[i]);
      if (shared.empty()) continue;
      return bad_input("{}: expected each run once, found {} of {} again in {}", command, shared,
                       marks[j].folder, marks[i].folder);
    }
  }
  return {};
}

}  // namespace assay
