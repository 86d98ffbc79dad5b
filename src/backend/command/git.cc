// The options and variables by which git keeps to its own work.
#include "backend/command/git.h"

#include <array>

#include "base/text.h"

namespace assay {
namespace {

constexpr double kGitSeconds = 300;  // of one call: a large tree takes its time to write

// Of `git rev-parse --local-env-vars` those that name a repository's parts.
constexpr std::array kRepositoryVariables = {"GIT_DIR",
                                             "GIT_WORK_TREE",
                                             "GIT_INDEX_FILE",
                                             "GIT_COMMON_DIR",
                                             "GIT_OBJECT_DIRECTORY",
                                             "GIT_ALTERNATE_OBJECT_DIRECTORIES",
                                             "GIT_NAMESPACE",
                                             "GIT_PREFIX"};

// The first line of what git had to say.
std::string first_words(const std::string& err) {
  const std::string line = err.substr(0, err.find('\n'));
  return line.empty() ? "no reason given" : line;
}

}  // namespace

std::vector<std::string> git_command(const std::filesystem::path& folder,
                                     std::vector<std::string> arguments) {
  std::vector<std::string> argv = {"env"};
  for (const char* variable : kRepositoryVariables) {
    argv.emplace_back("-u");
    argv.emplace_back(variable);
  }
  for (const char* word : {"git", "--no-optional-locks", "-c", "core.hooksPath=/dev/null", "-c",
                           "core.fsmonitor=false", "-C"}) {
    argv.emplace_back(word);
  }
  argv.push_back(folder.string());
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return argv;
}

Result<std::string> run_git(Spawner& spawner, const std::filesystem::path& folder,
                            std::vector<std::string> arguments) {
  const std::string verb = arguments.front();
  ASSAY_TRY(CommandOutput output,
            run_command(spawner, git_command(folder, std::move(arguments)), kGitSeconds));
  if (!output.end.ok()) return bad_input("git {}: {}", verb, first_words(output.err));
  std::string text = std::move(output.out);
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace assay
