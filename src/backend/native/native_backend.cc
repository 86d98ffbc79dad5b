// Checks of arms and models before a worker starts, and the machine's read bandwidth.
#include "backend/native/native_backend.h"

#include <unistd.h>

#include <map>
#include <set>

#include "backend/native/native_gpu.h"
#include "backend/native/native_options.h"
#include "base/files/files.h"
#include "base/files/hash.h"
#include "base/process/thread_pool.h"
#include "base/records/device_name.h"
#include "base/text/text.h"
#include "engine/codegen/cpu/build_folder.h"
#include "engine/codegen/cpu/compiler.h"
#include "engine/device/cpu/bandwidth.h"
#include "engine/model/checkpoint.h"
#include "engine/model/same_model.h"
#include "engine/passes/pass.h"
#include "engine/tokenizer/tokenizer.h"
#include "study/arm_options.h"
#include "study/study_quality.h"

namespace assay {
namespace {

// The compiler that compiled arms need, after a trial: it is there and compiles. One that hangs
// costs its time here, once, and in no kernel of the run.
Result<engine::CpuCompiler> try_compiler() {
  ASSAY_TRY(const auto compiler, engine::CpuCompiler::find());
  ASSAY_TRY(const auto folder, engine::BuildFolder::make());
  ASSAY_CHECK(
      engine::compile_shared(compiler, "extern \"C\" void assay_trial() {}\n", folder.path()));
  return compiler;
}

// The GPU that an arm asks for. Its device's name has been checked.
std::optional<int> gpu_of(const StudyArm& arm) {
  const std::string name = device_option(arm);
  if (name.empty()) return std::nullopt;
  const auto device = parse_device_name(name, "device");
  return device ? device->gpu : std::nullopt;
}

// A GPU's arms have NVRTC.
bool needs_compiler(const StudyArm& arm) {
  return arm.mode == "compiled" && !gpu_of(arm);
}

constexpr size_t kShownHashDigits = 12;

Result<std::string> hash_executable(const std::filesystem::path& program) {
  ASSAY_TRY(const std::string hash, sha256_file_hex(program));
  if (::access(program.c_str(), X_OK) == 0) return hash;
  return environment_error("{}: expected a program that may be run, found a file that may not",
                           program.string());
}

// An error's first line: a compiler's words may have many.
std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// The program that is to serve an arm in this one's place; a name is one of the working directory.
std::optional<std::filesystem::path> program_option(const StudyArm& arm) {
  const auto named = arm.options.find("program");
  if (named == arm.options.end()) return std::nullopt;
  return std::filesystem::absolute(named->get<std::string>()).lexically_normal();
}

class NativeBackend final : public Backend {
 public:
  NativeBackend(std::filesystem::path program, std::filesystem::path image)
      : program_(std::move(program)), image_(std::move(image)) {}

  Status check_arm(const StudyArm& arm) const override {
    LoadRequest request;
    request.mode = arm.mode;
    request.cache = arm.cache;
    request.dynamic = arm.dynamic;
    request.options = arm.options;
    request.options.erase("program");  // never reaches the worker
    Status checked;
    if (const auto options = native_session_options(request); !options) {
      checked = std::unexpected(options.error());
    } else {
      checked = engine::check_pass_names(options->compile.disabled_passes);
    }
    if (!checked) return with_context(fmt::format("arm \"{}\"", arm.name), checked.error());
    return {};
  }

  WorkerCommand worker_command(const StudyArm& arm) const override {
    if (const auto program = program_option(arm)) {
      return {{program->string(), "worker", "native"}, {}};
    }
    return {{program_.string(), "worker", "native"}, {}, {}, image_};
  }

  ArmReadiness readiness(const StudyArm& arm) override {
    const auto program = program_option(arm);
    if (!program) return readiness_of_device(arm);
    const Result<std::string>& hash = hash_of(*program);
    if (!hash) {
      return impossible_arm("no_program", hash.error().message,
                            "the key program names an assay executable");
    }
    ArmReadiness readiness = readiness_of_device(arm);
    readiness.framework_build = "program " + hash->substr(0, kShownHashDigits);
    readiness.program = {{"path", program->string()}, {"sha256", *hash}};
    return readiness;
  }

  std::vector<ArmInput> inputs(const StudyArm& arm) override {
    std::vector<ArmInput> inputs;
    if (const auto program = program_option(arm)) {
      const Result<std::string>& hash = hash_of(*program);
      inputs.push_back({"", "program", *program, hash ? *hash : ""});
    }
    if (const std::string weights = quantization_option(arm); !weights.empty()) {
      const auto path = std::filesystem::absolute(weights);
      std::error_code error;
      const bool folder = std::filesystem::is_directory(path, error);
      inputs.push_back({"", folder ? "" : path.filename().string(), path});
    }
    return inputs;
  }

  Status check_weights(const StudyArm& arm, const StudyModel& model) const override {
    const std::string weights = quantization_option(arm);
    if (weights.empty()) return {};
    const auto check = [&]() -> Status {
      ASSAY_TRY(const auto own, engine::Checkpoint::open(weights));
      ASSAY_TRY(const auto of_model, engine::Checkpoint::open(model.path));
      return engine::check_same_model(of_model.config(), own.config(), weights);
    };
    if (Status checked = check(); !checked) {
      return with_context(fmt::format("arm \"{}\"", arm.name), checked.error());
    }
    return {};
  }

  std::optional<WorkerCommand> quality_command(const StudyArm& arm, const StudyModel& model,
                                               const StudyQuality& quality,
                                               uint64_t seed) const override {
    const std::string weights = quantization_option(arm);
    if (weights.empty()) return std::nullopt;
    const auto option = [](int64_t value) { return fmt::format("{}", value); };
    std::vector<std::string> argv = {program_.string(),
                                     "model",
                                     "quality",
                                     weights,
                                     "--reference",
                                     model.path.string(),
                                     "--windows",
                                     option(quality.windows),
                                     "--window",
                                     option(quality.window),
                                     "--threads",
                                     option(arm.threads),
                                     "--seed",
                                     fmt::format("{}", seed),
                                     "-o",
                                     "json"};
    const auto add = [&](const char* name, const std::string& value) {
      if (!value.empty()) argv.insert(argv.end(), {name, value});
    };
    add("--device", device_option(arm));
    if (const auto type = arm.options.find("dtype"); type != arm.options.end()) {
      add("--dtype", type->get<std::string>());
    }
    add("--reference-dtype", model.dtype);
    add("--text", quality.text_file);
    return WorkerCommand{std::move(argv), {}, {}, image_};
  }

  Json load_options(const StudyArm& arm, const StudyModel&, uint64_t) const override {
    Json options = arm.options;
    options.erase("program");
    if (!needs_compiler(arm) || !compiler_) return options;
    if (!*compiler_) {
      options["no_compiler"] = compiler_->error().message;
    } else if (!program_option(arm)) {  // an older program may not know the option
      options[kCompilerOption] = compiler_to_json(**compiler_);
    }
    return options;
  }

  std::optional<std::string> hear(const StudyArm& arm, const Json& evidence) override {
    const auto refused = evidence.find(kKernelRefused);
    if (refused != evidence.end() && refused->is_string() &&
        told_.insert(refused->get<std::string>()).second) {
      return refused->get<std::string>() + "; its kernel is compiled anew";
    }
    const auto gave_up = evidence.find(kCompilerGaveUp);
    if (!needs_compiler(arm) || gave_up == evidence.end() || !gave_up->is_string()) return {};
    if (compiler_ && !*compiler_) return {};  // known
    compiler_ = environment_error("{}", gave_up->get<std::string>());
    return fmt::format("arm \"{}\": the compiler isn't started again in this run: {}", arm.name,
                       first_line(compiler_->error().message));
  }

  Result<ModelFacts> inspect(const StudyModel& model,
                             std::span<const std::string> texts) const override {
    if (!model.arch.empty()) {
      return bad_input(
          "model \"{}\": expected a checkpoint's path for arms of backend native, found arch {}; "
          "`assay model make {} -o DIR` writes one",
          model.name, model.arch, model.arch);
    }
    ASSAY_TRY(const auto checkpoint, engine::Checkpoint::open(model.path));
    ModelFacts facts;
    facts.max_positions = checkpoint.config().max_positions;
    facts.weight_bytes = checkpoint.weight_bytes();
    if (texts.empty()) return facts;
    ASSAY_TRY(const auto tokenizer, engine::Tokenizer::open(model.path));
    for (const std::string& text : texts) {
      ASSAY_TRY(const auto ids, tokenizer.encode(text, true));
      facts.text_tokens.push_back(static_cast<int64_t>(ids.size()));
    }
    return facts;
  }

  std::optional<double> matrix_limit(const StudyArm& arm, const std::string& dtype) override {
    const auto gpu = gpu_of(arm);
    return gpu ? gpus_.matrix_limit(*gpu, dtype) : std::nullopt;
  }

  std::optional<ReadLimit> read_limit(const StudyArm& arm, uint64_t weight_bytes) override {
    if (const auto gpu = gpu_of(arm)) return gpus_.read_limit(*gpu, weight_bytes);
    const auto cache_bytes = engine::last_level_cache_bytes();
    if (!cache_bytes || weight_bytes <= *cache_bytes) return std::nullopt;
    ThreadPool pool(arm.threads > 0 ? static_cast<size_t>(arm.threads) : available_cpus());
    const auto gb_per_s = engine::measure_read_bandwidth(pool);
    if (!gb_per_s) return std::nullopt;
    return ReadLimit{*gb_per_s * 1e9, *cache_bytes};
  }

 private:
  // The readiness by the arm's device and compiler, not by the program that it names.
  ArmReadiness readiness_of_device(const StudyArm& arm) {
    if (const auto gpu = gpu_of(arm)) {
      return arm.options.contains("dtype") ? gpus_.fp8_readiness(*gpu) : gpus_.readiness(*gpu);
    }
    ArmReadiness readiness;
    if (!needs_compiler(arm)) return readiness;
    if (!compiler_) compiler_ = try_compiler();
    if (!*compiler_) {
      readiness.verdict = ArmReadiness::Verdict::kFallback;
      readiness.reason = first_line(compiler_->error().message);
      readiness.fix = "install g++ or clang++, or name one in ASSAY_CXX";
      readiness.fallback = "eager";
    }
    return readiness;
  }

  const Result<std::string>& hash_of(const std::filesystem::path& program) {
    const auto known = hashes_.find(program);
    if (known != hashes_.end()) return known->second;
    return hashes_.emplace(program, hash_executable(program)).first->second;
  }

  std::filesystem::path program_;
  std::filesystem::path image_;
  std::map<std::filesystem::path, Result<std::string>> hashes_;  // of programs, as first found
  // The trial's first result, as readiness() runs before every unit. An error once a compiler hung.
  std::optional<Result<engine::CpuCompiler>> compiler_;
  std::set<std::string> told_;  // notes that hear() gave, of refused kernels
  NativeGpus gpus_;
};

}  // namespace

std::unique_ptr<Backend> make_native_backend(std::filesystem::path program,
                                             std::filesystem::path image) {
  return std::make_unique<NativeBackend>(std::move(program), std::move(image));
}

}  // namespace assay
