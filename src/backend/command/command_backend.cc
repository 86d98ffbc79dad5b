// Facts about a command before it runs: if it is there, the bytes of its files, and its revision.
#include "backend/command/command_backend.h"

#include <algorithm>
#include <map>
#include <set>

#include "backend/command/checkouts.h"
#include "backend/command/command_options.h"
#include "backend/hashed_file.h"
#include "base/files/hash.h"
#include "base/process/executable.h"
#include "base/text/text.h"
#include "study/command_arm.h"
#include "study/placeholders.h"

namespace assay {
namespace {

constexpr size_t kShownDigits = 12;
constexpr uintmax_t kMostHashedBytes = uintmax_t{1} << 30;

bool lies_in(const std::filesystem::path& path, const std::string& folder) {
  const std::string text = path.lexically_normal().string();
  return !folder.empty() && text.starts_with(folder + "/");
}

std::string hash_of(const Json& file) {
  return file["sha256"].is_string() ? file["sha256"].get<std::string>() : "";
}

// The words behind the program; a shell's text is cut at blanks and quotes.
std::vector<std::string> words_of(const InvocationSpec& spec, bool shell) {
  if (!shell) return {spec.argv.begin() + 1, spec.argv.end()};
  std::vector<std::string> words(1);
  for (const char c : spec.argv.back()) {
    if (std::string_view(" \t\n\"';|&()<>").find(c) == std::string_view::npos) {
      words.back() += c;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

class CommandBackend final : public Backend {
 public:
  CommandBackend(std::filesystem::path program, Spawner& spawner, std::filesystem::path image)
      : program_(std::move(program)), image_(std::move(image)), checkouts_(spawner) {}

  Status check_arm(const StudyArm& arm) const override {
    const auto checkout = arm.options.find("checkout");
    if (checkout != arm.options.end() && !checkout->contains("revision")) {
      return bad_input(
          "arm \"{}\": expected revisions in its checkout (`assay compare --run REV REV STUDY` "
          "names them), found none",
          arm.name);
    }
    if (has_placeholder(arm, "side") && !arm.options.contains(kSideOption)) {
      return bad_input(
          "arm \"{}\": expected `assay compare --run` for a command with the placeholder {{side}}, "
          "found a study that is run by itself",
          arm.name);
    }
    return {};
  }

  WorkerCommand worker_command(const StudyArm&) const override {
    return {{program_.string(), "worker", "command"}, {}, {}, image_};
  }

  // A plan makes no worktree.
  std::optional<std::string> readiness_program(const StudyArm& arm) const override {
    if (!arm.options.contains("checkout")) return std::nullopt;
    return "git";
  }

  ArmReadiness readiness(const StudyArm& arm) override {
    const std::string key = to_json_line(arm.options);
    const auto known = readiness_.find(key);
    if (known != readiness_.end()) return known->second;
    return readiness_.emplace(key, find_out(arm)).first->second;
  }

  std::vector<ArmInput> inputs(const StudyArm& arm) override {
    const auto found = inputs_.find(to_json_line(arm.options));
    return found == inputs_.end() ? std::vector<ArmInput>() : found->second;
  }

  Json load_options(const StudyArm& arm, const StudyModel&, uint64_t seed) const override {
    Json options = arm.options;
    options[kSeedOption] = seed;
    const auto checkout = checked_out_.find(to_json_line(arm.options));
    if (checkout != checked_out_.end()) {
      options[kCheckedOutOption] = {{"folder", checkout->second.folder.string()},
                                    {"sha", checkout->second.sha}};
    }
    return options;
  }

  // Only the command knows its model, and whether there is one.
  Result<ModelFacts> inspect(const StudyModel&, std::span<const std::string>) const override {
    return ModelFacts{};
  }

  std::optional<ReadLimit> read_limit(const StudyArm&, uint64_t) override { return std::nullopt; }

 private:
  ArmReadiness find_out(const StudyArm& arm) {
    ArmReadiness readiness;
    if (const auto checkout = arm.options.find("checkout"); checkout != arm.options.end()) {
      const auto& made =
          checkouts_.get(checkout->value("repo", ""), checkout->value("revision", ""));
      if (!made) {
        return impossible_arm("no_checkout", made.error().message,
                              "the key checkout names a repository and its revisions");
      }
      checked_out_[to_json_line(arm.options)] = *made;
      readiness.code_sha = made->sha;
    }
    const auto options = command_options(load_options(arm, {}, 0));
    if (!options) return impossible_arm("invalid_options", options.error().message, "");
    const InvocationSpec spec = fill_command(*options, {});
    const std::string& name = spec.argv.front();
    readiness.facts = {{"command", arm.options["command"]}, {"folder", spec.folder.string()}};
    if (!readiness.code_sha.empty()) readiness.facts["code_sha"] = readiness.code_sha;
    // One that is a placeholder of the cell is known when it runs.
    const auto in_name = placeholders_of(name);
    if (in_name && in_name->empty()) {
      const auto program = find_executable(name, spec.folder);
      if (!program) {
        return impossible_arm("no_program",
                              fmt::format("expected a program {} that can be run, found none",
                                          quoted_excerpt(program_in(name, spec.folder))),
                              "the key command begins with a program in PATH or with its path");
      }
      readiness.program = hashed_file(*program);
    }
    add_files(spec, readiness.facts);
    inputs_[to_json_line(arm.options)] = inputs_of(*options, spec, readiness);
    readiness.framework_build =
        "command " +
        sha256_hex(identity_text(arm, readiness, options->checkout.folder)).substr(0, kShownDigits);
    return readiness;
  }

  // Adds arguments that are files: an interpreter's command is about its script.
  static void add_files(const InvocationSpec& spec, Json& facts) {
    facts["files"] = Json::array();
    for (size_t i = 1; i < spec.argv.size(); ++i) {
      const std::filesystem::path path = spec.folder / spec.argv[i];
      std::error_code error;
      if (!std::filesystem::is_regular_file(path, error)) continue;
      if (std::filesystem::file_size(path, error) > kMostHashedBytes || error) continue;
      facts["files"].push_back(hashed_file(path));
    }
  }

  // The program, and those words of the command that are files.
  static std::vector<ArmInput> inputs_of(const CommandOptions& options, const InvocationSpec& spec,
                                         const ArmReadiness& readiness) {
    const std::string& checkout = options.checkout.folder;
    std::vector<ArmInput> inputs;
    const auto add = [&](const std::string& word, const std::filesystem::path& path,
                         const std::string& sha256) {
      const bool inside = !checkout.empty() && word.starts_with(checkout);  // another one each time
      const std::string name = inside ? "{checkout}" + word.substr(checkout.size()) : word;
      inputs.push_back({"", name, std::filesystem::absolute(path), sha256});
    };
    if (!readiness.program.is_null()) {
      add(spec.argv.front(), readiness.program["path"].get<std::string>(),
          hash_of(readiness.program));
    }
    for (const std::string& word : words_of(spec, options.shell)) {
      const std::filesystem::path path = spec.folder / word;
      std::error_code error;
      if (!std::filesystem::is_regular_file(path, error)) continue;
      const Json& files = readiness.facts["files"];
      const auto stated = std::ranges::find_if(
          files, [&](const Json& file) { return file["path"] == path.string(); });
      add(word, path, stated == files.end() ? "" : hash_of(*stated));
    }
    return inputs;
  }

  // Equal for two arms that are the same command: its text and the bytes of its files, except for
  // those of a checkout, which the commit names.
  static std::string identity_text(const StudyArm& arm, const ArmReadiness& readiness,
                                   const std::string& checkout) {
    Json json = {{"command", arm.options["command"]}};
    for (const char* key : {"shell", "workdir", "env"}) {
      if (arm.options.contains(key)) json[key] = arm.options[key];
    }
    json["files"] = Json::array();
    const auto add = [&](const Json& file) {
      if (file.is_null() || lies_in(file["path"].get<std::string>(), checkout)) return;
      json["files"].push_back(file["sha256"]);
    };
    add(readiness.program);
    for (const Json& file : readiness.facts["files"]) add(file);
    return to_json_line(json);
  }

  std::filesystem::path program_;
  std::filesystem::path image_;
  Checkouts checkouts_;
  std::map<std::string, Checkout> checked_out_;          // by an arm's options
  std::map<std::string, ArmReadiness> readiness_;        // likewise, as first found
  std::map<std::string, std::vector<ArmInput>> inputs_;  // likewise
};

}  // namespace

std::unique_ptr<Backend> make_command_backend(std::filesystem::path program, Spawner& spawner,
                                              std::filesystem::path image) {
  return std::make_unique<CommandBackend>(std::move(program), spawner, std::move(image));
}

}  // namespace assay
