// Direct: every member sends straight to every other one, in the order of the next position, the one after
// it, and so on, so that no receiver is everyone's first. At most `window` messages of a member are in
// flight.
//
//   reduce-scatter, all-gather, all-to-all   one step of n-1 messages of C/n: alpha + beta C/n
//   all-reduce                               reduce-scatter, then all-gather: twice that
//   broadcast                                n-1 messages of C from the root: alpha + beta C; reduce: to it
//   barrier                                  one step of n-1 messages of 0 bytes
// A window of w makes ceil((n-1)/w) times as much of each (the ports of a real network do it anyway, and
// more gradually). As "direct" of ASTRA-sim 1.0 and 2.0. Size of a schedule: O(n), one role (broadcast and
// reduce: two).
#include <algorithm>
#include <array>

#include "base/checked.h"
#include "collective/algorithms/algorithms.h"
#include "collective/algorithms/schedule_builder.h"

namespace armilla {
namespace {

struct Direct {
  std::int32_t ranks;
  std::int32_t window;
  Bytes block;
};

// A step in which everyone sends something to everyone else; `carried(to)` says what.
template <class Carried>
void exchange(const Direct& direct, RoleBuilder& role, std::int32_t member, Bytes bytes, bool reduce,
              Carried&& carried) {
  const std::int32_t others = direct.ranks - 1;
  role.begin_step(others, reduce ? bytes * others : Bytes(0), direct.window);
  for (std::int32_t distance = 1; distance <= others; ++distance) {
    role.send(distance, role.step(), bytes, [&] {
      return Payload{carried(wrap(std::int64_t{member} + distance, direct.ranks)), reduce};
    });
  }
}

using Blocks = std::vector<std::int32_t>;

void direct_reduce_scatter(const Direct& direct, RoleBuilder& role, std::int32_t member) {
  exchange(direct, role, member, direct.block, true, [](std::int32_t to) { return Blocks{to}; });
}

void direct_all_gather(const Direct& direct, RoleBuilder& role, std::int32_t member) {
  exchange(direct, role, member, direct.block, false, [&](std::int32_t) { return Blocks{member}; });
}

void direct_all_to_all(const Direct& direct, RoleBuilder& role, std::int32_t member) {
  exchange(direct, role, member, direct.block, false,
           [&](std::int32_t to) { return Blocks{member * direct.ranks + to}; });
}

void direct_barrier(const Direct& direct, RoleBuilder& role, std::int32_t member) {
  exchange(direct, role, member, Bytes(0), false, [](std::int32_t) { return Blocks{}; });
}

Schedule broadcast(const Direct& direct, const ScheduleRequest& request) {
  const auto is_root = [&](std::int32_t member) { return member == request.root; };
  return schedule_by_role(request, Addressing::shift, 1, is_root,
                          [&](RoleBuilder& role, std::int32_t member) {
                            role.begin_step(is_root(member) ? 0 : 1, Bytes(0), direct.window);
                            if (!is_root(member)) return;
                            for (std::int32_t distance = 1; distance < direct.ranks; ++distance)
                              role.send(distance, 0, request.bytes, [] { return Payload{{0}, false}; });
                          });
}

Schedule reduce(const Direct& direct, const ScheduleRequest& request) {
  const auto is_root = [&](std::int32_t member) { return member == request.root; };
  const std::int32_t others = direct.ranks - 1;
  const Bytes combined(checked_multiply(request.bytes.value, others, "direct reduce"));
  return schedule_by_role(request, Addressing::absolute, 1, is_root,
                          [&](RoleBuilder& role, std::int32_t member) {
                            if (is_root(member)) return role.begin_step(others, combined);
                            role.begin_step(0);
                            role.send(request.root, 0, request.bytes, [] { return Payload{{0}, true}; });
                          });
}

Schedule make_direct(const ScheduleRequest& request, const ParameterValues& values) {
  const std::int64_t others = request.ranks - 1;
  const std::int64_t window = values.is_set("window") ? values.count("window") : others;
  // A window that holds everything is none at all.
  const Direct direct{request.ranks, window < others ? static_cast<std::int32_t>(window) : 0,
                      block_size(request.bytes, request.ranks)};
  if (request.kind == CollectiveKind::broadcast) return broadcast(direct, request);
  if (request.kind == CollectiveKind::reduce) return reduce(direct, request);
  const auto describe = [&](RoleBuilder& role, std::int32_t member) {
    switch (request.kind) {
      case CollectiveKind::all_reduce:
        direct_reduce_scatter(direct, role, member);
        return direct_all_gather(direct, role, member);
      case CollectiveKind::reduce_scatter:
        return direct_reduce_scatter(direct, role, member);
      case CollectiveKind::all_gather:
        return direct_all_gather(direct, role, member);
      case CollectiveKind::all_to_all:
        return direct_all_to_all(direct, role, member);
      case CollectiveKind::barrier:
        return direct_barrier(direct, role, member);
      case CollectiveKind::broadcast:
      case CollectiveKind::reduce:
        return;
    }
  };
  return symmetric_schedule(request, Addressing::shift, direct.ranks, describe);
}

constexpr std::array kDirectParameters = {ParameterInfo{
    "window", ParameterType::count, "", "messages of a rank in flight at once; all by default"}};

}  // namespace

AlgorithmInfo direct_algorithm() {
  return {"direct", "everyone to everyone at once, fewest steps; for fully connected ranks",
          kDirectParameters, kCollectiveKinds, make_direct};
}

}  // namespace armilla
