#include "base/gzip.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

// `printf 123456789 | gzip -n` has this checksum and length at its end.
TEST(Gzip, EndsWithChecksumAndLength) {
  const std::string file = gzip_stored("123456789");
  EXPECT_EQ(file.substr(0, 4), std::string("\x1f\x8b\x08\x00", 4));
  EXPECT_EQ(file.substr(10, 5), std::string("\x01\x09\x00\xf6\xff", 5));
  EXPECT_EQ(file.substr(15), std::string("123456789\x26\x39\xf4\xcb\x09\x00\x00\x00", 17));
}

TEST(Gzip, LongContentIsSeveralBlocks) {
  const std::string file = gzip_stored(std::string(65'536, 'x'));
  EXPECT_EQ(file.size(), 10u + 5 + 65'535 + 5 + 1 + 8);
  EXPECT_EQ(file[10], 0) << "not the last block";
  EXPECT_EQ(file[10 + 5 + 65'535], 1);
  EXPECT_EQ(gzip_stored("").size(), 10u + 5 + 8);
}

}  // namespace
}  // namespace assay
