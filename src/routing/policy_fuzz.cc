// Any bytes as a policy: an error or a policy that can be written, asked and read back, never a
// crash.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "routing/policy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay;
  const auto policy = parse_policy({reinterpret_cast<const char*>(data), size}, "fuzz.yaml");
  if (!policy) return 0;
  rule_of(*policy, {"gpt2-25m", Phase::kPrefill, 1, 0, 10});
  identity_mismatch(*policy, policy->identity);
  const auto again = parse_policy(policy_to_yaml(*policy), "again.yaml");
  if (again && again->rules.size() != policy->rules.size()) std::abort();
  return 0;
}
