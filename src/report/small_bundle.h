// The bundle that tests of reports are about, and texts held against approved ones.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "analysis/analyze.h"
#include "analysis/rows/synthetic_bundle.h"
#include "report/html/page_style.h"
#include "report/plot/theme.h"
#include "tests/support/approved.h"

namespace assay {

inline void add_compiled_cell(const SyntheticCell& cell, SyntheticBundle& bundle) {
  const std::string id = bundle.add_compiled(cell, "false");
  bundle.compile(id, -2, 0);
  if (cell.phase == Phase::kPrefill) {
    for (const int repetition : {4, 17}) bundle.compile(id, repetition, cell.mean_ms * 12);
  } else if (cell.prompt_tokens == 200) {
    for (int i = 10; i < 30; ++i) bundle.row(id, i).counts[Counter::kFallbacks] = 1;
    bundle.reported(id)["fallback_error"] = "c++: exit 1";
    bundle.evidence(id)["compiler_real"] = "fallback";
  }
}

// Four arms: eager, one that starts cold and crashes on long prompts, one that fails parity, and a
// compiled one that recompiles in the timed rows of prefill and falls back to eager on the long
// decode.
inline Bundle small_bundle() {
  SyntheticBundle bundle(7);
  bundle.raw().manifest["study"]["arms"] = {"eager", "static", "broken", "compiled"};
  bundle.raw().environment["warnings"] = {"load average 3.1 on 2 cores when the run started"};
  for (const Phase phase : {Phase::kPrefill, Phase::kKvDecode}) {
    const double scale = phase == Phase::kPrefill ? 1 : 20;
    for (const auto& [scenario, tokens] : {std::pair{"single_micro", 10}, {"single_long", 200}}) {
      const double mean = scale * (4 + 0.05 * tokens);
      SyntheticCell cell;
      cell.phase = phase;
      cell.scenario = scenario;
      cell.prompt_tokens = tokens;
      cell.warmup = 2;
      cell.arm = "eager";
      cell.mean_ms = mean;
      bundle.add(cell);
      cell.arm = "static";
      cell.mean_ms = phase == Phase::kPrefill ? mean : mean * 0.8;
      cell.noise = 0.01;
      cell.cold_factor = 4;
      const std::string fast = bundle.add(cell);
      if (tokens == 200 && phase == Phase::kKvDecode) {
        for (int i = 25; i < 30; ++i) bundle.lose(fast, i, RowStatus::kCrash, "SIGSEGV");
      }
      cell.arm = "broken";
      cell.mean_ms = mean / 10;
      const std::string wrong = bundle.add(cell);
      bundle.raw().parity[wrong] = {{"passed", false}};
      cell.arm = "compiled";
      cell.mean_ms = mean * 0.6;
      add_compiled_cell(cell, bundle);
    }
  }
  return bundle.build();
}

inline Findings small_findings() {
  AnalysisOptions options;
  options.resamples = 2000;
  return *analyze(small_bundle(), options, nullptr);
}

// A page, but for its style sheet, which is that of every page and has an approved file of its own.
inline void expect_page_approved(const std::string& name, const std::string& html) {
  const std::string sheet = plot::theme_css() + page_css();
  const size_t at = html.find(sheet);
  ASSERT_NE(at, std::string::npos) << "the page lacks the style sheet";
  std::string without = html;
  without.replace(at, sheet.size(), "/* page.css */\n");
  EXPECT_EQ(without.find(sheet), std::string::npos) << "the style sheet is there twice";
  expect_approved(name, without);
}

}  // namespace assay
