// Gate 2: the identity is complete, the worker that ran confirms it, and the bundle has the hash of
// the code's generator.
#include <algorithm>
#include <array>

#include "base/records/backend_traits.h"
#include "base/records/lenient_json.h"
#include "base/text/text.h"
#include "gates/gates.h"

namespace assay {
namespace {

std::string arm_member(const std::string& arm, std::string_view axis) {
  return fmt::format("manifest.json: identity.arms.{}.{}", arm, axis);
}

bool is_named(const std::string& value) {
  return !value.empty() && !value.starts_with("unknown") &&
         value.find("unknown commit") == std::string::npos;
}

bool states_nothing(const std::set<std::string>& values) {
  return values.empty() || values.contains("");
}

GateCheck identity_is_complete(const BundleFacts& facts, const std::vector<GatedArm>& arms) {
  Deciders missing;
  std::set<std::string> axes;
  const auto miss = [&](const std::string& axis, const std::string& arm) {
    axes.insert(axis);
    missing.add(arm_member(arm, axis));
  };
  for (const GatedArm& arm : arms) {
    for (const char* axis : {"device", "code_generator", "framework_build", "code_sha"}) {
      if (!is_named(stated_axis(facts, arm.name, arm.backend, axis))) miss(axis, arm.name);
    }
    bool cache = true;
    bool mode = true;
    for (const GatedCell* cell : arm.cells) {
      cache = cache && !states_nothing(cell->cache);
      mode = mode && !states_nothing(cell->compile_mode);
    }
    if (!cache) miss("cache", arm.name);
    if (!mode) miss("compile_mode", arm.name);
  }
  const int64_t short_of = missing.count();
  return std::move(missing).decide(
      {.name = "identity",
       .looked_at = "manifest.json: identity (device, code_generator, framework_build, code_sha, "
                    "and of each arm cache and compile_mode)"},
      GateVerdict::kFail,
      fmt::format("The identity lacks {}: {}.", counted(short_of, "member"),
                  join(std::vector<std::string>(axes.begin(), axes.end()), ", ")),
      fmt::format("All six axes are stated of {}.", counted(std::ssize(arms), "arm")));
}

// A commit with changes on top of it names no code.
GateCheck commit_names_code(const BundleFacts& facts, const std::vector<GatedArm>& arms) {
  Deciders dirty;
  std::set<std::string> commits;
  for (const GatedArm& arm : arms) {
    const std::string sha = stated_axis(facts, arm.name, arm.backend, "code_sha");
    if (sha.empty()) continue;
    if (sha.ends_with("-dirty") && commits.insert(sha).second) {
      dirty.add("manifest.json: code_sha " + sha);
    }
    commits.insert(sha);
  }
  GateCheck check{.name = "commit", .looked_at = "manifest.json: identity code_sha"};
  if (commits.empty()) {
    check.verdict = GateVerdict::kFail;
    check.found = "No commit is named.";
    check.decided_by = {"manifest.json: identity.code_sha"};
    return check;
  }
  return std::move(dirty).decide(
      std::move(check), GateVerdict::kNotDecided,
      "The code was changed after its commit, and the bundle doesn't hold the change: only the "
      "program's hash tells which code ran.",
      fmt::format("{} {} the code.", counted(std::ssize(commits), "commit"),
                  commits.size() == 1 ? "names" : "name"));
}

GateCheck worker_spoke(const GateScope& scope) {
  Deciders silent;
  int64_t cells = 0;
  for (const GatedCell* cell : scope.cells) {
    if (cell->timed == 0) continue;
    ++cells;
    if (!cell->has_evidence) {
      silent.add(evidence_member(*cell, "missing"));
    } else if (cell->worker.empty()) {
      silent.add(evidence_member(*cell, "worker"));
    } else if (!cell->reported) {
      silent.add(evidence_member(*cell, "reported"));
    } else if (!cell->unknown_processes.empty()) {
      silent.add(evidence_member(
          *cell, fmt::format("processes (rows name process {})", cell->unknown_processes.front())));
    }
  }
  const int64_t short_of = silent.count();
  GateCheck check{.name = "worker",
                  .looked_at = "cells/CELL/evidence.json: worker, reported, processes"};
  if (cells == 0) {
    check.found = "No cell that is judged has a time.";
    return check;
  }
  return std::move(silent).decide(
      std::move(check), GateVerdict::kFail,
      fmt::format("{} of {} {} no report of a worker that ran {}.", short_of,
                  counted(cells, "cell"), short_of == 1 ? "has" : "have",
                  short_of == 1 ? "it" : "them"),
      fmt::format("Each of {} has the identity of the worker that ran it.",
                  counted(cells, "cell")));
}

// The first axis on which the arm's worker contradicts the identity: the member's name and both
// values; empty: they agree. `spoke` becomes true if the worker stated any of these axes.
std::string contradiction(const BundleFacts& facts, const GatedCell& cell, bool& spoke) {
  const auto stated = [&](std::string_view axis) {
    return stated_axis(facts, cell.arm, cell.backend, axis);
  };
  std::string found;
  const auto hold = [&](std::string_view member_name, const std::string& said,
                        const std::string& identity, bool agree) {
    if (said.empty()) return;
    spoke = true;
    if (agree || !found.empty()) return;
    found = fmt::format("{}: expected {}, found {}", evidence_member(cell, member_name),
                        quoted_excerpt(identity), quoted_excerpt(said));
  };
  const std::string name = text_member(cell.toolchain, "name");
  const std::string version = text_member(cell.toolchain, "version");
  const std::string build = stated("framework_build");
  if (name == "torch") {
    hold("reported.toolchain.version", version, build,
         (build + " ").starts_with("torch " + version + " "));
  }
  const std::string generator = stated("code_generator");
  const std::string triton = text_member(member(cell.toolchain, "triton"), "version");
  if (generator.starts_with("triton ")) {
    hold("reported.toolchain.triton.version", triton, generator, generator == "triton " + triton);
  }
  if (generator.starts_with("nvrtc ")) {
    hold("reported.toolchain.version", version, generator,
         (generator + " ").starts_with(name + " " + version + " "));
  }
  const std::string device = stated("device");
  const std::string gpu = text_member(member(cell.toolchain, "cuda"), "device");
  hold("reported.toolchain.cuda.device", gpu, device, device == gpu);
  const Json& on = member(cell.actual, "device");
  if (text_member(on, "kind") == "cuda") {
    const std::string native_gpu = text_member(on, "name");
    hold("reported.actual.device.name", native_gpu, device, device.starts_with(native_gpu));
  }
  const std::string cache = text_member(cell.actual, "cache");
  const std::string of_rows = cell.cache.empty() ? "" : *cell.cache.begin();
  hold("reported.actual.cache", cache, of_rows, cell.cache.size() == 1 && cache == of_rows);
  return found;
}

GateCheck worker_agrees(const BundleFacts& facts, const GateScope& scope) {
  Deciders against;
  Deciders silent;  // decides where no cell's worker spoke
  std::string first;
  int64_t cells = 0;
  for (const GatedCell* cell : scope.cells) {
    if (cell->timed == 0) continue;
    if (!cell->reported) {  // the check of workers says so
      silent.add(evidence_member(*cell, cell->has_evidence ? "reported" : "missing"));
      continue;
    }
    ++cells;
    bool spoke = false;
    std::string problem = contradiction(facts, *cell, spoke);
    if (problem.empty() && !spoke) {
      problem = evidence_member(*cell, "reported (neither toolchain nor actual say what ran)");
    }
    if (problem.empty()) continue;
    if (first.empty()) first = problem;
    against.add(problem);
  }
  GateCheck check{.name = "agreement",
                  .looked_at =
                      "cells/CELL/evidence.json: reported.toolchain, reported.actual; "
                      "manifest.json: identity"};
  if (cells == 0) {
    check = std::move(silent).decide(std::move(check), GateVerdict::kFail, "", "");
    check.verdict = GateVerdict::kFail;
    check.found = "No worker confirms the identity.";
    return check;
  }
  const int64_t short_of = against.count();
  return std::move(against).decide(
      std::move(check), GateVerdict::kFail,
      fmt::format("In {} of {} the worker's report doesn't confirm the identity; {}.", short_of,
                  counted(cells, "cell"), first),
      fmt::format("The reports of the workers of {} agree with the identity.",
                  counted(cells, "cell")));
}

bool is_sha256(const std::string& text) {
  return text.size() == 64 && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

// The hash that the bundle lacks of the program that made or ran the cell's code; empty: none.
std::string missing_hash(const BundleFacts& facts, const GatedCell& cell) {
  const Json& environment = facts.bundle.environment;
  const std::string program = text_member(environment, "program_sha256");
  const Json& toolchain = cell.toolchain;
  const auto lacks = [&](const Json& tool) { return !is_sha256(text_member(tool, "sha256")); };
  switch (backend_traits(cell.backend).worker) {
    case WorkerKind::kAssay: {
      if (!is_sha256(program)) return "environment.json: program_sha256";
      const bool generates = cell.wants_compiler || !text_member(toolchain, "name").empty();
      if (generates && lacks(toolchain)) return evidence_member(cell, "reported.toolchain.sha256");
      return "";
    }
    case WorkerKind::kCommand:
    case WorkerKind::kServer: {
      const Json& arm = member(member(environment, "arms"), cell.arm);
      if (!lacks(member(arm, "program"))) return "";
      return fmt::format("environment.json: arms.{}.program.sha256", cell.arm);
    }
    case WorkerKind::kInterpreter:
      break;
  }
  if (lacks(toolchain)) return evidence_member(cell, "reported.toolchain.sha256");
  for (const char* tool : {"triton", "cpp_compiler"}) {
    const Json& used = member(toolchain, tool);
    if (!used.is_null() && lacks(used)) {
      return evidence_member(cell, fmt::format("reported.toolchain.{}.sha256", tool));
    }
  }
  return "";
}

GateCheck toolchain_is_hashed(const BundleFacts& facts, const GateScope& scope) {
  Deciders missing("cell");
  std::string first;
  int64_t cells = 0;
  for (const GatedCell* cell : scope.cells) {
    if (cell->timed == 0) continue;
    ++cells;
    const std::string lacking = missing_hash(facts, *cell);
    if (lacking.empty()) continue;
    if (first.empty()) first = lacking;
    missing.add(lacking);
  }
  GateCheck check{.name = "toolchain",
                  .looked_at =
                      "environment.json: program_sha256, arms; cells/CELL/evidence.json: "
                      "reported.toolchain"};
  if (cells == 0) {
    check.found = "No cell that is judged has a time.";
    return check;
  }
  const int64_t short_of = missing.count();
  return std::move(missing).decide(
      std::move(check), GateVerdict::kFail,
      fmt::format("{} of {} {} the hash of the program or code generator; the first lacks {}.",
                  short_of, counted(cells, "cell"), short_of == 1 ? "lacks" : "lack", first),
      fmt::format("The program and the code generator of {} are named with their hashes.",
                  counted(cells, "cell")));
}

GateCheck one_environment(const BundleFacts& facts) {
  Deciders differing;
  int64_t sittings = 0;
  std::string first;
  for (size_t i = 0; i < facts.findings.sittings.size(); ++i) {
    const SittingSummary& sitting = facts.findings.sittings[i];
    if (sitting.rows == 0) continue;
    ++sittings;
    if (sitting.differs.empty()) continue;
    const std::string fields = difference_text(sitting.differs, 3, true);
    if (first.empty()) first = fields;
    differing.add(fmt::format("environment-{}.json: {}", i + 1, fields));
  }
  return std::move(differing).decide(
      {.name = "sittings", .looked_at = "environment.json, environment-N.json"}, GateVerdict::kFail,
      fmt::format("The rows are of sittings whose environments differ: {}.", first),
      sittings > 1 ? fmt::format("{} sittings ran in one environment.", sittings)
                   : "One sitting measured every row.");
}

}  // namespace

JudgedGate judge_environment(const BundleFacts& facts, const GateScope& scope) {
  JudgedGate gate{.kind = GateKind::kEnvironment, .looked_at = {}, .checks = {}};
  const std::vector<GatedArm> arms = arms_of(facts, scope);
  gate.looked_at = fmt::format("6 axes of {}, evidence of {}", counted(std::ssize(arms), "arm"),
                               counted(std::ssize(scope.cells), "cell"));
  if (arms.empty()) {
    gate.checks = {{.name = "identity", .looked_at = {}, .found = "No arm is judged."}};
    return gate;
  }
  gate.checks = {
      identity_is_complete(facts, arms), commit_names_code(facts, arms),    worker_spoke(scope),
      worker_agrees(facts, scope),       toolchain_is_hashed(facts, scope), one_environment(facts)};
  return gate;
}

}  // namespace assay
