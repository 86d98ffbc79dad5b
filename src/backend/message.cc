// Capabilities that replies announce.
#include "backend/message.h"

namespace assay {

bool announces_profile(const HelloReply& hello) {
  const auto it = hello.capabilities.find("profile");
  return it != hello.capabilities.end() && it->is_boolean() && it->get<bool>();
}

}  // namespace assay
