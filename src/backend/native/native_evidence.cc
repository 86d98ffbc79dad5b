// Evidence from the session's own records; a verdict is only as good as the runs behind it.
#include "backend/native/native_evidence.h"

#include <algorithm>

#include "backend/native/native_facts.h"
#include "backend/native/native_options.h"
#include "base/text/text.h"
#include "engine/codegen/kernel.h"
#include "engine/device/device.h"

namespace assay {
namespace {

using engine::CompileEvidence;
using engine::FrameEvidence;

bool on_gpu(const engine::Session& session) {
  return session.device().launches().has_value();
}

Json counters_json(const engine::Session& session) {
  return counts_to_json(counter_deltas({}, session.counters(), on_gpu(session)));
}

void put(Json& json, const char* key, const std::string& text) {
  if (!text.empty()) json[key] = text;
}

Json toolchain_json(const std::optional<engine::Toolchain>& toolchain) {
  if (!toolchain) return nullptr;
  Json json = {{"name", toolchain->name},           {"version", toolchain->version},
               {"path", toolchain->path},           {"target", toolchain->target},
               {"processor", toolchain->processor}, {"flags", toolchain->flags}};
  put(json, "sha256", toolchain->sha256);
  put(json, "driver", toolchain->driver);
  return json;
}

Json kernels_json(const engine::CompileStats& kernels) {
  Json json = {{"compiled", kernels.compiled},
               {"loaded", kernels.loaded},
               {"reused", kernels.reused},
               {"unsaved", kernels.unsaved},
               {"compile_seconds", kernels.compile_seconds},
               {"load_seconds", kernels.load_seconds}};
  if (kernels.unsaved > 0) json["unsaved_reason"] = kernels.unsaved_reason;
  if (kernels.refused > 0) json["refused"] = kernels.refused;
  return json;
}

Json device_json(const engine::DeviceInfo& device) {
  Json json = {{"kind", device.kind}};
  put(json, "name", device.name);
  put(json, "uuid", device.uuid);
  put(json, "compute_capability", device.compute_capability);
  put(json, "target", device.target);
  put(json, "driver", device.driver);
  return json;
}

Json passes_json(const std::vector<engine::PassReport>& passes) {
  Json list = Json::array();
  for (const engine::PassReport& pass : passes) {
    list.push_back({{"name", pass.name},
                    {"enabled", pass.enabled},
                    {"changes", pass.outcome.changes},
                    {"seconds", pass.seconds},
                    {"verified", pass.verified},
                    {"verify_seconds", pass.verify_seconds},
                    {"rejected", pass.outcome.rejected}});
  }
  return list;
}

void add_graphs(const char* frame, const FrameEvidence& evidence, Json& graphs, Json& recompiles) {
  for (const engine::CompileRecord& graph : evidence.graphs) {
    Json entry = {{"frame", frame},
                  {"guards", graph.guards},
                  {"seconds", graph.seconds},
                  {"kernels_compiled", graph.kernels_compiled},
                  {"kernels_loaded", graph.kernels_loaded}};
    graphs.push_back(entry);
    if (graph.failed_guard.empty()) continue;
    entry["guard"] = graph.failed_guard;
    entry["expected"] = graph.expected;
    entry["found"] = graph.found;
    recompiles.push_back(std::move(entry));
  }
}

// The frames whose runs the phase's region times.
std::vector<const FrameEvidence*> timed_frames(const CompileEvidence& evidence, Phase phase) {
  std::vector<const FrameEvidence*> frames;
  if (phase != Phase::kKvDecode && evidence.prefill.requested) {
    frames.push_back(&evidence.prefill);
  }
  if (phase != Phase::kPrefill && evidence.decode.requested) {
    frames.push_back(&evidence.decode);
  }
  return frames;
}

// Adds the code that ran last in the phase, and the sizes that are symbols in it because other
// sizes came before, each once.
void add_code(const CompileEvidence& evidence, Phase phase, Json& json) {
  Json &names = json["became_symbols"] = Json::array(), &code = json["code"] = Json::object();
  for (const FrameEvidence* frame : timed_frames(evidence, phase)) {
    for (const std::string& name : frame->became_symbols) {
      if (std::ranges::find(names, Json(name)) == names.end()) names.push_back(name);
    }
    if (frame->code.sha256.empty()) continue;
    const char* const of = frame == &evidence.prefill ? "prefill" : "decode";
    code[of] = {{"sha256", frame->code.sha256}};
    if (!frame->code.forms.empty()) code[of]["forms"] = frame->code.forms;
  }
}

// Adds compiler_real with its reasons, the fallback if there was one, and the executors that ran.
void add_verdict(const engine::Session& session, const CompileEvidence& evidence, Phase phase,
                 const engine::FrameRuns& runs, Json& json) {
  const auto frames = timed_frames(evidence, phase);
  std::string errors;
  for (const FrameEvidence* frame : frames) {
    if (frame->fallback.empty()) continue;
    if (!errors.empty()) errors += "\n";
    errors += frame->fallback;
  }
  const int64_t kernels = evidence.kernels.compiled + evidence.kernels.loaded;
  std::string verdict = "unproven";
  Json reasons = Json::array();
  if (frames.empty()) {
    verdict = "not_applicable";
    reasons.push_back("split: the study requests this phase to run eager");
  } else if (runs.fallbacks > 0 || !errors.empty()) {
    verdict = "fallback";
    reasons.push_back(fmt::format("{} of {} went eager", runs.fallbacks,
                                  counted(runs.fallbacks + runs.compiled, "run")));
    if (!errors.empty()) reasons.push_back(errors);
  } else if (runs.compiled == 0) {
    reasons.push_back("nothing has run in this phase");
  } else if (kernels == 0) {
    reasons.push_back("no kernel was built or loaded");
  } else {
    verdict = "yes";
    reasons.push_back(fmt::format(
        "{} went through kernels and none went eager: {} compiled here, {} loaded",
        counted(runs.compiled, "run"), evidence.kernels.compiled, evidence.kernels.loaded));
  }
  json["compiler_real"] = verdict;
  if (on_gpu(session) && verdict != "not_applicable") {
    const engine::CompileCounters counters = session.counters();
    reasons.push_back(fmt::format("this process captured {} and made {}",
                                  counted(counters.graph_captures, "CUDA graph"),
                                  counted(counters.graph_replays, "replay")));
  }
  json["reasons"] = std::move(reasons);
  const bool fell_back = verdict == "fallback";
  json["fallback"] = fell_back ? Json("eager") : Json(false);
  json["fallback_error"] = errors.empty() ? Json() : Json(errors);
  const bool compiled = runs.compiled > 0;
  json["actual"]["mode"] = fell_back && compiled ? "compiled, then eager"
                           : compiled            ? "compiled"
                                                 : "eager";
}

}  // namespace

Counts counter_deltas(const engine::CompileCounters& before, const engine::CompileCounters& after,
                      bool gpu) {
  Counts deltas = {
      {Counter::kUniqueGraphs, after.unique_graphs - before.unique_graphs},
      {Counter::kRecompiles, after.recompiles - before.recompiles},
      {Counter::kRecompileLimitHits, after.recompile_limit_hits - before.recompile_limit_hits},
      {Counter::kKernelsCompiled, after.kernels_compiled - before.kernels_compiled},
      {Counter::kKernelsLoaded, after.kernels_loaded - before.kernels_loaded},
      {Counter::kFallbacks, after.fallbacks - before.fallbacks}};
  if (!gpu) return deltas;
  deltas[Counter::kCudagraphCaptures] = after.graph_captures - before.graph_captures;
  deltas[Counter::kGraphReplays] = after.graph_replays - before.graph_replays;
  deltas[Counter::kKernelLaunches] = after.kernel_launches - before.kernel_launches;
  return deltas;
}

engine::FrameRuns timed_runs(const engine::Session& session, Phase phase) {
  engine::FrameRuns runs;
  if (phase != Phase::kKvDecode) runs = session.prefill_runs();
  if (phase != Phase::kPrefill) {
    runs.compiled += session.decode_runs().compiled;
    runs.fallbacks += session.decode_runs().fallbacks;
  }
  return runs;
}

Json compile_summary(const engine::Session& session) {
  const CompileEvidence evidence = session.compile_evidence();
  Json json = {{"counters", counters_json(session)},
               {"compile_seconds", evidence.kernels.compile_seconds},
               {"load_seconds", evidence.kernels.load_seconds},
               {"packed_bytes", evidence.packed_bytes}};
  put(json, kCompilerGaveUp, evidence.kernels.gave_up);
  put(json, kKernelRefused, evidence.kernels.refused_reason);
  return json;
}

Json weights_evidence(const engine::Model& model, const std::filesystem::path& path) {
  int64_t values = 0;
  for (const engine::TensorSpec& spec : engine::tensor_specs(model.config())) {
    values += spec.shape.elements();
  }
  return {{"path", path.string()},
          {"formats", model.block_formats()},
          {"bits_a_weight",
           8.0 * static_cast<double>(model.weight_bytes()) / static_cast<double>(values)}};
}

Json fp8_evidence(const engine::Session& session) {
  const std::string_view wide = engine::dtype_name(session.model().dtype());
  Json in_fp8 = Json::array(), in_wide = Json::array();
  for (const engine::LibraryShape& one : session.device().library_products()) {
    (one.type == "e4m3" ? in_fp8 : in_wide)
        .push_back({{"rows", one.rows},
                    {"outputs", one.outputs},
                    {"inputs", one.inputs},
                    {"out", one.out_type}});
  }
  Json chosen = Json::array();
  for (const engine::TypeContest& one : session.device().type_contests()) {
    chosen.push_back({{"rows", one.rows},
                      {"outputs", one.outputs},
                      {"inputs", one.inputs},
                      {"e4m3_us", one.fp8_us},
                      {"rounding_us", one.rounding_us},
                      {fmt::format("{}_us", wide), one.wide_us},
                      {"type", one.fp8_wins() ? "e4m3" : wide}});
  }
  const bool measured =
      !session.model().options().fp8_always && session.compile_evidence().prefill.requested;
  return {
      {"head", session.model().options().fp8 == engine::Fp8::kWithTheHead ? "fp8" : wide},
      {"chosen_by", measured ? fmt::format("the faster of e4m3, with its rounding, and {}", wide)
                             : "asked for: e4m3 wherever the library has it"},
      {"chosen", std::move(chosen)},
      {"weights", "e4m3, a scale for each output"},
      {"activations", "e4m3, a scale for each row"},
      {"sums",
       session.model().options().fp8_fast_sums ? "fast: some bits fewer than fp32's" : "fp32"},
      {"in_e4m3", std::move(in_fp8)},
      {fmt::format("in_{}", wide), std::move(in_wide)},
      {"never_in_e4m3",
       fmt::format("attention, decoding, the last positions' products and products of at most "
                   "{} rows: {} weights",
                   engine::kProductRows, wide)}};
}

Json native_evidence(const engine::Session& session, const LoadRequest& load, Phase phase,
                     const engine::FrameRuns& runs) {
  Json json;
  json["phase"] = phase_name(phase);
  json["requested"] = {{"mode", load.mode},
                       {"cache", load.cache},
                       {"dtype", load.dtype},
                       {"dynamic", load.dynamic},
                       {"options", load.options}};
  json["requested"]["options"].erase(kCompilerOption);  // the harness's, not the arm's
  json["actual"] = {{"mode", "eager"},
                    {"cache", load.cache},
                    {"dtype", engine::dtype_name(session.model().dtype())},
                    {"threads", session.device().threads()},
                    {"device", device_json(session.device().info())}};
  if (load.mode == "eager") {
    json["fallback"] = false;
    json["compiler_real"] = "not_applicable";
    json["reasons"] = {"mode eager asks for no compiler"};
    json["toolchain"] = native_toolchain();
    if (!on_gpu(session)) return json;
    json["counters"] = counters_json(session);
    json["toolchain"] = toolchain_json(session.device().toolchain());
    json["kernels"] = kernels_json(session.device().stats());
    json["notes"] = session.device().notes();
    return json;
  }
  const CompileEvidence evidence = session.compile_evidence();
  json["counters"] = counters_json(session);
  json["graphs"] = Json::array();
  json["recompiles"] = Json::array();
  add_graphs("prefill", evidence.prefill, json["graphs"], json["recompiles"]);
  add_graphs("decode", evidence.decode, json["graphs"], json["recompiles"]);
  add_code(evidence, phase, json);
  json["toolchain"] = toolchain_json(evidence.toolchain);
  json["kernels"] = kernels_json(evidence.kernels);
  json["passes"] = passes_json(evidence.passes);
  json["packed_bytes"] = evidence.packed_bytes;
  put(json, kCompilerGaveUp, evidence.kernels.gave_up);
  put(json, kKernelRefused, evidence.kernels.refused_reason);
  json["notes"] = evidence.notes;
  add_verdict(session, evidence, phase, runs, json);
  return json;
}

}  // namespace assay
