// Evidence from the session's own records; a verdict is only as good as the runs behind it.
#include "backend/native/native_evidence.h"

#include "backend/native/native_facts.h"

namespace assay {
namespace {

using engine::CompileEvidence;
using engine::FrameEvidence;

Json counters_json(const engine::CompileCounters& counters) {
  Json json;
  for (const auto& [name, value] : counter_deltas({}, counters)) json[name] = value;
  return json;
}

Json toolchain_json(const engine::CpuCompiler& compiler) {
  return {{"name", "c++"},
          {"version", compiler.version},
          {"path", compiler.path.string()},
          {"sha256", compiler.sha256},
          {"target", compiler.target},
          {"processor", compiler.processor},
          {"flags", compiler.flags}};
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
std::vector<const FrameEvidence*> timed_frames(const CompileEvidence& evidence, WirePhase phase) {
  std::vector<const FrameEvidence*> frames;
  if (phase != WirePhase::kKvDecode && evidence.prefill.requested) {
    frames.push_back(&evidence.prefill);
  }
  if (phase != WirePhase::kPrefill && evidence.decode.requested) {
    frames.push_back(&evidence.decode);
  }
  return frames;
}

// compiler_real with its reasons, what was fallen back to, and what ran.
void add_verdict(const CompileEvidence& evidence, WirePhase phase, const engine::FrameRuns& runs,
                 Json& json) {
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
    reasons.push_back("split: what this phase times was asked to run eager");
  } else if (runs.fallbacks > 0 || !errors.empty()) {
    verdict = "fallback";
    reasons.push_back(
        fmt::format("{} of {} runs went eager", runs.fallbacks, runs.fallbacks + runs.compiled));
    if (!errors.empty()) reasons.push_back(errors);
  } else if (runs.compiled == 0) {
    reasons.push_back("nothing has run in this phase");
  } else if (kernels == 0) {
    reasons.push_back("no kernel was built or loaded");
  } else {
    verdict = "yes";
    reasons.push_back(fmt::format("all {} runs went through kernels: {} compiled here, {} loaded",
                                  runs.compiled, evidence.kernels.compiled,
                                  evidence.kernels.loaded));
  }
  json["compiler_real"] = verdict;
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

std::vector<std::pair<std::string, int64_t>> counter_deltas(const engine::CompileCounters& before,
                                                            const engine::CompileCounters& after) {
  return {{"unique_graphs", after.unique_graphs - before.unique_graphs},
          {"recompiles", after.recompiles - before.recompiles},
          {"recompile_limit_hits", after.recompile_limit_hits - before.recompile_limit_hits},
          {"kernels_compiled", after.kernels_compiled - before.kernels_compiled},
          {"kernels_loaded", after.kernels_loaded - before.kernels_loaded},
          {"fallbacks", after.fallbacks - before.fallbacks}};
}

engine::FrameRuns timed_runs(const engine::Session& session, WirePhase phase) {
  engine::FrameRuns runs;
  if (phase != WirePhase::kKvDecode) runs = session.prefill_runs();
  if (phase != WirePhase::kPrefill) {
    runs.compiled += session.decode_runs().compiled;
    runs.fallbacks += session.decode_runs().fallbacks;
  }
  return runs;
}

Json compile_summary(const engine::Session& session) {
  const CompileEvidence evidence = session.compile_evidence();
  return {{"counters", counters_json(session.counters())},
          {"compile_seconds", evidence.kernels.compile_seconds},
          {"load_seconds", evidence.kernels.load_seconds},
          {"packed_bytes", evidence.packed_bytes}};
}

Json native_evidence(const engine::Session& session, const LoadRequest& load, WirePhase phase,
                     const engine::FrameRuns& runs) {
  Json json;
  json["phase"] = wire_phase_name(phase);
  json["requested"] = {{"mode", load.mode},
                       {"cache", load.cache},
                       {"dtype", load.dtype},
                       {"dynamic", load.dynamic},
                       {"options", load.options}};
  json["actual"] = {{"mode", "eager"},
                    {"cache", load.cache},
                    {"dtype", engine::dtype_name(session.dtype())},
                    {"threads", session.threads()}};
  if (load.mode == "eager") {
    json["fallback"] = false;
    json["compiler_real"] = "not_applicable";
    json["reasons"] = {"mode eager asks for no compiler"};
    json["toolchain"] = native_toolchain();
    return json;
  }
  const CompileEvidence evidence = session.compile_evidence();
  json["counters"] = counters_json(session.counters());
  json["graphs"] = Json::array();
  json["recompiles"] = Json::array();
  add_graphs("prefill", evidence.prefill, json["graphs"], json["recompiles"]);
  add_graphs("decode", evidence.decode, json["graphs"], json["recompiles"]);
  json["toolchain"] = evidence.toolchain ? toolchain_json(*evidence.toolchain) : Json();
  json["kernels"] = {{"compiled", evidence.kernels.compiled},
                     {"loaded", evidence.kernels.loaded},
                     {"reused", evidence.kernels.reused},
                     {"unsaved", evidence.kernels.unsaved},
                     {"compile_seconds", evidence.kernels.compile_seconds},
                     {"load_seconds", evidence.kernels.load_seconds}};
  if (evidence.kernels.unsaved > 0) {
    json["kernels"]["unsaved_reason"] = evidence.kernels.unsaved_reason;
  }
  json["passes"] = passes_json(evidence.passes);
  json["packed_bytes"] = evidence.packed_bytes;
  json["notes"] = evidence.notes;
  add_verdict(evidence, phase, runs, json);
  return json;
}

}  // namespace assay
