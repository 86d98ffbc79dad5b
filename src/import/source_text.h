// A foreign file in memory, of bounded size: its bytes, and its JSON if it is some.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/files/hash.h"
#include "base/records/json.h"
#include "base/result.h"

namespace assay {

// Bounds of a file. A JSON value takes up to 70 bytes of memory for 2 of its text, and an
// object is searched from its front.
inline constexpr uint64_t kMostSourceBytes = uint64_t{256} << 20;
inline constexpr int64_t kMostJsonValues = 5'000'000;
inline constexpr int64_t kMostJsonMembers = 512;  // of one object
inline constexpr size_t kMostCsvColumns = 2000;
// Samples of one import.
inline constexpr int64_t kMostImportSamples = 2'000'000;

struct SourceText {
  std::string path;  // as the user gave it, for messages
  FileDigest digest;
  std::string text;             // empty where `documents` has it all
  std::vector<Json> documents;  // one, or one a line; none: it isn't JSON
  bool lines = false;           // one a line
};

// Reads the file. It is taken for JSON if it begins with an object or an array, and for one
// document a line if its first line is one by itself and more follows. NaN and Infinity, which
// Python writes and JSON doesn't have, are null. bad_input: not a regular file, too large, packed,
// another encoding, damaged JSON, a member twice in one object, or JSON past the bounds.
Result<SourceText> read_source(const std::filesystem::path& path);
// The same of bytes in memory.
Result<SourceText> parse_source(std::string text, std::string path);

// "FILE: expected WHAT at WHERE, found FOUND".
std::unexpected<Error> unexpected_json(const SourceText& source, std::string_view what,
                                       std::string_view where, const Json& found);

}  // namespace assay
