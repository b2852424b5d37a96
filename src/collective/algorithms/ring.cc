// Ring: every member talks to its next neighbour only, all of them in lockstep.
//
//   reduce-scatter  n-1 steps of C/n: block b starts behind member b and collects contributions on its way
//   all-gather      n-1 steps of C/n: every block travels once around
//   all-reduce      both, 2(n-1)(alpha + beta C/n)           (Patarasuk and Yuan 2009)
//   all-to-all      n-1 steps; in step s a member passes on the n-1-s blocks that have further to go, as one
//                   message: (n-1) alpha + n(n-1)/2 beta C/n. (ASTRA-sim sends each block by itself, which
//                   makes n(n-1)/2 alpha of the first term.)
//   broadcast       pipelined in p blocks, one in flight per link: (n-2+p)(alpha + beta C/p); reduce
//                   likewise, towards the root. p is n, or fewer down to 2, so that no block is smaller
//                   than asked for
//   barrier         n-1 steps of 0 bytes, after which everyone has heard of everyone
// Size of a schedule: O(n), one role (broadcast and reduce: three).
//
// Bidirectional ring: both directions at once, every block the shorter way round. With k = floor(n/2) steps,
// what comes from the far side of an even ring in two halves, one each way (as XLA's collectives on a TPU's
// axis: Austin et al., "How to Scale Your Model", 2025, Sharded Matrices):
//
//   reduce-scatter, all-gather   k alpha + (n-1)/2 beta C/n, on each of two links
//   all-reduce                   both, one after the other
//   all-to-all                   k alpha + n^2/8 beta C/n (odd n: (n^2-1)/8); across an even ring
//                                chunks take turns
//   broadcast, reduce            as the ring's: chunks take turns round it
//   barrier                      k alpha
// Two ranks have one way only.
#include <algorithm>
#include <array>

#include "collective/algorithms/algorithms.h"
#include "collective/algorithms/schedule_builder.h"

namespace armilla {
namespace {

struct Ring {
  std::int32_t ranks;
  std::int32_t sign;  // 1: clockwise, towards higher positions
  Bytes block;

  std::int32_t next() const { return wrap(sign, ranks); }
  std::int32_t along(std::int32_t member, std::int64_t hops) const {
    return wrap(member + sign * hops, ranks);
  }
  std::int32_t hops(std::int32_t from, std::int32_t to) const {
    return wrap(std::int64_t{sign} * (to - from), ranks);
  }
};

void ring_reduce_scatter(const Ring& ring, RoleBuilder& role, std::int32_t member) {
  for (std::int32_t s = 0; s < ring.ranks - 1; ++s) {
    role.begin_step(1, ring.block);
    role.send(ring.next(), role.step(), ring.block, [&] {
      return Payload{{ring.along(member, -1 - s)}, true};
    });
  }
}

void ring_all_gather(const Ring& ring, RoleBuilder& role, std::int32_t member) {
  for (std::int32_t s = 0; s < ring.ranks - 1; ++s) {
    role.begin_step(1);
    role.send(ring.next(), role.step(), ring.block, [&] { return Payload{{ring.along(member, -s)}, false}; });
  }
}

void ring_all_to_all(const Ring& ring, RoleBuilder& role, std::int32_t member) {
  for (std::int32_t s = 0; s < ring.ranks - 1; ++s) {
    role.begin_step(1);
    role.send(ring.next(), role.step(), ring.block * (ring.ranks - 1 - s), [&] {
      Payload payload;
      const std::int32_t source = ring.along(member, -s);
      for (std::int32_t way = s + 1; way < ring.ranks; ++way)
        payload.blocks.push_back(source * ring.ranks + ring.along(source, way));
      return payload;
    });
  }
}

void ring_barrier(const Ring& ring, RoleBuilder& role) {
  for (std::int32_t s = 0; s < ring.ranks - 1; ++s) {
    role.begin_step(1);
    role.send(ring.next(), role.step(), Bytes(0), [] { return Payload{}; });
  }
}

// Into how many blocks a pipeline cuts what it passes on.
std::int32_t pipelined_blocks(const ScheduleRequest& request) {
  if (request.least_block == Bytes(0)) return request.ranks;
  const std::int64_t least = request.least_block.value;
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(request.bytes.value / least, 2, request.ranks));
}

// One member of a pipeline that passes blocks on: in step s it receives block s and, from the second step
// on, sends the block it received before. The first member has all blocks from the start.
void pipeline(const Ring& ring, std::int32_t blocks, RoleBuilder& role, std::int32_t place, bool reduce) {
  const bool first = place == 0, last = place == ring.ranks - 1;
  const std::int32_t behind = first ? 0 : 1;
  const std::int32_t steps = last ? blocks : blocks + behind;
  for (std::int32_t s = 0; s < steps; ++s) {
    const bool receives = !first && s < blocks;
    role.begin_step(receives ? 1 : 0, receives && reduce ? ring.block : Bytes(0), 1);
    const std::int32_t sent = s - behind;
    if (last || sent < 0) continue;
    role.send(ring.next(), sent, ring.block, [&] { return Payload{{sent}, reduce}; });
  }
}

Schedule pipelined(const ScheduleRequest& request, std::int32_t sign) {
  const std::int32_t blocks = pipelined_blocks(request);
  const Ring ring{request.ranks, sign, block_size(request.bytes, blocks)};
  const bool reduce = request.kind == CollectiveKind::reduce;
  // A broadcast starts at the root, a reduction ends there.
  const std::int32_t start = reduce ? ring.along(request.root, 1) : request.root;
  const auto place_of = [&](std::int32_t member) { return ring.hops(start, member); };
  const auto key_of = [&](std::int32_t member) {
    const std::int32_t place = place_of(member);
    return place == 0 ? 0 : place == ring.ranks - 1 ? 2 : 1;
  };
  return schedule_by_role(request, Addressing::shift, blocks, key_of,
                          [&](RoleBuilder& role, std::int32_t member) {
                            pipeline(ring, blocks, role, place_of(member), reduce);
                          });
}

// A bidirectional ring as one member sees it. Half h of block b is piece 2b + h of a ring of even size.
class TwoWays {
 public:
  explicit TwoWays(const ScheduleRequest& request)
      : ranks_(request.ranks),
        far_(request.ranks / 2),
        even_(request.ranks % 2 == 0),
        chunk_(request.chunk),
        half_(block_size(request.bytes, 2 * std::int64_t{request.ranks})),
        block_(even_ ? half_ * 2 : block_size(request.bytes, request.ranks)),
        whole_(block_size(request.bytes, request.ranks)) {}

  std::int32_t pieces() const { return even_ ? 2 * ranks_ : ranks_; }

  void reduce_scatter(RoleBuilder& role, std::int32_t member) const {
    for (std::int32_t s = 0; s < far_; ++s) {
      const std::int32_t left = far_ - s;  // hops to where the block belongs
      exchange(role, even_ && s == 0, true, along(member, left), along(member, -left));
    }
  }

  void all_gather(RoleBuilder& role, std::int32_t member) const {
    for (std::int32_t s = 0; s < far_; ++s)
      exchange(role, even_ && s == far_ - 1, false, along(member, -s), along(member, s));
  }

  void all_to_all(RoleBuilder& role, std::int32_t member) const {
    const std::int32_t near = (ranks_ - 1) / 2;
    for (std::int32_t s = 0; s < far_; ++s) {
      std::array<std::int32_t, 2> farthest = {near, near};
      if (even_) farthest[static_cast<std::size_t>(chunk_ % 2)] = far_;
      role.begin_step((farthest[0] > s ? 1 : 0) + (farthest[1] > s ? 1 : 0));
      for (const std::int32_t sign : {1, -1}) {
        const std::int32_t last = farthest[sign > 0 ? 0 : 1];
        if (last <= s) continue;
        role.send(along(0, sign), role.step(), whole_ * (last - s), [&] {
          Payload payload;
          const std::int32_t source = along(member, -sign * s);
          for (std::int32_t way = s + 1; way <= last; ++way)
            payload.blocks.push_back(source * ranks_ + along(source, sign * way));
          return payload;
        });
      }
    }
  }

  void barrier(RoleBuilder& role) const {
    for (std::int32_t s = 0; s < far_; ++s) {
      role.begin_step(ranks_ == 2 ? 1 : 2);
      role.send(1, role.step(), Bytes(0), [] { return Payload{}; });
      if (ranks_ > 2) role.send(ranks_ - 1, role.step(), Bytes(0), [] { return Payload{}; });
    }
  }

 private:
  std::int32_t along(std::int32_t member, std::int32_t hops) const {
    return wrap(std::int64_t{member} + hops, ranks_);
  }

  // A step in which `ahead` goes to the next and `behind` to the previous; of a block in halves the first
  // goes ahead and the second back, together where both are one.
  void exchange(RoleBuilder& role, bool halves, bool reduce, std::int32_t ahead, std::int32_t behind) const {
    const bool single = ranks_ == 2;
    const Bytes bytes = halves && !single ? half_ : block_;
    role.begin_step(single ? 1 : 2, reduce ? bytes * (single ? 1 : 2) : Bytes(0));
    const auto carried = [&](std::int32_t block, std::int32_t half) {
      if (!even_) return Payload{{block}, reduce};
      if (halves && !single) return Payload{{2 * block + half}, reduce};
      return Payload{{2 * block, 2 * block + 1}, reduce};
    };
    role.send(1, role.step(), bytes, [&] { return carried(ahead, 0); });
    if (!single) role.send(ranks_ - 1, role.step(), bytes, [&] { return carried(behind, 1); });
  }

  std::int32_t ranks_, far_;
  bool even_;
  std::int32_t chunk_;
  Bytes half_, block_, whole_;
};

Schedule make_bidirectional_ring(const ScheduleRequest& request, const ParameterValues&) {
  const TwoWays ways(request);
  switch (request.kind) {
    case CollectiveKind::all_reduce:
      return symmetric_schedule(request, Addressing::shift, ways.pieces(),
                                [&](RoleBuilder& role, std::int32_t member) {
                                  ways.reduce_scatter(role, member);
                                  ways.all_gather(role, member);
                                });
    case CollectiveKind::reduce_scatter:
      return symmetric_schedule(
          request, Addressing::shift, ways.pieces(),
          [&](RoleBuilder& role, std::int32_t member) { ways.reduce_scatter(role, member); });
    case CollectiveKind::all_gather:
      return symmetric_schedule(
          request, Addressing::shift, ways.pieces(),
          [&](RoleBuilder& role, std::int32_t member) { ways.all_gather(role, member); });
    case CollectiveKind::all_to_all:
      return symmetric_schedule(
          request, Addressing::shift, request.ranks,
          [&](RoleBuilder& role, std::int32_t member) { ways.all_to_all(role, member); });
    case CollectiveKind::barrier:
      return symmetric_schedule(request, Addressing::shift, request.ranks,
                                [&](RoleBuilder& role, std::int32_t) { ways.barrier(role); });
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
      break;
  }
  return pipelined(request, request.chunk % 2 == 0 ? 1 : -1);
}

Schedule make_ring(const ScheduleRequest& request, const ParameterValues& values) {
  const bool clockwise = values.choice("direction") == "clockwise";
  const Ring ring{request.ranks, clockwise ? 1 : -1, block_size(request.bytes, request.ranks)};
  if (request.kind == CollectiveKind::broadcast || request.kind == CollectiveKind::reduce)
    return pipelined(request, ring.sign);
  const auto describe = [&](RoleBuilder& role, std::int32_t member) {
    switch (request.kind) {
      case CollectiveKind::all_reduce:
        ring_reduce_scatter(ring, role, member);
        return ring_all_gather(ring, role, member);
      case CollectiveKind::reduce_scatter:
        return ring_reduce_scatter(ring, role, member);
      case CollectiveKind::all_gather:
        return ring_all_gather(ring, role, member);
      case CollectiveKind::all_to_all:
        return ring_all_to_all(ring, role, member);
      case CollectiveKind::barrier:
        return ring_barrier(ring, role);
      case CollectiveKind::broadcast:
      case CollectiveKind::reduce:
        return;
    }
  };
  return symmetric_schedule(request, Addressing::shift, ring.ranks, describe);
}

constexpr std::array kRingParameters = {ParameterInfo{"direction", ParameterType::choice, "clockwise",
                                                      "the way around; clockwise is towards higher positions",
                                                      "clockwise|counter-clockwise"}};

}  // namespace

AlgorithmInfo ring_algorithm() {
  return {"ring", "neighbour to neighbour, least bytes; time grows with the number of ranks", kRingParameters,
          kCollectiveKinds, make_ring};
}

AlgorithmInfo bidirectional_ring_algorithm() {
  return {"bidirectional-ring",
          "both ways round at once, each block the shorter one; for Rings",
          {},
          kCollectiveKinds,
          make_bidirectional_ring};
}

}  // namespace armilla
