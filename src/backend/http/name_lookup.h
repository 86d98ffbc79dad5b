// Addresses of a machine's name, asked for beside the event loop.
//
// The system's resolver takes as long as it likes, and nobody can stop it: it has a thread of its
// own, which is left behind where the answer comes too late.
#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace assay {

// Addresses as numbers ("127.0.0.1", "fe80::1%eth0"), the preferred one first; or the resolver's
// words.
using FoundAddresses = std::expected<std::vector<std::string>, std::string>;
// Blocks until the answer is there. Called from another thread than the loop's, and maybe still
// running when the loop is gone.
using NameLookUp = std::function<FoundAddresses(const std::string& host)>;

// Asks as every program of this machine does (getaddrinfo).
FoundAddresses look_up_name(const std::string& host);

// A question under way in a thread of its own, for as long as this object lives: an answer that
// comes later is dropped.
class PendingLookUp {
 public:
  // `on_answer` is called once, from that thread.
  PendingLookUp(NameLookUp look_up, std::string host, std::function<void()> on_answer);
  PendingLookUp(const PendingLookUp&) = delete;
  PendingLookUp& operator=(const PendingLookUp&) = delete;
  ~PendingLookUp();
  // Takes the answer; absent: there is none yet.
  std::optional<FoundAddresses> found();

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace assay
