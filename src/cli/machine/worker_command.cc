// assay worker: serves a backend to a harness over inherited descriptors.
#include <fcntl.h>
#include <sys/prctl.h>

#include <memory>
#include <string>

#include "backend/command/command_worker.h"
#include "backend/http/http_worker.h"
#include "backend/native/native_worker.h"
#include "cli/command.h"
#include "cli/serve/served_engine.h"

namespace assay::cli {
namespace {

Status require_pipes() {
  for (const int fd : {kRequestDescriptor, kReplyDescriptor}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    return bad_input(
        "assay worker: expected descriptor {} to be open, found it closed: `assay run` starts "
        "workers, docs/worker-protocol.md says how",
        fd);
  }
  return {};
}

Result<int> run_worker(Worker& worker) {
  ASSAY_CHECK(require_pipes());
  ::prctl(PR_SET_NAME,
          "assay");  // the kernel's name for a program started as /proc/self/exe is "exe"
  ASSAY_CHECK(serve_worker(worker, kRequestDescriptor, kReplyDescriptor));
  return 0;
}

}  // namespace

void add_worker_command(CLI::App& app, Selected& selected) {
  CLI::App* command =
      app.add_subcommand("worker", "run a backend as a worker process (started by `assay run`)");
  command->require_subcommand(1);
  CLI::App* native = command->add_subcommand("native", "the native engine");
  native->callback([&selected] {
    selected.body = [] { return run_worker(*make_native_worker(ASSAY_VERSION)); };
  });
  CLI::App* any = command->add_subcommand("command", "a benchmark command of a study");
  any->callback([&selected] {
    selected.body = [] {
      return run_worker(*make_command_worker(ASSAY_VERSION, system_spawner()));
    };
  });
  CLI::App* engine = command->add_subcommand("engine", "the engine of `assay serve --policy`");
  engine->callback([&selected] {
    selected.body = []() -> Result<int> {
      ASSAY_CHECK(require_pipes());
      return run_engine_process();
    };
  });
  CLI::App* http = command->add_subcommand("http", "a server of a study");
  http->callback([&selected] {
    selected.body = [] { return run_worker(*make_http_worker(ASSAY_VERSION, system_spawner())); };
  });
}

}  // namespace assay::cli
