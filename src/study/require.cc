// Names and values of the key `require`.
#include "study/require.h"

#include <algorithm>

namespace assay {
namespace {

constexpr int64_t kMostTritonMajor = 1000;
constexpr int64_t kMostGraphBreaks = 1'000'000;

}  // namespace

Result<Json> parse_require(const YamlValue& value) {
  static const std::vector<std::string> known = {
      "cuda", "triton", "compiler_real", "graph_breaks", "parity", "logit_stats", "deterministic"};
  static const std::vector<std::string> flags = {"true", "false"};
  ASSAY_TRY(const YamlMap map, value.map(known));
  Json require = Json::object();
  for (const std::string& name : known) {
    const auto given = map.find(name);
    if (!given) continue;
    if (name == "triton") {
      ASSAY_TRY(require[name], given->integer(1, kMostTritonMajor));
    } else if (name == "graph_breaks") {
      ASSAY_TRY(require[name], given->integer(0, kMostGraphBreaks));
    } else {
      ASSAY_TRY(const size_t flag, given->one_of(flags));
      if (flag == 0) require[name] = true;
    }
  }
  return require;
}

}  // namespace assay
