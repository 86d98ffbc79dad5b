// Typed, range-checked members of protocol messages; private to the protocol's parser.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace assay {

// Far beyond any model, and small enough that sums and products of a few stay within int64.
inline constexpr int64_t kMaxCount = int64_t{1} << 31;
inline constexpr int64_t kMaxBatch = 4096;
inline constexpr int64_t kMaxPositions = int64_t{1} << 24;
inline constexpr int64_t kMaxRepetitions = 1'000'000;

// The members of one message; `name` stands for it in errors ("sample").
class Members {
 public:
  Members(const Json& object, std::string name) : object_(object), name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  Result<int64_t> integer(const char* key, int64_t least, int64_t most) const;
  // Absent or null: nothing.
  Result<std::optional<int64_t>> optional_integer(const char* key, int64_t least,
                                                  int64_t most) const;
  Result<double> seconds(const char* key) const;                         // finite, >= 0
  Result<std::optional<double>> optional_amount(const char* key) const;  // finite, >= 0
  Result<bool> boolean_or(const char* key, bool fallback) const;
  Result<std::string> text(const char* key) const;
  Result<std::string> text_or(const char* key, std::string fallback) const;
  // One of `words`.
  Result<std::string> word(const char* key, const std::vector<std::string>& words) const;
  Result<Json> object(const char* key) const;
  Result<Json> object_or_empty(const char* key) const;
  // Every element within [least, most]; at most `max_size` of them.
  Result<std::vector<int64_t>> integers(const char* key, int64_t least, int64_t most,
                                        size_t max_size) const;
  Result<std::vector<int32_t>> ids(const char* key, size_t max_size) const;
  // [rows] of equally long lists of ids; at least one row, none empty.
  Result<std::vector<std::vector<int32_t>>> id_rows(const char* key) const;
  Result<std::vector<Json>> objects(const char* key, size_t max_size) const;

 private:
  std::unexpected<Error> wrong(const char* key, const std::string& expected) const;
  const Json* find(const char* key) const;
  Result<const Json*> array(const char* key, size_t max_size) const;

  const Json& object_;
  std::string name_;
};

}  // namespace assay
