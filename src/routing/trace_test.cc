// Traces: read, refused, made.
#include "routing/trace.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace assay {
namespace {

using testing::HasSubstr;

std::string trace_refusal(std::string_view text) {
  const auto trace = parse_trace(text, "t.csv");
  EXPECT_FALSE(trace) << text;
  if (trace) return "";
  EXPECT_EQ(trace.error().message.find('\n'), std::string::npos);
  return trace.error().message;
}

TEST(Trace, IsReadByItsColumns) {
  const auto trace =
      parse_trace("batch,arrival_s,new_tokens,prompt_tokens\n1,0,64,10\n4,0.25,0,200\n", "t.csv");
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(*trace, (std::vector<TraceRequest>{{0, 10, 64, 1}, {0.25, 200, 0, 4}}));
  EXPECT_EQ(*parse_trace(trace_to_csv(*trace), "t.csv"), *trace);
}

TEST(Trace, HostileFilesGiveOneLineWithItsNumber) {
  const std::string header = "arrival_s,prompt_tokens,new_tokens,batch\n";
  EXPECT_THAT(trace_refusal(""), HasSubstr("expected a header"));
  EXPECT_THAT(trace_refusal(header), HasSubstr("expected a request"));
  EXPECT_THAT(trace_refusal("a,b\n1,2\n"), HasSubstr("line 1: expected the columns"));
  EXPECT_THAT(trace_refusal("batch,batch,new_tokens,arrival_s\n"), HasSubstr("line 1"));
  EXPECT_THAT(trace_refusal(header + "0,10,64,1\n1,10,64\n"), HasSubstr("t.csv line 3"));
  EXPECT_THAT(trace_refusal(header + "0,0,64,1\n"), HasSubstr("line 2: prompt_tokens"));
  EXPECT_THAT(trace_refusal(header + "0,10,-1,1\n"), HasSubstr("line 2: new_tokens"));
  EXPECT_THAT(trace_refusal(header + "0,10,64,1.5\n"), HasSubstr("line 2: batch"));
  EXPECT_THAT(trace_refusal(header + "nan,10,64,1\n"), HasSubstr("line 2: arrival_s"));
  EXPECT_THAT(trace_refusal(header + "inf,10,64,1\n"), HasSubstr("line 2: arrival_s"));
  EXPECT_THAT(trace_refusal(header + "-1,10,64,1\n"), HasSubstr("line 2: arrival_s"));
  EXPECT_THAT(trace_refusal(header + "2,10,64,1\n1,10,64,1\n"),
              HasSubstr("line 3: arrival_s: expected 2 or later"));
  EXPECT_THAT(trace_refusal(header + "0,10,64,1"), HasSubstr("t.csv"));
  EXPECT_THAT(trace_refusal(header + "0,99999999999999999999,64,1\n"), HasSubstr("prompt_tokens"));
}

double mean_gap_s(const std::vector<TraceRequest>& trace) {
  return trace.back().arrival_s / static_cast<double>(trace.size());
}

// Share of gaps below a tenth of the mean one.
double short_gaps(const std::vector<TraceRequest>& trace) {
  const double limit = mean_gap_s(trace) / 10;
  int64_t count = 0;
  for (size_t i = 1; i < trace.size(); ++i) {
    count += trace[i].arrival_s - trace[i - 1].arrival_s < limit ? 1 : 0;
  }
  return static_cast<double>(count) / static_cast<double>(trace.size());
}

TEST(Trace, OfASeedIsAlwaysTheSame) {
  TraceRecipe recipe;
  const auto trace = make_trace(recipe);
  EXPECT_EQ(trace, make_trace(recipe));
  EXPECT_EQ(trace_hash(trace), trace_hash(*parse_trace(trace_to_csv(trace), "t.csv")));
  recipe.seed = 43;
  EXPECT_NE(trace_hash(trace), trace_hash(make_trace(recipe)));
}

TEST(Trace, HasTheRateTheLengthsAndTheBurstsAskedFor) {
  TraceRecipe recipe;
  recipe.requests = 20'000;
  recipe.batches = {1, 4};
  const auto poisson = make_trace(recipe);
  EXPECT_NEAR(mean_gap_s(poisson), 0.1, 0.005);
  EXPECT_NEAR(short_gaps(poisson), 0.095, 0.02);  // 1 - exp(-0.1)
  std::vector<int64_t> lengths;
  for (const TraceRequest& request : poisson) {
    lengths.push_back(request.prompt_tokens);
    EXPECT_EQ(request.new_tokens, 64);
  }
  std::ranges::sort(lengths);
  EXPECT_NEAR(static_cast<double>(lengths[10'000]), 80, 4);
  EXPECT_NEAR(static_cast<double>(lengths[16'827]), 80 * std::exp(0.8), 12);  // one sigma above
  const auto fours = std::ranges::count(poisson, 4, &TraceRequest::batch);
  EXPECT_NEAR(static_cast<double>(fours), 10'000, 300);
  recipe.burst = 8;
  const auto bursty = make_trace(recipe);
  EXPECT_NEAR(mean_gap_s(bursty), 0.1, 0.02);
  EXPECT_GT(short_gaps(bursty), 0.6);
}

}  // namespace
}  // namespace assay
