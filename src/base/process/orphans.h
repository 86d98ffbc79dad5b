// Processes that outlive what has started them: this process takes and ends them.
#pragma once

namespace assay {

// From here on this process is the one that orphans below it fall to (PR_SET_CHILD_SUBREAPER).
void adopt_orphans();

// Kills every child of this process, and what falls to it from them in turn, until there is none or
// until one can't be killed. The process must have no child that is to live. Async-signal-safe.
void kill_orphans();

}  // namespace assay
