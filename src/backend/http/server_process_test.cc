#include "backend/http/server_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>

#include "base/clock.h"
#include "base/files/temporary_folder.h"

namespace assay {
namespace {

using testing::HasSubstr;

TEST(AddressIn, IsTheOneBehindTheWordsThatServersUse) {
  EXPECT_EQ(address_in("srv  init: listening on http://127.0.0.1:45501"), "http://127.0.0.1:45501");
  EXPECT_EQ(address_in("INFO: Uvicorn running on http://0.0.0.0:8000 (Press CTRL+C to quit)"),
            "http://0.0.0.0:8000");
  EXPECT_EQ(address_in("Listening at: https://h:1, pid 4"), "https://h:1");
  EXPECT_EQ(address_in("see http://docs.example/help"), "");
  EXPECT_EQ(address_in("listening"), "");
}

// A Python server that says it is well, with a child of its own.
constexpr const char* kServer = R"(
import http.server, os, subprocess, sys
child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
open(sys.argv[2], "w").write(str(child.pid))
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/health" else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *_): pass
server = http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print("listening on http://127.0.0.1:%d" % server.server_address[1], flush=True)
server.serve_forever()
)";

bool lives(int64_t pid) {
  return ::kill(static_cast<pid_t>(pid), 0) == 0;
}

class ServerProcessTest : public testing::Test {
 protected:
  std::string child_file() const { return (folder_.path() / "child").string(); }
  int64_t child() const {
    int64_t pid = 0;
    std::ifstream(child_file()) >> pid;
    return pid;
  }
  HttpResult<std::unique_ptr<ServerProcess>> start(std::vector<std::string> argv,
                                                   double timeout_s = 20,
                                                   std::string ready = "/health") {
    ServerSpec spec;
    spec.argv = std::move(argv);
    spec.timeout_s = timeout_s;
    spec.ready = std::move(ready);
    return start_server(system_spawner(), loop_, spec);
  }

  TemporaryFolder folder_ = TemporaryFolder::make("assay-server-test-").value();
  HttpLoop loop_;
};

TEST_F(ServerProcessTest, TakesAFreePortOrTheAddressThatItTellsAndEndsAllItsFamily) {
  for (const char* const port : {"{port}", "0"}) {
    int64_t pid = 0, its_child = 0;
    {
      auto server = start({"python3", "-c", kServer, port, child_file()});
      ASSERT_TRUE(server) << server.error().message;
      EXPECT_EQ((*server)->url().host, "127.0.0.1");
      EXPECT_GT((*server)->start_seconds(), 0);
      EXPECT_EQ((*server)->end_text(), "");
      pid = (*server)->pid();
      its_child = child();
      EXPECT_TRUE(lives(pid));
      EXPECT_TRUE(lives(its_child));
    }
    EXPECT_FALSE(lives(pid));
    EXPECT_FALSE(lives(its_child)) << "one that left the group too";
  }
}

TEST_F(ServerProcessTest, AServerThatEndsOrIsNeverReadySaysWhy) {
  const auto died = start({"sh", "-c", "echo no such model >&2; exit 3"});
  ASSERT_FALSE(died);
  EXPECT_EQ(died.error().error_class, http_class::kServerDied);
  EXPECT_THAT(died.error().message, HasSubstr("exit 3"));
  EXPECT_THAT(died.error().message, HasSubstr("no such model"));
  const auto silent = start({"sleep", "1000"}, 0.3);
  ASSERT_FALSE(silent);
  EXPECT_EQ(silent.error().error_class, http_class::kNotReady);
  const auto unwell = start({"python3", "-c", kServer, "{port}", child_file()}, 2, "/elsewhere");
  ASSERT_FALSE(unwell);
  EXPECT_EQ(unwell.error().error_class, http_class::kNotReady);
  EXPECT_FALSE(lives(child()));
  const auto absent = start({"/no/such/program"});
  ASSERT_FALSE(absent);
}

TEST_F(ServerProcessTest, ItsCrashIsKnown) {
  auto server = start({"python3", "-c", kServer, "{port}", child_file()});
  ASSERT_TRUE(server) << server.error().message;
  ::kill(static_cast<pid_t>((*server)->pid()), SIGSEGV);
  const int64_t deadline = deadline_after(10);
  while ((*server)->end_text().empty() && monotonic_now_ns() < deadline) ::usleep(1000);
  EXPECT_EQ((*server)->end_text(), "SIGSEGV");
}

}  // namespace
}  // namespace assay
