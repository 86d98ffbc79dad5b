// assay verify: checks that a bundle is byte for byte as its run wrote it, agrees with itself, and,
// with --signers, is signed by somebody on the list. With --seal it signs an intact one.
#include <cstdio>

#include "artifact/bundle.h"
#include "artifact/signature.h"
#include "base/text/shown_text.h"
#include "base/text/text.h"
#include "cli/command.h"
#include "crosscheck/crosscheck.h"

namespace assay::cli {
namespace {

struct VerifyArguments {
  std::string folder;
  std::string signers;  // empty: signatures aren't checked
  std::string key;      // empty: nothing is signed
};

void print_intact(const VerifyArguments& arguments, const Bundle& bundle,
                  const std::string& signer) {
  fmt::print("{}: intact: {}, {}\n", shown_line(arguments.folder),
             counted(std::ssize(bundle.rows), "row"),
             counted(std::ssize(bundle.manifest["files"]) + 1, "file"));
  if (!signer.empty()) {
    fmt::print("signed by {}\n", shown_line(signer));
  } else if (is_signed(bundle)) {
    fmt::print("signed by somebody; --signers names whose signature is one\n");
  }
  if (bundle.speed_unjudged > 0) {
    fmt::print(
        "{} can't be checked against the memory's read bandwidth, because the evidence lacks "
        "read_limit or read_bytes\n",
        counted(bundle.speed_unjudged, "ok row"));
  }
}

// The signer; a bundle without one from the list has that among its problems.
Result<std::string> signer_of(const VerifyArguments& arguments, const Bundle& bundle,
                              std::vector<VerifyProblem>& problems) {
  if (arguments.signers.empty()) return "";
  auto signer = check_signature(system_spawner(), bundle, arguments.signers);
  if (signer || !signer.error().message.starts_with(kSignatureName)) return signer;
  problems.push_back(
      {kSignatureName, signer.error().message.substr(std::string_view(kSignatureName).size() + 2)});
  return "";
}

Result<int> verify(const VerifyArguments& arguments, OutputFormat format) {
  // A bundle that can't be read has more than the one problem that keeps it from being read.
  std::vector<CommittedUnit> units;
  const Result<Bundle> bundle = read_bundle(arguments.folder, units);
  ASSAY_TRY(std::vector<VerifyProblem> problems,
            bundle ? check_bundle(*bundle, units) : verify_bundle(arguments.folder));
  if (problems.empty() && !bundle) return std::unexpected(bundle.error());
  std::string signer;
  if (bundle && problems.empty() && !arguments.key.empty()) {
    ASSAY_CHECK(sign_bundle(system_spawner(), *bundle, arguments.key));
  }
  if (bundle) {
    ASSAY_TRY(signer, signer_of(arguments, *bundle, problems));
  }
  if (problems.empty() && format == OutputFormat::kTable) {
    print_intact(arguments, *bundle, signer);
    return 0;
  }
  Table table;
  table.columns = columns_of("<object|<problem");
  for (const VerifyProblem& problem : problems) {
    table.rows.push_back({problem.object, problem.problem});
  }
  print_table(table, format);
  return problems.empty() ? 0 : 1;
}

}  // namespace

void add_verify_command(CLI::App& app, Selected& selected) {
  CLI::App* command = app.add_subcommand(
      "verify",
      "check a bundle's files against their hashes, its rows against the schema, and what it says "
      "twice against itself");
  const auto arguments = std::make_shared<VerifyArguments>();
  command->add_option("bundle", arguments->folder, "the bundle's folder")->required();
  command
      ->add_option("--signers", arguments->signers,
                   "require the signature of a signer in this file, OpenSSH's allowed_signers")
      ->type_name("FILE");
  command
      ->add_option("--seal", arguments->key,
                   "sign the bundle with this OpenSSH key if nothing is wrong with it")
      ->type_name("KEY");
  const auto format = add_output_format(*command);
  command->callback(
      [=, &selected] { selected.body = [=] { return verify(*arguments, *format); }; });
}

}  // namespace assay::cli
