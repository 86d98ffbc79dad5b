// The figures that a worker measures in a repetition. Each is named once, here: for the protocol's
// messages, for metrics.csv, for bounds and for imports.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace assay {

struct Measured {
  std::optional<double> latency_ms = {};  // wall clock of the timed region
  std::optional<double> device_ms = {};   // device events of the same region
  std::optional<double> ttft_ms = {};     // e2e_kv: up to the first token
  // The same phase by the clock of the client that asked a server.
  std::optional<double> client_ms = {};
  std::optional<double> server_ms = {};  // the same phase as the server that was asked timed it
  std::optional<double> energy_j = {};   // of the device that computes, in the timed region
  // Time of fixed pieces of work right behind the timed region, on the processor: loads and
  // branches that depend on one another, and independent multiplications and additions.
  std::optional<double> yardstick_lookups_us = {};
  std::optional<double> yardstick_multiplies_us = {};

  friend bool operator==(const Measured&, const Measured&) = default;
};

struct MeasuredColumn {
  std::string_view column;  // of metrics.csv; its unit is the name's last part
  // Member of a sample message; of the message's object `group` unless that is empty.
  std::string_view member;
  std::string_view group;
  // Whole units of the message in one unit of the column; 0: the message has a number in the
  // column's own unit.
  int64_t wire_units;
  int64_t schema_version;  // of the bundle; the column is there from this version on
  bool required;           // in a sample message
  bool is_call;            // time of the call itself, which nobody believes beyond a year
  std::optional<double> Measured::*value;
};

constexpr double ns_to_ms(int64_t ns) {
  return static_cast<double>(ns) / 1e6;
}

inline constexpr MeasuredColumn kMeasuredColumns[] = {
    {"latency_ms", "latency_ns", "", 1'000'000, 1, true, true, &Measured::latency_ms},
    {"device_ms", "device_ns", "", 1'000'000, 1, false, true, &Measured::device_ms},
    {"ttft_ms", "ttft_ns", "", 1'000'000, 1, false, true, &Measured::ttft_ms},
    {"client_ms", "client_ns", "", 1'000'000, 6, false, true, &Measured::client_ms},
    {"server_ms", "server_ns", "", 1'000'000, 8, false, true, &Measured::server_ms},
    {"energy_j", "energy_j", "", 0, 4, false, false, &Measured::energy_j},
    {"yardstick_lookups_us", "lookups_ns", "yardstick", 1'000, 5, false, false,
     &Measured::yardstick_lookups_us},
    {"yardstick_multiplies_us", "multiplies_ns", "yardstick", 1'000, 5, false, false,
     &Measured::yardstick_multiplies_us},
};

}  // namespace assay
