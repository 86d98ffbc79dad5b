// A foreign file's statements about a run: conditions and identity, by field. A field that the file
// doesn't state is absent: nothing is guessed.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/records/phase.h"
#include "base/result.h"

namespace assay {

// Named as the columns of metrics.csv and the axes of the identity are. The last four are the
// identity's.
enum class ImportField {
  kArm,
  kBackend,
  kModel,
  kDtype,
  kQuantization,
  kCache,
  kCompileMode,
  kDynamic,
  kPadding,
  kPhase,
  kScenario,
  kBatch,
  kPromptTokens,
  kPaddedTokens,
  kNewTokens,
  kDevice,
  kCodeGenerator,
  kFrameworkBuild,
  kCodeSha,
};
inline constexpr size_t kImportFields = static_cast<size_t>(ImportField::kCodeSha) + 1;

std::string_view import_field_name(ImportField field);
std::optional<ImportField> parse_import_field(std::string_view name);
// In the order of the enum.
const std::vector<std::string>& import_field_names();

// Text of a foreign file that becomes a name: one line of at most 200 bytes of UTF-8 without
// control characters. bad_input that names `object` and `what`.
Result<std::string> imported_name(std::string_view text, std::string_view object,
                                  std::string_view what);

// `fp32`, `fp16` or `bf16` for the spellings of torch, numpy and ggml; other words as they are.
std::string plain_dtype(std::string_view word);

class RunFacts {
 public:
  // States a field, or replaces it. An empty value is none: the field stays as it is. bad_input
  // that names `object`, field, expected and found: another word than the column has (cache,
  // dynamic, padding, phase), or no count where it has counts.
  Status state(ImportField field, std::string_view value, std::string_view object);
  // States a field by a count that was checked.
  void state_count(ImportField field, int64_t count);

  bool knows(ImportField field) const { return stated_.contains(field); }
  // Empty where it isn't stated.
  const std::string& text(ImportField field) const;
  std::optional<int64_t> count(ImportField field) const;
  std::optional<Phase> phase() const;

  friend auto operator<=>(const RunFacts&, const RunFacts&) = default;

 private:
  std::map<ImportField, std::string> stated_;
};

}  // namespace assay
