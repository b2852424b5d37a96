// Ring: every member talks to its next neighbour only, all of them in lockstep.
//
//   reduce-scatter  n-1 steps of C/n: block b starts behind member b and collects contributions on its way
//   all-gather      n-1 steps of C/n: every block travels once around
//   all-reduce      both, 2(n-1)(alpha + beta C/n)           (Patarasuk and Yuan 2009)
//   all-to-all      n-1 steps; in step s a member passes on the n-1-s blocks that have further to go, as one
//                   message: (n-1) alpha + n(n-1)/2 beta C/n. (ASTRA-sim sends each block by itself, which
//                   makes n(n-1)/2 alpha of the first term.)
//   broadcast       pipelined in n blocks, one in flight per link: 2(n-1)(alpha + beta C/n); reduce likewise,
//                   towards the root
//   barrier         n-1 steps of 0 bytes, after which everyone has heard of everyone
// Size of a schedule: O(n), one role (broadcast and reduce: three).
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

void reduce_scatter(const Ring& ring, RoleBuilder& role, std::int32_t member) {
  for (std::int32_t s = 0; s < ring.ranks - 1; ++s) {
    role.begin_step(1, ring.block);
    role.send(ring.next(), role.step(), ring.block, [&] {
      return Payload{{ring.along(member, -1 - s)}, true};
    });
  }
}

void all_gather(const Ring& ring, RoleBuilder& role, std::int32_t member) {
  for (std::int32_t s = 0; s < ring.ranks - 1; ++s) {
    role.begin_step(1);
    role.send(ring.next(), role.step(), ring.block, [&] { return Payload{{ring.along(member, -s)}, false}; });
  }
}

void all_to_all(const Ring& ring, RoleBuilder& role, std::int32_t member) {
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

void barrier(const Ring& ring, RoleBuilder& role) {
  for (std::int32_t s = 0; s < ring.ranks - 1; ++s) {
    role.begin_step(1);
    role.send(ring.next(), role.step(), Bytes(0), [] { return Payload{}; });
  }
}

// One member of a pipeline that passes n blocks on: in step s it receives block s and, from the second step
// on, sends the block it received before. The first member has all blocks from the start.
void pipeline(const Ring& ring, RoleBuilder& role, std::int32_t place, bool reduce) {
  const bool first = place == 0, last = place == ring.ranks - 1;
  const std::int32_t behind = first ? 0 : 1;
  const std::int32_t steps = last ? ring.ranks : ring.ranks + behind;
  for (std::int32_t s = 0; s < steps; ++s) {
    const bool receives = !first && s < ring.ranks;
    role.begin_step(receives ? 1 : 0, receives && reduce ? ring.block : Bytes(0), 1);
    const std::int32_t sent = s - behind;
    if (last || sent < 0) continue;
    role.send(ring.next(), sent, ring.block, [&] { return Payload{{sent}, reduce}; });
  }
}

Schedule pipelined(const Ring& ring, const ScheduleRequest& request) {
  const bool reduce = request.kind == CollectiveKind::reduce;
  // A broadcast starts at the root, a reduction ends there.
  const std::int32_t start = reduce ? ring.along(request.root, 1) : request.root;
  const auto place_of = [&](std::int32_t member) { return ring.hops(start, member); };
  const auto key_of = [&](std::int32_t member) {
    const std::int32_t place = place_of(member);
    return place == 0 ? 0 : place == ring.ranks - 1 ? 2 : 1;
  };
  return schedule_by_role(
      request, Addressing::shift, ring.ranks, key_of,
      [&](RoleBuilder& role, std::int32_t member) { pipeline(ring, role, place_of(member), reduce); });
}

Schedule make_ring(const ScheduleRequest& request, const ParameterValues& values) {
  const bool clockwise = values.choice("direction") == "clockwise";
  const Ring ring{request.ranks, clockwise ? 1 : -1, block_size(request.bytes, request.ranks)};
  if (request.kind == CollectiveKind::broadcast || request.kind == CollectiveKind::reduce)
    return pipelined(ring, request);
  const auto describe = [&](RoleBuilder& role, std::int32_t member) {
    switch (request.kind) {
      case CollectiveKind::all_reduce:
        reduce_scatter(ring, role, member);
        return all_gather(ring, role, member);
      case CollectiveKind::reduce_scatter:
        return reduce_scatter(ring, role, member);
      case CollectiveKind::all_gather:
        return all_gather(ring, role, member);
      case CollectiveKind::all_to_all:
        return all_to_all(ring, role, member);
      case CollectiveKind::barrier:
        return barrier(ring, role);
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

}  // namespace armilla
