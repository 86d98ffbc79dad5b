// Fixed pieces of work, timed beside each repetition: how fast the machine was just then.
//
// A neighbour on the same physical core, or a lower clock, slows the model and these alike; a
// change of the program slows the model alone. So they tell the two apart where two bundles are
// compared (docs/comparing.md, "The machine's part").
#pragma once

#include "base/records/measured.h"

namespace assay {

// Runs both on the calling thread, some 30 us together: right behind a timed region, so that the
// region's caches are its own. Nothing but the machine and the compiler decides how long they take:
// they are functions of a file of their own, aligned to lines of the cache, so that a change
// elsewhere in the program moves none of their loops.
// Sets the figures that begin with yardstick_.
void run_yardstick(Measured& measured);

}  // namespace assay
