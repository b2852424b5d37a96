// What a run has to tell in sentences: everything the user should know but did not ask for, from all nouns of
// the Run, each sentence once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/study.h"

namespace armilla {

// "Foo: 3 of 122 operators, 4.0 % of the forward bytes; its arithmetic is unknown and counted as none".
std::string describe(const UnknownOperator& unknown, std::int64_t operators, Bytes forward_bytes);

std::vector<std::string> all_notes(const Run& run);
std::vector<std::string> all_warnings(const Run& run);

}  // namespace armilla
