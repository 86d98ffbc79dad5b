// The header by a SAX reader of its own: bounded depth, names checked as they come, nothing kept
// that isn't a tensor, so that a hostile header costs no more than its length.
#include "engine/model/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <tuple>

#include "base/records/json.h"

namespace assay::engine {
namespace {

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the reference reader's limit
constexpr size_t kDataAlignment = 64;

struct TypeSize {
  std::string_view name;
  uint64_t bits;
};
constexpr std::array kTypes = {
    TypeSize{"F64", 64},    TypeSize{"F32", 32},    TypeSize{"F16", 16},    TypeSize{"BF16", 16},
    TypeSize{"I64", 64},    TypeSize{"I32", 32},    TypeSize{"I16", 16},    TypeSize{"I8", 8},
    TypeSize{"U64", 64},    TypeSize{"U32", 32},    TypeSize{"U16", 16},    TypeSize{"U8", 8},
    TypeSize{"BOOL", 8},    TypeSize{"F8_E4M3", 8}, TypeSize{"F8_E5M2", 8}, TypeSize{"F8_E8M0", 8},
    TypeSize{"F6_E2M3", 6}, TypeSize{"F6_E3M2", 6}, TypeSize{"F4", 4},      TypeSize{"C64", 64}};

std::optional<uint64_t> type_bits(std::string_view name) {
  const auto it = std::ranges::find(kTypes, name, &TypeSize::name);
  return it == kTypes.end() ? std::nullopt : std::optional(it->bits);
}

// nlohmann's SAX interface. Every handler returns whether to go on; the first problem is kept.
class HeaderReader {
 public:
  bool null() { return unexpected("null"); }
  bool boolean(bool) { return unexpected("true or false"); }
  bool number_float(double, const std::string& text) {
    return unexpected("the number " + json_quoted(text));
  }
  bool binary(Json::binary_t&) { return unexpected("binary data"); }
  bool number_integer(int64_t value) { return unexpected(fmt::format("the number {}", value)); }
  bool number_unsigned(uint64_t value) {
    if (place_ != Place::kShape && place_ != Place::kOffsets) {
      return unexpected(fmt::format("the number {}", value));
    }
    if (place_ == Place::kOffsets) {
      offsets_.push_back(value);
      return offsets_.size() <= 2 || unexpected("more than two data_offsets");
    }
    if (value > INT64_MAX) return unexpected(fmt::format("the dimension {}", value));
    entry_.dims.push_back(static_cast<int64_t>(value));
    return true;
  }
  bool string(std::string& value) {
    if (place_ == Place::kMetadata) return true;
    if (place_ != Place::kTensor || key_ != "dtype") return unexpected("a string");
    entry_.dtype = value;
    return true;
  }
  bool start_object(size_t) {
    if (place_ == Place::kStart) {
      place_ = Place::kTop;
    } else if (place_ == Place::kTop && key_ == "__metadata__") {
      place_ = Place::kMetadata;
    } else if (place_ == Place::kTop) {
      place_ = Place::kTensor;
      entry_ = {};
      entry_.name = key_;
      offsets_.clear();
      seen_.clear();
    } else {
      return unexpected("an object");
    }
    return true;
  }
  bool key(std::string& value) {
    key_ = value;
    if (place_ == Place::kTop) {
      return names_.insert(value).second || problem(fmt::format("{} twice", json_quoted(value)));
    }
    if (place_ == Place::kMetadata) return true;
    if (value != "dtype" && value != "shape" && value != "data_offsets") {
      return unexpected("the key " + json_quoted(value));
    }
    return seen_.insert(value).second || unexpected(fmt::format("\"{}\" twice", value));
  }
  bool end_object() {
    if (place_ == Place::kTop) {
      place_ = Place::kEnd;
      return true;
    }
    const bool tensor = place_ == Place::kTensor;
    place_ = Place::kTop;
    return !tensor || finish_tensor();
  }
  bool start_array(size_t) {
    if (place_ != Place::kTensor || key_ == "dtype") return unexpected("an array");
    place_ = key_ == "shape" ? Place::kShape : Place::kOffsets;
    return true;
  }
  bool end_array() {
    place_ = Place::kTensor;
    return true;
  }
  bool parse_error(size_t position, const std::string&, const Json::exception&) {
    return problem(fmt::format("text that isn't JSON at byte {}", position));
  }

  const std::string& found() const { return found_; }
  std::vector<SafetensorsEntry>& entries() { return entries_; }

 private:
  enum class Place { kStart, kTop, kMetadata, kTensor, kShape, kOffsets, kEnd };

  bool problem(std::string found) {
    if (found_.empty()) found_ = std::move(found);
    return false;
  }
  bool unexpected(std::string what) {
    if (place_ == Place::kStart || place_ == Place::kTop) return problem(std::move(what));
    const std::string& name = place_ == Place::kMetadata ? "__metadata__" : entry_.name;
    return problem(fmt::format("{} in {}", what, json_quoted(name)));
  }
  bool finish_tensor() {
    for (const char* key : {"dtype", "shape", "data_offsets"}) {
      if (!seen_.contains(key)) {
        return problem(fmt::format("{} without \"{}\"", json_quoted(entry_.name), key));
      }
    }
    if (offsets_.size() != 2) {
      return problem(
          fmt::format("{} data_offsets in {}", offsets_.size(), json_quoted(entry_.name)));
    }
    entry_.begin = offsets_[0];
    entry_.end = offsets_[1];
    entries_.push_back(std::move(entry_));
    return true;
  }

  Place place_ = Place::kStart;
  std::string key_;
  std::set<std::string> names_;
  std::set<std::string> seen_;  // keys of the tensor at hand
  SafetensorsEntry entry_;
  std::vector<uint64_t> offsets_;
  std::vector<SafetensorsEntry> entries_;
  std::string found_;
};

// Bytes of the shape; absent on overflow or where a sub-byte type doesn't fill its last byte.
std::optional<uint64_t> data_bytes(const SafetensorsEntry& entry, uint64_t bits) {
  uint64_t total = bits;
  for (const int64_t dim : entry.dims) {
    if (__builtin_mul_overflow(total, static_cast<uint64_t>(dim), &total)) return std::nullopt;
  }
  return total % 8 == 0 ? std::optional(total / 8) : std::nullopt;
}

Status check_sizes(const SafetensorsEntry& entry, std::string_view object) {
  const std::string name = json_quoted(entry.name);
  const auto bits = type_bits(entry.dtype);
  if (!bits) {
    return bad_input("{}: expected a known type for tensor {}, found {}", object, name,
                     json_quoted(entry.dtype));
  }
  const auto size = data_bytes(entry, *bits);
  if (!size) {
    return bad_input(
        "{}: expected a size in whole bytes below 2^61 for tensor {}, found shape [{}]", object,
        name, fmt::join(entry.dims, ", "));
  }
  if (entry.end < entry.begin || entry.end - entry.begin != *size) {
    return bad_input("{}: expected {} bytes for tensor {} of {} [{}], found data_offsets [{}, {}]",
                     object, *size, name, entry.dtype, fmt::join(entry.dims, ", "), entry.begin,
                     entry.end);
  }
  return {};
}

// Sorts by place in the file, and makes the offsets count from its start.
Status check_layout(std::vector<SafetensorsEntry>& entries, uint64_t data_start, uint64_t file_size,
                    std::string_view object) {
  std::ranges::sort(entries, [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  const uint64_t data_size = file_size - data_start;
  uint64_t expected = 0;
  for (SafetensorsEntry& entry : entries) {
    if (entry.begin != expected) {
      return bad_input("{}: expected tensor {} at data offset {} ({} in the data), found {}",
                       object, json_quoted(entry.name), expected,
                       entry.begin < expected ? "no overlap" : "no hole", entry.begin);
    }
    expected = entry.end;
    if (entry.end > data_size) {
      return bad_input("{}: expected {} bytes of data for tensor {}, found a file cut short at {}",
                       object, entry.end, json_quoted(entry.name), data_size);
    }
    entry.begin += data_start;
    entry.end += data_start;
  }
  if (expected != data_size) {
    return bad_input("{}: expected {} bytes of data, found {}", object, expected, data_size);
  }
  return {};
}

Result<uint64_t> header_length(std::span<const std::byte> bytes, uint64_t file_size,
                               std::string_view object) {
  if (bytes.size() < kLengthBytes || file_size < bytes.size()) {
    return bad_input("{}: expected a safetensors file of at least {} bytes, found {}", object,
                     kLengthBytes, file_size);
  }
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length > kMaxHeaderBytes || length > bytes.size() - kLengthBytes) {
    return bad_input("{}: expected a header of at most {} bytes, found a header length of {}",
                     object, std::min(kMaxHeaderBytes, bytes.size() - kLengthBytes), length);
  }
  return length;
}

}  // namespace

std::optional<DType> safetensors_float_dtype(std::string_view name) {
  if (name == "F32") return DType::kF32;
  if (name == "F16") return DType::kF16;
  if (name == "BF16") return DType::kBF16;
  return std::nullopt;
}

std::string_view safetensors_dtype_name(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "F32";
    case DType::kF16:
      return "F16";
    case DType::kBF16:
      return "BF16";
    case DType::kI32:
      return "I32";
  }
  return "";
}

Result<std::vector<SafetensorsEntry>> parse_safetensors_header(std::span<const std::byte> bytes,
                                                               uint64_t file_size,
                                                               std::string_view object) {
  ASSAY_TRY(const uint64_t length, header_length(bytes, file_size, object));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes,
                              static_cast<size_t>(length));
  if (!text.starts_with('{')) {
    return bad_input("{}: expected a safetensors header that starts with '{{', found {}", object,
                     json_quoted(text.substr(0, 1)));
  }
  HeaderReader reader;
  try {
    if (!Json::sax_parse(text.begin(), text.end(), &reader)) {
      return bad_input("{}: expected a valid safetensors header, found {}", object, reader.found());
    }
  } catch (const Json::exception& error) {
    return bad_input("{}: expected a valid safetensors header, found {}", object, error.what());
  }
  for (const SafetensorsEntry& entry : reader.entries()) ASSAY_CHECK(check_sizes(entry, object));
  ASSAY_CHECK(check_layout(reader.entries(), kLengthBytes + length, file_size, object));
  return std::move(reader.entries());
}

std::string make_safetensors_header(std::span<const SafetensorsEntry> entries) {
  Json header = Json::object();
  header["__metadata__"] = {{"format", "pt"}};
  std::string text = to_json_line(header);
  text.pop_back();  // tensors are appended as text: an ordered object searches at every insertion
  uint64_t offset = 0;
  for (const SafetensorsEntry& entry : entries) {
    const uint64_t end = offset + data_bytes(entry, *type_bits(entry.dtype)).value();
    text += fmt::format(R"(,{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                        to_json_line(Json(entry.name)), entry.dtype, fmt::join(entry.dims, ","),
                        offset, end);
    offset = end;
  }
  text += "}";
  const size_t rest = (kLengthBytes + text.size()) % kDataAlignment;
  text.append((kDataAlignment - rest) % kDataAlignment, ' ');
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

}  // namespace assay::engine
