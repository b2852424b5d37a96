// Switches that reduce what is sent to them and multicast it: a member sends its data once however many there
// are, and receives only the result. For Switches, whose messages may begin and end there (Leg).
//
// A contribution of C bytes goes up with a word to every other member behind it, of 0 bytes; who has
// the words of all others, and knows its own to be up, may ask the switch for the sum. With alpha per
// link, up or down:
//
//   sharp       as the switches of InfiniBand do it (Graham et al., "Scalable Hierarchical Aggregation
//               Protocol (SHARP)", COM-HPC 2016), n ranks:
//     all-reduce       C up, C down: 2 alpha + 2 beta C; chunks go up while others come down
//     reduce-scatter   C up, C/n down;   all-gather: C/n up, (n-1) C/n down
//     broadcast        C up once, C down to each;   reduce: C up, C down to the root
//     barrier          2 alpha
//   nvls        as NCCL on NVSwitch (src/device/all_reduce.h, NVLS): a member reads the sum of its own C/n
//               out of the switch, which asks everyone for it, and writes it to all: all-reduce is the
//               reduce-scatter, then the all-gather: (1 + 1/n) C up, C down
//   multicast   all-gather and broadcast alone, for switches that do not add
// Over trees of switches (network/routing/switch_trees.h) the same, with the latency of the way to the root
// for alpha. For an all-reduce or a barrier two members hear of all, and ask for the sum on behalf of the
// others: 3 n messages instead of n^2.
// Size of a schedule: O(n), one role (broadcast, reduce, trees: three). Not modelled: what a switch can hold,
// how fast it adds.
#include <array>
#include <numeric>

#include "collective/algorithms/algorithms.h"
#include "collective/algorithms/schedule_builder.h"

namespace armilla {
namespace {

Payload pieces_of(std::int32_t count, bool reduce) {
  Payload payload{std::vector<std::int32_t>(static_cast<std::size_t>(count)), reduce};
  std::iota(payload.blocks.begin(), payload.blocks.end(), 0);
  return payload;
}

Payload no_pieces() {
  return {};
}

// The whole buffer goes up, in `pieces`; complete once everyone's has.
void send_up(RoleBuilder& role, std::int32_t ranks, std::int32_t pieces, Bytes bytes) {
  role.begin_leg(Leg::to_switch, ranks - 1, ranks - 1);
  role.send(1, role.step(), bytes, [&] { return pieces_of(pieces, true); });
  for (std::int32_t distance = 2; distance < ranks; ++distance)
    role.send(distance, role.step(), Bytes(0), no_pieces);
}

// The sum of every member's own piece comes down to it, on behalf of the one before it.
void send_scattered_down(RoleBuilder& role, std::int32_t ranks, std::int32_t member, Bytes block) {
  role.begin_leg(Leg::from_switch, 1);
  role.send(1, role.step(), block, [&] { return Payload{{(member + 1) % ranks}, false}; });
}

// Every member's own piece goes up, and down to all others.
void send_to_all(RoleBuilder& role, std::int32_t ranks, std::int32_t member, Bytes block) {
  const auto own = [&] { return Payload{{member}, false}; };
  role.begin_leg(Leg::to_switch, 1, 1);
  role.send(1, role.step(), block, own);
  role.begin_leg(Leg::from_switch, ranks - 1);
  for (std::int32_t distance = 1; distance < ranks; ++distance) role.send(distance, role.step(), block, own);
}

void meet(RoleBuilder& role, std::int32_t ranks) {
  send_up(role, ranks, 0, Bytes(0));
  role.begin_leg(Leg::from_switch, 1);
  role.send(1, role.step(), Bytes(0), no_pieces);
}

// Places from the root on: 0 the root, 1 the member that also hears when the switch has the data.
Schedule broadcast_from_switch(const ScheduleRequest& request) {
  const auto place_of = [&](std::int32_t member) {
    return std::min(2, wrap(std::int64_t{member} - request.root, request.ranks));
  };
  const auto data = [] { return Payload{{0}, false}; };
  return schedule_by_role(request, Addressing::shift, 1, place_of,
                          [&](RoleBuilder& role, std::int32_t member) {
                            const std::int32_t place = place_of(member);
                            if (place > 0) return role.begin_step(place == 1 ? 2 : 1);
                            role.begin_leg(Leg::to_switch, 0, 1);
                            role.send(1, 0, request.bytes, data);
                            role.begin_leg(Leg::from_switch, 0);
                            for (std::int32_t distance = 1; distance < request.ranks; ++distance)
                              role.send(distance, 0, request.bytes, data);
                          });
}

// The member behind the root hears when the switch has the data, and asks for the sum.
Schedule reduce_in_switch(const ScheduleRequest& request) {
  const std::int32_t asks = (request.root + 1) % request.ranks;
  const auto place_of = [&](std::int32_t member) {
    return std::min(2, wrap(std::int64_t{member} - request.root, request.ranks));
  };
  const auto data = [] { return Payload{{0}, true}; };
  return schedule_by_role(request, Addressing::absolute, 1, place_of,
                          [&](RoleBuilder& role, std::int32_t member) {
                            const std::int32_t place = place_of(member);
                            if (place != 1) {
                              role.begin_leg(Leg::to_switch, 0);
                              role.send(asks, 0, request.bytes, data);
                              if (place == 0) role.begin_step(2);
                              return;
                            }
                            role.begin_leg(Leg::to_switch, request.ranks - 1, 1);
                            role.send(request.root, 1, request.bytes, data);
                            role.begin_leg(Leg::from_switch, 0);
                            role.send(request.root, 1, request.bytes, [] { return Payload{{0}, false}; });
                          });
}

// Two members hear when all contributions are in: the first asks for the sum on behalf of all others, the
// second on behalf of the first.
Schedule meet_at_two(const ScheduleRequest& request) {
  const bool carries = request.kind != CollectiveKind::barrier;
  const Bytes bytes = carries ? request.bytes : Bytes(0);
  const auto given = [&] { return pieces_of(carries ? 1 : 0, true); };
  const auto sum = [&] { return pieces_of(carries ? 1 : 0, false); };
  const auto place_of = [](std::int32_t member) { return std::min(2, member); };
  return schedule_by_role(request, Addressing::absolute, 1, place_of,
                          [&](RoleBuilder& role, std::int32_t member) {
                            const std::int32_t place = place_of(member);
                            const std::int32_t heard = place < 2 ? request.ranks - 1 : 0;
                            role.begin_leg(Leg::to_switch, heard, heard);
                            role.send(place == 0 ? 1 : 0, 0, bytes, given);
                            if (place == 2) {
                              role.send(1, 0, Bytes(0), no_pieces);
                              return role.begin_step(1);
                            }
                            role.begin_leg(Leg::from_switch, 1);
                            if (place == 1) return role.send(0, 1, bytes, sum);
                            for (std::int32_t other = 1; other < request.ranks; ++other)
                              role.send(other, 1, bytes, sum);
                          });
}

// What all members do alike; `scatters`: an all-reduce goes by pieces of one member each.
Schedule make_in_switch(const ScheduleRequest& request, bool scatters) {
  if (request.kind == CollectiveKind::broadcast) return broadcast_from_switch(request);
  if (request.kind == CollectiveKind::reduce) return reduce_in_switch(request);
  const bool meets =
      request.kind == CollectiveKind::barrier || (request.kind == CollectiveKind::all_reduce && !scatters);
  if (request.tree && meets) return meet_at_two(request);
  const std::int32_t n = request.ranks;
  const Bytes block = block_size(request.bytes, n);
  const bool whole = request.kind == CollectiveKind::all_reduce && !scatters;
  return symmetric_schedule(request, Addressing::shift, whole ? 1 : n,
                            [&](RoleBuilder& role, std::int32_t member) {
                              if (request.kind == CollectiveKind::barrier) return meet(role, n);
                              if (whole) {
                                send_up(role, n, 1, request.bytes);
                                role.begin_leg(Leg::from_switch, 1);
                                role.send(1, role.step(), request.bytes, [] { return Payload{{0}, false}; });
                                return;
                              }
                              if (request.kind != CollectiveKind::all_gather) {
                                send_up(role, n, n, block * n);
                                send_scattered_down(role, n, member, block);
                              }
                              if (request.kind != CollectiveKind::reduce_scatter)
                                send_to_all(role, n, member, block);
                            });
}

constexpr std::array kSharpKinds = {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter,
                                    CollectiveKind::all_gather, CollectiveKind::broadcast,
                                    CollectiveKind::reduce,     CollectiveKind::barrier};
constexpr std::array kNvlsKinds = {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter,
                                   CollectiveKind::all_gather};
constexpr std::array kMulticastKinds = {CollectiveKind::all_gather, CollectiveKind::broadcast};

Schedule make_sharp(const ScheduleRequest& request, const ParameterValues&) {
  return make_in_switch(request, false);
}

Schedule make_nvls(const ScheduleRequest& request, const ParameterValues&) {
  return make_in_switch(request, true);
}

}  // namespace

AlgorithmInfo nvls_algorithm() {
  return {"nvls",    "NVSwitch adds up and multicasts, each rank for its share; for Switches",
          {},        kNvlsKinds,
          make_nvls, true};
}

AlgorithmInfo sharp_algorithm() {
  return {"sharp",
          "switches add up what all send once, and multicast it; for Switches, and on flow trees of them",
          {},
          kSharpKinds,
          make_sharp,
          true};
}

AlgorithmInfo multicast_algorithm() {
  return {"multicast", "the switch copies what is sent to it once; for Switches",
          {},          kMulticastKinds,
          make_sharp,  true};
}

}  // namespace armilla
