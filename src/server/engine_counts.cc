#include "server/engine_counts.h"

#include <fmt/core.h>

namespace assay::server {

std::string EngineCounts::metrics() const {
  std::string text;
  const auto describe = [&](const char* name, const char* type, const char* help) {
    text += fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
  };
  const auto add = [&](const char* name, const char* type, const char* help, const auto& values) {
    describe(name, type, help);
    text += fmt::format("{0}{{process=\"compiled\"}} {1}\n{0}{{process=\"eager\"}} {2}\n", name,
                        values[1].load(), values[0].load());
  };
  add("assay_engine_starts_total", "counter", "Processes of the engine that became ready.", starts);
  add("assay_engine_ready", "gauge", "Whether such a process is there.", ready);
  add("assay_engine_slots", "gauge", "Requests that such a process has.", slots);
  describe("assay_engine_lost", "gauge", "Requests whose text has to be put in again.");
  text += fmt::format("assay_engine_lost {}\n", lost.load());
  describe("assay_engine_restored_tokens_total", "counter", "Tokens that were put in again.");
  text += fmt::format("assay_engine_restored_tokens_total {}\n", restored_tokens.load());
  return text;
}

}  // namespace assay::server
