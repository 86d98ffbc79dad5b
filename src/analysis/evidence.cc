// Evidence, read leniently: a worker that says little proves little, and that is the finding.
#include "analysis/evidence.h"

#include <array>

#include "analysis/lenient.h"

namespace assay {
namespace {

std::string text(const Json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>() : to_json_line(value);
}

CompilerReal verdict(const std::string& name) {
  constexpr std::array kNames = {std::pair{"not_applicable", CompilerReal::kNotApplicable},
                                 std::pair{"yes", CompilerReal::kYes},
                                 std::pair{"fallback", CompilerReal::kFallback},
                                 std::pair{"label_only", CompilerReal::kLabelOnly}};
  for (const auto& [known, real] : kNames) {
    if (name == known) return real;
  }
  return CompilerReal::kUnproven;
}

std::vector<Recompile> recompiles(const Json& list) {
  std::vector<Recompile> all;
  if (!list.is_array()) return all;
  for (const Json& entry : list) {
    Recompile recompile{text(member(entry, "guard")), text(member(entry, "expected")),
                        text(member(entry, "found")), std::nullopt};
    const Json& seconds = member(entry, "seconds");
    if (seconds.is_number()) recompile.seconds = seconds.get<double>();
    if (!recompile.guard.empty()) all.push_back(std::move(recompile));
  }
  return all;
}

}  // namespace

int64_t CompileEvidence::counter(const std::string& name) const {
  const auto at = counters.find(name);
  return at != counters.end() ? at->second : 0;
}

CompileEvidence read_evidence(const Json& evidence) {
  const Json& reported = member(evidence, "reported");
  CompileEvidence read;
  read.real = verdict(text(member(evidence, "compiler_real")));
  if (member(reported, "reasons").is_array()) {
    for (const Json& reason : member(reported, "reasons")) read.reasons.push_back(text(reason));
  }
  const Json& fallback = member(reported, "fallback");
  if (fallback.is_string()) read.fallback = fallback.get<std::string>();
  read.fallback_error = text(member(reported, "fallback_error"));
  if (member(reported, "counters").is_object()) {
    for (const auto& [name, value] : member(reported, "counters").items()) {
      if (value.is_number_integer()) read.counters[name] = value.get<int64_t>();
    }
  }
  read.recompiles = recompiles(member(reported, "recompiles"));
  return read;
}

}  // namespace assay
