// Reads a history, bundle after bundle: of each only its figures are kept.
#include "cli/bundles/history_folder.h"

#include <algorithm>
#include <vector>

#include "artifact/each_once.h"
#include "cli/command.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

Result<std::vector<fs::path>> bundles_in(const fs::path& folder) {
  std::vector<fs::path> bundles;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code absent;
    if (fs::is_regular_file(it->path() / "manifest.json", absent)) bundles.push_back(it->path());
  }
  if (error) {
    return bad_input("{}: expected a folder of bundles, found: {}", folder.string(),
                     error.message());
  }
  std::ranges::sort(bundles);
  return bundles;
}

// Empty: it belongs.
std::string why_left_out(const Bundle& run, const Bundle& base, const std::set<std::string>& vary) {
  return run.complete ? unlike(base, run, vary) : "not complete";
}

}  // namespace

Result<History> read_history(const fs::path& folder, const Bundle& base, const Bundle& cand,
                             const std::set<std::string>& vary) {
  ASSAY_TRY(const std::vector<fs::path> paths, bundles_in(folder));
  std::vector<std::pair<int64_t, Bundle>> runs;
  for (const fs::path& path : paths) {
    std::error_code error;
    if (fs::equivalent(path, cand.folder, error)) continue;
    auto run = read_bundle(path);
    if (!run && run.error().kind != ErrorKind::kBadInput) return std::unexpected(run.error());
    const std::string why = run ? why_left_out(*run, base, vary) : run.error().message;
    if (!why.empty()) {
      print_remark("note", fmt::format("history: {} left out: {}", path.string(), why));
      continue;
    }
    const int64_t started = run->sittings.front().started_at_ns;
    runs.emplace_back(started, std::move(run).value());
  }
  std::ranges::stable_sort(runs, {}, [](const auto& run) { return run.first; });
  std::vector<RunMark> marks = {run_mark(cand)};
  for (const auto& [started, run] : runs) marks.push_back(run_mark(run));
  ASSAY_CHECK(check_distinct_runs("--history", marks));
  History history;
  for (const auto& [started, run] : runs) ASSAY_CHECK(history.add(run));
  return history;
}

}  // namespace assay::cli
