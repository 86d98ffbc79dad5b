#include "backend/http/event_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace assay {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Events of the bytes when they come in pieces of `size`.
std::vector<std::string> events_of(StreamForm form, std::string_view bytes, size_t size) {
  EventStream stream(form, 1000);
  std::vector<std::string> events;
  for (size_t at = 0; at < bytes.size(); at += size) {
    const auto taken = stream.take(bytes.substr(at, size), [&](std::string_view event) {
      events.emplace_back(event);
      return HttpResult<void>();
    });
    EXPECT_TRUE(taken);
  }
  return events;
}

TEST(EventStream, CutsServerSentEventsOutOfPiecesOfAnySize) {
  constexpr std::string_view kBytes =
      ": a comment\r\nevent: x\r\ndata: one\r\n\r\ndata:two\ndata: three\n\n\ndata\n\nid: "
      "4\n\rdata:  five\r\r";
  for (size_t size = 1; size <= kBytes.size(); ++size) {
    EXPECT_THAT(events_of(StreamForm::kServerSentEvents, kBytes, size),
                ElementsAre("one", "two\nthree", " five"))
        << size;
  }
}

TEST(EventStream, CutsLines) {
  constexpr std::string_view kBytes = "{\"a\":1}\r\n\n{\"b\":2}\n  \n{\"unfinished\"";
  for (size_t size = 1; size <= kBytes.size(); ++size) {
    EXPECT_THAT(events_of(StreamForm::kJsonLines, kBytes, size),
                ElementsAre("{\"a\":1}\r", "{\"b\":2}"))
        << size;
  }
}

TEST(EventStream, KnowsWhetherAnEventIsBegun) {
  EventStream stream(StreamForm::kServerSentEvents, 1000);
  const auto ignore = [](std::string_view) { return HttpResult<void>(); };
  EXPECT_TRUE(stream.between_events());
  ASSERT_TRUE(stream.take("data: x\n", ignore));
  EXPECT_FALSE(stream.between_events());
  ASSERT_TRUE(stream.take("\n", ignore));
  EXPECT_TRUE(stream.between_events());
}

TEST(EventStream, RefusesALineAndAnEventThatAreTooLong) {
  const auto ignore = [](std::string_view) { return HttpResult<void>(); };
  EventStream line(StreamForm::kJsonLines, 10);
  EXPECT_TRUE(line.take("0123456789\n", ignore));
  EXPECT_EQ(line.take("01234567890", ignore).error().error_class, http_class::kTooLong);
  EventStream event(StreamForm::kServerSentEvents, 20);
  EXPECT_TRUE(event.take("data: 0123456789\n", ignore));
  EXPECT_EQ(event.take("data: 0123456789\n", ignore).error().error_class, http_class::kTooLong);
}

TEST(EventStream, StopsAtAFailure) {
  EventStream stream(StreamForm::kJsonLines, 100);
  int events = 0;
  const auto taken = stream.take("1\n2\n3\n", [&](std::string_view) {
    return ++events == 2 ? HttpResult<void>(http_failure("x", "y")) : HttpResult<void>();
  });
  EXPECT_FALSE(taken);
  EXPECT_EQ(events, 2);
}

}  // namespace
}  // namespace assay
