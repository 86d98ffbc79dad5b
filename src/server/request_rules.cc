#include "server/request_rules.h"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/host_name.hpp>
#include <boost/beast/core/string.hpp>

#include <algorithm>

namespace assay::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using ErrorCode = boost::system::error_code;

// Takes as long whatever the texts share.
bool same_secret(std::string_view a, std::string_view b) {
  unsigned char differs = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i) {
    differs |= static_cast<unsigned char>(a[i] ^ (b.empty() ? '\1' : b[i % b.size()]));
  }
  return differs == 0;
}

// "[::1]:80", "localhost:80" and "localhost": the part before the port.
std::string_view host_of(std::string_view header) {
  const size_t colon = header.rfind(':');
  const bool has_port =
      colon != std::string_view::npos && header.find(']', colon) == std::string_view::npos;
  return has_port ? header.substr(0, colon) : header;
}

bool is_own_host(std::string_view host, const std::string& address) {
  return beast::iequals(beast::string_view(host.data(), host.size()), "localhost") ||
         host == "127.0.0.1" || host == "[::1]" || host == address || host == "[" + address + "]";
}

// Says whether a page of this origin may have an answer. Browsers name their Sec-Fetch-Site to
// servers on loopback alone. A page whose own name leads here is known by this machine's: without
// a key it has to be that, or an address.
bool may_ask(std::string_view origin, std::string_view host, const FrontOptions& options) {
  if (!options.api_key.empty()) return true;
  const size_t scheme = origin.find("://");
  if (scheme == std::string_view::npos || origin.substr(scheme + 3) != host) return false;
  std::string name(host_of(host));
  if (is_own_host(name, options.address)) return true;
  if (name.starts_with('[')) name = name.substr(1, name.size() - 2);
  ErrorCode no_address;
  asio::ip::make_address(name, no_address);
  return !no_address || name.substr(0, name.find('.')) == asio::ip::host_name();
}

}  // namespace

std::optional<Refusal> wrong_sender(const RequestSender& sender, const FrontOptions& options) {
  if (sender.version != 10 && sender.version != 11)
    return Refusal{505, "expected HTTP/1.1, found another version"};
  // A page that resolves its own name to loopback would else reach what listens there.
  ErrorCode no_address;
  const auto bound = asio::ip::make_address(options.address, no_address);
  if (bound.is_loopback() && !is_own_host(host_of(sender.host), options.address)) {
    return Refusal{403, "expected a Host of this machine's loopback, found another"};
  }
  // Without this a page of any site could have this machine compute, though it couldn't read. A
  // frame may hide its page's name.
  const bool is_pages = sender.origin.starts_with("http") || sender.origin == "null";
  if (is_pages &&
      (sender.fetch_site == "cross-site" || !may_ask(sender.origin, sender.host, options))) {
    return Refusal{403, "expected no request from another site's page, found one"};
  }
  const bool is_free =
      std::ranges::find(options.free_paths, sender.path) != options.free_paths.end();
  if (options.api_key.empty() || is_free) return std::nullopt;
  constexpr std::string_view kScheme = "Bearer ";
  if (sender.authorization.starts_with(kScheme) &&
      same_secret(sender.authorization.substr(kScheme.size()), options.api_key))
    return std::nullopt;
  return Refusal{401, "expected the server's API key (Authorization: Bearer KEY), found another"};
}

}  // namespace assay::server
