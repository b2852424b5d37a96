// Profile: measured times of a job's computations, one for every distinct one (DistSim, Lu et al. 2023,
// section 4.1: profile each event once, on few devices). Told apart as in `armilla events`
// (ir/derived/events.h).
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "base/units.h"
#include "ir/graph.h"
#include "ir/work.h"

namespace armilla {

// What names a computation.
struct ComputationKey {
  std::string name;  // without its block, as JobEvent::name
  Phase phase = Phase::forward;
  std::string shapes;  // of its matrix products, as `shapes_text` writes them
  std::string type;
  std::int64_t flops = 0, bytes = 0;
  auto operator<=>(const ComputationKey&) const = default;
};

ComputationKey key_of(std::string name, Phase phase, const Work& work);

// "2 x 4096x1024x8192, 64x64x64": matrix products as m x n x k.
std::string shapes_text(const Work& work);

struct MeasuredComputation {
  ComputationKey key;
  Time time;  // on the machine's usual device
};

struct Profile {
  std::string file;                               // empty: there is none
  std::vector<MeasuredComputation> computations;  // every key once
};

}  // namespace armilla
