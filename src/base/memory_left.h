// How much memory a program may still take, for who foresees that something needs more.
#pragma once

#include "base/units.h"

namespace armilla {

// What the machine has available, or what limits of the process (ulimit -v) or of its control group leave,
// whichever is least; as much as can be counted where nothing is known.
Bytes memory_left();

}  // namespace armilla
