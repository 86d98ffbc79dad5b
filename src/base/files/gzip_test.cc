#include "base/files/gzip.h"

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

TEST(Gunzip, GivesWhatWasPacked) {
  for (const std::string& content :
       {std::string(), std::string("abc"), std::string(700'000, 'x')}) {
    const auto read = gunzip(gzip_stored(content), 1'000'000, "x.gz");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, content);
  }
  // `printf 'aaaaaaaaaaaaaaaaaaaaaaaa' | gzip -n`: deflated.
  const std::string deflated(
      "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b\x4c\xc4\x0e\x00\x84\x7a\x02\xe6\x18\x00\x00"
      "\x00",
      23);
  EXPECT_EQ(gunzip(deflated, 100, "x.gz").value_or("damaged"), std::string(24, 'a'));
}

TEST(Gunzip, RefusesWhatIsDamagedOrTooLarge) {
  const std::string file = gzip_stored(std::string(700'000, 'x'));
  EXPECT_FALSE(gunzip(file, 600'000, "x.gz"));
  EXPECT_FALSE(gunzip(file.substr(0, file.size() - 1), 1'000'000, "x.gz"));
  std::string changed = file;
  changed[300] = 'y';
  EXPECT_FALSE(gunzip(changed, 1'000'000, "x.gz"));
  EXPECT_FALSE(gunzip("no gzip file", 1'000'000, "x.gz"));
  EXPECT_FALSE(gunzip("", 1'000'000, "x.gz"));
}

}  // namespace
}  // namespace assay
