// Ranks that are at other moments than the run's clock, each stage of a pipeline at its own
// (sim/fold/drift_fold.h): who has to be told, while there are any or may be soon, of all by which ranks
// concern each other.
#pragma once

#include <cstdint>

namespace armilla {

struct Channel;

// What they would do to each other depends on moments that the run's clock does not know: it has to be played
// without such ranks.
struct ClocksDisagree {};

// Each but `arrives` may throw ClocksDisagree.
class ClockWatch {
 public:
  virtual ~ClockWatch() = default;
  // A message leaves, and is there.
  virtual void leaves(const Channel& channel) = 0;
  virtual void arrives(const Channel& channel) = 0;
  // A receive has to wait for its message, and one that waits gets it.
  virtual void waits(const Channel& channel) = 0;
  virtual void meets(const Channel& channel) = 0;
  // A simulated rank issues a collective of the family.
  virtual void issues(std::int32_t rank, std::uint32_t family) = 0;
};

}  // namespace armilla
