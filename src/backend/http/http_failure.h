// The end of an exchange with a server that went wrong.
#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace assay {

// Classes of failures, as rows have them. A status of 400 and above is "http_404" and the like.
namespace http_class {
inline constexpr std::string_view kHostNotFound = "host_not_found";
inline constexpr std::string_view kRefused = "connection_refused";
inline constexpr std::string_view kUnreachable = "server_unreachable";
inline constexpr std::string_view kTls = "tls_error";
inline constexpr std::string_view kReset = "connection_reset";
inline constexpr std::string_view kRedirect = "redirect";
inline constexpr std::string_view kTimeout = "server_timeout";  // the whole exchange took too long
inline constexpr std::string_view kStalled = "server_stalled";  // nothing came for too long
inline constexpr std::string_view kCut = "stream_cut";          // it ended before its end
inline constexpr std::string_view kMalformed = "malformed_answer";  // no HTTP, JSON or event stream
inline constexpr std::string_view kTooLong = "answer_too_long";   // a line, the headers or the body
inline constexpr std::string_view kServerError = "server_error";  // told in the stream
inline constexpr std::string_view kServerDied = "server_died";    // it was started for this arm
inline constexpr std::string_view kNotReady = "server_not_ready";
}  // namespace http_class

struct HttpFailure {
  std::string error_class;
  std::string message;  // one line: expected, found
};

template <typename T>
using HttpResult = std::expected<T, HttpFailure>;

inline std::unexpected<HttpFailure> http_failure(std::string_view error_class,
                                                 std::string message) {
  return std::unexpected(HttpFailure{std::string(error_class), std::move(message)});
}

}  // namespace assay
