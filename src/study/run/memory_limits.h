// Whether what a run needs fits the devices that its ranks really have (Machine::others).
//
// Cost: O(ranks x devices that differ), and that of lower/memory.h's advice where something does not
// fit.
#pragma once

#include "ir/study.h"

namespace armilla {

// Gives every role the least memory of the devices that its ranks have, and the run that of the role which is
// closest to its limit.
void set_memory_limits(Run& run);

// A warning for every kind of device that has too little; the first tells what would make it fit.
void warn_of_memory(Run& run);

}  // namespace armilla
