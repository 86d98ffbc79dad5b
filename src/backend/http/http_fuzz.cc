// Streams of servers: bytes in pieces, read by every dialect; nothing may crash.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "backend/http/dialect.h"
#include "backend/http/event_stream.h"
#include "backend/http/server_process.h"
#include "backend/http/server_url.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay;
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const auto names = dialect_names();
  const Dialect& dialect = *find_dialect(names[data[0] % names.size()]);
  const size_t piece = 1 + data[1];
  EventStream stream(dialect.form(), size_t{1} << 16);
  for (size_t at = 0; at < bytes.size(); at += piece) {
    const auto taken = stream.take(bytes.substr(at, piece), [&](std::string_view event) {
      const auto read = dialect.read(event);
      return read ? HttpResult<void>() : HttpResult<void>(std::unexpected(read.error()));
    });
    if (!taken) break;
  }
  (void)parse_server_url(bytes);
  (void)address_in(bytes);
  return 0;
}
