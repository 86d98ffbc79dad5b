#include "cli/serve/served_engine.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <utility>

#include "base/clock.h"
#include "base/process/subprocess.h"
#include "base/records/device_name.h"
#include "base/text/text.h"
#include "engine/codegen/kernel_cache.h"
#include "engine/model/summary.h"
#include "engine/serving/model.h"
#include "server/batch_engine.h"
#include "server/engine_process.h"

namespace assay::cli {
namespace {

constexpr double kSendSeconds = 10;

struct OpenedEngine {
  engine::Batch batch;
  EngineFacts facts;
};

Result<engine::ModelOptions> model_options(const EngineAsk& ask) {
  engine::ModelOptions result;
  if (!ask.dtype.empty()) {
    result.dtype = engine::parse_dtype(ask.dtype);
    if (!result.dtype)
      return bad_input("--dtype: expected fp32, fp16 or bf16, found {}", quoted_excerpt(ask.dtype));
  }
  ASSAY_TRY(const DeviceName device, parse_device_name(ask.device, "--device"));
  result.gpu = device.gpu;
  result.threads = static_cast<size_t>(ask.threads);
  result.rows = engine::CacheRows::kNamed;
  result.compiler.kernel_cache = engine::KernelCache::default_folder();
  result.compiler.keeps_weights = ask.keeps_weights && ask.mode == "compiled";
  return result;
}

std::string device_text(const engine::Device& device) {
  const engine::DeviceInfo info = device.info();
  if (!info.name.empty()) return info.name;
  return fmt::format("{}, {}", info.kind,
                     counted(static_cast<int64_t>(device.threads()), "thread"));
}

// Seconds of the start's parts, which a restart makes users wait for.
struct StartTimes {
  int64_t begun_ns = monotonic_now_ns(), device_ns = 0, weights_ns = 0, steps_ns = 0;

  static double seconds(int64_t from_ns, int64_t to_ns) {
    return static_cast<double>(to_ns - from_ns) / 1e9;
  }
  std::string text(const engine::Device& device) const {
    const engine::CompileStats kernels = device.stats();
    const uint64_t found = device.found_packed_bytes();
    const std::string packed =
        found == 0 ? "" : fmt::format("; {} mapped", format_bytes(static_cast<double>(found)));
    return fmt::format(
        "ready after {:.2f} s: device {:.2f}, weights {:.2f}, steps {:.2f} (kernels: {} compiled "
        "in {:.2f}, {} loaded in {:.2f}{})",
        seconds(begun_ns, monotonic_now_ns()), seconds(begun_ns, device_ns),
        seconds(device_ns, weights_ns), seconds(weights_ns, steps_ns), kernels.compiled,
        kernels.compile_seconds, kernels.loaded, kernels.load_seconds, packed);
  }
};

Result<OpenedEngine> open_engine(const EngineAsk& ask) {
  StartTimes times;
  ASSAY_TRY(const engine::ModelOptions with, model_options(ask));
  ASSAY_TRY(engine::Checkpoint checkpoint, engine::Checkpoint::open(ask.folder));
  ASSAY_TRY(auto device, engine::open_device(with));
  times.device_ns = monotonic_now_ns();
  ASSAY_TRY(auto model, engine::Model::load(std::move(checkpoint), with, std::move(device)));
  times.weights_ns = monotonic_now_ns();
  const engine::ModelConfig& config = model->config();
  const int64_t capacity = ask.context > 0 ? ask.context : engine::default_capacity(config);
  if (capacity > config.max_positions)
    return bad_input("--context: expected at most {} (the model's positions), found {}",
                     config.max_positions, capacity);
  EngineFacts facts{.architecture = std::string(engine::architecture_name(config.architecture)),
                    .dtype = std::string(engine::dtype_name(model->dtype())),
                    .device = device_text(model->device()),
                    .weight_bytes = static_cast<int64_t>(model->weight_bytes()),
                    .cache_bytes = ask.slots * capacity *
                                   static_cast<int64_t>(
                                       engine::kv_bytes_per_position(config, model->cache_type())),
                    .capacity = capacity,
                    .chunk = ask.chunk > 0 ? ask.chunk : engine::default_chunk(model->device()),
                    .vocab_size = config.vocab_size,
                    .threads = static_cast<int64_t>(model->device().threads())};
  for (const int64_t id : config.eos_token_ids) facts.ends.push_back(static_cast<int32_t>(id));
  ASSAY_TRY(engine::Batch batch, engine::Batch::create(model, {.slots = ask.slots,
                                                               .capacity = capacity,
                                                               .chunk = facts.chunk,
                                                               .compiled = ask.mode == "compiled",
                                                               .eager_too = ask.eager_too}));
  times.steps_ns = monotonic_now_ns();
  facts.start = times.text(model->device());
  facts.notes = model->device().notes();
  return OpenedEngine{std::move(batch), std::move(facts)};
}

}  // namespace

Result<ServedEngine> open_served_engine(const EngineAsk& ask, bool reuses_prefixes) {
  ASSAY_TRY(OpenedEngine opened, open_engine(ask));
  return ServedEngine{
      server::make_batch_engine(std::move(opened.batch), opened.facts.ends, reuses_prefixes),
      std::move(opened.facts)};
}

Result<ServedEngine> start_served_engine(const EngineAsk& ask, double call_s,
                                         std::function<void(const std::string&)> tell,
                                         std::shared_ptr<server::EngineCounts> counts) {
  server::EngineProcess process;
  process.start = [ask](bool compiles) -> Result<std::unique_ptr<Child>> {
    EngineAsk asked = ask;
    if (!compiles) asked.mode = "eager";
    asked.eager_too = compiles;
    ChildSpec spec{.argv = {"assay", "worker", "engine"}, .image = "/proc/self/exe"};
    spec.stdout_fd = spec.stderr_fd = STDERR_FILENO;
    spec.request_fd = server::kEngineRequests;
    spec.reply_fd = server::kEngineReplies;
    ASSAY_TRY(auto child, system_spawner().spawn(spec));
    ASSAY_CHECK(
        child->send(to_json_line(record_to_json(asked)) + "\n", deadline_after(kSendSeconds)));
    return child;
  };
  process.may_lack_room = ask.device != "cpu";
  process.call_s = call_s;
  process.tell = std::move(tell);
  process.counts = std::move(counts);
  ASSAY_TRY(auto started, server::start_engine(std::move(process)));
  ASSAY_TRY(EngineFacts facts, record_from_json<EngineFacts>(started.facts, "engine"));
  return ServedEngine{std::move(started.engine), std::move(facts)};
}

Result<int> run_engine_process() {
  ::prctl(PR_SET_NAME, "assay engine");  // "exe" else
  auto opened = [&]() -> Result<OpenedEngine> {
    std::string line;
    for (char byte = 0; ::read(server::kEngineRequests, &byte, 1) == 1 && byte != '\n';)
      line += byte;
    ASSAY_TRY(const Json json, parse_json(line, "engine"));
    ASSAY_TRY(const auto ask, record_from_json<EngineAsk>(json, "engine"));
    return open_engine(ask);
  }();
  if (!opened) {
    server::tell_no_engine(opened.error(), server::kEngineReplies);
    return 1;
  }
  ASSAY_CHECK(server::serve_batch(opened->batch, opened->facts.ends, record_to_json(opened->facts),
                                  server::kEngineRequests, server::kEngineReplies));
  return 0;
}

}  // namespace assay::cli
