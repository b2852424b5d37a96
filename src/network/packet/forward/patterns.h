// Contention patterns that come again: what the flows of a set did is told once more instead of being played.
// After the memoization of Long et al. ("Supercharging packet-level network simulation of large model
// training via memoization and fast-forwarding", NSDI 2026); docs/models/fast_forward.md has the rules.
//
// Connections that share a port, directly or over others, are a set. Between two messages that are posted to
// it nothing from outside has an influence on it: what it does follows from its state, which is written down
// in words that do not depend on when it is, how far its flows have come, or which of several sets alike it
// is. A set in a state that another one, or itself earlier, has been in does not move. It tells of its
// messages' arrivals at the times noted then, and takes over the state noted when the next message was posted
// there. If a message is posted to it at another moment, it is played from where it was.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "network/packet/forward/fast_forward.h"
#include "network/packet/forward/pattern_states.h"

namespace armilla::packets {

class FastForward::Patterns {
 public:
  explicit Patterns(FastForward& forward);

  // A set of connections is about to become a part of another.
  void join(std::uint32_t into, std::uint32_t from);
  void connected(std::uint32_t flow);
  // Something is about to change from outside, such as by a message, on the flow's ports, after all else that
  // happens at this nanosecond.
  void touch(std::uint32_t flow);
  // One more message of the flow has arrived as a whole.
  void arrived(std::uint32_t flow);
  // What happens there now is left to chance, or depends on other sets: it is not to be told again.
  void disturb(std::uint32_t port);
  // If its set stands still it is to be played.
  void wake_port(std::uint32_t port);
  // The time of a set has come; kNone: that of those touched.
  void go_on(std::uint32_t set, std::uint32_t stamp);
  // Its set may come back to where it is, but further on, after each such period: then it stands still in
  // whole ones, until it is time for the end of a message. That is looked at twice, a period apart.
  void expect_again(std::uint32_t flow, std::int64_t period_ns);
  void compare(std::uint32_t set, std::uint32_t stamp);
  // Plays events from where they were held, in a wheel of their own.
  void catch_up(std::int64_t begin_ns, const std::vector<HeldEvent>& held, std::int64_t until);
  bool is_still(std::uint32_t flow) const {
    return sets_[connections_.sets().of_connection(flow)].mode == Set::Mode::follows;
  }

 private:
  // From a state on, until something came from outside.
  struct Pattern {
    struct Arrival {
      std::int64_t ns = 0;  // since the state
      std::uint32_t flow = 0;
    };
    struct Sent {
      std::int64_t bytes = 0, busy_ps = 0, frames = 0;
    };
    bool growing = true;
    bool useless = false;  // disturbed, or quicker played than told
    std::uint32_t leader = kNone;
    std::vector<std::uint32_t> followers;  // while it grows
    std::int64_t ns = 0;
    std::vector<Arrival> arrivals;
    State end;
    std::vector<Sent> sent;  // by port; while it grows until its beginning
    std::size_t words = 0;   // of the state that it begins with
  };
  // Whether a set is where it was a period before.
  struct Trial {
    std::int64_t period_ns = 0;  // 0: there is none
    std::uint32_t stamp = 0;
    State state;  // at its first end, where messages end left out
    std::vector<std::uint64_t> bases;
    std::uint32_t failed = 0, rests = 0;  // in a row; so many are left out
  };
  struct Set {
    enum class Mode : std::uint8_t { gone, played, leads, follows };
    std::uint32_t number = kNone;  // of the connections' sets
    Mode mode = Mode::played;
    bool fit = true;      // at all
    bool sorted = false;  // flows and ports are in their order, and `structure` is known
    bool touched = false, candidate = false;
    std::uint64_t structure = 0;
    bool costly = false;  // its last pattern, to write down beside playing it
    std::uint32_t misses = 0, skips = 0;
    Pattern* pattern = nullptr;
    std::int64_t begin_ns = 0;
    std::vector<std::uint64_t> bases;  // by flow: what was acknowledged then
    std::vector<HeldEvent> held;       // events
    std::size_t told = 0;              // arrivals
    std::uint32_t stamp = 0;
    Trial trial;
  };

  // Of the set, in the order of their labels once it is sorted.
  std::vector<std::uint32_t>& flows_of(const Set& set) const {
    return connections_.sets()[set.number].connections;
  }
  std::vector<std::uint32_t>& ports_of(const Set& set) const { return connections_.sets()[set.number].ports; }
  SetMembers members_of(const Set& set) const { return {flows_of(set), ports_of(set), set.bases}; }
  bool is_stale(const WheelEvent& event) const;
  void sort(Set& set);
  static void give_up_trial(Set& set);
  bool can_stand(const Set& set) const;
  bool is_calm(std::uint32_t node) const;
  bool pauses(const std::vector<HeldEvent>& events) const;
  void settle();
  bool look_up(std::uint32_t number);
  void lead(std::uint32_t number, Pattern& pattern);
  void follow(std::uint32_t number, Pattern& pattern);
  void close(Set& set);
  void release_followers(Pattern& pattern);
  void missed(Set& set) const;
  void tell(Set& set, std::uint32_t flow);
  void wake(std::uint32_t number, std::int64_t until);
  void jump(Set& set);
  void schedule_next(std::uint32_t number);

  void share_buffers(const Set& set, bool add);
  void free_packets(Set& set);

  FastForward& forward_;
  Core& core_;
  Links& links_;
  Flows& flows_;
  Mail& mail_;
  Switches& switches_;
  Hosts& hosts_;
  Connections& connections_;
  PatternStates states_;
  std::vector<Set> sets_;
  std::vector<std::uint32_t> touched_;
  bool settles_ = false;    // an event is due
  std::int64_t words_ = 0;  // kept
  std::unordered_map<State, Pattern, StateHash> patterns_;
  EventWheel past_;  // for those who catch up
};

}  // namespace armilla::packets
