// Text that ends where one of some strings begins.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay::server {

class StopStrings {
 public:
  explicit StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  // The text that is certain now: no stop string can begin in it. Nothing more once found().
  std::string push(std::string_view text);
  // The text that is held back, unless a stop string was found.
  std::string finish();
  bool found() const { return found_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool found_ = false;
};

}  // namespace assay::server
