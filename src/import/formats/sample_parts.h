// Parts that readers share: figures that a foreign file states, checked as they become samples.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "import/imported.h"
#include "import/source_text.h"

namespace assay {

// The error_class of a time or a count that can't have been.
inline constexpr const char* kImpossibleTime = "impossible_latency";
inline constexpr const char* kImpossibleTokens = "impossible_tokens";

// A time in ms. One that is negative or no number isn't kept, and makes an ok sample a false
// success.
void put_latency(ImportedSample& sample, double ms);
void put_ttft(ImportedSample& sample, double ms);
// Tokens; a negative number, or more than any call produces, isn't kept either, with the same end.
void put_tokens(ImportedSample& sample, int64_t tokens);

// The sample didn't succeed; the message is kept whole.
void fail_sample(ImportedSample& sample, RowStatus status, std::string_view error_class,
                 std::string_view message);

// A list of numbers; null stands for NaN. bad_input that names `object` and `key`: it is no list,
// or something else is in it.
Result<std::vector<double>> json_numbers(const Json& list, std::string_view object,
                                         std::string_view key);

// A list beside another one has as many entries, one for each. bad_input that names both. A value
// that isn't a list passes.
Status check_entries(const Json& list, std::string_view key, size_t expected,
                     std::string_view beside, std::string_view object);

// The documents of a source that has to be JSON.
Result<std::span<const Json>> documents_of(const SourceText& source);

// A name for a text that may be long or of several lines, such as a command: escaped and cut.
std::string short_name(std::string_view text);

// States every member of `object` that has a field's name and is a text or a number.
Status state_members(const Json& object, const std::string& where, RunFacts& facts);

// States each of these fields; an empty value is none.
struct StatedField {
  ImportField field;
  std::string value;
};
Status state_fields(std::initializer_list<StatedField> fields, const std::string& where,
                    RunFacts& facts);

// The class that a Python traceback or an exception's text names: "ClientOSError" of
// "aiohttp.ClientOSError: ..."; the last line as it is where there is no such name.
std::string class_of_message(std::string_view message);

// Text or number of a member, as text; empty where there is none.
std::string plain_text(const Json& object, std::string_view key);

// Nanoseconds since the epoch of "2026-11-25T09:55:10Z", "2026-11-25 09:55:10.123456+00:00" or
// "20261125-095510". Absent: it isn't such a time. A time without a zone counts as UTC.
std::optional<int64_t> utc_ns(std::string_view text);
// The same for a text that `object` has as a time. Absent: it is empty. bad_input: utc_ns() doesn't
// know it.
Result<std::optional<int64_t>> stated_time(std::string_view text, const std::string& object);

// The folder that the file lies in, as its path names it.
std::string folder_of(const SourceText& source);

// "FILE: result 3".
std::string part_name(const SourceText& source, std::string_view what, size_t index);

}  // namespace assay
