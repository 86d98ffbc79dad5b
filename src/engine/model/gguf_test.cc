// GGUF files byte by byte: what a right one says, and the line that each wrong one ends with.
#include "engine/model/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "engine/model/gguf_writer.h"

namespace assay::engine {
namespace {

using testing::HasSubstr;

// Little-endian pieces of a file.
std::string number(uint64_t value, size_t bytes = 8) {
  return {reinterpret_cast<const char*>(&value), bytes};
}
std::string text(const std::string& value) {
  return number(value.size()) + value;
}
std::string pair_of(const std::string& key, uint32_t type, const std::string& value) {
  return text(key) + number(type, 4) + value;
}
std::string tensor(const std::string& name, const std::vector<uint64_t>& dims, uint32_t type,
                   uint64_t offset) {
  std::string bytes = text(name) + number(dims.size(), 4);
  for (const uint64_t dim : dims) bytes += number(dim);
  return bytes + number(type, 4) + number(offset);
}
std::string file(uint64_t tensors, uint64_t pairs, const std::string& rest) {
  return "GGUF" + number(3, 4) + number(tensors) + number(pairs) + rest;
}
std::string with_data(std::string bytes, size_t data, size_t alignment = 32) {
  bytes.resize((bytes.size() + alignment - 1) / alignment * alignment + data);
  return bytes;
}

std::string error_of(const std::string& bytes) {
  // A copy of its own on the heap, so that the sanitizers see a read past the end.
  const std::vector<char> own(bytes.begin(), bytes.end());
  const auto parsed = Gguf::parse(std::as_bytes(std::span(own)), "test.gguf");
  if (parsed) return "no error";
  EXPECT_EQ(parsed.error().kind, ErrorKind::kBadInput);
  EXPECT_EQ(parsed.error().message.find('\n'), std::string::npos);
  EXPECT_THAT(parsed.error().message, HasSubstr("test.gguf: expected "));
  return parsed.error().message;
}

TEST(Gguf, ReadsMetadataAndTensors) {
  GgufHeader header;
  header.add("a.whole", uint32_t{7});
  header.add("a.number", 0.5f);
  header.add("a.flag", true);
  header.add("a.text", "grüße");
  const std::vector<std::string> words = {"one", "", "three"};
  header.add("a.words", words);
  const std::vector<float> scores = {1.5f, -2};
  header.add("a.scores", scores);
  const std::vector<int32_t> types = {3, -1};
  header.add("a.types", types);
  header.add_tensor("first", WeightFormat::kQ8_0, std::vector<int64_t>{3, 64});
  header.add_tensor("second", WeightFormat::kF32, std::vector<int64_t>{5});
  const std::string head = header.finish();
  const size_t first = 3 * 2 * 34;
  const std::string whole = head + std::string(first + GgufHeader::padding(first) + 20, '\1');
  const auto parsed = Gguf::parse(std::as_bytes(std::span(whole)), "test.gguf");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->whole("a.whole").value(), 7);
  EXPECT_EQ(parsed->number("a.number").value(), 0.5);
  EXPECT_EQ(parsed->flag("a.flag").value(), true);
  EXPECT_EQ(parsed->text("a.text").value(), "grüße");
  EXPECT_EQ(parsed->texts("a.words").value(), (std::vector<std::string_view>{"one", "", "three"}));
  EXPECT_EQ(parsed->floats("a.scores").value(), scores);
  EXPECT_EQ(parsed->wholes("a.types").value(), (std::vector<int64_t>{3, -1}));
  EXPECT_EQ(parsed->whole("a.nothing").value(), std::nullopt);
  EXPECT_FALSE(parsed->whole("a.text"));
  EXPECT_FALSE(parsed->floats("a.types"));
  EXPECT_FALSE(parsed->texts("a.whole"));
  ASSERT_EQ(parsed->tensors().size(), 2u);
  const GgufTensor& q = parsed->tensors()[0];
  EXPECT_EQ(q.name, "first");
  EXPECT_EQ(q.format, WeightFormat::kQ8_0);
  EXPECT_EQ(q.dims, (std::vector<int64_t>{3, 64}));
  EXPECT_EQ(q.begin, head.size());
  EXPECT_EQ(q.end, head.size() + first);
  EXPECT_EQ(parsed->tensors()[1].begin, head.size() + 224);
  // A pair copied as it is stored is the same pair.
  GgufHeader copy;
  for (const auto& [key, value] : parsed->metadata()) copy.add_stored(key, value.stored);
  const std::string again = copy.finish();
  const auto copied = Gguf::parse(std::as_bytes(std::span(again)), "copy");
  ASSERT_TRUE(copied) << copied.error().message;
  EXPECT_EQ(copied->texts("a.words").value(), parsed->texts("a.words").value());
  EXPECT_EQ(copied->flag("a.flag").value(), true);
}

TEST(Gguf, ReadsWholeNumbersOfEveryWidth) {
  const std::string pairs =
      pair_of("u8", 0, number(200, 1)) + pair_of("i8", 1, number(0xFF, 1)) +
      pair_of("u16", 2, number(60000, 2)) + pair_of("i64", 11, number(~uint64_t{0})) +
      pair_of("u64", 10, number(~uint64_t{0})) + pair_of("f64", 12, std::string(8, '\0'));
  const std::string bytes = file(0, 6, pairs);
  const auto parsed = Gguf::parse(std::as_bytes(std::span(bytes)), "test.gguf");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->whole("u8").value(), 200);
  EXPECT_EQ(parsed->whole("i8").value(), -1);
  EXPECT_EQ(parsed->whole("u16").value(), 60000);
  EXPECT_EQ(parsed->whole("i64").value(), -1);
  EXPECT_FALSE(parsed->whole("u64")) << "it doesn't fit";
  EXPECT_EQ(parsed->number("f64").value(), 0.0);
}

TEST(Gguf, RefusesHeadersThatLie) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  EXPECT_THAT(error_of(""), HasSubstr("4 bytes for the magic number"));
  EXPECT_THAT(error_of("GGML" + std::string(40, '\0')), HasSubstr("a GGUF file"));
  EXPECT_THAT(error_of("GGUF" + number(2, 4) + std::string(16, '\0')), HasSubstr("version 3"));
  EXPECT_THAT(error_of("GGUF" + number(0x03000000, 4) + std::string(16, '\0')),
              HasSubstr("a big-endian file"));
  EXPECT_THAT(error_of(file(0, kMost, "")), HasSubstr("at most 0 pairs"));
  EXPECT_THAT(error_of(file(kMost, 0, "")), HasSubstr("at most 0 tensors"));
  EXPECT_THAT(error_of(file(kMost / 2, 0, std::string(64, '\0'))), HasSubstr("at most 2 tensors"));
  EXPECT_THAT(error_of(file(0, 1, number(kMost) + std::string(20, 'x'))), HasSubstr("for a key"));
  EXPECT_THAT(error_of(file(0, 1, pair_of("", 0, std::string(16, 'x')))), HasSubstr("a key of 1"));
  EXPECT_THAT(error_of(file(0, 1, pair_of("k", 13, std::string(16, 'x')))),
              HasSubstr("a type from 0 to 12"));
  EXPECT_THAT(error_of(file(0, 1, pair_of("k", 7, "\2" + std::string(16, 'x')))),
              HasSubstr("0 or 1"));
  EXPECT_THAT(error_of(file(0, 1, pair_of("k", 8, number(kMost - 4)))),
              HasSubstr("found the file's end"));
  EXPECT_THAT(error_of(file(0, 1, pair_of("a\nb", 8, number(kMost - 4)))),
              HasSubstr("bytes for a\\nb at offset"));
  const std::string twice = pair_of("k", 0, "x") + pair_of("k", 0, "y");
  EXPECT_THAT(error_of(file(0, 2, twice)), HasSubstr("found \"k\" again"));
}

TEST(Gguf, RefusesArraysThatLie) {
  const auto array = [](uint32_t type, uint64_t count, const std::string& rest) {
    return error_of(file(0, 1, pair_of("k", 9, number(type, 4) + number(count) + rest)));
  };
  EXPECT_THAT(array(4, uint64_t{1} << 62, "12345678"), HasSubstr("at most 2 elements"));
  EXPECT_THAT(array(10, (~uint64_t{0} >> 3) + 2, "12345678"), HasSubstr("at most 1 elements"));
  EXPECT_THAT(array(8, uint64_t{1} << 61, std::string(16, '\0')), HasSubstr("at most 2 elements"));
  EXPECT_THAT(array(8, 2, number(0) + number(99)), HasSubstr("found the file's end"));
  EXPECT_THAT(array(9, 1, std::string(16, '\0')), HasSubstr("found arrays"));
  EXPECT_THAT(array(99, 1, std::string(16, '\0')), HasSubstr("a type from 0 to 12"));
}

TEST(Gguf, RefusesTensorsThatLie) {
  const auto one = [](const std::string& info, size_t data) {
    return error_of(with_data(file(1, 0, info), data));
  };
  EXPECT_EQ(one(tensor("t", {4}, 0, 0), 16), "no error");
  EXPECT_THAT(one(tensor("t", {4}, 0, 0), 15), HasSubstr("16 bytes at offset 0"));
  EXPECT_THAT(one(tensor("t", {4}, 0, 32), 64), HasSubstr("at offset 0 of the data, found 32"));
  EXPECT_THAT(one(tensor("t", {}, 0, 0), 64), HasSubstr("1 to 4 dimensions"));
  EXPECT_THAT(one(tensor("t", {1, 1, 1, 1, 1}, 0, 0), 64), HasSubstr("1 to 4 dimensions"));
  EXPECT_THAT(one(tensor("t", {0}, 0, 0), 64), HasSubstr("positive dimensions"));
  EXPECT_THAT(one(tensor("t", {~uint64_t{0}}, 0, 0), 64), HasSubstr("positive dimensions"));
  EXPECT_THAT(one(tensor("t", {uint64_t{1} << 32, uint64_t{1} << 32}, 0, 0), 64),
              HasSubstr("less than 2^63 bytes"));
  EXPECT_THAT(one(tensor("t", {uint64_t{1} << 61}, 0, 0), 64), HasSubstr("less than 2^63 bytes"));
  EXPECT_THAT(one(tensor("t", {uint64_t{1} << 40}, 0, 0), 64), HasSubstr("whose data ends at 64"));
  EXPECT_THAT(one(tensor("t", {33}, 8, 0), 64), HasSubstr("whole blocks of 32"));
  EXPECT_THAT(one(tensor("t", {32}, 12, 0), 640), HasSubstr("whole blocks of 256"));
  EXPECT_THAT(one(tensor("t", {4}, 10, 0), 64), HasSubstr("found ggml's type 10"));
  EXPECT_THAT(one(tensor("t", {4}, 4, 0), 64), HasSubstr("found ggml's type 4"));
  EXPECT_THAT(one(tensor("", {4}, 0, 0), 64), HasSubstr("name of 1 to 63 bytes"));
  EXPECT_THAT(one(tensor(std::string(64, 'n'), {4}, 0, 0), 64), HasSubstr("name of 1 to 63 bytes"));
  const std::string same = tensor("t", {4}, 0, 0) + tensor("t", {4}, 0, 32);
  EXPECT_THAT(error_of(with_data(file(2, 0, same), 64)), HasSubstr("found \"t\" again"));
  const std::string over = tensor("t", {4}, 0, 0) + tensor("u", {4}, 0, 16);
  EXPECT_THAT(error_of(with_data(file(2, 0, over), 64)), HasSubstr("at offset 32 of the data"));
  EXPECT_THAT(error_of(file(1, 0, tensor("t", {4}, 0, 0))), HasSubstr("whose data ends at 0"));
}

TEST(Gguf, HoldsTheAlignmentToAPowerOfTwo) {
  const auto aligned = [](uint32_t type, const std::string& value, size_t step) {
    const std::string head =
        file(1, 1, pair_of("general.alignment", type, value) + tensor("t", {4}, 0, 0));
    return error_of(with_data(head, 16, step));
  };
  EXPECT_EQ(aligned(4, number(64, 4), 64), "no error");
  EXPECT_EQ(aligned(4, number(1, 4), 1), "no error");
  EXPECT_THAT(aligned(4, number(0, 4), 32), HasSubstr("a power of two"));
  EXPECT_THAT(aligned(4, number(48, 4), 48), HasSubstr("a power of two"));
  EXPECT_THAT(aligned(10, number(uint64_t{1} << 63), 32), HasSubstr("a power of two"));
  EXPECT_THAT(aligned(5, number(~uint64_t{0}, 4), 32), HasSubstr("a power of two"));
  EXPECT_THAT(aligned(8, text("32"), 32), HasSubstr("another type of value"));
}

}  // namespace
}  // namespace assay::engine
