// Any bytes as a mapping file, over one CSV: an error or rows, never a crash.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "import/import.h"
#include "import/import_bundle.h"

// A CSV with a column for every kind of figure, one line without values and one comma too many.
static constexpr const char* kCsv =
    "arm,backend,model,tokens,ms,latencies,status,error,run,at\n"
    "eager,torch,gpt2,80,5.1,[90;5.1;5.0],ok,,1,1700000000\n"
    "eager,torch,gpt2,80,5.2,[91;5.2],ok,,1,2023-11-14T22:13:20Z\n"
    "fast,inductor,gpt2,80,,[],failed,OutOfMemoryError,2,\n"
    "fast,inductor,,-1,nan,[1;x],\"a, b\",,2,0\n"
    ",,,,,,,,,\n";

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto mapping = parse_csv_mapping(text, "fuzz.yaml");
  if (!mapping) return 0;
  const auto source = parse_source(kCsv, "fuzz.csv");
  if (!source) return 0;
  const auto imported = import_sources(std::span(&*source, 1), std::nullopt, &*mapping);
  if (!imported) return 0;
  const auto made = make_rows(*imported, FirstSamples::kByFile);
  if (made) import_header(*imported, *made, {});
  return 0;
}
