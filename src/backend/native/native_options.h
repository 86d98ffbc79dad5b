// The session that a load request asks of the native engine.
#pragma once

#include <filesystem>

#include "backend/message.h"
#include "backend/native/native_load.h"
#include "base/result.h"
#include "engine/session/session.h"

namespace assay {

// An option that the harness sets: the compiler that the run has found, once for all its workers.
inline constexpr const char* kCompilerOption = "compiler";
Json compiler_to_json(const engine::CpuCompiler& compiler);

// Member of `prepared` and `evidence`: why the worker doesn't start the compiler again.
inline constexpr const char* kCompilerGaveUp = "compiler_gave_up";
// Likewise: the file of the kernel cache that it didn't load, and why; its kernel was compiled
// anew.
inline constexpr const char* kKernelRefused = "kernel_refused";

// True if the arm's weights are others than the model's: option `quantization`.
bool has_own_weights(const LoadRequest& request);
// The checkpoint that the arm computes with, of a request that native_session_options() takes.
std::filesystem::path weights_of(const LoadRequest& request);

// bad_input that names the member, the expectation and the finding.
Result<engine::SessionOptions> native_session_options(const LoadRequest& request);
// The slots of an arm under load; absent: the arm isn't one. Errors likewise.
Result<std::optional<NativeSlots>> native_slots(const Json& options);

}  // namespace assay
