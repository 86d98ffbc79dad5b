// The keeper: a process that ends another one and all that descends from it when its pipe's other
// end closes, which the kernel does at any end of the process that holds it.
#pragma once

namespace assay {

// Called between fork and exec. The caller becomes the keeper of a process that it forks, in which
// alone this returns: true, or false if there can't be one more. Each byte in the pipe is the
// number of a signal that this process gets; at the pipe's end, or at its own, it and all its
// descendants are killed, and the keeper ends with its status or by its signal.
bool fork_below_keeper(int pipe_fd);

}  // namespace assay
