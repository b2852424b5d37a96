// What the algorithms share: schedules built step by step, compact or with payloads from the same code.
//
// An algorithm describes one member at a time. Members that would get equal descriptions share a role in the
// compact form; with payloads every member is described by itself, since payloads name absolute blocks.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "base/checked.h"
#include "collective/algorithm.h"

namespace armilla {

// ceil(bytes / pieces).
inline Bytes block_size(Bytes bytes, std::int64_t pieces) {
  return Bytes(ceil_divide(bytes.value, pieces));
}

// position modulo ranks; position may be negative.
inline std::int32_t wrap(std::int64_t position, std::int32_t ranks) {
  const std::int64_t rest = position % ranks;
  return static_cast<std::int32_t>(rest < 0 ? rest + ranks : rest);
}

class RoleBuilder {
 public:
  explicit RoleBuilder(bool payloads) : payloads_(payloads) {}

  void begin_step(std::int32_t receives, Bytes reduced = {}, std::int32_t window = 0) {
    const auto sends = static_cast<std::uint32_t>(role_.sends.size());
    role_.steps.push_back({sends, sends, receives, window, reduced});
  }
  // Whose messages begin or end at the switch.
  void begin_leg(Leg leg, std::int32_t receives, std::int32_t window = 0) {
    begin_step(receives, {}, window);
    role_.steps.back().leg = leg;
  }
  // Index of the step begun last; in lockstep algorithms also the receiver's.
  std::int32_t step() const { return static_cast<std::int32_t>(role_.steps.size()) - 1; }

  // Adds a message to the current step; `carried` makes its Payload.
  template <class Carried>
  void send(std::int32_t peer, std::int32_t receiver_step, Bytes bytes, Carried&& carried) {
    role_.sends.push_back({peer, receiver_step, bytes});
    if (payloads_) role_.payloads.push_back(carried());
    ++role_.steps.back().end_send;
  }

  // Who sends last is done when that has arrived, not when it has begun to leave: its kernel and its buffer
  // are in use until then. Trimmed: a large group keeps one of these per member.
  RankSchedule take() {
    if (!role_.steps.empty() && role_.steps.back().receives == 0 && role_.steps.back().window == 0) {
      const Step& last = role_.steps.back();
      role_.steps.back().window = static_cast<std::int32_t>(last.end_send - last.first_send);
    }
    role_.steps.shrink_to_fit();
    role_.sends.shrink_to_fit();
    return std::move(role_);
  }

 private:
  RankSchedule role_;
  bool payloads_;
};

// Members that `key_of` maps to the same number get one role, made by `describe(builder, member)`.
template <class KeyOf, class Describe>
Schedule schedule_by_role(const ScheduleRequest& request, Addressing addressing, std::int32_t pieces,
                          KeyOf&& key_of, Describe&& describe) {
  Schedule schedule{request.ranks, addressing, pieces, {}, {}};
  schedule.role_of.reserve(static_cast<std::size_t>(request.ranks));
  std::map<std::int64_t, std::uint32_t> role_of_key;
  for (std::int32_t member = 0; member < request.ranks; ++member) {
    const std::int64_t key = request.payloads ? member : key_of(member);
    const auto [role, is_new] =
        role_of_key.try_emplace(key, static_cast<std::uint32_t>(schedule.roles.size()));
    if (is_new) {
      RoleBuilder builder(request.payloads);
      describe(builder, member);
      schedule.roles.push_back(builder.take());
    }
    schedule.role_of.push_back(role->second);
  }
  return schedule;
}

// All members do the same from where they stand; every message counts in the step in which it is sent.
template <class Describe>
Schedule symmetric_schedule(const ScheduleRequest& request, Addressing addressing, std::int32_t pieces,
                            Describe&& describe) {
  if (request.payloads) {
    return schedule_by_role(
        request, addressing, pieces, [](std::int32_t member) { return member; }, describe);
  }
  RoleBuilder builder(false);
  describe(builder, 0);
  Schedule schedule{request.ranks, addressing, pieces, {}, {}};
  schedule.roles.push_back(builder.take());
  return schedule;
}

}  // namespace armilla
