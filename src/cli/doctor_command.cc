// assay doctor: what can run here and what can't, each with the reason and the fix.
#include <filesystem>
#include <string>
#include <vector>

#include "base/subprocess.h"
#include "base/text.h"
#include "base/thread_pool.h"
#include "cli/command.h"
#include "engine/device/bandwidth.h"
#include "engine/device/simd_target.h"
#include "identity/checkup.h"

namespace assay::cli {
namespace {

Check engine_check(const Host& host) {
  const std::string target = engine::simd_target_name();
  const bool portable = target == "SCALAR" || target == "EMU128";
  return {"native_engine", portable ? CheckStatus::kLimited : CheckStatus::kOk,
          fmt::format("CPU kernels run with {} on {}", target,
                      host.cpu_model.value_or("an unknown processor")),
          portable ? "none: this processor has no SIMD instructions that the kernels know" : ""};
}

Check bandwidth_check() {
  ThreadPool pool(available_cpus());
  const Result<double> gb_per_s = engine::measure_read_bandwidth(pool);
  if (!gb_per_s) {
    return {"read_bandwidth", CheckStatus::kMissing, gb_per_s.error().message,
            "free memory: the probe reads half a gigabyte"};
  }
  return {"read_bandwidth", CheckStatus::kOk,
          fmt::format("{} GB/s with {} threads", format_significant(*gb_per_s, 3), pool.size())};
}

// Compiled arms will need one; the eager engine never does.
Check compiler_check() {
  constexpr double kTimeoutS = 10;
  for (const char* name : {"c++", "g++", "clang++"}) {
    const auto answer = run_command(system_spawner(), {name, "--version"}, kTimeoutS);
    if (!answer || !answer->end.ok()) continue;
    const std::string version = answer->out.substr(0, answer->out.find('\n'));
    return {"cxx_compiler", CheckStatus::kOk, excerpt(version)};
  }
  return {"cxx_compiler", CheckStatus::kMissing,
          "neither c++, g++ nor clang++ in PATH; eager arms don't need one", "install g++"};
}

Result<double> free_bytes_here() {
  std::error_code error;
  const auto space = std::filesystem::space(".", error);
  if (error)
    return environment_error("free disk space: expected a figure, found: {}", error.message());
  return static_cast<double>(space.available);
}

std::vector<Check> all_checks() {
  const MachineFiles files;
  const Host host = read_host(files);
  Monitor monitor;
  monitor.sample();  // power is a mean between two samples
  std::vector<Check> checks = {engine_check(host), bandwidth_check()};
  const MachineSample sample = monitor.sample();
  std::ranges::move(machine_checks(host, build_info()), std::back_inserter(checks));
  std::ranges::move(sensor_checks(files, host, sample), std::back_inserter(checks));
  checks.push_back(compiler_check());
  checks.push_back(disk_check(free_bytes_here()));
  return checks;
}

Result<int> run_doctor(OutputFormat format) {
  Table table;
  table.columns = {{"check", Align::kLeft},
                   {"status", Align::kLeft},
                   {"finding", Align::kLeft},
                   {"fix", Align::kLeft}};
  for (const Check& check : all_checks()) {
    table.rows.push_back({TableCell::of(check.name),
                          TableCell::of(std::string(check_status_name(check.status))),
                          TableCell::of(check.finding),
                          check.fix.empty() ? TableCell::absent() : TableCell::of(check.fix)});
  }
  fmt::print("{}", table.render(format));
  return 0;
}

}  // namespace

void add_doctor_command(CLI::App& app, Selected& selected) {
  CLI::App* command = app.add_subcommand(
      "doctor", "what can run here and what can't, each with the reason and the fix");
  const auto format = add_output_format(*command);
  command->callback([=, &selected] { selected.body = [=] { return run_doctor(*format); }; });
}

}  // namespace assay::cli
