// The entries of the table in algorithm.cc, each from the source file of its name.
#pragma once

#include "collective/algorithm.h"

namespace armilla {

AlgorithmInfo ring_algorithm();
AlgorithmInfo bidirectional_ring_algorithm();
AlgorithmInfo direct_algorithm();
AlgorithmInfo scatter_gather_algorithm();
AlgorithmInfo halving_doubling_algorithm();
AlgorithmInfo circulant_algorithm();
AlgorithmInfo double_binary_tree_algorithm();
AlgorithmInfo nvls_algorithm();
AlgorithmInfo sharp_algorithm();
AlgorithmInfo multicast_algorithm();

}  // namespace armilla
