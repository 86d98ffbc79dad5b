// Gates of arms whose interpreters have every package, some and none.
#include "backend/torch/torch_readiness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using ::testing::HasSubstr;
using Verdict = ArmReadiness::Verdict;

StudyArm arm(const std::string& mode, Json options = Json::object()) {
  StudyArm made;
  made.name = "arm";
  made.backend = "torch";
  made.mode = mode;
  made.cache = "static";
  made.options = std::move(options);
  return made;
}

TorchProbe whole() {
  TorchProbe probe;
  probe.python = "3.11.2";
  probe.torch = "2.11.0+cu130";
  probe.transformers = "5.17.0";
  probe.triton = "3.6.0";
  probe.cxx = "g++ 12";
  probe.cc = "/usr/bin/gcc";
  return probe;
}

TorchProbe with_gpu() {
  TorchProbe probe = whole();
  probe.cuda_device = "NVIDIA H200";
  probe.cuda_uuid = "GPU-1";
  return probe;
}

TEST(TorchReadiness, EverythingThereIsReady) {
  for (const char* mode : {"eager", "default", "reduce-overhead", "max-autotune",
                           "max-autotune-no-cudagraphs", "manual-cudagraph"}) {
    const ArmReadiness readiness = judge_torch_arm(arm(mode), with_gpu());
    EXPECT_EQ(readiness.verdict, Verdict::kReady) << mode << readiness.reason;
    EXPECT_EQ(readiness.device, "NVIDIA H200");
    EXPECT_EQ(readiness.gpu_uuid, "GPU-1");
  }
  EXPECT_EQ(judge_torch_arm(arm("default"), with_gpu()).code_generator, "triton 3.6.0");
  EXPECT_EQ(judge_torch_arm(arm("eager"), with_gpu()).framework_build,
            "torch 2.11.0+cu130 transformers 5.17.0 python 3.11.2");
}

TEST(TorchReadiness, TheProcessorIsNoGpu) {
  const ArmReadiness readiness = judge_torch_arm(arm("default", {{"device", "cpu"}}), with_gpu());
  EXPECT_EQ(readiness.verdict, Verdict::kReady);
  EXPECT_EQ(readiness.device, "");
  EXPECT_EQ(readiness.gpu_uuid, "");
  EXPECT_EQ(readiness.code_generator, "g++ 12");
}

TEST(TorchReadiness, WithoutACompilerItWouldBeEager) {
  TorchProbe probe = whole();
  probe.cxx.reset();
  probe.cxx_error = "g++ is not on the path";
  const ArmReadiness readiness = judge_torch_arm(arm("default"), probe);
  EXPECT_EQ(readiness.verdict, Verdict::kFallback);
  EXPECT_EQ(readiness.fallback, "eager");
  EXPECT_THAT(readiness.reason, HasSubstr("g++ is not on the path"));
  EXPECT_EQ(judge_torch_arm(arm("eager"), probe).verdict, Verdict::kReady);
  const Json aot = {{"torch_backend", "aot_eager"}};
  EXPECT_EQ(judge_torch_arm(arm("default", aot), probe).verdict, Verdict::kReady);
}

TEST(TorchReadiness, TritonMustBeThereAndNewEnough) {
  TorchProbe probe = with_gpu();
  probe.triton = "2.3.1";
  EXPECT_EQ(judge_torch_arm(arm("default"), probe).reason, "expected Triton >= 3.0, found 2.3.1");
  probe.triton.reset();
  probe.triton_error = "ModuleNotFoundError: No module named 'triton'";
  const ArmReadiness readiness = judge_torch_arm(arm("reduce-overhead"), probe);
  EXPECT_EQ(readiness.verdict, Verdict::kFallback);
  EXPECT_THAT(readiness.reason, HasSubstr("No module named 'triton'"));
  EXPECT_EQ(judge_torch_arm(arm("default", {{"device", "cpu"}}), probe).verdict, Verdict::kReady);
  probe.triton = "3.0.0";
  probe.cc.reset();
  EXPECT_EQ(judge_torch_arm(arm("default"), probe).verdict, Verdict::kFallback);
}

TEST(TorchReadiness, WhatIsTooOldIsRefusedInOneLine) {
  const auto judged = [](auto change) {
    TorchProbe probe = whole();
    change(probe);
    return judge_torch_arm(arm("eager"), probe);
  };
  const ArmReadiness torch = judged([](TorchProbe& probe) { probe.torch = "2.4.1+cu121"; });
  EXPECT_EQ(torch.verdict, Verdict::kImpossible);
  EXPECT_EQ(torch.error_class, "too_old");
  EXPECT_EQ(torch.reason, "expected torch >= 2.5, found 2.4.1+cu121");
  EXPECT_EQ(judged([](TorchProbe& probe) { probe.transformers = "4.45.2"; }).reason,
            "expected transformers >= 4.46, found 4.45.2");
  EXPECT_EQ(judged([](TorchProbe& probe) { probe.python = "3.9.18"; }).reason,
            "expected Python >= 3.11, found 3.9.18");
  for (const char* enough : {"2.5.1", "2.10.0a0+git1234567", "3.0", "somebody's own"}) {
    EXPECT_EQ(judged([&](TorchProbe& probe) { probe.torch = enough; }).verdict, Verdict::kReady)
        << enough;
  }
}

TEST(TorchReadiness, CudaGraphsNeedAGpu) {
  const ArmReadiness reduced = judge_torch_arm(arm("reduce-overhead"), whole());
  EXPECT_EQ(reduced.verdict, Verdict::kFallback);
  EXPECT_EQ(reduced.fallback, "default");
  EXPECT_EQ(judge_torch_arm(arm("max-autotune"), whole()).fallback, "max-autotune-no-cudagraphs");
  const ArmReadiness manual = judge_torch_arm(arm("manual-cudagraph"), whole());
  EXPECT_EQ(manual.verdict, Verdict::kImpossible);
  EXPECT_EQ(manual.error_class, "no_cuda");
}

TEST(TorchReadiness, WhatCannotRunSaysWhy) {
  TorchProbe probe = whole();
  probe.cuda_error = "torch.cuda.is_available() is false";
  const ArmReadiness cuda = judge_torch_arm(arm("eager", {{"device", "cuda"}}), probe);
  EXPECT_EQ(cuda.error_class, "no_cuda");
  EXPECT_THAT(cuda.reason, HasSubstr("is_available() is false"));
  probe.transformers.reset();
  EXPECT_EQ(judge_torch_arm(arm("eager"), probe).error_class, "no_transformers");
  probe.torch.reset();
  probe.torch_error = "ImportError: libcudart.so.13: cannot open shared object file";
  const ArmReadiness torch = judge_torch_arm(arm("eager"), probe);
  EXPECT_EQ(torch.verdict, Verdict::kImpossible);
  EXPECT_EQ(torch.error_class, "no_torch");
  EXPECT_THAT(torch.reason, HasSubstr("libcudart.so.13"));
}

TEST(TorchProbe, ReadsWhatTheScriptPrints) {
  const auto probe = parse_probe(
      R"({"python": "3.11.2", "torch": "2.11.0", "transformers": null, "transformers_error": "no",)"
      R"( "triton": "3.6.0", "cxx": "g++", "cc": null})");
  ASSERT_TRUE(probe) << probe.error().message;
  EXPECT_EQ(probe->torch, "2.11.0");
  EXPECT_FALSE(probe->transformers);
  EXPECT_EQ(probe->transformers_error, "no");
  EXPECT_FALSE(probe->cuda_device);
  EXPECT_FALSE(probe->cc);
  EXPECT_FALSE(parse_probe("[]"));
  EXPECT_FALSE(parse_probe("{}"));
  EXPECT_FALSE(parse_probe("Traceback"));
  EXPECT_FALSE(parse_probe(R"({"python": "3", "torch": 2})"));
}

}  // namespace
}  // namespace assay
