#include "engine/model/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace assay::engine {
namespace {

using testing::HasSubstr;

// A file's bytes: the header's length, the header, and `data_bytes` zeros.
std::string file_of(const std::string& header, size_t data_bytes) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header +
         std::string(data_bytes, '\0');
}

Result<std::vector<SafetensorsEntry>> parse(const std::string& file) {
  // A copy of its own on the heap, so that the sanitizers see a read past the end.
  const std::vector<char> bytes(file.begin(), file.end());
  return parse_safetensors_header(std::as_bytes(std::span(bytes)), bytes.size(),
                                  "test.safetensors");
}

std::string error_of(const std::string& header, size_t data_bytes) {
  const auto entries = parse(file_of(header, data_bytes));
  if (entries) return "no error";
  EXPECT_EQ(entries.error().kind, ErrorKind::kBadInput);
  EXPECT_EQ(entries.error().message.find('\n'), std::string::npos);
  EXPECT_THAT(entries.error().message, HasSubstr("test.safetensors: expected "));
  return entries.error().message;
}

std::string tensor(const std::string& name, const std::string& dtype, const std::string& shape,
                   const std::string& offsets) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":{}}})", name, dtype, shape,
                     offsets);
}

std::string braced(const std::string& text) {
  return fmt::format("{{{}}}", text);
}

TEST(Safetensors, ReadsEntriesInOrderOfTheirData) {
  const std::string header =
      R"({"__metadata__":{"format":"pt","dtype":"x"},)" + tensor("b", "F32", "[2,2]", "[4,20]") +
      "," + tensor("a", "BF16", "[2]", "[0,4]") + "," + tensor("empty", "I64", "[0,3]", "[20,20]") +
      "," + tensor("scalar", "U8", "[]", "[20,21]") + "}   ";
  const auto entries = parse(file_of(header, 21));
  ASSERT_TRUE(entries) << entries.error().message;
  ASSERT_EQ(entries->size(), 4u);
  EXPECT_EQ((*entries)[0].name, "a");
  EXPECT_EQ((*entries)[0].begin, 8 + header.size());
  EXPECT_EQ((*entries)[1].name, "b");
  EXPECT_EQ((*entries)[1].dims, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ((*entries)[1].end, 8 + header.size() + 20);
  EXPECT_EQ((*entries)[3].name, "scalar");
}

TEST(Safetensors, LengthMustLieWithinTheFile) {
  EXPECT_FALSE(parse(""));
  EXPECT_FALSE(parse("1234567"));
  EXPECT_FALSE(parse(std::string(8, '\0')));
  for (const uint64_t length :
       {uint64_t{3}, uint64_t{100'000'001}, UINT64_MAX, UINT64_MAX - 7, uint64_t{1} << 63}) {
    std::string file = file_of("{}", 0);
    std::memcpy(file.data(), &length, sizeof length);
    const auto entries = parse(file);
    ASSERT_FALSE(entries) << length;
    EXPECT_THAT(entries.error().message, HasSubstr(fmt::format("a header length of {}", length)));
  }
  EXPECT_TRUE(parse(file_of("{}", 0)));
}

TEST(Safetensors, EveryTruncationIsAnError) {
  const std::string file = file_of(braced(tensor("a", "F32", "[2]", "[0,8]")), 8);
  ASSERT_TRUE(parse(file));
  for (size_t size = 0; size < file.size(); ++size) EXPECT_FALSE(parse(file.substr(0, size)));
  EXPECT_FALSE(parse(file + "x"));
}

TEST(Safetensors, HeaderMustBeStrictJson) {
  for (const char* header : {"", " {}", "[]", "{", "{}}", "{\"a\":1}", "{\"a\":null}", "{\"a\":[]}",
                             "{\"a\":{}}", "nonsense", "{\"\xff\":{}}", "{\"a\":{\"b\":{}}}",
                             "{\"__metadata__\":{\"a\":1}}", "{\"__metadata__\":[]}"}) {
    EXPECT_NE(error_of(header, 0), "no error") << header;
  }
  std::string deep = "{\"a\":";
  for (int i = 0; i < 100'000; ++i) deep += "[";
  EXPECT_NE(error_of(deep, 0), "no error");
}

TEST(Safetensors, TensorMembersAreChecked) {
  for (const auto& [members, found] : std::vector<std::pair<std::string, std::string>>{
           {R"("dtype":"F32","shape":[1])", "without \"data_offsets\""},
           {R"("dtype":"F32","data_offsets":[0,4])", "without \"shape\""},
           {R"("shape":[1],"data_offsets":[0,4])", "without \"dtype\""},
           {R"("dtype":4,"shape":[1],"data_offsets":[0,4])", "the number 4"},
           {R"("dtype":["F32"],"shape":[1],"data_offsets":[0,4])", "an array"},
           {R"("dtype":"F32","shape":1,"data_offsets":[0,4])", "the number 1"},
           {R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])", "the number -1"},
           {R"("dtype":"F32","shape":[1.0],"data_offsets":[0,4])", "1.0"},
           {R"("dtype":"F32","shape":[[1]],"data_offsets":[0,4])", "an array"},
           {R"("dtype":"F32","shape":["1"],"data_offsets":[0,4])", "a string"},
           {R"("dtype":"F32","shape":[1],"data_offsets":[4])", "1 data_offsets"},
           {R"("dtype":"F32","shape":[1],"data_offsets":[0,4,8])", "more than two"},
           {R"("dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1)", "the key \"x\""},
           {R"("dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4])",
            "\"dtype\" twice"}}) {
    EXPECT_THAT(error_of(braced("\"a\":" + braced(members)), 4), HasSubstr(found));
  }
}

TEST(Safetensors, NamesComeOnce) {
  const std::string a = tensor("a", "F32", "[1]", "[0,4]");
  EXPECT_THAT(error_of(braced(a + "," + a), 4), HasSubstr("\"a\" twice"));
}

TEST(Safetensors, TypeIsNamedWhenUnknown) {
  EXPECT_THAT(error_of(braced(tensor("a", "F12", "[1]", "[0,4]")), 4),
              HasSubstr("a known type for tensor \"a\", found \"F12\""));
}

TEST(Safetensors, SizeMustMatchShapeAndType) {
  EXPECT_THAT(
      error_of(braced(tensor("a", "F16", "[2,2]", "[0,16]")), 16),
      HasSubstr("expected 8 bytes for tensor \"a\" of F16 [2, 2], found data_offsets [0, 16]"));
  EXPECT_NE(error_of(braced(tensor("a", "F32", "[1]", "[4,0]")), 4), "no error");
  EXPECT_NE(error_of(braced(tensor("a", "F4", "[1]", "[0,1]")), 1), "no error");
}

TEST(Safetensors, HugeShapesDontOverflow) {
  // 2^32 * 2^32 elements wrap to none in 64 bits.
  EXPECT_THAT(error_of(braced(tensor("a", "F32", "[4294967296,4294967296]", "[0,0]")), 0),
              HasSubstr("[4294967296, 4294967296]"));
  EXPECT_NE(error_of(braced(tensor("a", "F32", "[9223372036854775807]", "[0,4]")), 4), "no error");
  EXPECT_NE(error_of(braced(tensor("a", "U8", "[18446744073709551615]", "[0,4]")), 4), "no error");
  EXPECT_NE(error_of(braced(tensor("a", "U8", "[18446744073709551616]", "[0,4]")), 4), "no error");
  EXPECT_NE(error_of(braced(tensor("a", "U8", "[4]", "[18446744073709551612,0]")), 4), "no error");
}

TEST(Safetensors, DataHasNoHolesAndNoOverlaps) {
  const std::string a = tensor("a", "F32", "[1]", "[0,4]");
  EXPECT_THAT(error_of(braced(a + "," + tensor("b", "F32", "[1]", "[2,6]")), 6),
              HasSubstr("tensor \"b\" at data offset 4 (no overlap"));
  EXPECT_THAT(error_of(braced(a + "," + tensor("b", "F32", "[1]", "[0,4]")), 4),
              HasSubstr("no overlap"));
  EXPECT_THAT(error_of(braced(a + "," + tensor("b", "F32", "[1]", "[8,12]")), 12),
              HasSubstr("no hole"));
  EXPECT_THAT(error_of(braced(tensor("b", "F32", "[1]", "[4,8]")), 8), HasSubstr("no hole"));
  EXPECT_THAT(error_of(braced(a), 8), HasSubstr("expected 4 bytes of data, found 8"));
  EXPECT_THAT(error_of(braced(a), 3), HasSubstr("cut short at 3"));
}

TEST(Safetensors, NamesInErrorsStayOnOneLine) {
  const std::string header = braced(tensor("a\\nb\\u001b", "F99", "[1]", "[0,4]"));
  EXPECT_THAT(error_of(header, 4), HasSubstr("\"a\\nb\\u001b\""));
}

TEST(Safetensors, WrittenHeadersReadBackAndAlignTheData) {
  std::vector<SafetensorsEntry> entries = {{"first", "F32", {3, 32}, 0, 0},
                                           {"second \"quoted\"", "BF16", {64}, 0, 0}};
  for (int i = 0; i < 64; ++i) {  // every remainder of the length
    entries[0].name += "x";
    const std::string header = make_safetensors_header(entries);
    EXPECT_EQ(header.size() % 64, 0u);
    const auto read = parse(header + std::string(384 + 128, '\0'));
    ASSERT_TRUE(read) << read.error().message;
    ASSERT_EQ(read->size(), 2u);
    EXPECT_EQ((*read)[0].name, entries[0].name);
    EXPECT_EQ((*read)[0].begin, header.size());
    EXPECT_EQ((*read)[1].name, entries[1].name);
    EXPECT_EQ((*read)[1].end, header.size() + 512);
  }
}

}  // namespace
}  // namespace assay::engine
