// A pipe is no terminal; one tells its size, and variables say otherwise.
#include "base/process/terminal.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "base/files/descriptor.h"

namespace assay {
namespace {

// Sets a variable, and takes it back.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { ::unsetenv(name_); }

 private:
  const char* name_;
};

class OnATerminal : public testing::Test {
 protected:
  void SetUp() override {
    ::unsetenv("COLUMNS");
    ::unsetenv("NO_COLOR");
    ::setenv("TERM", "xterm", 1);
    winsize size{.ws_row = 24, .ws_col = 132, .ws_xpixel = 0, .ws_ypixel = 0};
    int master = -1;
    int slave = -1;
    ASSERT_EQ(::openpty(&master, &slave, nullptr, nullptr, &size), 0);
    master_ = Descriptor(master);
    slave_ = Descriptor(slave);
  }
  Descriptor master_{-1};
  Descriptor slave_{-1};
};

TEST_F(OnATerminal, ItsSizeIsKnown) {
  const Terminal terminal = terminal_of(slave_.get());
  EXPECT_TRUE(terminal.is_one);
  EXPECT_TRUE(terminal.colours);
  EXPECT_EQ(terminal.columns, 132u);
}

TEST_F(OnATerminal, VariablesSayOtherwise) {
  const Variable columns_of("COLUMNS", "70");
  EXPECT_EQ(terminal_of(slave_.get()).columns, 70u);
  for (const char* wrong : {"", "0", "wide", "70x"}) {
    const Variable bad("COLUMNS", wrong);
    EXPECT_EQ(terminal_of(slave_.get()).columns, 132u) << wrong;
  }
  {
    const Variable no_colour("NO_COLOR", "1");
    EXPECT_FALSE(terminal_of(slave_.get()).colours);
  }
  ::setenv("TERM", "dumb", 1);
  EXPECT_FALSE(terminal_of(slave_.get()).colours);
}

TEST(Terminals, APipeIsNone) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const Descriptor read(ends[0]);
  const Descriptor write(ends[1]);
  const Terminal terminal = terminal_of(write.get());
  EXPECT_FALSE(terminal.is_one);
  EXPECT_FALSE(terminal.colours);
}

}  // namespace
}  // namespace assay
