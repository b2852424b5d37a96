// For tests: plays a schedule on a network in which a message costs alpha + bytes beta and ports never block,
// the model in which the literature states the cost of algorithms. Exact, in integers. Written from the step
// semantics of collective/schedule.h alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <stdexcept>
#include <vector>

#include "collective/algorithm.h"

namespace armilla {

inline constexpr std::int64_t kAlpha = 1'000'000, kBeta = 7;
inline constexpr std::int64_t kBytes = 1'000'003;  // of a collective; divided by nothing

inline std::int64_t message_time(Bytes bytes) {
  return kAlpha + kBeta * bytes.value;
}

class AlphaBetaRun {
 public:
  explicit AlphaBetaRun(const Schedule& schedule)
      : schedule_(schedule), members_(static_cast<std::size_t>(schedule.ranks)) {
    for (std::int32_t m = 0; m < schedule.ranks; ++m) {
      members_[static_cast<std::size_t>(m)].arrivals.resize(schedule.of(m).steps.size());
      work_.push_back(m);
    }
    while (!work_.empty()) {
      const std::int32_t m = work_.front();
      work_.pop_front();
      while (advance(m)) continue;
    }
    for (std::int32_t m = 0; m < schedule.ranks; ++m) {
      const Member& member = members_[static_cast<std::size_t>(m)];
      if (member.step < schedule.of(m).steps.size()) throw std::runtime_error("a member never finishes");
      finish_ = std::max(finish_, member.now);
    }
  }

  std::int64_t finish() const { return finish_; }

 private:
  struct Member {
    std::size_t step = 0;
    bool entered = false;
    std::int64_t now = 0, sends_done = 0;
    std::vector<std::vector<std::int64_t>> arrivals;
  };

  void send_all(std::int32_t m, const RankSchedule& role, const Step& step) {
    Member& member = members_[static_cast<std::size_t>(m)];
    member.entered = true;
    member.sends_done = member.now;
    std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> in_flight;
    for (std::uint32_t i = step.first_send; i < step.end_send; ++i) {
      std::int64_t start = member.now;
      if (step.window > 0 && in_flight.size() == static_cast<std::size_t>(step.window)) {
        start = in_flight.top();
        in_flight.pop();
      }
      const std::int64_t delivered = start + message_time(role.sends[i].bytes);
      in_flight.push(delivered);
      member.sends_done = std::max(member.sends_done, step.window > 0 ? delivered : start);
      const std::int32_t peer = schedule_.peer(m, role.sends[i]);
      members_.at(static_cast<std::size_t>(peer))
          .arrivals.at(static_cast<std::size_t>(role.sends[i].step))
          .push_back(delivered);
      work_.push_back(peer);
    }
  }

  bool advance(std::int32_t m) {
    Member& member = members_[static_cast<std::size_t>(m)];
    const RankSchedule& role = schedule_.of(m);
    if (member.step == role.steps.size()) return false;
    const Step& step = role.steps[member.step];
    if (!member.entered) send_all(m, role, step);
    const std::vector<std::int64_t>& arrivals = member.arrivals[member.step];
    if (arrivals.size() < static_cast<std::size_t>(step.receives)) return false;
    member.now = member.sends_done;
    for (const std::int64_t arrival : arrivals) member.now = std::max(member.now, arrival);
    ++member.step;
    member.entered = false;
    return true;
  }

  const Schedule& schedule_;
  std::vector<Member> members_;
  std::deque<std::int32_t> work_;
  std::int64_t finish_ = 0;
};

inline Schedule schedule_of(const char* algorithm, CollectiveKind kind, std::int32_t ranks,
                            std::int64_t bytes, std::int32_t root = 0) {
  return Algorithm(algorithm, "test").schedule({kind, ranks, Bytes(bytes), root, 0, false});
}

inline std::int64_t finish_time(const Schedule& schedule) {
  return AlphaBetaRun(schedule).finish();
}

struct Traffic {
  std::int64_t messages = 0, bytes = 0;
  std::size_t steps = 0;
  friend bool operator==(const Traffic&, const Traffic&) = default;
};

inline Traffic traffic_of(const Schedule& schedule, std::int32_t member) {
  const RankSchedule& role = schedule.of(member);
  Traffic traffic{0, 0, role.steps.size()};
  for (const Transfer& transfer : role.sends) {
    ++traffic.messages;
    traffic.bytes += transfer.bytes.value;
  }
  return traffic;
}

inline std::int64_t total_bytes(const Schedule& schedule) {
  std::int64_t sum = 0;
  for (std::int32_t m = 0; m < schedule.ranks; ++m) sum += traffic_of(schedule, m).bytes;
  return sum;
}

}  // namespace armilla
