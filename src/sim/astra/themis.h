// Themis: which dimension order each chunk of a collective takes, so that all dimensions carry equal load.
//
// Rashidi et al., "Themis: A Network Bandwidth-Aware Collective Scheduling Policy for Distributed Training of
// DL Models", ISCA 2022, as ASTRA-sim implements it (1.0 and 2.x, scheduling/OfflineGreedy.cc): greedy, with
// loads that are estimates of elapsed time per dimension in units of MiB over the bandwidth of dimension 0.
// `flexible` also chooses the size of each chunk. One instance per run: all ranks follow the orders of rank
// 0.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/collective.h"

namespace armilla {

class Themis {
 public:
  // Bandwidths in any common unit. Loads that differ by less than 1 / `gap_denominator` of a chunk are left
  // alone, or, if flexible, by less than a chunk.
  Themis(std::vector<std::int64_t> sizes, std::vector<double> bandwidths, bool flexible,
         std::int64_t gap_denominator = 16);

  void forget_loads();

  struct Choice {
    std::vector<std::size_t> order;  // of dimensions
    std::int64_t bytes = 0;          // of the chunk
  };
  // For the next chunk of `remaining` bytes; `recommended` is the usual chunk size. Bit d of `mask`:
  // dimension d takes part. O(dimensions^2).
  Choice next_chunk(CollectiveKind kind, std::uint32_t mask, std::int64_t recommended,
                    std::int64_t remaining);

 private:
  struct Load {
    std::size_t dimension;
    double elapsed;
  };

  bool takes_part(std::size_t dimension, std::uint32_t mask) const {
    return sizes_[dimension] > 1 && (mask >> dimension & 1);
  }
  double share_of(bool scatters, std::size_t dimension) const;
  std::int64_t bytes_for(double elapsed, std::size_t dimension, bool scatters) const;
  std::int64_t difference(std::size_t place, std::uint32_t mask, bool scatters) const;
  std::int64_t add_load(Load& load, std::int64_t bytes, bool scatters) const;
  void load_in_fixed_order(std::uint32_t mask, std::int64_t bytes, bool scatters);

  std::vector<std::int64_t> sizes_;
  std::vector<double> bandwidths_;
  bool flexible_;
  std::int64_t gap_denominator_;
  std::vector<Load> loads_;
};

}  // namespace armilla
