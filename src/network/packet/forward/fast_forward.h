// Fast-forward: packets of flows that go on alike are counted, not played. After "steady states" of Long et
// al. ("Supercharging packet-level network simulation of large model training via memoization and
// fast-forwarding", NSDI 2026); docs/models/fast_forward.md has the rules and the bound.
//
// Now and then it looks at all flows under way. Those that share a port, directly or over others, are a
// partition: nothing else has an influence on them. A partition whose flows have kept their rates, and queues
// their length, for long enough stands still for a while: its events leave the wheel, and come back later by
// that while, with everything that its flows keep as much further as they would have come. Whatever begins on
// one of its ports makes it go on at once.
//
// What messages of jobs lead to may hang on a single packet. Connections stand still only in whole periods,
// after which their set has been seen to be where it was: exactly, as in patterns (patterns.h).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/slots.h"
#include "network/packet/parts.h"

namespace armilla::packets {

class FastForward {
 public:
  FastForward(Parts& parts, EventHandler& player);
  ~FastForward();

  // The flow, or a message of the connection, is about to begin.
  void begins(std::uint32_t flow);
  // Returns how many events are to be handled until it looks again.
  std::int64_t look();
  // The time of a partition that stands still has come.
  void go_on(std::uint32_t stretch, std::uint32_t stamp);
  PacketForward done() const { return done_; }

  // For contention patterns: a connection is about to join the sets of others, over its ports; a set is about
  // to become a part of another; the connection has joined. A message of one has arrived; the time of a set
  // has come; who is marked at a port is left to chance.
  void connects(const std::vector<std::uint32_t>& ports);
  void join(std::uint32_t into, std::uint32_t from);
  void connected(std::uint32_t flow);
  void arrived(std::uint32_t flow);
  void repeat(std::uint32_t set, std::uint32_t stamp);
  void compare(std::uint32_t set, std::uint32_t stamp);
  void left_to_chance(std::uint32_t port);
  // What comes in at a switch's port may soon make it pause its peer: that is not to be told again. Of flows
  // whoever stands still at the switch is played a little later, as its buffer is one.
  void crowded(std::uint32_t entry);
  void make_room(std::uint32_t node);
  void bring_up();

 private:
  class Patterns;
  struct Period {
    std::int64_t packets = 0, ns = 0;
    std::int64_t queued = 0, under_way = 0, rate = 0;  // bytes and bits per second, at its end
  };

  // A flow under way.
  struct Watch {
    std::uint32_t flow = 0;
    std::uint32_t set = 0;        // of flows that share ports, at this look
    std::uint64_t partition = 0;  // what it was a part of at the last one
    std::uint64_t next = 0;       // where the last period ended
    std::int64_t next_ns = 0;     // and when what is sent after it may be
    double doubtful_ns = 0;       // how far off what was not played may have been
    std::vector<Period> periods;  // since the partition is as it is
  };

  // How a flow goes on.
  struct Pace {
    double packets_per_ns = 0;           // 0: not known
    double seen_ns = 0;                  // how long it was looked at
    bool same = false;                   // all that time
    double doubt = 0, drift_per_ns = 0;  // shares of the rate: what it may be off, and come to be

    double doubtful_ns(double ns) const;  // of so many that are not played
  };

  // Of a port, by flows at their pace.
  struct Use {
    double load = 0;           // the share of its time that it sends
    double most = 0;           // packets of data per nanosecond, of the flow that has most
    std::uint32_t flows = 0;   // that send data
    std::int64_t turn_ps = 0;  // in which it sends a packet of each, and an acknowledgement of each other
  };

  // Of a partition that stands still.
  struct Stretch {
    struct Part {
      std::uint32_t flow = 0;
      Pace pace;
      std::int64_t packets = 0;  // in each period
    };
    std::int64_t begin_ns = 0;
    std::int64_t period_ns = 0;  // in which it comes back to where it was, exactly; 0: it goes on at a pace
    std::uint32_t stamp = 0;
    std::vector<Part> parts;
    std::vector<std::uint32_t> ports;
    std::vector<HeldEvent> events;
  };

  // Of a set, at a look.
  struct Partition {
    std::uint64_t identity = 0;
    bool plain = true;                 // nothing but data and acknowledgements in order
    bool settled = true;               // every flow goes on as it does
    std::int64_t most_ns = INT64_MAX;  // that it may stand still
    double hops_per_ns = 0;
    std::int64_t period_ns = 1;  // after which ports may be where they were
    std::uint32_t stretch = kNone;
  };

  template <class Visit>  // visit(port, size of what leaves by it)
  void for_each_port(const Flow& flow, const Visit& visit) const {
    ways_.for_each_port(
        flow, [&](std::uint32_t port, bool back) { visit(port, back ? control_size_ : data_size_); });
  }
  std::uint64_t last_byte(std::uint32_t flow) const;
  bool could_stand(std::uint32_t flow) const;
  bool stands(std::uint32_t flow) const;
  void look_anew(std::uint32_t flow);
  bool flows_are_known() const { return !mail_.is_used() && !core_.job.flows_come; }  // beforehand
  void expect_others();
  std::uint32_t set_of(std::uint32_t watch);
  void find_partitions();
  void see(Watch& watch, std::uint64_t partition);
  Pace pace_of(const Watch& watch) const;
  std::int64_t allowed_ns(const Watch& watch, const Pace& pace) const;
  void settle(const Watch& watch, const Pace& pace, Partition& partition) const;
  void stand_still();
  std::int64_t period_of(const Flow& flow) const;
  // A set whose flows have moved on by so many bytes, and which else is where it was.
  void stand_in_periods(std::uint32_t set, std::int64_t period_ns, const std::vector<std::uint64_t>& moved);
  // To where it is at the end of `until`: now, or what is due now has yet to happen.
  void resume(std::uint32_t stretch, std::int64_t until);
  void shift_packets(const Stretch& stretch, std::int64_t ns);

  Parts& parts_;
  EventHandler& player_;
  Core& core_;
  Links& links_;
  WayFinder& ways_;
  Flows& flows_;
  Mail& mail_;
  Switches& switches_;
  Hosts& hosts_;
  Connections& connections_;
  const std::uint64_t payload_;
  const std::uint32_t data_size_, control_size_;
  std::vector<Watch> watches_;
  std::vector<std::uint32_t> watch_of_;    // per flow, kNone: it is none
  std::vector<std::uint32_t> holds_;       // per port: the stretch that it stands still in
  std::vector<std::uint32_t> holds_flow_;  // per flow
  std::vector<std::uint32_t> user_;        // per port: a watch, at this look
  std::vector<Partition> partitions_;      // by set
  std::vector<std::uint32_t>
      coming_;               // per port: flows that have yet to begin; empty: they were not looked at
  std::vector<Pace> paces_;  // by watch
  std::vector<Use> uses_;    // per port
  Slots<Stretch> stretches_;
  std::vector<std::uint32_t> told_;     // per port: Shift::told
  std::vector<std::uint64_t> moved_;    // per flow, while one goes on: by so many bytes
  std::unique_ptr<Patterns> patterns_;  // nullptr: no connections, or none that repeat
  std::int64_t crowded_ns_ = -1;        // when that was last told of, and by which switch
  std::uint32_t crowded_node_ = kNone;
  PacketForward done_;
};

}  // namespace armilla::packets
