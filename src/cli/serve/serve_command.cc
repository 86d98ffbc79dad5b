// `assay serve`: the native engine behind the APIs of OpenAI and Ollama.
#include <fmt/core.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/files/files.h"
#include "base/records/device_name.h"
#include "base/text/text.h"
#include "cli/bench/bench_models.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/option_types.h"
#include "cli/serve/serve_policy.h"
#include "engine/codegen/kernel_cache.h"
#include "engine/model/summary.h"
#include "engine/serving/batch.h"
#include "engine/serving/model.h"
#include "engine/tokenizer/tokenizer.h"
#include "server/batch_engine.h"
#include "server/http_front.h"
#include "server/routed_engine.h"
#include "server/scheduler.h"
#include "server/service.h"

namespace assay::cli {
namespace {

struct ServeOptions {
  std::string model;
  std::string address = "127.0.0.1";
  int64_t port = 8080;
  std::string name;
  std::string api_key_env;
  std::string api_key_file;
  std::string dtype;
  std::string device = "cpu";
  std::string mode = "compiled";
  std::string policy;
  std::string policy_log;
  int64_t threads = 0;
  int64_t slots = 4;
  int64_t context = 0;
  int64_t queue = 256;
  int64_t chunk = 0;
  int64_t body_mib = 16;
  int64_t connections = 1024;
};

Result<engine::ModelOptions> model_options(const ServeOptions& options) {
  engine::ModelOptions result;
  if (!options.dtype.empty()) {
    result.dtype = engine::parse_dtype(options.dtype);
    if (!result.dtype)
      return bad_input("--dtype: expected fp32, fp16 or bf16, found {}",
                       quoted_excerpt(options.dtype));
  }
  ASSAY_TRY(const DeviceName device, parse_device_name(options.device, "--device"));
  result.gpu = device.gpu;
  result.threads = static_cast<size_t>(options.threads);
  result.rows = engine::CacheRows::kNamed;
  result.compiler.kernel_cache = engine::KernelCache::default_folder();
  return result;
}

// The key is never an argument, which every process of the machine could read.
Result<std::string> api_key(const ServeOptions& options) {
  std::string key;
  if (!options.api_key_env.empty()) {
    const char* const found = std::getenv(options.api_key_env.c_str());
    key = found ? found : "";
    if (key.empty())
      return bad_input("--api-key-env: expected a key in the variable {}, found none",
                       options.api_key_env);
  }
  if (!options.api_key_file.empty()) {
    ASSAY_TRY(key, read_file(options.api_key_file));
    while (!key.empty() && (key.back() == '\n' || key.back() == '\r')) key.pop_back();
    if (key.empty()) return bad_input("{}: expected a key, found none", options.api_key_file);
  }
  return key;
}

// All that serves, in the order of its dependence.
struct Serving {
  std::optional<engine::Tokenizer> tokenizer = {};
  std::unique_ptr<server::HttpFront> front = {};
  std::unique_ptr<server::Scheduler> scheduler = {};
  std::unique_ptr<server::Service> service = {};
};

std::string device_text(const engine::Device& device) {
  const engine::DeviceInfo info = device.info();
  if (!info.name.empty()) return info.name;
  return fmt::format("{}, {}", info.kind,
                     counted(static_cast<int64_t>(device.threads()), "thread"));
}

server::ServedModel served_model(const ServeOptions& options, const BenchedModel& found,
                                 const engine::Model& model, int64_t capacity) {
  const engine::ModelConfig& config = model.config();
  return {.name = options.name.empty() ? found.name : options.name,
          .digest = "",
          .architecture = std::string(engine::architecture_name(config.architecture)),
          .dtype = std::string(engine::dtype_name(model.dtype())),
          .device = device_text(model.device()),
          .mode = options.mode,
          .weight_bytes = static_cast<int64_t>(model.weight_bytes()),
          .cache_bytes =
              options.slots * capacity *
              static_cast<int64_t>(engine::kv_bytes_per_position(config, model.cache_type())),
          .capacity = capacity,
          .vocab_size = config.vocab_size,
          .started_s = system_clock().wall_ns() / 1'000'000'000,
          .version = ASSAY_VERSION};
}

// Seconds of the start's parts, which a restart makes users wait for.
struct StartTimes {
  int64_t begun_ns = monotonic_now_ns(), device_ns = 0, weights_ns = 0, steps_ns = 0;

  static double seconds(int64_t from_ns, int64_t to_ns) {
    return static_cast<double>(to_ns - from_ns) / 1e9;
  }
  std::string text(const engine::CompileStats& kernels) const {
    return fmt::format(
        "ready after {:.2f} s: device {:.2f}, weights {:.2f}, steps {:.2f} (kernels: {} compiled "
        "in {:.2f}, {} loaded in {:.2f})",
        seconds(begun_ns, monotonic_now_ns()), seconds(begun_ns, device_ns),
        seconds(device_ns, weights_ns), seconds(weights_ns, steps_ns), kernels.compiled,
        kernels.compile_seconds, kernels.loaded, kernels.load_seconds);
  }
};

Status make_serving(const ServeOptions& options, Serving& all) {
  if (!options.policy.empty() && options.mode != "compiled") {
    return bad_input("--policy: expected --mode compiled, which has both ways, found {}",
                     options.mode);
  }
  StartTimes times;
  ASSAY_TRY(const engine::ModelOptions with, model_options(options));
  ASSAY_TRY(const std::vector<BenchedModel> found, find_models({options.model}));
  const std::filesystem::path folder = found.front().path;
  if (std::filesystem::exists(folder / "tokenizer.json")) {
    ASSAY_TRY(all.tokenizer, engine::Tokenizer::open(folder));
  }
  ASSAY_TRY(auto chat, server::ChatTemplate::open(folder));
  ASSAY_TRY(engine::Checkpoint checkpoint, engine::Checkpoint::open(folder));
  std::string content_hash;
  if (!options.policy.empty()) {
    ASSAY_TRY(content_hash, checkpoint.content_hash());
  }
  ASSAY_TRY(auto device, engine::open_device(with));
  times.device_ns = monotonic_now_ns();
  ASSAY_TRY(auto model, engine::Model::load(std::move(checkpoint), with, std::move(device)));
  times.weights_ns = monotonic_now_ns();
  const engine::ModelConfig& config = model->config();
  const int64_t capacity = options.context > 0 ? options.context : engine::default_capacity(config);
  if (capacity > config.max_positions)
    return bad_input("--context: expected at most {} (the model's positions), found {}",
                     config.max_positions, capacity);
  const int64_t chunk = options.chunk > 0 ? options.chunk : engine::default_chunk(model->device());
  engine::BatchOptions batching{.slots = options.slots,
                                .capacity = capacity,
                                .chunk = chunk,
                                .compiled = options.mode == "compiled",
                                .eager_too = !options.policy.empty()};
  ASSAY_TRY(engine::Batch batch, engine::Batch::create(model, batching));
  times.steps_ns = monotonic_now_ns();
  std::vector<int32_t> ends;
  for (const int64_t id : config.eos_token_ids) ends.push_back(static_cast<int32_t>(id));

  server::FrontOptions front{.address = options.address,
                             .port = static_cast<uint16_t>(options.port)};
  ASSAY_TRY(front.api_key, api_key(options));
  front.free_paths = server::Service::free_paths();
  front.limits.body_bytes = static_cast<uint64_t>(options.body_mib) << 20;
  front.limits.connections = options.connections;
  front.error_body = server::api_error;
  ASSAY_TRY(all.front, server::HttpFront::listen(std::move(front),
                                                 [&all](server::ServedRequest request,
                                                        std::shared_ptr<server::Answer> answer) {
                                                   all.service->serve(request, answer);
                                                 }));
  std::unique_ptr<server::SlotEngine> slots =
      server::make_batch_engine(std::move(batch), std::move(ends));
  std::optional<server::PolicyRoutes> routes;
  if (!options.policy.empty()) {
    const ServedUnderPolicy served{
        .model = options.name.empty() ? found.front().name : options.name,
        .content_hash = content_hash,
        .dtype = std::string(engine::dtype_name(model->dtype())),
        .gpu = with.gpu,
        .threads = model->device().threads()};
    ASSAY_TRY(routes, open_served_policy(options.policy, served, options.policy_log));
    slots = server::make_routed_engine(std::move(slots), *routes);
  }
  all.scheduler = std::make_unique<server::Scheduler>(
      std::move(slots), server::SchedulerOptions{options.queue, chunk},
      [&all](std::function<void()> work) { all.front->post(std::move(work)); });
  all.service = std::make_unique<server::Service>(
      served_model(options, found.front(), *model, capacity), *all.scheduler,
      all.tokenizer ? &*all.tokenizer : nullptr, std::move(chat),
      [&all](std::function<void()> work) { all.front->post(std::move(work)); });
  if (routes) all.service->add_metrics([routes] { return routes->metrics(); });
  fmt::print(stderr, "serve    {}\n", times.text(model->device().stats()));
  return {};
}

// Waits for a signal beside the loop. The first one drains; another one ends the program at once.
class SignalWatch {
 public:
  SignalWatch(Interrupt& interrupt, server::HttpFront& front)
      : thread_([this, &interrupt, &front] {
          while (!over_) {
            pollfd waits{interrupt.descriptor(), POLLIN, 0};
            if (::poll(&waits, 1, 200) <= 0) continue;
            signalfd_siginfo taken{};  // else it would end the program as soon as it may
            if (::read(interrupt.descriptor(), &taken, sizeof taken) < 0) continue;
            front.post([&interrupt, &front] {
              fmt::print(stderr, "serve    finishing what is under way; again: ends at once\n");
              interrupt.end();
              front.drain();
            });
            return;
          }
        }) {}
  ~SignalWatch() {
    over_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

Result<int> run_serve(const ServeOptions& options) {
  ASSAY_TRY(Interrupt interrupt, Interrupt::create());
  Serving all;
  ASSAY_CHECK(make_serving(options, all));
  fmt::print("serving {} at {}\n", options.model, all.front->url());
  std::fflush(stdout);
  const SignalWatch watch(interrupt, *all.front);
  all.front->run();
  return 0;
}

}  // namespace

void add_serve_command(CLI::App& app, Selected& selected) {
  auto options = std::make_shared<ServeOptions>();
  CLI::App* command = app.add_subcommand(
      "serve", "serve a model to clients of OpenAI's and Ollama's APIs, several at a time");
  command
      ->add_option("MODEL", options->model,
                   "checkpoint folder, or an architecture of `assay model make`")
      ->required();
  command->add_option("--address", options->address,
                      "IP address to listen at (default 127.0.0.1: this machine alone)");
  command->add_option("--port", options->port, "port (default 8080; 0: any that is free)")
      ->check(count_between(0, 65535));
  command->add_option("--name", options->name, "model's name for clients (default: MODEL's)");
  command->add_option("--api-key-env", options->api_key_env,
                      "environment variable with a key that clients have to bring");
  command->add_option("--api-key-file", options->api_key_file, "file with that key");
  command->add_option("--slots", options->slots, "requests that are computed at a time (default 4)")
      ->check(count_between(1, 1024));
  command
      ->add_option("--context", options->context,
                   "tokens of a request, prompt and answer (default: the model's, at most 4096)")
      ->check(count_between(1, 1'000'000));
  command->add_option("--queue", options->queue, "requests that may wait for a slot (default 256)")
      ->check(count_between(0, 100'000));
  command
      ->add_option("--chunk", options->chunk,
                   "tokens of prompts between two steps of the others (default 256; on a GPU 1024)")
      ->check(count_between(1, 100'000));
  command->add_option("--body-mib", options->body_mib, "largest request in MiB (default 16)")
      ->check(count_between(1, 1024));
  command->add_option("--connections", options->connections, "connections at a time (default 1024)")
      ->check(count_between(1, 20'000));
  command->add_option("--dtype", options->dtype,
                      "type of the weights: fp32, fp16 or bf16 (default: as stored)");
  command
      ->add_option("--device", options->device,
                   "device that computes: cpu (default), cuda or cuda:N")
      ->check(device_word());
  command->add_option("--threads", options->threads, "number of threads (default 0: all cores)")
      ->check(count_between(0, kMostThreads));
  command->add_option("--mode", options->mode, "mode of execution: compiled (default) or eager")
      ->check(word_of({"compiled", "eager"}));
  CLI::Option* const policy = command->add_option(
      "--policy", options->policy, "policy.yaml of `assay route` that says what is compiled when");
  command
      ->add_option("--policy-log", options->policy_log, "CSV file that gets a row for each switch")
      ->needs(policy);
  command->callback(
      [&selected, options] { selected.body = [options] { return run_serve(*options); }; });
}

}  // namespace assay::cli
