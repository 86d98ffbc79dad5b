// assay doctor: the parts that can run here and those that can't, each with the reason and the fix.
#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/process/terminal.h"
#include "base/process/thread_pool.h"
#include "base/records/backend_traits.h"
#include "base/text/listed.h"
#include "base/text/shown_text.h"
#include "base/text/text.h"
#include "cli/backends.h"
#include "cli/command.h"
#include "engine/codegen/cpu/compiler.h"
#include "engine/codegen/cuda/nvrtc.h"
#include "engine/codegen/kernel_cache.h"
#include "engine/device/cpu/bandwidth.h"
#include "engine/device/cpu/simd_target.h"
#include "engine/device/cuda/cublaslt.h"
#include "engine/device/cuda/cupti.h"
#include "engine/device/cuda/driver.h"
#include "engine/device/cuda/matrix_rate.h"
#include "engine/device/cuda/read_bandwidth.h"
#include "identity/checkup.h"
#include "identity/gpu_sensors.h"
#include "report/fitting.h"

namespace assay::cli {
namespace {

Check engine_check(const Host& host) {
  const std::string target = engine::simd_target_name();
  const bool portable = target == "SCALAR" || target == "EMU128";
  const auto bf16 = engine::bf16_target_name();
  return {"native_engine", portable ? CheckStatus::kLimited : CheckStatus::kOk,
          fmt::format("CPU kernels run with {}{} on {}", target,
                      bf16 ? fmt::format(", prompts in bf16 with {},", *bf16) : "",
                      host.cpu_model.value_or("an unknown processor")),
          portable ? "none: the kernels support none of this processor's SIMD instructions" : ""};
}

Check bandwidth_check() {
  ThreadPool pool(available_cpus());
  const Result<double> gb_per_s = engine::measure_read_bandwidth(pool);
  if (!gb_per_s) {
    return {"read_bandwidth", CheckStatus::kMissing, gb_per_s.error().message,
            "free memory: the probe reads half a gigabyte"};
  }
  return {"read_bandwidth", CheckStatus::kOk,
          fmt::format("{} GB/s with {}", format_significant(*gb_per_s, 3),
                      counted(static_cast<int64_t>(pool.size()), "thread"))};
}

// The compiler that compiled arms would use; the eager engine needs none.
Check compiler_check() {
  const auto compiler = engine::CpuCompiler::find();
  if (!compiler) {
    return {"cxx_compiler", CheckStatus::kMissing,
            compiler.error().message + "; compiled arms would fall back to eager",
            "install g++ or clang++, or name one in ASSAY_CXX"};
  }
  return {"cxx_compiler", CheckStatus::kOk,
          fmt::format("{}: {}; compiled arms use it with -march=native, which is {} here",
                      compiler->command.string(), excerpt(compiler->version),
                      excerpt(compiler->processor))};
}

Check kernel_cache_check() {
  const auto cache = engine::KernelCache::open(engine::KernelCache::default_folder());
  const auto entries = cache ? cache->entries() : std::unexpected(cache.error());
  if (!entries) {
    return {"kernel_cache", CheckStatus::kLimited,
            entries.error().message + "; every process would compile its own kernels",
            "name a private folder in ASSAY_KERNEL_CACHE"};
  }
  return {"kernel_cache", CheckStatus::kOk,
          fmt::format("{}: {}", cache->folder().string(), counted(std::ssize(*entries), "kernel"))};
}

// It compiles for GPUs, whether there is one here or not.
Check nvrtc_check() {
  const auto nvrtc = engine::Nvrtc::open();
  if (!nvrtc) {
    return {"nvrtc", CheckStatus::kMissing,
            nvrtc.error().message + "; kernels for NVIDIA GPUs can't be compiled",
            "fetch it with `make cuda-libs`, or name a libnvrtc.so in ASSAY_NVRTC"};
  }
  return {"nvrtc", CheckStatus::kOk, fmt::format("{}: {}", nvrtc->path(), nvrtc->version())};
}

// An arm of backend torch as it would run here, with the interpreter that arms without one get.
Check torch_check(Backend& torch, const std::string& mode) {
  StudyArm arm;
  arm.name = "torch";
  arm.backend = "torch";
  arm.mode = mode;
  arm.cache = "static";
  const ArmReadiness readiness = torch.readiness(arm);
  switch (readiness.verdict) {
    case ArmReadiness::Verdict::kImpossible:
      return {"torch", CheckStatus::kMissing, "can't run: " + readiness.reason, readiness.fix};
    case ArmReadiness::Verdict::kFallback:
      return {"torch", CheckStatus::kLimited,
              fmt::format("would run as {}: {}", readiness.fallback, readiness.reason),
              readiness.fix};
    case ArmReadiness::Verdict::kReady:
      break;
  }
  return {"torch", CheckStatus::kOk,
          fmt::format("{}; code generator: {}; device: {}", readiness.framework_build,
                      readiness.code_generator,
                      readiness.device.empty() ? "the processor" : readiness.device)};
}

// One check for all modes of which the same holds.
std::vector<Check> torch_checks() {
  BackendSet backends = make_backends();
  std::vector<std::pair<Check, std::vector<std::string>>> found;  // with the modes
  for (const std::string_view word : backend_traits("torch").modes) {
    const std::string mode(word);
    const Check check = torch_check(*backends.at("torch"), mode);
    const auto same = std::ranges::find_if(found, [&](const auto& one) {
      return one.first.status == check.status && one.first.finding == check.finding &&
             one.first.fix == check.fix;
    });
    if (same == found.end()) {
      found.emplace_back(check, std::vector<std::string>{mode});
    } else {
      same->second.push_back(mode);
    }
  }
  std::vector<Check> checks;
  for (auto& [check, modes] : found) {
    if (found.size() > 1) {
      check.name += "_" + modes.front();
      check.finding = fmt::format("{}: {}", listed(modes), check.finding);
    }
    checks.push_back(std::move(check));
  }
  return checks;
}

// CUPTI, with which `run --profile` watches native arms on a GPU.
Check cupti_check() {
  const auto cupti = engine::cuda::Cupti::open();
  if (!cupti) {
    return {"cupti", CheckStatus::kMissing,
            cupti.error().message + "; native arms on a GPU have no profile",
            "install the CUDA toolkit's CUPTI, or name a libcupti.so in ASSAY_CUPTI"};
  }
  return {"cupti", CheckStatus::kOk,
          fmt::format("{}: API version {}", cupti->path(), cupti->version())};
}

// The library that multiplies many rows on a GPU, and how fast it does.
std::vector<Check> product_checks(engine::cuda::Driver& driver) {
  const auto library = engine::cuda::CublasLt::open(driver, std::nullopt);
  if (!library) {
    return {{"cublaslt", CheckStatus::kLimited,
             library.error().message + "; prompts run on kernels made for few rows",
             "fetch it with `make cuda-libs`, or name a libcublasLt.so in ASSAY_CUBLASLT"}};
  }
  std::vector<Check> checks = {{"cublaslt", CheckStatus::kOk,
                                fmt::format("{}: {}", (*library)->path(), (*library)->version())}};
  const auto rate = engine::cuda::measure_matrix_rate(driver, **library, engine::DType::kBF16);
  checks.push_back(
      rate ? Check{"gpu_matrix_rate", CheckStatus::kOk,
                   fmt::format("{} TFLOP/s in bf16", format_significant(*rate / 1e12, 3))}
           : Check{"gpu_matrix_rate", CheckStatus::kMissing, rate.error().message,
                   "the probe needs 400 MB of the GPU's memory"});
  return checks;
}

Check gpu_read_check(engine::cuda::Driver& driver) {
  const auto gb_per_s = engine::cuda::measure_read_bandwidth(driver);
  if (!gb_per_s) {
    return {"gpu_read_bandwidth", CheckStatus::kMissing, gb_per_s.error().message,
            "the probe needs NVRTC and a gigabyte of the GPU's memory"};
  }
  return {"gpu_read_bandwidth", CheckStatus::kOk,
          fmt::format("{} GB/s", format_significant(*gb_per_s, 3))};
}

// The GPU that `device: cuda` means.
std::vector<Check> cuda_checks() {
  using engine::cuda::Driver;
  const auto gpu = Driver::describe(0);
  if (!gpu) {
    return {{"cuda", CheckStatus::kMissing,
             gpu.error().message + "; native arms with device: cuda can't run",
             "install NVIDIA's driver on a machine with a GPU"}};
  }
  std::vector<Check> checks = {
      {"cuda", CheckStatus::kOk,
       fmt::format("{}, compute capability {}, {} multiprocessors, {}, {}", gpu->name,
                   gpu->compute_capability, gpu->multiprocessors,
                   format_bytes(static_cast<double>(gpu->total_bytes)), gpu->driver_name())}};
  const auto driver = Driver::open(0);
  if (!driver) {
    checks.push_back({"cuda_context", CheckStatus::kMissing, driver.error().message,
                      "`nvidia-smi` shows which process holds the GPU"});
    return checks;
  }
  std::ranges::move(product_checks(**driver), std::back_inserter(checks));
  checks.push_back(gpu_read_check(**driver));
  return checks;
}

Check gpu_check() {
  const auto nvml = open_nvml();
  if (!nvml) {
    return {"nvidia_gpu", CheckStatus::kMissing,
            nvml.error().message + "; the clock, temperature and power of GPUs cannot be read",
            "install NVIDIA's driver, or name the library in ASSAY_NVML"};
  }
  std::vector<std::string> found;
  for (const GpuInfo& gpu : (*nvml)->list()) {
    const GpuState state = (*nvml)->read(gpu.uuid);
    found.push_back(fmt::format("{}, driver {}", gpu.name, gpu.driver));
    if (gpu.memory_bytes) {
      found.back() += ", " + format_bytes(static_cast<double>(*gpu.memory_bytes));
    }
    if (state.sm_clock_mhz) found.back() += fmt::format(", {:.0f} MHz", *state.sm_clock_mhz);
    if (state.temperature_c) found.back() += fmt::format(", {:.0f} C", *state.temperature_c);
    if (state.power_w) found.back() += fmt::format(", {:.0f} W", *state.power_w);
    if (state.throttled == true)
      found.back() += ", throttled: " + join(state.throttle_reasons, ", ");
  }
  if (found.empty()) return {"nvidia_gpu", CheckStatus::kMissing, "the driver lists no GPU"};
  return {"nvidia_gpu", CheckStatus::kOk, join(found, "; ")};
}

Result<double> free_bytes_here() {
  std::error_code error;
  const auto space = std::filesystem::space(".", error);
  if (error)
    return environment_error("free disk space: expected a figure, found: {}", error.message());
  return static_cast<double>(space.available);
}

std::vector<Check> all_checks() {
  const MachineFiles files;
  const Host host = read_host(files);
  Monitor monitor;
  monitor.sample();  // power is a mean between two samples
  std::vector<Check> checks = {engine_check(host), bandwidth_check()};
  const MachineSample sample = monitor.sample();
  std::ranges::move(machine_checks(host, build_info()), std::back_inserter(checks));
  std::ranges::move(sensor_checks(files, host, sample), std::back_inserter(checks));
  checks.push_back(compiler_check());
  checks.push_back(kernel_cache_check());
  checks.push_back(nvrtc_check());
  checks.push_back(gpu_check());
  std::ranges::move(cuda_checks(), std::back_inserter(checks));
  checks.push_back(cupti_check());
  std::ranges::move(torch_checks(), std::back_inserter(checks));
  checks.push_back(disk_check(free_bytes_here()));
  return checks;
}

// For a terminal: a line a check, wrapped, with the fix below.
std::string check_lines(const std::vector<Check>& checks) {
  constexpr size_t kWidest = 100;
  constexpr size_t kLeast = 20;  // of a check's text
  const size_t width = std::min(kWidest, stdout_columns().value_or(kWidest));
  constexpr std::string_view kFix = "fix: ";
  size_t longest = 0;
  for (const Check& check : checks) longest = std::max(longest, check.name.size());
  std::string text;
  for (const Check& check : checks) {
    std::string start =
        fmt::format("{:<8} {:<{}}  ", check_status_name(check.status), check.name, longest);
    const size_t indent = start.size();
    const size_t room = std::max(width, indent + kLeast) - indent;
    const auto add = [&](std::string_view what, const std::string& said, size_t further) {
      for (const std::string& line :
           wrapped_lines(fmt::format("{}{}", what, shown_line(said)), room, further)) {
        text += start + line + "\n";
        start.assign(indent, ' ');
      }
    };
    add("", check.finding, 0);
    if (!check.fix.empty()) add(kFix, check.fix, kFix.size());
  }
  return text;
}

Result<int> run_doctor(OutputFormat format) {
  const std::vector<Check> checks = all_checks();
  if (format == OutputFormat::kTable) {
    fmt::print("{}", check_lines(checks));
    return 0;
  }
  Table table;
  table.columns = columns_of("<check|<status|<finding|<fix");
  for (const Check& check : checks) {
    table.rows.push_back(
        {check.name, check_status_name(check.status), check.finding, TableCell::if_any(check.fix)});
  }
  print_table(table, format);
  return 0;
}

}  // namespace

void add_doctor_command(CLI::App& app, Selected& selected) {
  CLI::App* command = app.add_subcommand("doctor",
                                         "check which backends and sensors work on this machine, "
                                         "with a reason and a fix for each that doesn't");
  const auto format = add_output_format(*command);
  command->callback([=, &selected] { selected.body = [=] { return run_doctor(*format); }; });
}

}  // namespace assay::cli
