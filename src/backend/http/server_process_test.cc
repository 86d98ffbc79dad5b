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

// A Python server that says it is well, with a child of its own in another session. It writes both
// numbers; asked with a key, it says that it is well to those alone who know it.
constexpr const char* kServer = R"(
import http.server, os, subprocess, sys
child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
open(sys.argv[2], "w").write("%d %d" % (os.getpid(), child.pid))
key = sys.argv[3] if len(sys.argv) > 3 else None
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        known = key is None or self.headers["Authorization"] == "Bearer " + key
        self.send_response(401 if not known else 200 if self.path == "/health" else 404)
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
  std::string family_file() const { return (folder_.path() / "family").string(); }
  struct Family {
    int64_t server = 0, child = 0;
  };
  Family family() const {
    Family told;
    std::ifstream(family_file()) >> told.server >> told.child;
    return told;
  }
  HttpResult<std::unique_ptr<ServerProcess>> start(std::vector<std::string> argv,
                                                   double timeout_s = 20,
                                                   std::string ready = "/health",
                                                   std::string api_key = "") {
    ServerSpec spec;
    spec.argv = std::move(argv);
    spec.timeout_s = timeout_s;
    spec.ready = std::move(ready);
    spec.api_key = std::move(api_key);
    return start_server(system_spawner(), loop_, spec);
  }

  // A server that answers and is never ready: it has longer where the machine is too busy to start
  // it in a short time.
  HttpFailure never_ready(const std::vector<std::string>& argv, const std::string& ready,
                          const std::string& answer) {
    HttpFailure failure;
    for (const double timeout_s : {2, 30}) {
      const auto started = start(argv, timeout_s, ready);
      failure = started ? HttpFailure{"ready", ""} : started.error();
      if (failure.message.find(answer) != std::string::npos) break;
    }
    EXPECT_THAT(failure.message, HasSubstr(answer));
    return failure;
  }

  TemporaryFolder folder_ = TemporaryFolder::make("assay-server-test-").value();
  HttpLoop loop_;
};

TEST_F(ServerProcessTest, TakesAFreePortOrTheAddressThatItTellsAndEndsAllItsFamily) {
  for (const char* const port : {"{port}", "0"}) {
    Family told;
    {
      auto server = start({"python3", "-c", kServer, port, family_file()});
      ASSERT_TRUE(server) << server.error().message;
      EXPECT_EQ((*server)->url().host, "127.0.0.1");
      EXPECT_GT((*server)->start_seconds(), 0);
      EXPECT_EQ((*server)->end_text(), "");
      told = family();
      EXPECT_TRUE(lives(told.server));
      EXPECT_TRUE(lives(told.child));
    }
    EXPECT_FALSE(lives(told.server));
    EXPECT_FALSE(lives(told.child)) << "one that left the session too";
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
  EXPECT_EQ(never_ready({"python3", "-c", kServer, "{port}", family_file()}, "/elsewhere", "404")
                .error_class,
            http_class::kNotReady);
  EXPECT_FALSE(lives(family().child));
  const auto absent = start({"/no/such/program"});
  ASSERT_FALSE(absent);
}

TEST_F(ServerProcessTest, ItsCrashIsKnown) {
  auto server = start({"python3", "-c", kServer, "{port}", family_file()});
  ASSERT_TRUE(server) << server.error().message;
  ::kill(static_cast<pid_t>(family().server), SIGSEGV);
  const int64_t deadline = deadline_after(60);
  while ((*server)->end_text().empty() && monotonic_now_ns() < deadline) ::usleep(1000);
  EXPECT_EQ((*server)->end_text(), "SIGSEGV");
  EXPECT_FALSE(lives(family().child)) << "nothing of it lives on";
}

TEST_F(ServerProcessTest, TheQuestionForReadinessHasTheKey) {
  const std::vector<std::string> argv = {"python3", "-c", kServer, "{port}", family_file(), "k3y"};
  const auto known = start(argv, 20, "/health", "k3y");
  ASSERT_TRUE(known) << known.error().message;
  EXPECT_EQ(never_ready(argv, "/health", "401").error_class, http_class::kNotReady);
}

}  // namespace
}  // namespace assay
