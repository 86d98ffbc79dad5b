// `assay model make` writes a random checkpoint; `assay model info` shows what a checkpoint is.
#include <fmt/format.h>

#include "base/shown_text.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/option_types.h"
#include "engine/model/architectures.h"
#include "engine/model/make.h"
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
  fmt::print("{}: {}, {} parameters in {}, {} in {} weight {}, seed {}\n",
             shown_line(arguments.folder), arguments.architecture, made.parameters,
             engine::dtype_name(made.dtype), format_bytes(static_cast<double>(made.weight_bytes)),
             made.weight_files, made.weight_files == 1 ? "file" : "files", arguments.seed);
  return 0;
}

Result<int> show_model(const std::string& folder, OutputFormat format) {
  ASSAY_TRY(const engine::Checkpoint checkpoint, engine::Checkpoint::open(folder));
  ASSAY_TRY(const Json summary, engine::summarize(checkpoint));
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
  command->add_option("folder", *folder, "checkpoint folder")->type_name("DIR")->required();
  const auto format = add_output_format(*command);
  command->callback(
      [=, &selected] { selected.body = [=] { return show_model(*folder, *format); }; });
}

}  // namespace

void add_model_command(CLI::App& app, Selected& selected) {
  CLI::App* model = app.add_subcommand("model", "make or inspect a checkpoint");
  model->require_subcommand(1);
  add_make(*model, selected);
  add_info(*model, selected);
}

}  // namespace assay::cli
