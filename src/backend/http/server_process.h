// A server that is started for an arm and ended with it.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/http/http_failure.h"
#include "backend/http/http_loop.h"
#include "base/process/subprocess.h"

namespace assay {

struct ServerSpec {
  std::vector<std::string> argv;  // {port} in it, or in `environment`, stands for a free port
  std::vector<std::pair<std::string, std::string>> environment = {};
  std::filesystem::path folder = {};  // where it starts; empty: where this process is
  std::string url = {};               // may have {port}; empty: see start_server()
  std::string ready = "/health";      // path that answers 200 once requests are welcome
  std::string api_key = {};           // HttpEndpoint's, for the question for `ready`
  std::string ca_file = {};           // likewise
  double timeout_s = 120;             // from its start until then
};

// Running and ready. The destructor asks it to end (SIGTERM), waits five seconds, and kills it and
// everything that it has started. All of them are killed at once where this process ends without
// that (ChildSpec::kept).
class ServerProcess {
 public:
  virtual ~ServerProcess() = default;
  virtual const ServerUrl& url() const = 0;
  // From its start until it was ready.
  virtual double start_seconds() const = 0;
  // Its end, if it has ended by itself: "SIGSEGV", "exit 1"; empty: it runs.
  virtual std::string end_text() = 0;
};

// Its output goes to this process's stderr as it comes. Without `url` the address is
// http://127.0.0.1:{port} if an argument has that, and else the first one that the output names
// behind "listening on" or "running on". Fails with server_died or server_not_ready, and its last
// lines.
HttpResult<std::unique_ptr<ServerProcess>> start_server(Spawner& spawner, HttpLoop& loop,
                                                        const ServerSpec& spec);

// The first address in the line of a server's output that says where it listens; empty: none.
std::string address_in(std::string_view line);

}  // namespace assay
