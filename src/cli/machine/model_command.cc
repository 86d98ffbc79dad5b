// `assay model make` writes a random checkpoint, `assay model quantize` one in blocks; `assay model
// info` shows a checkpoint's sizes; quality_command.cc has `assay model quality`.
#include <fmt/format.h>

#include <algorithm>

#include "base/records/device_name.h"
#include "base/text/counts.h"
#include "base/text/shown_text.h"
#include "base/text/text.h"
#include "cli/command.h"
#include "cli/machine/quality_command.h"
#include "cli/option_types.h"
#include "cli/output_file.h"
#include "engine/device/cuda/driver.h"
#include "engine/device/cuda/read_bandwidth.h"
#include "engine/model/architectures.h"
#include "engine/model/make.h"
#include "engine/model/quantize.h"
#include "engine/model/quantize_fp8.h"
#include "engine/model/summary.h"

namespace assay::cli {
namespace {

struct MakeArguments {
  std::string architecture;
  std::string folder;
  uint64_t seed = 0;
  std::string dtype;
};

Result<int> make_model(const MakeArguments& arguments) {
  engine::MakeOptions options{.seed = arguments.seed};
  if (!arguments.dtype.empty()) {
    options.dtype = engine::parse_dtype(arguments.dtype);
    if (!options.dtype) {
      return bad_input("--dtype: expected fp32, fp16 or bf16, found {}",
                       json_quoted(arguments.dtype));
    }
  }
  ASSAY_TRY(const engine::MadeCheckpoint made,
            engine::make_checkpoint(arguments.architecture, arguments.folder, options));
  fmt::print("{}: {}, {} parameters in {}, {} in {}, seed {}\n", shown_line(arguments.folder),
             arguments.architecture, format_count(static_cast<double>(made.parameters)),
             engine::dtype_name(made.dtype), format_bytes(static_cast<double>(made.weight_bytes)),
             counted(made.weight_files, "weight file"), arguments.seed);
  return 0;
}

// Adds facts about this GPU: true if the model fits, and the least time of a decode step there:
// batch 1, weights alone, at the read bandwidth as it is measured.
Status add_gpu(int ordinal, Json& facts) {
  ASSAY_TRY(const auto driver, engine::cuda::Driver::open(ordinal));
  ASSAY_TRY(const auto memory, driver->memory());
  const auto weights = facts["weight_bytes"].get<uint64_t>();
  // Compiled, weights of fused products are there as merged beside the plain ones.
  const uint64_t left = memory.free - std::min<uint64_t>(memory.free, weights);
  const auto position = facts["kv_bytes_per_position"].get<uint64_t>();
  facts["gpu"] = driver->info().name;
  facts["gpu_memory_bytes"] = memory.total;
  facts["gpu_free_bytes"] = memory.free;
  facts["gpu_fits_eager"] = weights < memory.free;
  facts["gpu_fits_compiled"] = 2 * weights < memory.free;
  facts["gpu_cache_positions_beside_weights"] = left / position;
  const auto gb_s = engine::cuda::measure_read_bandwidth(*driver);
  if (!gb_s) return {};  // no memory left for it, or no compiler
  facts["gpu_read_gb_per_s"] = *gb_s;
  facts["gpu_decode_step_least_ms"] = facts["decode_step_weight_bytes"].get<double>() / *gb_s / 1e6;
  return {};
}

Result<int> show_model(const std::string& folder, const std::string& device, OutputFormat format) {
  ASSAY_TRY(const engine::Checkpoint checkpoint, engine::Checkpoint::open(folder));
  ASSAY_TRY(Json summary, engine::summarize(checkpoint));
  ASSAY_TRY(const DeviceName named, parse_device_name(device, "--device"));
  if (named.gpu) ASSAY_CHECK(add_gpu(*named.gpu, summary));
  if (format == OutputFormat::kJson) {
    fmt::print("{}", to_json_text(summary));
  } else {
    print_table(engine::summary_table(summary), format);
  }
  return 0;
}

void add_make(CLI::App& model, Selected& selected) {
  CLI::App* command = model.add_subcommand("make", "write a checkpoint with random weights");
  auto arguments = std::make_shared<MakeArguments>();
  command
      ->add_option("architecture", arguments->architecture,
                   join(engine::architecture_names(), ", "))
      ->check(known_words(engine::architecture_names()))
      ->type_name("ARCH")
      ->required();
  command->add_option("-o,--output", arguments->folder, "folder to make")
      ->type_name("DIR")
      ->required();
  command
      ->add_option("--seed", arguments->seed,
                   "seed of the weights (default 0); the same seed gives the same bytes")
      ->check(seed_number())
      ->type_name("N");
  command
      ->add_option("--dtype", arguments->dtype,
                   "fp32, fp16 or bf16 (default: as the architecture is published)")
      ->type_name("TYPE");
  command->callback([=, &selected] { selected.body = [=] { return make_model(*arguments); }; });
}

void add_info(CLI::App& model, Selected& selected) {
  CLI::App* command = model.add_subcommand("info", "show the dimensions and sizes of a checkpoint");
  auto folder = std::make_shared<std::string>();
  command->add_option("model", *folder, "checkpoint folder, or a GGUF file")
      ->type_name("FILE")
      ->required();
  auto device = std::make_shared<std::string>("cpu");
  command
      ->add_option("--device", *device,
                   "with cuda or cuda:N, show also whether the model fits that GPU, and the least "
                   "time of a decode step there (default cpu)")
      ->type_name("DEVICE");
  const auto format = add_output_format(*command);
  command->callback(
      [=, &selected] { selected.body = [=] { return show_model(*folder, *device, *format); }; });
}

struct QuantizeArguments {
  std::string model, type, output;
};

constexpr std::string_view kFp8 = "fp8";

std::vector<std::string> types_to_write() {
  std::vector<std::string> types = engine::quantized_types();
  types.emplace_back(kFp8);
  return types;
}

Result<int> quantize(const QuantizeArguments& arguments) {
  const auto write = [&]() -> Result<engine::QuantizedModel> {
    if (arguments.type == kFp8) return engine::quantize_to_fp8(arguments.model, arguments.output);
    ASSAY_CHECK(check_output_file(arguments.output, gguf_output()));
    return engine::quantize_model(arguments.model, arguments.type, arguments.output);
  };
  ASSAY_TRY(const engine::QuantizedModel made, write());
  fmt::print("{}: {}, {} parameters in {}, {:.4g} bits a weight\n", shown_line(arguments.output),
             arguments.type, format_count(static_cast<double>(made.parameters)),
             format_bytes(static_cast<double>(made.weight_bytes)),
             8.0 * static_cast<double>(made.weight_bytes) / static_cast<double>(made.parameters));
  return 0;
}

void add_quantize(CLI::App& model, Selected& selected) {
  CLI::App* command =
      model.add_subcommand("quantize",
                           "write a checkpoint as a GGUF file, its weights in blocks, or as a "
                           "folder of safetensors, its weights in fp8");
  auto arguments = std::make_shared<QuantizeArguments>();
  command->add_option("model", arguments->model, "checkpoint folder, or a GGUF file")
      ->type_name("FILE")
      ->required();
  command->add_option("-t,--type", arguments->type, join(types_to_write(), ", "))
      ->check(word_of(types_to_write()))
      ->type_name("TYPE")
      ->required();
  command->add_option("-o,--output", arguments->output, "file to write; of fp8 a new folder")
      ->type_name("FILE")
      ->required();
  command->callback([=, &selected] { selected.body = [=] { return quantize(*arguments); }; });
}

}  // namespace

void add_model_command(CLI::App& app, Selected& selected) {
  CLI::App* model = app.add_subcommand("model", "make, inspect or quantise a checkpoint");
  model->require_subcommand(1);
  add_make(*model, selected);
  add_info(*model, selected);
  add_quality(*model, selected);
  add_quantize(*model, selected);
}

}  // namespace assay::cli
