#include "network/flow/fluid_rings.h"

#include <algorithm>

namespace armilla {

void FluidRings::take(Link& link, Bandwidth bandwidth) {
  if (link.shared == 0) {
    fluids_.rates().add_link(bandwidth.value);
    senders_.add_link();
    links_.push_back(&link);
    link.shared = static_cast<std::uint32_t>(links_.size());
  }
  const std::uint32_t number = link.shared - 1;
  const auto known = std::ranges::find(taken_, number, &MaxMin::Use::link);
  if (known == taken_.end()) {
    taken_.push_back({.link = number});
  } else {
    ++known->copies;
  }
}

void FluidRings::enter(const Passage& passage, Time time) {
  const std::uint32_t fluid = fluids_.open(taken_, passage.bytes, connection_of(passage), time);
  taken_.clear();
  if (fluid >= passages_.size()) passages_.resize(fluid + 1);
  passages_[fluid] = passage;
}

std::uint32_t FluidRings::connection_of(const Passage& passage) {
  if (passage.ends == kNoEnds) return Fluids::kNoConnection;
  const auto [found, fresh] = connections_.try_emplace({passage.ends, passage.sender}, Fluids::kNoConnection);
  if (fresh) found->second = fluids_.add_connection();
  return found->second;
}

void FluidRings::begins(std::uint32_t fluid) {
  const Passage& passage = passages_[fluid];
  if (passage.bytes == Bytes(0)) return;
  for (const MaxMin::Use& use : fluids_.rates().uses(fluid))
    senders_.enter(use.link, passage.sender, queue_.now(), sums_of(use.link));
}

void FluidRings::is_through(std::uint32_t fluid) {
  const Passage passage = passages_[fluid];
  if (passage.bytes > Bytes(0)) {
    for (const MaxMin::Use& use : fluids_.rates().uses(fluid))
      senders_.leave(use.link, passage.sender, queue_.now(), sums_of(use.link));
  }
  const Time begin = fluids_.begun(fluid);
  fluids_.close(fluid);
  client_.leaves_rings(passage.flight, begin);
}

}  // namespace armilla
