// What a run has to tell in sentences: everything the user should know but did not ask for, from all nouns of
// the Run, each sentence once.
#pragma once

#include <string>
#include <vector>

#include "ir/study.h"

namespace armilla {

std::vector<std::string> all_notes(const Run& run);
std::vector<std::string> all_warnings(const Run& run);

}  // namespace armilla
