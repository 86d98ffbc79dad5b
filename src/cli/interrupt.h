// Ctrl-C as something to wait for, instead of something that happens.
#pragma once

#include "base/files/descriptor.h"
#include "base/result.h"

namespace assay::cli {

// While it lives, SIGINT, SIGTERM and SIGHUP don't end the program: they make descriptor()
// readable, and it stays so. Create before any thread is started, which would get the signals
// instead.
class Interrupt {
 public:
  static Result<Interrupt> create();
  int descriptor() const { return signals_.get(); }

  // From here on they end the program again; one that came before does so at once.
  void end();

 private:
  explicit Interrupt(Descriptor signals) : signals_(std::move(signals)) {}
  Descriptor signals_;
};

}  // namespace assay::cli
