// The meaning of a device's error for the calls after it.
#pragma once

#include <string>

namespace assay::engine {

struct DeviceFault {
  enum class Kind {
    kNone,         // the call failed, and the next one may succeed
    kOutOfMemory,  // of the device
    kLost,         // every call fails from now on: the process has to go
  };
  Kind kind = Kind::kNone;
  std::string name;  // the driver's: "CUDA_ERROR_ILLEGAL_ADDRESS"; empty: no call has failed
};

}  // namespace assay::engine
