// Communicators (ir/formats/communicators.h) as ASTRA-sim 2's comm-group file: a JSON object of name -> list
// of ranks. The peer takes whole numbers above 0 as names.
#pragma once

#include <string>

#include "ir/formats/communicators.h"

namespace armilla {

std::string write_communicators(const Communicators& communicators);

}  // namespace armilla
