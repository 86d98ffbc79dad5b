// Addresses, by the part of RFC 3986 that servers need.
#include "backend/http/server_url.h"

#include <algorithm>
#include <charconv>

#include "base/records/json.h"

namespace assay {
namespace {

bool is_host_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '_';
}

bool is_port(std::string_view text) {
  unsigned port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port >= 1 && port <= 65535;
}

std::string usual_port(bool tls) {
  return tls ? "443" : "80";
}

std::string bracketed(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

std::unexpected<Error> refused(std::string_view text) {
  return bad_input(
      "server: expected http://HOST[:PORT] or https://HOST[:PORT], with a path behind it or none, "
      "found {}",
      text.find('@') == std::string_view::npos ? json_quoted(text) : "one with a name or password");
}

}  // namespace

std::string ServerUrl::host_header() const {
  return port == usual_port(tls) ? bracketed(host) : bracketed(host) + ":" + port;
}

std::string ServerUrl::text() const {
  return (tls ? "https://" : "http://") + host_header() + prefix;
}

Result<ServerUrl> parse_server_url(std::string_view text) {
  ServerUrl url;
  std::string_view rest = text;
  if (rest.starts_with("https://")) {
    url.tls = true;
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
  } else {
    return refused(text);
  }
  const auto is_plain = [](char c) {
    return c > ' ' && c < 127 && c != '?' && c != '#' && c != '@' && c != '\\' && c != '"';
  };
  if (!std::ranges::all_of(rest, is_plain)) return refused(text);
  const size_t slash = std::min(rest.find('/'), rest.size());
  url.prefix = rest.substr(slash);
  while (url.prefix.ends_with('/')) url.prefix.pop_back();
  if (constexpr std::string_view kVersion = "/v1"; url.prefix.ends_with(kVersion))
    url.prefix.resize(url.prefix.size() - kVersion.size());
  std::string_view place = rest.substr(0, slash);
  std::string_view port;
  if (place.starts_with('[')) {
    const size_t end = place.find(']');
    if (end == std::string_view::npos) return refused(text);
    url.host = place.substr(1, end - 1);
    const auto in_number = [](char c) { return c == ':' || is_host_character(c); };
    if (!std::ranges::all_of(url.host, in_number)) return refused(text);
    place.remove_prefix(end + 1);
    if (!place.empty() && !place.starts_with(':')) return refused(text);
    port = place;
  } else {
    const size_t colon = std::min(place.find(':'), place.size());
    url.host = place.substr(0, colon);
    if (!std::ranges::all_of(url.host, is_host_character)) return refused(text);
    port = place.substr(colon);
  }
  if (url.host.empty()) return refused(text);
  if (port.empty()) {
    url.port = usual_port(url.tls);
  } else if (is_port(port.substr(1))) {
    url.port = port.substr(1);
  } else {
    return refused(text);
  }
  return url;
}

}  // namespace assay
