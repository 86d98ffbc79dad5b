#include "base/records/device_name.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(DeviceName, ReadsTheThreeForms) {
  EXPECT_EQ(parse_device_name("cpu", "device"), DeviceName{});
  EXPECT_EQ(parse_device_name("cuda", "device"), DeviceName{0});
  EXPECT_EQ(parse_device_name("cuda:0", "device"), DeviceName{0});
  EXPECT_EQ(parse_device_name("cuda:12", "device"), DeviceName{12});
}

TEST(DeviceName, RefusesWhatIsNone) {
  for (const char* text : {"", "gpu", "CUDA", "cuda:", "cuda:-1", "cuda:01", "cuda:1 ", "cuda:1234",
                           "cuda0", "cpu:0", "auto"}) {
    const auto name = parse_device_name(text, "--device");
    ASSERT_FALSE(name) << text;
    EXPECT_EQ(name.error().message,
              std::string("--device: expected cpu, cuda or cuda:N, found \"") + text + "\"");
  }
}

}  // namespace
}  // namespace assay
