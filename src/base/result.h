// The error type that every module returns: the failure in one line, and whose fault it is.
#pragma once

#include <fmt/format.h>

#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace assay {

// Whose fault an error is; cli/ maps it to the exit status.
enum class ErrorKind {
  kBadInput,     // exit 2: the user's file, flag or data
  kEnvironment,  // exit 3: this machine can't do it (no space, no permission, missing tool)
};

struct Error {
  ErrorKind kind = ErrorKind::kBadInput;
  std::string message;  // one line, lower case: object, expectation, finding

  friend bool operator==(const Error&, const Error&) = default;
};

template <typename T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

// bad_input("{}: expected a positive number of repetitions, found {}", path, n)
template <typename... Args>
std::unexpected<Error> bad_input(fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected(
      Error{ErrorKind::kBadInput, fmt::format(format, std::forward<Args>(args)...)});
}

template <typename... Args>
std::unexpected<Error> environment_error(fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected(
      Error{ErrorKind::kEnvironment, fmt::format(format, std::forward<Args>(args)...)});
}

// The same error with `context: ` before its message, for a caller that knows the object better.
std::unexpected<Error> with_context(std::string_view context, const Error& error);

}  // namespace assay

#define ASSAY_CONCAT_INNER(a, b) a##b
#define ASSAY_CONCAT(a, b) ASSAY_CONCAT_INNER(a, b)

// ASSAY_TRY(auto weights, load(path)); declares `weights` or returns the error.
#define ASSAY_TRY(declaration, expression) \
  ASSAY_TRY_IMPL(ASSAY_CONCAT(assay_result_, __LINE__), declaration, expression)
#define ASSAY_TRY_IMPL(result, declaration, expression)           \
  auto result = (expression);                                     \
  if (!result) return std::unexpected(std::move(result).error()); \
  declaration = std::move(result).value()

// ASSAY_CHECK(validate(x)); returns the error of a Status or Result whose value isn't needed.
#define ASSAY_CHECK(expression)                                \
  do {                                                         \
    if (auto assay_status = (expression); !assay_status)       \
      return std::unexpected(std::move(assay_status).error()); \
  } while (false)
