// How long a core plays something packet by packet or flit by flit: between a bound and a guess.
#pragma once

namespace armilla {

// In seconds.
struct PlayTime {
  double least = 0;  // at a rate that messages which meet no others come near, and none exceeds
  double most = 0;   // at the rate of messages of which very many meet: a guess
};

}  // namespace armilla
