// Shared strings: the texts that copies and pools keep.
#include "base/tables/shared_text.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace assay {
namespace {

TEST(SharedText, ReadsLikeTheStringItWasMadeOf) {
  const SharedText text = std::string("eager");
  EXPECT_EQ(text, "eager");
  EXPECT_EQ(text.str(), "eager");
  EXPECT_EQ(text.size(), 5u);
  EXPECT_EQ(fmt::format("{}", text), "eager");
  EXPECT_EQ(Json(text), "eager");
  EXPECT_LT(text, SharedText("static"));
}

TEST(SharedText, AnEmptyOneIsTheDefault) {
  EXPECT_TRUE(SharedText().empty());
  EXPECT_EQ(SharedText(""), SharedText());
  EXPECT_EQ(SharedText().str(), "");
  EXPECT_NE(SharedText("a"), SharedText());
}

TEST(SharedText, CopiesShareAndOutliveTheFirst) {
  SharedText first = "eager";
  const SharedText copy = first;
  EXPECT_EQ(&copy.str(), &first.str());
  first = "static";
  EXPECT_EQ(copy, "eager");
  SharedText moved = std::move(first);
  EXPECT_EQ(moved, "static");
  moved = moved.str();  // its own text
  EXPECT_EQ(moved, "static");
}

TEST(SharedText, CopiesMayBeMadeAndDroppedOnSeveralThreads) {
  const SharedText text = "shared";
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([text] {
      std::vector<SharedText> copies(1000, text);
      for (SharedText& copy : copies) EXPECT_EQ(copy, "shared");
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(text, "shared");
}

TEST(TextPool, MakesEqualTextsOne) {
  TextPool pool;
  const SharedText first = pool.share("eager");
  const SharedText other = pool.share("static");
  EXPECT_EQ(&pool.share("eager").str(), &first.str());
  EXPECT_EQ(&pool.share("eager", 5).str(), &first.str()) << "the slot only speeds it up";
  EXPECT_EQ(&pool.share("static", 5).str(), &other.str());
  EXPECT_TRUE(pool.share("", 5).empty());
}

}  // namespace
}  // namespace assay
