// Gate 4: cache, mode, symbolic shapes, quantisation and code generator are stated of every arm.
#include <algorithm>
#include <functional>

#include "base/records/lenient_json.h"
#include "base/text/text.h"
#include "gates/gates.h"

namespace assay {
namespace {

using StatedSet = std::set<std::string>;

// The fault of the one value that an arm's cells state; empty: none.
std::string ambiguity(const StatedSet& values) {
  if (values.empty() || values.contains("")) return "not stated";
  if (values.size() == 1) return "";
  return "several: " + join(std::vector<std::string>(values.begin(), values.end()), ", ");
}

StatedSet collect(const GatedArm& arm, const StatedSet GatedCell::*axis) {
  StatedSet all;
  for (const GatedCell* cell : arm.cells) all.insert((cell->*axis).begin(), (cell->*axis).end());
  return all;
}

// Arms that fail to state an axis in one way.
struct OpenAxis {
  std::string problem;
  std::vector<std::string> arms;
};

// Places are joined by "; " where they are shown.
std::string one_place(std::string column) {
  const size_t at = column.find("; ");
  return at == std::string::npos ? column : column.replace(at, 2, " and ");
}

// An arm with the axis explicit in every cell: `problem` is empty for it.
GateCheck axis_check(std::string name, std::string column, const std::vector<GatedArm>& arms,
                     const std::function<std::string(const GatedArm&)>& problem_of,
                     const std::string& fine) {
  std::vector<OpenAxis> places;
  std::string first;
  for (const GatedArm& arm : arms) {
    const std::string problem = problem_of(arm);
    if (problem.empty()) continue;
    if (first.empty()) first = fmt::format("{}: {}", arm.name, problem);
    auto place = std::ranges::find(places, problem, &OpenAxis::problem);
    if (place == places.end()) place = places.insert(places.end(), {problem, {}});
    place->arms.push_back(arm.name);
  }
  Deciders missing;
  int64_t short_of = 0;
  for (const OpenAxis& place : places) {
    short_of += std::ssize(place.arms);
    missing.add(fmt::format("{}: {} ({} {})", one_place(column), place.problem,
                            place.arms.size() == 1 ? "arm" : "arms", join(place.arms, ", ")));
  }
  return std::move(missing).decide(
      {.name = std::move(name), .looked_at = column}, GateVerdict::kFail,
      fmt::format("{} of {} {} it open{} {}.", short_of, counted(std::ssize(arms), "arm"),
                  short_of == 1 ? "leaves" : "leave", short_of == 1 ? ":" : "; the first is",
                  first),
      fine);
}

// One value an arm; it has to be there in cells of `needs`.
std::string column_problem(const GatedArm& arm, const StatedSet GatedCell::*axis) {
  return ambiguity(collect(arm, axis));
}

// Modes that specialise on shapes say how.
std::string dynamic_problem(const GatedArm& arm) {
  StatedSet all;
  bool needed = false;
  for (const GatedCell* cell : arm.cells) {
    const bool graph_by_hand = cell->compile_mode.contains("manual-cudagraph");
    if (!cell->wants_compiler || graph_by_hand) continue;
    needed = true;
    all.insert(cell->dynamic.begin(), cell->dynamic.end());
  }
  return needed ? ambiguity(all) : "";
}

// Stated by name, or by a worker that says in which type it holds the weights and names no
// quantisation. Cells without a figure claim nothing.
std::string quantization_problem(const GatedArm& arm) {
  StatedSet kinds;
  for (const GatedCell* cell : arm.cells) {
    if (cell->timed == 0) continue;
    for (const std::string& kind : cell->quantization) {
      kinds.insert(!kind.empty() ? kind : cell->worker_dtype.empty() ? "" : "none");
    }
  }
  return kinds.empty() ? "" : ambiguity(kinds);
}

// True if the text has a version: "none" names no generator for a compiled arm.
bool names_generator(const std::string& text) {
  return std::ranges::any_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::string reported_generator(const GatedCell& cell) {
  const std::string name = text_member(cell.toolchain, "name");
  return name.empty() ? "" : name + " " + text_member(cell.toolchain, "version");
}

std::string generator_problem(const BundleFacts& facts, const GatedArm& arm) {
  const Json& own = member(member(member(facts.bundle.manifest, "identity"), "arms"), arm.name);
  const std::string of_arm = text_member(own, "code_generator");
  const std::string stated = stated_axis(facts, arm.name, arm.backend, "code_generator");
  for (const GatedCell* cell : arm.cells) {
    if (cell->timed == 0) continue;
    if (!cell->wants_compiler) {
      if (stated == "none" || names_generator(stated)) continue;
      return stated.empty() ? "not stated" : "no version: " + stated;
    }
    // The program's own compiler made no kernel of a compiled arm.
    const std::string compiled =
        !of_arm.empty() && of_arm != "none" ? of_arm : reported_generator(*cell);
    if (compiled.empty()) return "not stated";
    if (!names_generator(compiled)) return "no version: " + compiled;
  }
  return "";
}

}  // namespace

JudgedGate judge_surfacing(const BundleFacts& facts, const GateScope& scope) {
  JudgedGate gate{.kind = GateKind::kSurfacing, .looked_at = {}, .checks = {}};
  const std::vector<GatedArm> arms = arms_of(facts, scope);
  gate.looked_at = fmt::format("5 axes of {}", counted(std::ssize(arms), "arm"));
  if (arms.empty()) {
    gate.checks = {{.name = "cache", .looked_at = {}, .found = "No arm is judged."}};
    return gate;
  }
  gate.checks = {
      axis_check(
          "cache", "PHASE/metrics.csv: cache", arms,
          [](const GatedArm& arm) { return column_problem(arm, &GatedCell::cache); },
          "Every arm states one kind of cache."),
      axis_check(
          "mode", "PHASE/metrics.csv: compile_mode", arms,
          [](const GatedArm& arm) { return column_problem(arm, &GatedCell::compile_mode); },
          "Every arm states one compile mode."),
      axis_check("dynamic", "PHASE/metrics.csv: dynamic", arms, dynamic_problem,
                 "Every compiled arm states whether its shapes are symbolic."),
      axis_check("quantisation",
                 "PHASE/metrics.csv: quantization; cells/CELL/evidence.json: worker.dtype", arms,
                 quantization_problem,
                 "Every arm states its quantisation, or its worker the type of its weights."),
      axis_check(
          "code_generator",
          "manifest.json: identity code_generator; cells/CELL/evidence.json: reported.toolchain",
          arms, [&](const GatedArm& arm) { return generator_problem(facts, arm); },
          "Every arm states its code generator with a version, or that it has none."),
  };
  return gate;
}

}  // namespace assay
