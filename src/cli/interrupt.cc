// Signals read from a descriptor: no handler, no global flag.
#include "cli/interrupt.h"

#include <signal.h>
#include <sys/signalfd.h>

#include <cerrno>
#include <cstring>

namespace assay::cli {

namespace {

sigset_t interrupting_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  return signals;
}

}  // namespace

Result<Interrupt> Interrupt::create() {
  const sigset_t signals = interrupting_signals();
  if (pthread_sigmask(SIG_BLOCK, &signals, nullptr) != 0) {
    return environment_error("signals: expected to block them, found an error");
  }
  Descriptor descriptor(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!descriptor.ok()) return environment_error("signals: {}", std::strerror(errno));
  return Interrupt(std::move(descriptor));
}

void Interrupt::end() {
  signals_ = Descriptor();
  const sigset_t signals = interrupting_signals();
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

}  // namespace assay::cli
