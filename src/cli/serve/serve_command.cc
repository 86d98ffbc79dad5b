// `assay serve`: the native engine behind the APIs of OpenAI and Ollama.
#include <fmt/core.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <future>
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
#include "cli/serve/served_engine.h"
#include "engine/model/checkpoint.h"
#include "engine/tokenizer/tokenizer.h"
#include "server/http_front.h"
#include "server/routed_engine.h"
#include "server/scheduler.h"
#include "server/service.h"

namespace assay::cli {
namespace {

constexpr uint64_t kBodiesAtATime = 4;  // of the largest size; further ones are refused

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
  int64_t call_timeout_s = 60;
  bool prefix_reuse = false;
  bool no_weight_cache = false;
  int64_t threads = 0;
  int64_t slots = 4;
  int64_t context = 0;
  int64_t queue = 256;
  int64_t chunk = 0;
  int64_t body_mib = 16;
  int64_t connections = 1024;
};

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
  std::shared_ptr<server::EngineCounts> engine_counts = std::make_shared<server::EngineCounts>();
};

server::ServedModel served_model(const ServeOptions& options, const std::string& name,
                                 const EngineFacts& facts) {
  return {.name = name,
          .digest = "",
          .architecture = facts.architecture,
          .dtype = facts.dtype,
          .device = facts.device,
          .mode = options.mode,
          .weight_bytes = facts.weight_bytes,
          .cache_bytes = facts.cache_bytes,
          .capacity = facts.capacity,
          .vocab_size = facts.vocab_size,
          .started_s = system_clock().wall_ns() / 1'000'000'000,
          .version = ASSAY_VERSION,
          .reuses_prefixes = options.prefix_reuse};
}

// Under a policy a compiled call that crashes or hangs must not be the server's end.
Result<ServedEngine> open_engine_of(const ServeOptions& options, const EngineAsk& ask,
                                    const Serving& all) {
  if (options.policy.empty()) return open_served_engine(ask, options.prefix_reuse);
  return start_served_engine(
      ask, static_cast<double>(options.call_timeout_s),
      [](const std::string& line) { fmt::print(stderr, "engine   {}\n", line); },
      all.engine_counts);
}

Status make_serving(const ServeOptions& options, Serving& all) {
  if (!options.policy.empty() && options.mode != "compiled") {
    return bad_input("--policy: expected --mode compiled, which has both ways, found {}",
                     options.mode);
  }
  ASSAY_TRY(const std::vector<BenchedModel> found, find_models({options.model}));
  const std::filesystem::path folder = found.front().path;
  const std::string name = options.name.empty() ? found.front().name : options.name;
  ASSAY_TRY(auto chat, server::ChatTemplate::open(folder));
  // A large vocabulary takes half a second, in which the weights come.
  auto tokenizer =
      std::async(std::launch::async, [folder] { return engine::Tokenizer::find(folder); });
  const EngineAsk ask{.folder = folder.string(),
                      .dtype = options.dtype,
                      .device = options.device,
                      .mode = options.mode,
                      .threads = options.threads,
                      .slots = options.slots,
                      .context = options.context,
                      .chunk = options.chunk,
                      .eager_too = !options.policy.empty(),
                      .keeps_weights = !options.no_weight_cache};
  auto opened = open_engine_of(options, ask, all);
  ASSAY_TRY(all.tokenizer, tokenizer.get());
  ASSAY_TRY(ServedEngine served, std::move(opened));

  server::FrontOptions front{.address = options.address,
                             .port = static_cast<uint16_t>(options.port)};
  ASSAY_TRY(front.api_key, api_key(options));
  front.free_paths = server::Service::free_paths();
  front.limits.body_bytes = static_cast<uint64_t>(options.body_mib) << 20;
  front.limits.bodies_bytes = kBodiesAtATime * front.limits.body_bytes;
  front.limits.connections = options.connections;
  front.error_body = server::api_error;
  ASSAY_TRY(all.front, server::HttpFront::listen(std::move(front),
                                                 [&all](server::ServedRequest request,
                                                        std::shared_ptr<server::Answer> answer) {
                                                   all.service->serve(std::move(request), answer);
                                                 }));
  std::unique_ptr<server::SlotEngine> slots = std::move(served.engine);
  std::optional<server::PolicyRoutes> routes;
  if (!options.policy.empty()) {
    ASSAY_TRY(const engine::Checkpoint checkpoint, engine::Checkpoint::open(folder));
    ASSAY_TRY(const std::string content_hash, checkpoint.content_hash());
    ASSAY_TRY(const DeviceName device, parse_device_name(options.device, "--device"));
    ASSAY_TRY(routes, open_served_policy(options.policy,
                                         {.model = name,
                                          .content_hash = content_hash,
                                          .dtype = served.facts.dtype,
                                          .gpu = device.gpu,
                                          .threads = static_cast<size_t>(served.facts.threads)},
                                         options.policy_log));
    slots = server::make_routed_engine(std::move(slots), *routes);
  }
  all.scheduler = std::make_unique<server::Scheduler>(
      std::move(slots), server::SchedulerOptions{options.queue, served.facts.chunk},
      [&all](std::function<void()> work) { all.front->post(std::move(work)); });
  all.service = std::make_unique<server::Service>(
      served_model(options, name, served.facts), *all.scheduler,
      all.tokenizer ? &*all.tokenizer : nullptr, std::move(chat),
      [&all](std::function<void()> work) { all.front->post(std::move(work)); });
  if (routes) {
    all.service->add_metrics(
        [routes, counts = all.engine_counts] { return routes->metrics() + counts->metrics(); });
  }
  for (const std::string& note : served.facts.notes) fmt::print(stderr, "serve    {}\n", note);
  fmt::print(stderr, "serve    {}\n", served.facts.start);
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
                   "checkpoint folder, GGUF file, or an architecture of `assay model make`")
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
  command
      ->add_option("--call-timeout", options->call_timeout_s,
                   "seconds that the engine may take for a call or a token before its process is "
                   "started anew (default 60)")
      ->check(count_between(1, 86'400))
      ->needs(policy);
  command
      ->add_flag("--prefix-reuse", options->prefix_reuse,
                 "don't compute a prompt's beginning that a slot has of an earlier request")
      ->excludes(policy);
  command->add_flag("--no-weight-cache", options->no_weight_cache,
                    "pack the weights for the processor at each start, and keep no file of them");
  command->callback(
      [&selected, options] { selected.body = [options] { return run_serve(*options); }; });
}

}  // namespace assay::cli
