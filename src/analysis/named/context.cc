// Findings about the bundle as a whole: completeness, environment, order, unlike weights.
#include <algorithm>
#include <set>

#include "analysis/named/named.h"
#include "artifact/manifest.h"
#include "base/records/lenient_json.h"
#include "base/text/text.h"

namespace assay {
namespace {

Finding whole(std::string kind, std::string text) {
  Finding finding;
  finding.kind = std::move(kind);
  finding.severity = Severity::kWarning;
  finding.text = std::move(text);
  return finding;
}

std::vector<std::string> warnings_of(const Json& environment) {
  std::vector<std::string> texts;
  const Json& warnings = member(environment, "warnings");
  for (const Json& warning : warnings.is_array() ? warnings : Json::array()) {
    texts.push_back(shown_text(warning));
  }
  return texts;
}

std::string weights_of(const Group& group) {
  std::set<std::string> kinds;
  const Row* last = nullptr;
  for (const Row* row : group.rows) {
    if (last != nullptr && row->dtype == last->dtype && row->quantization == last->quantization) {
      continue;
    }
    const std::string dtype = row->dtype.str(), quantization = row->quantization.str();
    kinds.insert(quantization.empty() ? (dtype.empty() ? "of unknown type" : dtype)
                 : dtype.empty()      ? quantization
                                      : quantization + " (the rest in " + dtype + ")");
    last = row;
  }
  return join(std::vector<std::string>(kinds.begin(), kinds.end()), "+");
}

// The arm's settings beside its stack, by the bundle's identity.
std::string configuration_of(const Json& identity) {
  std::vector<std::string> parts;
  for (const char* key : {"compile_mode", "cache", "dynamic"}) {
    if (const std::string value = text_member(identity, key); !value.empty()) {
      parts.push_back(value);
    }
  }
  return parts.empty() ? "no named mode" : join(parts, "/");
}

void find_stack_confounds(const Bundle& bundle, const Samples& samples,
                          std::vector<Finding>& findings) {
  const Json& arms = member(member(bundle.manifest, "identity"), "arms");
  const auto stack = [&](size_t arm) {
    return text_member(member(arms, samples.arms[arm]), "framework_build");
  };
  for (size_t arm = 1; arm < samples.arms.size(); ++arm) {
    const std::string what = configuration_of(member(arms, samples.arms[arm]));
    const std::string base = configuration_of(member(arms, samples.arms[0]));
    if (stack(arm).empty() || stack(0).empty() || stack(arm) == stack(0) || what == base) continue;
    findings.push_back(
        whole("confound", fmt::format("arm {} ran as {} under {}, the baseline as {} under {}: "
                                      "their contrast mixes the two differences",
                                      samples.arms[arm], what, stack(arm), base, stack(0))));
  }
}

}  // namespace

namespace {

// A note an arm that asks a server: the facts that it doesn't tell, by its worker's evidence.
void find_silent_servers(const Samples& samples, std::vector<Finding>& findings) {
  std::set<std::pair<size_t, std::string>> told;
  for (const Group& group : samples.groups) {
    if (group.evidence == nullptr || group.rows.empty()) continue;
    const Json& untold =
        member(member(member(group.report().whole, "actual"), "server"), "unknown");
    std::vector<std::string> names;
    for (const Json& name : untold.is_array() ? untold : Json::array()) {
      if (name.is_string()) names.push_back(name.get<std::string>());
    }
    if (names.empty() || !told.emplace(group.arm, join(names, ", ")).second) continue;
    Finding finding = whole("server_untold", "");
    finding.severity = Severity::kNote;
    finding.arm = samples.arms[group.arm];
    finding.size = static_cast<double>(names.size());
    finding.text = fmt::format(
        "the server doesn't tell {}: it may differ in these from another one, and from itself "
        "another day",
        join(names, ", "));
    findings.push_back(std::move(finding));
  }
}

}  // namespace

void find_confounds(const Bundle& bundle, const Samples& samples,
                    const std::vector<ArmQuality>& qualities, std::vector<Finding>& findings) {
  find_stack_confounds(bundle, samples, findings);
  find_silent_servers(samples, findings);
  for (size_t stratum = 0; stratum < samples.strata.size(); ++stratum) {
    const Group* base = samples.find(stratum, 0);
    if (base == nullptr) continue;
    const std::string expected = weights_of(*base);
    for (size_t g = samples.first_group[stratum]; g < samples.first_group[stratum + 1]; ++g) {
      const std::string found = weights_of(samples.groups[g]);
      if (found == expected) continue;
      Finding finding = about("unlike_precision", Severity::kWarning, samples, samples.groups[g]);
      finding.text = fmt::format(
          "the weights are {} and the baseline's are {}, so the contrast mixes this difference "
          "with the arm's",
          found, expected);
      const std::string& model = samples.strata[stratum].model;
      if (const ModelQuality* quality = quality_of(qualities, model, finding.arm)) {
        finding.text += fmt::format(
            "; beside the model's own they predict with {} nats a token, and choose the same one "
            "in {:.1f} % of {} positions",
            quality_text(*quality), 100 * quality->same_choice.value, quality->positions);
      }
      findings.push_back(std::move(finding));
    }
  }
  for (const ArmQuality& one : qualities) {
    if (one.beside_model.problem.empty()) continue;
    Finding finding = whole("quality_unknown", "");
    finding.arm = one.arm;
    finding.text =
        fmt::format("the predictions of its weights could not be held against model {}'s: {}",
                    one.model, one.beside_model.problem);
    findings.push_back(std::move(finding));
  }
}

void find_context(const Bundle& bundle, const StudySummary& study, const Samples& samples,
                  std::vector<Finding>& findings) {
  if (!bundle.complete) {
    const std::string refusal = last_refusal(bundle.manifest);
    findings.push_back(
        whole("incomplete",
              "the run did not finish: these figures cover the rows committed so far and "
              "will change when it is resumed" +
                  (refusal.empty() ? "" : "; it ended because " + refusal)));
  }
  if (bundle.rows_alone) {
    findings.push_back(whole("rows_alone",
                             "these rows are kept without their bundle, so no hash and no file of "
                             "evidence vouches for them"));
  }
  if (bundle.rows.empty()) findings.push_back(whole("no_rows", "the bundle has no rows"));
  const std::vector<std::string> warnings = warnings_of(bundle.environment);
  for (const std::string& warning : warnings) findings.push_back(whole("environment", warning));
  for (size_t i = 1; i < bundle.sittings.size(); ++i) {
    for (const std::string& warning : warnings_of(bundle.sittings[i].environment)) {
      if (std::ranges::find(warnings, warning) != warnings.end()) continue;
      findings.push_back(whole("environment", fmt::format("sitting {}: {}", i + 1, warning)));
    }
  }
  if (study.order == "sequential" && samples.arms.size() > 1) {
    findings.push_back(whole("order_confounded",
                             "the arms ran one after the other, so a drift of the machine looks "
                             "like a difference between them"));
  }
}

}  // namespace assay
