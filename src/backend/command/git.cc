// The options and variables by which git keeps to its own work.
#include "backend/command/git.h"

#include <array>

#include "base/text/text.h"

namespace assay {
namespace {

constexpr double kGitSeconds = 300;  // of one call: a large tree takes its time to write

// The variables of `git rev-parse --local-env-vars` that name a repository's parts.
constexpr std::array kRepositoryVariables = {"GIT_DIR",
                                             "GIT_WORK_TREE",
                                             "GIT_INDEX_FILE",
                                             "GIT_COMMON_DIR",
                                             "GIT_OBJECT_DIRECTORY",
                                             "GIT_ALTERNATE_OBJECT_DIRECTORIES",
                                             "GIT_NAMESPACE",
                                             "GIT_PREFIX"};

// Against a partial clone's fetch of missing objects: the first from git 2.44 on, the second, a
// list of protocols that wins over any configuration, for older versions too.
constexpr std::array kNoFetch = {"GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none"};

// No hook, neither of a file nor (from git 2.54 on) of the configuration.
constexpr std::array kNoPrograms = {"core.hooksPath=/dev/null", "hook.post-checkout.enabled=false",
                                    "hook.post-index-change.enabled=false",
                                    "hook.reference-transaction.enabled=false",
                                    "core.fsmonitor=false"};

// The first line of git's stderr.
std::string first_words(const std::string& err) {
  const std::string line = err.substr(0, err.find('\n'));
  return line.empty() ? "no reason given" : line;
}

bool is_partial_clone(Spawner& spawner, const std::filesystem::path& folder) {
  const auto asked = run_command(
      spawner,
      git_command(folder,
                  {"config", "--get-regexp", R"(^remote\..*\.promisor$)", "^(true|1|yes|on)$"}),
      kGitSeconds);
  return asked && asked->end.ok();
}

}  // namespace

std::vector<std::string> git_command(const std::filesystem::path& folder,
                                     std::vector<std::string> arguments) {
  std::vector<std::string> argv = {"env"};
  for (const char* variable : kRepositoryVariables) {
    argv.emplace_back("-u");
    argv.emplace_back(variable);
  }
  argv.insert(argv.end(), kNoFetch.begin(), kNoFetch.end());
  argv.insert(argv.end(), {"git", "--no-optional-locks"});
  for (const char* setting : kNoPrograms) argv.insert(argv.end(), {"-c", setting});
  argv.insert(argv.end(), {"-C", folder.string()});
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return argv;
}

Result<std::string> run_git(Spawner& spawner, const std::filesystem::path& folder,
                            std::vector<std::string> arguments) {
  const std::string verb = arguments.front();
  ASSAY_TRY(CommandOutput output,
            run_command(spawner, git_command(folder, std::move(arguments)), kGitSeconds));
  if (!output.end.ok()) {
    const bool partial = !output.err.empty() && is_partial_clone(spawner, folder);
    return bad_input("git {}: {}{}", verb, first_words(output.err),
                     partial
                         ? fmt::format(" (a partial clone, and nothing is fetched: `git checkout` "
                                       "of the revision in {} fetches what it lacks)",
                                       folder.string())
                         : "");
  }
  std::string text = std::move(output.out);
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace assay
