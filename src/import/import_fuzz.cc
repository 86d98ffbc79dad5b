// Any bytes as a foreign file: an error or rows, never a crash. The first byte chooses whether they
// are a file of results, or a mapping and, behind its first empty line, a CSV.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "import/import.h"
#include "import/import_bundle.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay;
  if (size == 0) return 0;
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::optional<CsvMapping> mapping;
  if (data[0] == 'm') {
    const size_t end = text.find("\n\n");
    if (end == std::string_view::npos) return 0;
    auto parsed = parse_csv_mapping(text.substr(0, end + 1), "fuzz.yaml");
    if (!parsed) return 0;
    mapping = *std::move(parsed);
    text.remove_prefix(end + 2);
  }
  const auto source = parse_source(std::string(text), "fuzz");
  if (!source) return 0;
  const auto imported =
      import_sources(std::span(&*source, 1), std::nullopt, mapping ? &*mapping : nullptr);
  if (!imported) return 0;
  const auto made = make_rows(*imported, FirstSamples::kByFile);
  if (made) import_header(*imported, *made, {});
  return 0;
}
