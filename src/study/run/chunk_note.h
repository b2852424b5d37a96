// Whether the number of chunks that a user chose costs time.
#pragma once

#include <string>

#include "ir/study.h"

namespace armilla {

// A sentence about the longest collective that pipelining limits and that another number of chunks would make
// much faster; empty where there is none.
std::string chunk_note(const Run& run);

}  // namespace armilla
