#include "report/growth.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "base/records/enum_words.h"
#include "base/text/text.h"
#include "report/phase_answers.h"

namespace assay {
namespace {

constexpr std::array kSizes = {Size::kPrompt, Size::kBatch, Size::kNewTokens};
constexpr size_t kMostArms = 3;  // of a sentence
constexpr size_t kMostValues = 5;

int64_t size_of(const Findings& findings, size_t stratum, Size size) {
  const Stratum& of = findings.strata[stratum];
  return size == Size::kPrompt  ? findings.prompts[stratum].shortest
         : size == Size::kBatch ? of.batch
                                : of.new_tokens;
}

// A line for each model and the other sizes. Strata of one size are of different prompts: no line.
std::vector<GrowthLine> lines_along(const Findings& findings, Phase phase, Size along) {
  std::map<std::tuple<std::string, int64_t, int64_t>, GrowthLine> lines;
  bool is_line = true;
  for (size_t s = 0; s < findings.strata.size(); ++s) {
    if (findings.strata[s].phase != phase) continue;
    std::vector<int64_t> others;
    for (const Size size : kSizes) {
      if (size != along) others.push_back(size_of(findings, s, size));
    }
    GrowthLine& line = lines[{findings.strata[s].model, others[0], others[1]}];
    line.along = along;
    is_line = line.strata.emplace(size_of(findings, s, along), s).second && is_line;
  }
  std::vector<GrowthLine> found;
  for (auto& [key, line] : lines) {
    const bool grows = is_line && line.strata.size() > 1 && line.strata.begin()->first > 0;
    if (grows) found.push_back(std::move(line));
  }
  return found;
}

// "8", "1.02".
std::string times_text(double times) {
  const bool whole = times == std::round(times) && times < 1000;
  return whole ? fmt::format("{:.0f}", times) : format_significant(times, 3);
}

// The line's sizes that a sentence has room for: all, or the ends and what lies between evenly.
std::vector<std::pair<int64_t, size_t>> told_sizes(const GrowthLine& line) {
  const std::vector<std::pair<int64_t, size_t>> all(line.strata.begin(), line.strata.end());
  if (all.size() <= kMostValues) return all;
  std::vector<std::pair<int64_t, size_t>> told;
  for (size_t i = 0; i < kMostValues; ++i) {
    told.push_back(all[i * (all.size() - 1) / (kMostValues - 1)]);
  }
  return told;
}

std::string line_sentence(const Findings& findings, const GrowthLine& line) {
  const auto sizes = told_sizes(line);
  std::vector<std::string> numbers;
  for (const auto& [size, stratum] : sizes) numbers.push_back(std::to_string(size));
  const double times =
      static_cast<double>(sizes.back().first) / static_cast<double>(sizes.front().first);
  std::vector<std::string> arms;
  for (const std::string& arm : findings.study.arms) {
    std::vector<std::string> values;
    for (const auto& [size, stratum] : sizes) {
      const Latency* latency = mean_of(findings, stratum, arm);
      if (latency != nullptr) values.push_back(format_significant(*latency->mean, 3));
    }
    if (values.size() != sizes.size() || arms.size() == kMostArms) continue;
    const double longer = *mean_of(findings, sizes.back().second, arm)->mean /
                          *mean_of(findings, sizes.front().second, arm)->mean;
    arms.push_back(fmt::format("{} {} ms ({} times)", arm, join(values, ", "), times_text(longer)));
  }
  if (arms.empty()) return "";
  const Phase phase = findings.strata[sizes.front().second].phase;
  return fmt::format("{} by {}, {} ({} times): {}.", phase_title(phase), size_label(line.along),
                     join(numbers, ", "), times_text(times), join(arms, "; "));
}

}  // namespace

std::string_view size_label(Size size) {
  return word_of(size, {"prompt tokens", "sequences in a batch", "new tokens"});
}

std::vector<GrowthLine> growth_lines(const Findings& findings, Phase phase) {
  std::vector<GrowthLine> all;
  for (const Size along : kSizes) {
    std::vector<GrowthLine> lines = lines_along(findings, phase, along);
    all.insert(all.end(), lines.begin(), lines.end());
  }
  return all;
}

const Latency* mean_of(const Findings& findings, size_t stratum, const std::string& arm) {
  for (const Latency& latency :
       std::ranges::equal_range(findings.latencies, stratum, {}, &Latency::stratum)) {
    if (latency.arm == arm && latency.mean && !latency.parity_failed) return &latency;
  }
  return nullptr;
}

std::string line_label(const Findings& findings, const GrowthLine& line) {
  const Stratum& of = findings.strata[line.strata.begin()->second];
  std::string label;
  if (line.along != Size::kPrompt) label += " " + prompt_name(of);
  if (line.along != Size::kNewTokens && of.new_tokens > 0)
    label += fmt::format(" n{}", of.new_tokens);
  if (line.along != Size::kBatch && of.batch > 1) label += fmt::format(" b{}", of.batch);
  return label.empty() ? of.model : label.substr(1);
}

std::string growth_finding(const Findings& findings, Phase phase, const GrowthLine& line) {
  for (const std::string& arm : findings.study.arms) {
    const Latency* first = mean_of(findings, line.strata.begin()->second, arm);
    const Latency* last = mean_of(findings, line.strata.rbegin()->second, arm);
    if (first == nullptr || last == nullptr) continue;
    return fmt::format("{}: {} takes {} times as long for {} times as many {} ({} to {})",
                       phase_name(phase), arm, format_significant(*last->mean / *first->mean, 3),
                       format_significant(static_cast<double>(line.strata.rbegin()->first) /
                                              static_cast<double>(line.strata.begin()->first),
                                          3),
                       size_label(line.along), line.strata.begin()->first,
                       line.strata.rbegin()->first);
  }
  return "";
}

std::string growth_sentence(const Findings& findings, Phase phase) {
  std::vector<std::string> sentences;
  for (const Size along : kSizes) {
    for (const GrowthLine& line : lines_along(findings, phase, along)) {
      const std::string sentence = line_sentence(findings, line);
      if (sentence.empty()) continue;
      sentences.push_back(sentence);
      break;
    }
  }
  return join(sentences, " ");
}

}  // namespace assay
