// Reads a GGUF file's header front to back, and the places of its tensors.
#include "engine/model/gguf.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <set>
#include <utility>

#include "base/records/json.h"
#include "base/text/shown_text.h"
#include "base/text/text.h"

namespace assay::engine {
namespace {

constexpr uint32_t kGgufMagic = 0x46554747;  // "GGUF"
constexpr uint32_t kGgufVersion = 3;
constexpr uint32_t kMaxGgufDims = 4;
constexpr size_t kMaxTensorNameBytes = 63;  // ggml's GGML_MAX_NAME, its last zero apart
constexpr size_t kMaxKeyBytes = 65535;
constexpr uint64_t kDefaultGgufAlignment = 32;
constexpr uint64_t kMaxGgufAlignment = uint64_t{1} << 20;
// The least bytes of a pair (key's length, type, one value) and of a tensor (name's length, number
// of dimensions, one of them, type, offset).
constexpr uint64_t kLeastPair = 8 + 4 + 1;
constexpr uint64_t kLeastTensor = 8 + 4 + 8 + 4 + 8;

static_assert(std::endian::native == std::endian::little);

// Bytes of a value of a fixed size; 0: it has none.
uint64_t size_of(GgufType type) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kI8:
    case GgufType::kBool:
      return 1;
    case GgufType::kU16:
    case GgufType::kI16:
      return 2;
    case GgufType::kU32:
    case GgufType::kI32:
    case GgufType::kF32:
      return 4;
    case GgufType::kU64:
    case GgufType::kI64:
    case GgufType::kF64:
      return 8;
    case GgufType::kString:
    case GgufType::kArray:
      return 0;
  }
  return 0;
}

template <typename T>
T read_as(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// A scalar of a fixed size; bytes of a bool other than 0 and 1 are refused before.
GgufScalar scalar(GgufType type, const std::byte* at) {
  switch (type) {
    case GgufType::kU8:
      return uint64_t{read_as<uint8_t>(at)};
    case GgufType::kI8:
      return int64_t{read_as<int8_t>(at)};
    case GgufType::kU16:
      return uint64_t{read_as<uint16_t>(at)};
    case GgufType::kI16:
      return int64_t{read_as<int16_t>(at)};
    case GgufType::kU32:
      return uint64_t{read_as<uint32_t>(at)};
    case GgufType::kI32:
      return int64_t{read_as<int32_t>(at)};
    case GgufType::kF32:
      return double{read_as<float>(at)};
    case GgufType::kBool:
      return read_as<uint8_t>(at) != 0;
    case GgufType::kU64:
      return read_as<uint64_t>(at);
    case GgufType::kI64:
      return read_as<int64_t>(at);
    case GgufType::kF64:
      return read_as<double>(at);
    case GgufType::kString:
    case GgufType::kArray:
      break;
  }
  return std::string_view();
}

std::optional<int64_t> whole_of(const GgufScalar& value) {
  if (const auto* wide = std::get_if<int64_t>(&value)) return *wide;
  const auto* natural = std::get_if<uint64_t>(&value);
  if (natural == nullptr || *natural > uint64_t{std::numeric_limits<int64_t>::max()}) {
    return std::nullopt;
  }
  return static_cast<int64_t>(*natural);
}

// Takes bytes from the front; nothing is taken that isn't there.
class GgufCursor {
 public:
  GgufCursor(std::span<const std::byte> bytes, std::string_view object)
      : bytes_(bytes), object_(object) {}

  uint64_t at() const { return at_; }
  uint64_t left() const { return bytes_.size() - at_; }

  // `what`: in words, or a name that the file has.
  Result<std::span<const std::byte>> take(uint64_t count, std::string_view what) {
    if (count > left()) {
      return bad_input("{}: expected {} bytes for {} at offset {}, found the file's end after {}",
                       object_, count, shown_line(what), at_, left());
    }
    const auto taken = bytes_.subspan(at_, count);
    at_ += count;
    return taken;
  }
  template <typename T>
  Result<T> number(std::string_view what) {
    ASSAY_TRY(const auto bytes, take(sizeof(T), what));
    return read_as<T>(bytes.data());
  }
  Result<std::string_view> string(std::string_view what) {
    ASSAY_TRY(const auto length, number<uint64_t>(what));
    ASSAY_TRY(const auto bytes, take(length, what));
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

 private:
  std::span<const std::byte> bytes_;
  std::string_view object_;
  uint64_t at_ = 0;
};

class GgufParser {
 public:
  GgufParser(std::span<const std::byte> bytes, std::string_view object)
      : cursor_(bytes, object), bytes_(bytes), object_(object) {}

  Status read(std::map<std::string, GgufValue, std::less<>>& metadata,
              std::vector<GgufTensor>& tensors) {
    ASSAY_TRY(const auto magic, cursor_.number<uint32_t>("the magic number"));
    if (magic != kGgufMagic) {
      return bad_input("{}: expected a GGUF file, found one that begins otherwise", object_);
    }
    ASSAY_TRY(const auto version, cursor_.number<uint32_t>("the version"));
    if (version != kGgufVersion) {
      const bool swapped = version == std::byteswap(kGgufVersion);
      return bad_input("{}: expected GGUF version {}, found {}", object_, kGgufVersion,
                       swapped ? "a big-endian file" : fmt::format("{}", version));
    }
    ASSAY_TRY(const auto tensor_count, cursor_.number<uint64_t>("the number of tensors"));
    ASSAY_TRY(const auto pair_count, cursor_.number<uint64_t>("the number of pairs"));
    if (pair_count > cursor_.left() / kLeastPair) {
      return bad_input("{}: expected at most {} pairs in {} bytes, found {}", object_,
                       cursor_.left() / kLeastPair, cursor_.left(), pair_count);
    }
    for (uint64_t i = 0; i < pair_count; ++i) ASSAY_CHECK(read_pair(metadata));
    if (tensor_count > cursor_.left() / kLeastTensor) {
      return bad_input("{}: expected at most {} tensors in {} bytes, found {}", object_,
                       cursor_.left() / kLeastTensor, cursor_.left(), tensor_count);
    }
    for (uint64_t i = 0; i < tensor_count; ++i) {
      ASSAY_TRY(tensors.emplace_back(), read_tensor());
    }
    return place(metadata, tensors);
  }

 private:
  Result<GgufType> type(std::string_view key) {
    ASSAY_TRY(const auto number, cursor_.number<uint32_t>("a type"));
    if (number > static_cast<uint32_t>(GgufType::kF64)) {
      return bad_input("{}: expected a type from 0 to {} for {}, found {}", object_,
                       static_cast<uint32_t>(GgufType::kF64), json_quoted(key), number);
    }
    return static_cast<GgufType>(number);
  }

  Status read_pair(std::map<std::string, GgufValue, std::less<>>& metadata) {
    ASSAY_TRY(const std::string_view key, cursor_.string("a key"));
    if (key.empty() || key.size() > kMaxKeyBytes) {
      return bad_input("{}: expected a key of 1 to {} bytes, found one of {}", object_,
                       kMaxKeyBytes, key.size());
    }
    const uint64_t begin = cursor_.at();
    ASSAY_TRY(const GgufType found, type(key));
    GgufValue value;
    ASSAY_TRY(value.value, read_value(key, found));
    value.stored = bytes_.subspan(begin, cursor_.at() - begin);
    if (!metadata.emplace(key, std::move(value)).second) {
      return bad_input("{}: expected each key once, found {} again", object_, json_quoted(key));
    }
    return {};
  }

  Result<std::variant<GgufScalar, GgufArray>> read_value(std::string_view key, GgufType found) {
    if (found == GgufType::kArray) return read_array(key);
    if (found == GgufType::kString) {
      ASSAY_TRY(const std::string_view text, cursor_.string(key));
      return GgufScalar(text);
    }
    ASSAY_TRY(const auto bytes, cursor_.take(size_of(found), key));
    if (found == GgufType::kBool && read_as<uint8_t>(bytes.data()) > 1) {
      return bad_input("{}: expected 0 or 1 for {}, found {}", object_, json_quoted(key),
                       read_as<uint8_t>(bytes.data()));
    }
    return scalar(found, bytes.data());
  }

  Result<GgufArray> read_array(std::string_view key) {
    GgufArray array;
    ASSAY_TRY(array.type, type(key));
    ASSAY_TRY(array.count, cursor_.number<uint64_t>(key));
    if (array.type == GgufType::kArray) {
      return bad_input("{}: expected values in array {}, found arrays", object_, json_quoted(key));
    }
    const bool strings = array.type == GgufType::kString;
    const uint64_t least = strings ? 8 : size_of(array.type);  // bytes of an element
    if (array.count > cursor_.left() / least) {
      return bad_input("{}: expected at most {} elements of {} in {} bytes, found {}", object_,
                       cursor_.left() / least, json_quoted(key), cursor_.left(), array.count);
    }
    if (!strings) {
      ASSAY_TRY(array.bytes, cursor_.take(array.count * least, key));
      return array;
    }
    array.strings.reserve(array.count);
    for (uint64_t i = 0; i < array.count; ++i) {
      ASSAY_TRY(array.strings.emplace_back(), cursor_.string(key));
    }
    return array;
  }

  // Its offset as the file has it, from the data's start; place() adds that.
  Result<GgufTensor> read_tensor() {
    GgufTensor tensor;
    ASSAY_TRY(const std::string_view name, cursor_.string("a tensor's name"));
    if (name.empty() || name.size() > kMaxTensorNameBytes) {
      return bad_input("{}: expected a tensor's name of 1 to {} bytes, found one of {}", object_,
                       kMaxTensorNameBytes, name.size());
    }
    tensor.name = name;
    const std::string quoted = json_quoted(name);
    if (!names_.insert(tensor.name).second) {
      return bad_input("{}: expected each tensor once, found {} again", object_, quoted);
    }
    ASSAY_TRY(const auto dims, cursor_.number<uint32_t>(name));
    if (dims < 1 || dims > kMaxGgufDims) {
      return bad_input("{}: expected 1 to {} dimensions for tensor {}, found {}", object_,
                       kMaxGgufDims, quoted, dims);
    }
    for (uint32_t i = 0; i < dims; ++i) {
      ASSAY_TRY(const auto dim, cursor_.number<int64_t>(name));
      if (dim < 1) {
        return bad_input("{}: expected positive dimensions for tensor {}, found {}", object_,
                         quoted, dim);
      }
      tensor.dims.insert(tensor.dims.begin(), dim);
    }
    ASSAY_TRY(const auto type, cursor_.number<uint32_t>(name));
    const auto format = weight_format_of_gguf(type);
    if (!format) {
      std::vector<std::string> known;
      for (const FormatTraits& one : kFormats) known.emplace_back(one.name);
      return bad_input("{}: expected tensor {} in one of {}, found ggml's type {}", object_, quoted,
                       join(known, ", "), type);
    }
    tensor.format = *format;
    ASSAY_TRY(tensor.begin, cursor_.number<uint64_t>(name));
    return tensor;
  }

  Result<uint64_t> alignment(const std::map<std::string, GgufValue, std::less<>>& metadata) {
    const auto found = metadata.find("general.alignment");
    if (found == metadata.end()) return kDefaultGgufAlignment;
    const auto* value = std::get_if<GgufScalar>(&found->second.value);
    const auto whole = value != nullptr ? whole_of(*value) : std::nullopt;
    if (!whole || *whole < 1 || static_cast<uint64_t>(*whole) > kMaxGgufAlignment ||
        !std::has_single_bit(static_cast<uint64_t>(*whole))) {
      return bad_input("{}: expected a power of two up to {} at \"general.alignment\", found {}",
                       object_, kMaxGgufAlignment,
                       whole ? fmt::format("{}", *whole) : "another type of value");
    }
    return static_cast<uint64_t>(*whole);
  }

  // Tensors follow one another, each at the next multiple of the alignment, as ggml demands too.
  Status place(const std::map<std::string, GgufValue, std::less<>>& metadata,
               std::vector<GgufTensor>& tensors) {
    ASSAY_TRY(const uint64_t step, alignment(metadata));
    const auto aligned = [step](uint64_t offset) { return (offset + step - 1) / step * step; };
    const uint64_t start = aligned(cursor_.at());
    uint64_t next = 0;  // from `start`
    for (GgufTensor& tensor : tensors) {
      const auto bytes = stored_bytes(tensor.format, tensor.dims);
      if (!bytes) {
        return bad_input(
            "{}: expected rows of whole blocks of {} values and less than 2^63 bytes "
            "for tensor {} of {}, found shape [{}]",
            object_, traits(tensor.format).block_values, json_quoted(tensor.name),
            traits(tensor.format).name, fmt::join(tensor.dims, ", "));
      }
      if (tensor.begin != next) {
        return bad_input("{}: expected tensor {} at offset {} of the data, found {}", object_,
                         json_quoted(tensor.name), next, tensor.begin);
      }
      const uint64_t data = bytes_.size() - std::min<uint64_t>(bytes_.size(), start);
      if (*bytes > data || next > data - *bytes) {
        return bad_input(
            "{}: expected {} bytes at offset {} of the data for tensor {}, found a "
            "file whose data ends at {}",
            object_, *bytes, next, json_quoted(tensor.name), data);
      }
      tensor.begin = start + next;
      tensor.end = tensor.begin + *bytes;
      next = aligned(next + *bytes);
    }
    return {};
  }

  GgufCursor cursor_;
  std::span<const std::byte> bytes_;
  std::string_view object_;
  std::set<std::string> names_;
};

}  // namespace

Result<GgufFile> open_gguf(const std::filesystem::path& path) {
  GgufFile file;
  ASSAY_TRY(file.map, MappedFile::open(path));
  ASSAY_TRY(file.gguf, Gguf::parse(file.map.bytes(), path.string()));
  return file;
}

Result<Gguf> Gguf::parse(std::span<const std::byte> bytes, std::string_view object) {
  Gguf file;
  file.object_ = object;
  ASSAY_CHECK(GgufParser(bytes, object).read(file.metadata_, file.tensors_));
  return file;
}

const GgufValue* Gguf::find(std::string_view key) const {
  const auto found = metadata_.find(key);
  return found == metadata_.end() ? nullptr : &found->second;
}

std::unexpected<Error> Gguf::wrong(std::string_view key, std::string_view expected) const {
  return bad_input("{}: expected {} at {}, found a value of another type", object_, expected,
                   json_quoted(key));
}

Result<std::optional<int64_t>> Gguf::whole(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto* one = std::get_if<GgufScalar>(&value->value);
  const auto whole = one != nullptr ? whole_of(*one) : std::nullopt;
  if (!whole) return wrong(key, "a whole number");
  return whole;
}

Result<std::optional<double>> Gguf::number(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto* one = std::get_if<GgufScalar>(&value->value);
  const auto* number = one != nullptr ? std::get_if<double>(one) : nullptr;
  if (number == nullptr) return wrong(key, "a number with a point");
  return *number;
}

Result<std::optional<bool>> Gguf::flag(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto* one = std::get_if<GgufScalar>(&value->value);
  const auto* flag = one != nullptr ? std::get_if<bool>(one) : nullptr;
  if (flag == nullptr) return wrong(key, "true or false");
  return *flag;
}

Result<std::optional<std::string>> Gguf::text(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto* one = std::get_if<GgufScalar>(&value->value);
  const auto* text = one != nullptr ? std::get_if<std::string_view>(one) : nullptr;
  if (text == nullptr) return wrong(key, "text");
  return std::string(*text);
}

Result<std::optional<std::vector<std::string_view>>> Gguf::texts(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto* array = std::get_if<GgufArray>(&value->value);
  if (array == nullptr || array->type != GgufType::kString) return wrong(key, "an array of texts");
  return array->strings;
}

Result<std::optional<std::vector<float>>> Gguf::floats(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto* array = std::get_if<GgufArray>(&value->value);
  if (array == nullptr || array->type != GgufType::kF32) return wrong(key, "an array of fp32");
  std::vector<float> values(array->count);
  if (!values.empty()) std::memcpy(values.data(), array->bytes.data(), array->bytes.size());
  return values;
}

Result<std::optional<std::vector<int64_t>>> Gguf::wholes(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto* array = std::get_if<GgufArray>(&value->value);
  if (array == nullptr) return wrong(key, "an array of whole numbers");
  std::vector<int64_t> values;
  const uint64_t size = size_of(array->type);
  for (uint64_t i = 0; size > 0 && i < array->count; ++i) {
    const auto one = whole_of(scalar(array->type, array->bytes.data() + i * size));
    if (!one) return wrong(key, "an array of whole numbers");
    values.push_back(*one);
  }
  if (values.size() != array->count) return wrong(key, "an array of whole numbers");
  return values;
}

}  // namespace assay::engine
