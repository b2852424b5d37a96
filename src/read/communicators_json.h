// ASTRA-sim 2.x's communicator groups: a JSON object of group name -> list of ranks.
//
// The peer takes whole numbers above 0 as names; here any text is one, "0" included (in a trace, a group "0"
// that no file defines means all ranks). Errors: a name given twice, an empty group, a rank twice in a group
// or outside the network. Read as a stream, O(text); nothing is bounded but by the file.
#pragma once

#include <string>

#include "ir/formats/communicators.h"

namespace armilla {

Communicators read_communicators(const std::string& path, std::int64_t ranks);
// `name` is what errors call the text.
Communicators parse_communicators(std::string_view text, const std::string& name, std::int64_t ranks);

}  // namespace armilla
