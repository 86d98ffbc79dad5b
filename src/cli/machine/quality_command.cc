// `assay model quality MODEL --reference REF`: the distance of a model's predictions from a
// reference's, both fed the same text.
#include "cli/machine/quality_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/files/files.h"
#include "base/process/progress.h"
#include "base/records/device_name.h"
#include "base/text/counts.h"
#include "base/text/shown_text.h"
#include "base/text/text.h"
#include "cli/bench/bench_models.h"
#include "cli/machine/quality_figures.h"
#include "cli/option_types.h"
#include "engine/codegen/kernel_cache.h"
#include "engine/session/quality.h"
#include "engine/tokenizer/tokenizer.h"

namespace assay::cli {
namespace {

using engine::Session;
using engine::TokenWindow;

constexpr size_t kMostTextBytes = size_t{256} << 20;

struct QualityArguments {
  std::string model;
  std::string reference;
  std::string text;  // a file; empty: the reference draws it
  std::string dtype;
  std::string reference_dtype;
  std::string device = "cpu";
  int64_t threads = 0;
  int64_t window = 512;
  int64_t windows = 16;
  uint64_t seed = 42;
};

// Windows, and words for where they are from.
struct Text {
  std::vector<TokenWindow> windows;
  std::string from;
};

Result<Session> open(const std::string& folder, const std::string& dtype,
                     const QualityArguments& arguments, const std::string& option) {
  engine::SessionOptions options{.threads = static_cast<size_t>(arguments.threads)};
  ASSAY_TRY(const DeviceName device, parse_device_name(arguments.device, "--device"));
  options.gpu = device.gpu;
  // A GPU's eager kernels are compiled; a study's workers and each further model have the same
  // ones.
  if (options.gpu) options.compile.kernel_cache = engine::KernelCache::default_folder();
  if (dtype == "fp8") {
    if (!options.gpu) return bad_input("{}: expected --device cuda beside fp8, found cpu", option);
    options.fp8 = engine::Fp8::kLayers;
  } else if (!dtype.empty()) {
    options.dtype = engine::parse_dtype(dtype);
    if (!options.dtype) {
      return bad_input("{}: expected fp32, fp16, bf16 or fp8, found {}", option,
                       quoted_excerpt(dtype));
    }
  }
  return Session::open(folder, options);
}

Result<Text> windows_of_file(const QualityArguments& arguments, const std::string& folder,
                             const std::string& reference_folder) {
  ASSAY_TRY(const std::string text, read_file(arguments.text, kMostTextBytes));
  ASSAY_TRY(const auto tokenizer, engine::Tokenizer::open(reference_folder));
  ASSAY_TRY(const auto other, engine::Tokenizer::open(folder));
  ASSAY_TRY(const std::vector<int32_t> begin, tokenizer.encode("", true));
  ASSAY_TRY(const std::vector<int32_t> ids, tokenizer.encode(text, false));
  ASSAY_TRY(const std::vector<int32_t> other_ids, other.encode(text, false));
  if (ids != other_ids) {
    return bad_input(
        "{}: expected one text of tokens, found that the two models' tokenizers "
        "differ on it",
        arguments.text);
  }
  if (std::ssize(begin) >= arguments.window / 2) {
    return bad_input(
        "--window: expected more than {} tokens, twice those that begin each text, "
        "found {}",
        2 * begin.size(), arguments.window);
  }
  const size_t own = static_cast<size_t>(arguments.window) - begin.size();
  Text found{
      .windows = {},
      .from = fmt::format("{}, {}", shown_line(arguments.text), counted(std::ssize(ids), "token"))};
  for (size_t from = 0; from + own <= ids.size(); from += own) {
    if (std::ssize(found.windows) == arguments.windows) break;
    TokenWindow& window = found.windows.emplace_back(begin);
    const auto first = ids.begin() + static_cast<std::ptrdiff_t>(from);
    window.insert(window.end(), first, first + static_cast<std::ptrdiff_t>(own));
  }
  if (found.windows.empty()) {
    return bad_input("{}: expected at least {} tokens for a window (--window), found {}",
                     arguments.text, own, ids.size());
  }
  return found;
}

Result<Text> windows_of_reference(const QualityArguments& arguments, Session& reference,
                                  Progress& progress) {
  const engine::ModelConfig& config = reference.config();
  const int64_t start = config.bos_token_id            ? *config.bos_token_id
                        : config.eos_token_ids.empty() ? 0
                                                       : config.eos_token_ids.front();
  const auto tell = [&](int64_t done) {
    progress.update({.done = done, .total = arguments.window, .what = "text drawn"});
  };
  ASSAY_TRY(std::vector<TokenWindow> windows,
            engine::draw_windows(reference, static_cast<int32_t>(start), arguments.windows,
                                 arguments.window, arguments.seed, tell));
  return Text{std::move(windows),
              fmt::format("drawn by the reference at temperature 1, seed {}", arguments.seed)};
}

bool are_finite(const std::vector<std::vector<engine::PositionError>>& windows) {
  return std::ranges::all_of(windows, [](const auto& window) {
    return std::ranges::all_of(window, [](const engine::PositionError& position) {
      return std::isfinite(position.kl) && std::isfinite(position.nll) &&
             std::isfinite(position.reference_nll);
    });
  });
}

std::string interval_text(const QualityFigure& figure, int digits) {
  if (!figure.interval) return "";
  return fmt::format("[{}, {}]", format_significant(figure.interval->low, digits),
                     format_significant(figure.interval->high, digits));
}

Table table_of(const ModelQuality& figures) {
  Table table{.title = fmt::format("{} beside {}: {} of {}, of whose tokens the second half is "
                                   "predicted; text {}",
                                   shown_line(figures.model), shown_line(figures.reference),
                                   counted(figures.windows, "window"),
                                   counted(figures.window, "token"), figures.text),
              .columns = columns_of("<figure|value|=interval|<unit")};
  const auto add = [&](const char* name, const QualityFigure& figure, const char* unit) {
    table.rows.push_back(row_of(name, figure.value, interval_text(figure, 4), unit));
  };
  add("kl_mean", figures.kl_mean, "nats a token");
  add("kl_p99", figures.kl_p99, "nats a token");
  add("same_choice", figures.same_choice, "share of tokens");
  add("nll_change", figures.nll_change, "nats a token");
  add("perplexity_ratio", exp_of(figures.nll_change), "");
  add("perplexity", exp_of(figures.nll), "");
  add("reference_perplexity", exp_of(figures.reference_nll), "");
  return table;
}

Result<int> show_quality(const QualityArguments& arguments, OutputFormat format) {
  ASSAY_TRY(const auto found, find_models({arguments.model}));
  ASSAY_TRY(const auto found_reference, find_models({arguments.reference}));
  const std::string &folder = found.front().path, &other = found_reference.front().path;
  ASSAY_TRY(Session reference,
            open(other, arguments.reference_dtype, arguments, "--reference-dtype"));
  ASSAY_TRY(Session model, open(folder, arguments.dtype, arguments, "--dtype"));
  const auto tell = [](std::string_view line) { fmt::print(stderr, "{}", line); };
  Progress progress(stderr_style(), system_clock(), tell);
  ASSAY_TRY(const Text text, arguments.text.empty()
                                 ? windows_of_reference(arguments, reference, progress)
                                 : windows_of_file(arguments, folder, other));
  const auto done = [&](int64_t windows) {
    progress.update({.done = windows, .total = std::ssize(text.windows), .what = "windows read"});
  };
  ASSAY_TRY(const auto errors,
            engine::teacher_forced(reference, model, text.windows, arguments.window / 2, done));
  progress.clear();
  if (!are_finite(errors)) {
    return bad_input("{}: expected finite logits of it and of the reference, found NaN or infinity",
                     arguments.model);
  }
  ModelQuality figures = quality_figures(errors, arguments.seed);
  figures.model = arguments.model;
  figures.reference = arguments.reference;
  figures.text = text.from;
  figures.window = arguments.window;
  if (format == OutputFormat::kJson) {
    fmt::print("{}", to_json_text(quality_to_json(figures)));
  } else {
    print_table(table_of(figures), format);
  }
  return 0;
}

}  // namespace

void add_quality(CLI::App& model, Selected& selected) {
  CLI::App* command =
      model.add_subcommand("quality", "hold a model's predictions of a text against a reference's");
  const auto arguments = std::make_shared<QualityArguments>();
  command->add_option("model", arguments->model, "the model, as `assay generate` takes it")
      ->type_name("MODEL")
      ->required();
  command->add_option("--reference", arguments->reference, "the model that it is held against")
      ->type_name("MODEL")
      ->required();
  command
      ->add_option("--text", arguments->text,
                   "a file of text (default: the reference draws its own)")
      ->type_name("FILE");
  command
      ->add_option("--dtype", arguments->dtype,
                   "type of the model's weights: fp32, fp16 or bf16 (default: as stored); fp8: "
                   "that of its products, on a GPU")
      ->type_name("TYPE");
  command
      ->add_option("--reference-dtype", arguments->reference_dtype,
                   "the same of the reference's weights (default: as stored)")
      ->type_name("TYPE");
  command->add_option("--device", arguments->device, "device that computes: cpu, cuda or cuda:N")
      ->check(device_word())
      ->type_name("DEVICE");
  command->add_option("--threads", arguments->threads, "number of threads (default 0: all cores)")
      ->check(count_between(0, kMostThreads))
      ->type_name("N");
  command
      ->add_option("--window", arguments->window,
                   "tokens of a window, whose second half is predicted (default 512)")
      ->check(count_between(8, 1 << 20))
      ->type_name("N");
  command->add_option("--windows", arguments->windows, "largest number of windows (default 16)")
      ->check(count_between(1, 100'000))
      ->type_name("N");
  command
      ->add_option("--seed", arguments->seed,
                   "seed of a text that is drawn, and of resamples (default 42)")
      ->check(seed_number())
      ->type_name("N");
  const auto format = add_output_format(*command);
  command->callback(
      [=, &selected] { selected.body = [=] { return show_quality(*arguments, *format); }; });
}

}  // namespace assay::cli
