// ssh-keygen, on copies of the manifest in a folder of its own.
#include "artifact/signature.h"

#include "artifact/manifest.h"
#include "base/files/files.h"
#include "base/files/folder.h"
#include "base/files/temporary_folder.h"
#include "base/text/text.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr double kLongest_s = 120;  // a person may have to touch or unlock the key
constexpr uint64_t kMostSignatureBytes = 1 << 16;

// The last line that says something: ssh-keygen's reason.
std::string reason_of(const CommandOutput& output) {
  std::string reason = output.end.text();
  for (const std::string& text : {output.out, output.err}) {
    for (std::string line : split(text, '\n')) {
      while (line.ends_with('\r') || line.ends_with(' ')) line.pop_back();
      if (!line.empty()) reason = std::move(line);
    }
  }
  return excerpt(reason);
}

Result<CommandOutput> ask_ssh_keygen(Spawner& spawner, std::vector<std::string> argv) {
  auto output = run_command(spawner, std::move(argv), kLongest_s);
  const bool absent = !output && output.error().kind == ErrorKind::kBadInput;
  if (absent || (output && output->end.exit_status == 127)) {
    return environment_error(
        "ssh-keygen: expected OpenSSH's program that signs (Debian: openssh-client), found none");
  }
  return output;
}

Result<std::string> signature_of(Spawner& spawner, const fs::path& key, std::string_view text) {
  std::error_code unknown;
  if (!fs::is_regular_file(key, unknown)) {
    return bad_input("{}: expected a key's file, found none", key.string());
  }
  ASSAY_TRY(const TemporaryFolder folder, TemporaryFolder::make("assay-sign-"));
  const fs::path file = folder.path() / kManifestName;
  ASSAY_CHECK(write_file(file, text));
  ASSAY_TRY(const CommandOutput output,
            ask_ssh_keygen(spawner, {"ssh-keygen", "-Y", "sign", "-f", key.string(), "-n",
                                     kSignatureNamespace, file.string()}));
  if (!output.end.ok()) {
    return bad_input("{}: expected a key that signs, found: {}", key.string(), reason_of(output));
  }
  return read_file(folder.path() / kSignatureName, kMostSignatureBytes);
}

// The name that the list gives to the signature's key.
Result<std::string> principal_of(Spawner& spawner, const fs::path& signature,
                                 const fs::path& signers) {
  ASSAY_TRY(const CommandOutput output,
            ask_ssh_keygen(spawner, {"ssh-keygen", "-Y", "find-principals", "-s",
                                     signature.string(), "-f", signers.string()}));
  const std::string name = output.out.substr(0, output.out.find('\n'));
  if (!output.end.ok() || name.empty()) {
    return bad_input("{}: expected the signature of a signer in {}, found: {}", kSignatureName,
                     signers.string(), reason_of(output));
  }
  return name;
}

}  // namespace

Status check_signing_key(Spawner& spawner, const fs::path& key) {
  ASSAY_CHECK(signature_of(spawner, key, "assay\n"));
  return {};
}

Status sign_bundle(Spawner& spawner, const Bundle& bundle, const fs::path& key) {
  if (!bundle.complete || bundle.rows_alone) {
    return bad_input("{}: expected a sealed bundle to sign, found {}", bundle.folder.string(),
                     bundle.rows_alone ? "rows alone" : "a run that has not ended");
  }
  ASSAY_TRY(const std::string signature,
            signature_of(spawner, key, manifest_text(bundle.manifest)));
  ASSAY_TRY(const auto folder, disk().open_folder(bundle.folder));
  return folder->write_atomic(kSignatureName, signature);
}

bool is_signed(const Bundle& bundle) {
  const auto folder = Folder::open(bundle.folder);
  return folder && folder->has(kSignatureName);
}

Result<std::string> check_signature(Spawner& spawner, const Bundle& bundle,
                                    const fs::path& signers) {
  ASSAY_CHECK(read_file(signers));
  ASSAY_TRY(const Folder folder, Folder::open(bundle.folder));
  if (!folder.has(kSignatureName)) {
    return bad_input("{}: expected a signature, found none", kSignatureName);
  }
  ASSAY_TRY(const std::string signature, folder.read(kSignatureName, kMostSignatureBytes));
  ASSAY_TRY(const TemporaryFolder scratch, TemporaryFolder::make("assay-verify-"));
  const fs::path manifest = scratch.path() / kManifestName;
  const fs::path copy = scratch.path() / kSignatureName;
  ASSAY_CHECK(write_file(manifest, manifest_text(bundle.manifest)));
  ASSAY_CHECK(write_file(copy, signature));
  ASSAY_TRY(const std::string name, principal_of(spawner, copy, signers));
  // It reads the signed text from its standard input.
  ASSAY_TRY(const CommandOutput output,
            ask_ssh_keygen(spawner,
                           {"/bin/sh", "-c", "signed=$1; shift; exec \"$@\" <\"$signed\"", "sh",
                            manifest.string(), "ssh-keygen", "-Y", "verify", "-f", signers.string(),
                            "-I", name, "-n", kSignatureNamespace, "-s", copy.string()}));
  if (!output.end.ok()) {
    return bad_input("{}: expected {}'s signature of this manifest, found: {}", kSignatureName,
                     name, reason_of(output));
  }
  return fmt::format("{} ({})", name, reason_of(output));
}

}  // namespace assay
