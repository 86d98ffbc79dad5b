// Received texts are kept, for whoever approves them.
#include "tests/support/approved.h"

#include <gtest/gtest.h>

#include "base/files/files.h"
#include "base/files/folder.h"
#include "tests/support/places.h"

namespace assay {

void expect_approved(const std::string& name, const std::string& received) {
  const std::filesystem::path folder = built("golden");
  ASSERT_TRUE(disk().make_folder(folder));
  ASSERT_TRUE(write_file(folder / name, received));
  const auto approved = read_file(checked_out("tests/golden") / name);
  ASSERT_TRUE(approved) << approved.error().message;
  EXPECT_EQ(received, *approved) << "scripts/approve-golden shows the difference";
}

}  // namespace assay
