// Whom switches mark by chance: as ns-3 draws, or, where the job has its usual settings, by a coin of each
// port, so that none depends on another.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/flow_traffic.h"
#include "network/packet/random_streams.h"

namespace armilla::packets {

class Marking {
 public:
  explicit Marking(const FlowJob& job);

  bool marks(double probability, std::uint32_t port) {
    return coins_.empty() ? draws_.next() < probability : happens(probability, coins_[port]);
  }
  // ns-3 draws an identification for each of them.
  void note_pause_frame() {
    if (coins_.empty()) draws_.skip();
  }

 private:
  FirstDraws draws_;
  std::vector<std::uint64_t> coins_;  // per port
};

}  // namespace armilla::packets
