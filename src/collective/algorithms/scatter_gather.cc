// Scatter-gather: the root cuts what it has into n-1 blocks and sends one to each other member, who passes it
// on to all the rest; a reduction goes the other way, each member adding up its block for the root.
//
//   broadcast   scatter, then all-gather among all but the root: 2 (alpha + beta C/(n-1)); reduce likewise,
//               backwards
// The first messages leave on the root's links, the second on all others, so that chunks, one behind the
// other, keep every link between two members busy with C/(n-1): as the n-1 rings over a full mesh that share
// no link, by which RCCL uses them all. Where members have one port each it is the root's that is busy, with
// C. (Van de Geijn's broadcast is of this kind: Barnett et al., "Interprocessor Collective Communication
// Library", SHPCC 1994; there the root takes part in the all-gather.) Size of a schedule: O(n^2), one
// role per member, for at most kMaxScatterGatherRanks.
#include <fmt/format.h>

#include <array>

#include "base/error.h"
#include "collective/algorithms/algorithms.h"
#include "collective/algorithms/schedule_builder.h"

namespace armilla {
namespace {

constexpr std::array kRootedKinds = {CollectiveKind::broadcast, CollectiveKind::reduce};

// Members are told by how far they stand behind the root: 1 to n-1, of whom each has the block before.
struct FromRoot {
  std::int32_t ranks, root;
  Bytes block;

  std::int32_t place(std::int32_t member) const { return wrap(std::int64_t{member} - root, ranks); }
};

// Calls `send_to` with what must be added to a member's position to get every other one's but the root's.
template <class SendTo>
void for_each_other(const FromRoot& group, std::int32_t place, SendTo&& send_to) {
  for (std::int32_t distance = 1; distance < group.ranks; ++distance) {
    if (const std::int32_t to = wrap(std::int64_t{place} + distance, group.ranks); to != 0)
      send_to(distance, to);
  }
}

void broadcast_in_pieces(const FromRoot& group, RoleBuilder& role, std::int32_t member) {
  const std::int32_t place = group.place(member);
  if (place == 0) {
    role.begin_step(0);
    for (std::int32_t to = 1; to < group.ranks; ++to)
      role.send(to, 0, group.block, [&] { return Payload{{to - 1}, false}; });
    return;
  }
  role.begin_step(1);
  role.begin_step(group.ranks - 2);
  for_each_other(group, place, [&](std::int32_t distance, std::int32_t) {
    role.send(distance, 1, group.block, [&] { return Payload{{place - 1}, false}; });
  });
}

void reduce_in_pieces(const FromRoot& group, RoleBuilder& role, std::int32_t member) {
  const std::int32_t place = group.place(member), others = group.ranks - 2;
  if (place == 0) return role.begin_step(group.ranks - 1, group.block * (group.ranks - 1));
  role.begin_step(others, group.block * others);
  for_each_other(group, place, [&](std::int32_t distance, std::int32_t to) {
    role.send(distance, 0, group.block, [&] { return Payload{{to - 1}, true}; });
  });
  role.begin_step(0);
  role.send(group.ranks - place, 0, group.block, [&] { return Payload{{place - 1}, true}; });
}

Schedule make_scatter_gather(const ScheduleRequest& request, const ParameterValues&) {
  if (request.ranks > kMaxScatterGatherRanks) {
    throw Error(
        "collective",
        fmt::format("scatter-gather over {} ranks: at most {}", request.ranks, kMaxScatterGatherRanks),
        "use ring or halving-doubling");
  }
  const FromRoot group{request.ranks, request.root, block_size(request.bytes, request.ranks - 1)};
  const auto key_of = [&](std::int32_t member) { return group.place(member); };
  return schedule_by_role(
      request, Addressing::shift, request.ranks - 1, key_of, [&](RoleBuilder& role, std::int32_t member) {
        request.kind == CollectiveKind::broadcast ? broadcast_in_pieces(group, role, member)
                                                  : reduce_in_pieces(group, role, member);
      });
}

}  // namespace

AlgorithmInfo scatter_gather_algorithm() {
  return {"scatter-gather",
          "the root sends a piece to each, who passes it on to all; for fully connected ranks",
          {},
          kRootedKinds,
          make_scatter_gather};
}

}  // namespace armilla
