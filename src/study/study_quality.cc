// Weights of arms, and the demand to hold them against the model's.
#include "study/study_quality.h"

#include <algorithm>

#include "study/arm_options.h"

namespace assay {
namespace {

constexpr int64_t kMostWindows = 10'000;
constexpr int64_t kLeastWindow = 8;
constexpr int64_t kMostWindow = 65'536;

}  // namespace

std::string quantization_option(const StudyArm& arm) {
  const auto file = arm.options.find(kQuantizationOption);
  return file == arm.options.end() ? std::string() : file->get<std::string>();
}

size_t parity_reference(const Study& study, size_t arm) {
  const auto baseline = std::ranges::find(study.arms, study.baseline, &StudyArm::name);
  const std::string weights = quantization_option(study.arms[arm]);
  const auto same = weights == quantization_option(*baseline)
                        ? baseline
                        : std::ranges::find(study.arms, weights, quantization_option);
  return static_cast<size_t>(same - study.arms.begin());
}

Status parse_quality(const std::optional<YamlValue>& value, Study& study) {
  const bool any = std::ranges::any_of(
      study.arms, [](const StudyArm& arm) { return !quantization_option(arm).empty(); });
  if (!value) {
    if (any) study.quality.emplace();
    return {};
  }
  static const std::vector<std::string> known = {"windows", "window", "text"};
  static const std::vector<std::string> no = {"false"};
  if (!value->is_map()) {
    ASSAY_CHECK(value->one_of(no));
    return {};
  }
  ASSAY_TRY(const YamlMap map, value->map(known));
  if (!any) return value->error("the key \"quantization\" of an arm beside it", "none");
  StudyQuality& quality = study.quality.emplace();
  if (const auto windows = map.find("windows")) {
    ASSAY_TRY(quality.windows, windows->integer(1, kMostWindows));
  }
  if (const auto window = map.find("window")) {
    ASSAY_TRY(quality.window, window->integer(kLeastWindow, kMostWindow));
  }
  if (const auto text = map.find("text")) {
    ASSAY_TRY(quality.text_file, text->text());
  }
  return {};
}

}  // namespace assay
