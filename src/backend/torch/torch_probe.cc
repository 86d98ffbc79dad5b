// One line of JSON, the last that the script prints: libraries print before it.
#include "backend/torch/torch_probe.h"

#include "base/text/text.h"

namespace assay {
namespace {

constexpr const char* kName = "probe.py";

Status read_text(const Json& json, const char* key, std::optional<std::string>& value) {
  ASSAY_TRY(const std::string text, json_string_or(json, key, "", kName));
  if (!text.empty()) value = text;
  return {};
}

std::string last_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  const size_t end = text.rfind('\n');
  return end == std::string::npos ? text : text.substr(end + 1);
}

}  // namespace

Result<TorchProbe> parse_probe(std::string_view text) {
  TorchProbe probe;
  ASSAY_TRY(probe.facts, parse_json(text, kName));
  if (!probe.facts.is_object()) return bad_input("{}: expected an object", kName);
  const Json& json = probe.facts;
  ASSAY_TRY(probe.python, json_string(json, "python", kName));
  ASSAY_CHECK(read_text(json, "torch", probe.torch));
  ASSAY_CHECK(read_text(json, "torch_error", probe.torch_error));
  ASSAY_CHECK(read_text(json, "transformers", probe.transformers));
  ASSAY_CHECK(read_text(json, "transformers_error", probe.transformers_error));
  ASSAY_CHECK(read_text(json, "triton", probe.triton));
  ASSAY_CHECK(read_text(json, "triton_error", probe.triton_error));
  ASSAY_CHECK(read_text(json, "cuda_device", probe.cuda_device));
  ASSAY_CHECK(read_text(json, "cuda_error", probe.cuda_error));
  ASSAY_CHECK(read_text(json, "cuda_uuid", probe.cuda_uuid));
  ASSAY_CHECK(read_text(json, "cxx", probe.cxx));
  ASSAY_CHECK(read_text(json, "cxx_error", probe.cxx_error));
  ASSAY_CHECK(read_text(json, "cc", probe.cc));
  return probe;
}

Result<TorchProbe> probe_python(Spawner& spawner, const std::string& python,
                                const std::filesystem::path& script, double timeout_s) {
  const std::vector<std::string> command = {python, "-B", script.string()};
  auto output = run_command(spawner, command, timeout_s);
  if (output && !output->end.signal.empty()) output = run_command(spawner, command, timeout_s);
  if (!output) return environment_error("{}", output.error().message);
  if (!output->end.ok()) {
    return environment_error("{}: expected to run {}, found {}: {}", python,
                             script.filename().string(), output->end.text(),
                             excerpt(last_line(output->err)));
  }
  auto probe = parse_probe(last_line(output->out));
  if (!probe) return environment_error("{}: {}", python, probe.error().message);
  return probe;
}

}  // namespace assay
