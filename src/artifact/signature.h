// A signature of a sealed bundle's manifest, and so of every file whose hash it has. Hashes show a
// change by anybody who didn't seal the bundle anew; a signature shows one by anybody who hasn't
// the key. Keys and lists of signers are OpenSSH's, and its ssh-keygen signs and checks:
// `ssh-keygen -Y verify -f SIGNERS -I NAME -n assay-bundle -s manifest.json.sig < manifest.json`
// gives the same answer without this program.
#pragma once

#include <filesystem>
#include <string>

#include "artifact/bundle.h"
#include "base/process/subprocess.h"
#include "base/result.h"

namespace assay {

inline constexpr const char* kSignatureName = "manifest.json.sig";
inline constexpr const char* kSignatureNamespace = "assay-bundle";

// Tries the key before anything is measured for it. `key`: a private key's file, or a
// public one's whose private key an agent holds. bad_input: it isn't there, or can't be used.
// environment_error: there is no ssh-keygen.
Status check_signing_key(Spawner& spawner, const std::filesystem::path& key);

// Writes manifest.json.sig, in the place of an earlier one. The errors of check_signing_key();
// bad_input where the bundle isn't sealed.
Status sign_bundle(Spawner& spawner, const Bundle& bundle, const std::filesystem::path& key);

bool is_signed(const Bundle& bundle);

// The bundle's signer, one of the list `signers` (ALLOWED SIGNERS in ssh-keygen's manual): the name
// and ssh-keygen's line about it. bad_input that begins with manifest.json.sig: there is none, or
// it is of another manifest or of a signer who isn't listed. Other errors are about the list or the
// program.
Result<std::string> check_signature(Spawner& spawner, const Bundle& bundle,
                                    const std::filesystem::path& signers);

}  // namespace assay
