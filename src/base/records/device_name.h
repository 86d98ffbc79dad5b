// The names by which studies and commands ask for a device.
#pragma once

#include <optional>
#include <string_view>

#include "base/result.h"

namespace assay {

struct DeviceName {
  std::optional<int> gpu;  // the driver's number of the GPU; absent: the processor

  friend bool operator==(const DeviceName&, const DeviceName&) = default;
};

// cpu | cuda | cuda:N, of which cuda is cuda:0. bad_input that carries `object`.
Result<DeviceName> parse_device_name(std::string_view text, std::string_view object);

}  // namespace assay
