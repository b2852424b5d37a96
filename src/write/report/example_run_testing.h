// A small run for the tests of the writers, made by hand: two linear layers (8 -> 16 -> 4) on 4 ranks of a
// two-dimensional machine. Two all-reduces overlap each other and the backward pass.
#pragma once

#include "ir/study.h"

namespace armilla {

Model example_model();
Run example_run();

}  // namespace armilla
