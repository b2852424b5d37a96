// A run's deviations from the ideal machine (ir/what_if.h) in words, for every report that shows them.
#pragma once

#include <string>
#include <vector>

#include "ir/study.h"

namespace armilla {

// "rank 13 takes 1.2 times as long to compute", one sentence per setting. Factors of 1 change nothing and are
// left out.
std::vector<std::string> what_if_settings(const Run& run);

// "an iteration takes 499.0 ms, 54.21 ms (12.2 %) more than the 444.8 ms without"; empty where nothing was
// simulated for comparison.
std::string what_if_effect(const Run& run);

}  // namespace armilla
