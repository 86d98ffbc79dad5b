// From a mode's needs to the arm's readiness.
#include "backend/torch/torch_readiness.h"

#include <charconv>

#include "base/text/text.h"
#include "study/arm_options.h"

namespace assay {
namespace {

std::string option(const StudyArm& arm, const char* name, const char* otherwise) {
  const auto it = arm.options.find(name);
  return it == arm.options.end() ? otherwise : it->get<std::string>();
}

bool uses_cuda_graphs(const StudyArm& arm) {
  return arm.mode == "reduce-overhead" || arm.mode == "max-autotune";
}

// Absent if it doesn't begin as a version does: somebody's own build, which is tried.
std::optional<ReleaseNumber> release_number(std::string_view version) {
  ReleaseNumber found;
  const char* const end = version.data() + version.size();
  const auto major = std::from_chars(version.data(), end, found.major);
  if (major.ec != std::errc() || major.ptr == end || *major.ptr != '.') return std::nullopt;
  if (std::from_chars(major.ptr + 1, end, found.minor).ec != std::errc()) return std::nullopt;
  return found;
}

bool is_older(const std::string& version, ReleaseNumber least) {
  const auto found = release_number(version);
  return found && *found < least;
}

std::string expected_release(const char* name, ReleaseNumber least, const std::string& found) {
  return fmt::format("expected {} >= {}.{}, found {}", name, least.major, least.minor, found);
}

// The first package that is too old, of a probe that has torch and transformers; empty: none is.
std::string too_old(const TorchProbe& probe) {
  if (is_older(probe.python, kLeastPython)) {
    return expected_release("Python", kLeastPython, probe.python);
  }
  if (is_older(*probe.torch, kLeastTorch)) {
    return expected_release("torch", kLeastTorch, *probe.torch);
  }
  if (is_older(*probe.transformers, kLeastTransformers)) {
    return expected_release("transformers", kLeastTransformers, *probe.transformers);
  }
  return "";
}

void fall_back(ArmReadiness& readiness, std::string to, std::string reason, std::string fix) {
  readiness.verdict = ArmReadiness::Verdict::kFallback;
  readiness.fallback = std::move(to);
  readiness.reason = std::move(reason);
  readiness.fix = std::move(fix);
}

void judge_gpu_compiler(const TorchProbe& probe, ArmReadiness& readiness) {
  const std::string fix = "install triton >= 3 beside this torch, or name another interpreter";
  if (!probe.triton) {
    fall_back(readiness, "eager",
              "Triton can't be imported: " + excerpt(probe.triton_error.value_or("no reason")),
              fix);
  } else if (is_older(*probe.triton, kLeastTriton)) {
    fall_back(readiness, "eager", expected_release("Triton", kLeastTriton, *probe.triton), fix);
  } else if (!probe.cc) {
    fall_back(readiness, "eager", "Triton needs a C compiler for its launchers, and none was found",
              "install gcc or clang, or name one in CC");
  }
}

void judge_cpu_compiler(const StudyArm& arm, const TorchProbe& probe, ArmReadiness& readiness) {
  if (!probe.cxx) {
    fall_back(readiness, "eager",
              "Inductor needs a C++ compiler: " + excerpt(probe.cxx_error.value_or("none found")),
              "install g++, or name a compiler in CXX");
  } else if (uses_cuda_graphs(arm)) {
    const bool tuned = arm.mode == "max-autotune";
    fall_back(readiness, tuned ? "max-autotune-no-cudagraphs" : "default",
              "CUDA graphs need a GPU: on the processor this mode runs without them", "");
  }
}

void name_identity(const StudyArm& arm, const TorchProbe& probe, bool on_gpu,
                   ArmReadiness& readiness) {
  readiness.framework_build = fmt::format("torch {} transformers {} python {}", *probe.torch,
                                          *probe.transformers, probe.python);
  if (on_gpu) readiness.device = *probe.cuda_device;
  if (on_gpu && probe.cuda_uuid) readiness.gpu_uuid = *probe.cuda_uuid;
  if (!mode_compiles(arm.mode)) {
    readiness.code_generator = "none";
  } else if (const auto backend = option(arm, "torch_backend", "inductor"); backend != "inductor") {
    readiness.code_generator = backend;
  } else if (on_gpu) {
    readiness.code_generator = probe.triton ? "triton " + *probe.triton : "none";
  } else {
    readiness.code_generator = probe.cxx.value_or("none");
  }
}

}  // namespace

ArmReadiness judge_torch_arm(const StudyArm& arm, const TorchProbe& probe) {
  const auto impossible = [&](std::string error_class, std::string reason, std::string fix) {
    ArmReadiness readiness =
        impossible_arm(std::move(error_class), std::move(reason), std::move(fix));
    readiness.facts = probe.facts;
    return readiness;
  };
  if (!probe.torch) {
    return impossible(
        "no_torch", "torch can't be imported: " + excerpt(probe.torch_error.value_or("no reason")),
        "`make torch-env`, or name an interpreter that has it in ASSAY_TORCH_PYTHON");
  }
  if (!probe.transformers) {
    return impossible("no_transformers",
                      "transformers can't be imported: " +
                          excerpt(probe.transformers_error.value_or("no reason")),
                      "install transformers beside this torch");
  }
  if (const std::string reason = too_old(probe); !reason.empty()) {
    return impossible("too_old", reason, "name a newer interpreter in ASSAY_TORCH_PYTHON");
  }
  const std::string device = option(arm, "device", "auto");
  const bool needs_gpu = device == "cuda" || arm.mode == "manual-cudagraph";
  if (needs_gpu && !probe.cuda_device) {
    return impossible(
        "no_cuda",
        fmt::format("expected a CUDA device, found none{}{}", probe.cuda_error ? ": " : "",
                    excerpt(probe.cuda_error.value_or(""))),
        "run it on a machine with an NVIDIA GPU");
  }
  if (arm.mode == "manual-cudagraph" && device == "cpu") {
    return impossible("no_cuda", "CUDA graphs need a GPU, and the arm requests device cpu", "");
  }
  ArmReadiness readiness;
  readiness.facts = probe.facts;
  const bool on_gpu = probe.cuda_device && device != "cpu";
  name_identity(arm, probe, on_gpu, readiness);
  const bool inductor =
      mode_compiles(arm.mode) && option(arm, "torch_backend", "inductor") == "inductor";
  if (inductor && on_gpu) judge_gpu_compiler(probe, readiness);
  if (inductor && !on_gpu) judge_cpu_compiler(arm, probe, readiness);
  return readiness;
}

}  // namespace assay
