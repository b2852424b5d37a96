// The packet simulation: plays the events of its parts (parts.h), and is told what there is to carry.
// `network/packet.h` says what it models. Nothing is allocated per packet once the pools have grown to what
// is under way at one time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "network/packet.h"
#include "network/packet/parts.h"

namespace armilla::packets {

class FastForward;

class Simulation final : Watcher, EventHandler {
 public:
  explicit Simulation(const FlowJob& job);
  ~Simulation();

  PacketOutcome run();

  // Instead of flows known beforehand: connections (queue pairs) that messages are posted to while time
  // goes on (connections.h).

  // Each way: the ports that packets leave by, from a host to a host; all leave by the same. Acknowledgements
  // take the first one back. Of several the job's choice is made packet by packet, and nothing is taken for
  // lost because it is late.
  std::uint32_t connect(std::span<const std::vector<std::uint32_t>> ways);
  // Not before what has been played.
  void post(std::uint32_t connection, std::int64_t bytes, std::uint64_t message, std::int64_t at_ns);
  // Or flows that come one by one (FlowJob::flows_come), told by `message` when they are acknowledged as a
  // whole; not before what has been played. Source ports count from 10000 for each pair of hosts. With RoCE a
  // flow that is over is forgotten as soon as nothing of it is under way.
  void begin(const TrafficFlow& flow, std::uint64_t message, std::int64_t at_ns);
  // Plays until something arrives as a whole, at most until `end_ns`; returns whether it did. Messages of
  // `end_ns` itself do not begin yet: more may be posted.
  bool play_until(std::int64_t end_ns);
  // What arrived at now_ns(): messages by their numbers, flows in order; forgets it.
  std::vector<std::uint64_t> take_arrived() { return std::exchange(parts_.mail.arrived(), {}); }
  std::int64_t now_ns() const { return parts_.core.events.now(); }
  // That are remembered.
  std::size_t flows() const { return parts_.flows.remembered(); }
  // Of what comes next; INT64_MAX: nothing moves any more.
  std::int64_t next_ns() const {
    if (parts_.core.events.pending() == 0) return INT64_MAX;
    const std::int64_t post_ns = parts_.connections.next_ns();
    return post_ns == INT64_MAX ? parts_.core.events.next_time()
                                : std::min(parts_.core.events.next_time(), post_ns + 1);
  }
  // Why nothing moves though messages are under way. Throws Error.
  [[noreturn]] void explain_standstill() const;

  // What fast-forward lets stand still comes to where it would be now: before the figures that follow
  // are asked for.
  void bring_up();
  // By port: all that it sent, with headers, and for how long.
  struct Carried {
    std::int64_t bytes = 0, busy_ps = 0;
  };
  // nullopt: every packet is played.
  std::optional<PacketForward> forwarded() const;
  std::int64_t frames() const { return parts_.links.frames(); }
  // Of what has happened so far: packets dropped by full buffers or lost on links, timers that ran out, hosts
  // and switches told to pause, packets marked.
  std::int64_t dropped_packets() const { return parts_.core.outcome.dropped_packets; }
  std::int64_t lost_packets() const { return parts_.core.outcome.lost_packets; }
  std::int64_t timeouts() const { return parts_.core.outcome.timeouts; }
  std::int64_t pauses() const { return parts_.core.outcome.pauses; }
  std::int64_t marked_packets() const { return parts_.core.outcome.marked_packets; }
  Carried carried(std::uint32_t port) const {
    return {parts_.links[port].carried_bytes, parts_.links[port].busy_ps};
  }

 private:
  // Watcher: what fast-forward must know of, if there is one.
  void begins(std::uint32_t flow) override;
  void arrived(std::uint32_t connection) override;
  void left_to_chance(std::uint32_t port) override;
  void crowded(std::uint32_t entry) override;
  void connects(const std::vector<std::uint32_t>& ports) override;
  void join(std::uint32_t into, std::uint32_t from) override;
  void connected(std::uint32_t connection) override;

  bool play(std::int64_t end_ns);
  // An event that was taken out.
  void handle(const WheelEvent& event) override;
  void look_ahead() const;
  void serve(std::uint32_t port);
  void arrive(std::uint32_t packet);
  void fail_link();
  void tell_progress() const;
  std::int64_t traffic_end_ns() const;
  void count_in_flight();

  Parts parts_;
  std::int64_t last_arrival_ns_ = 0;            // of anything, anywhere
  const std::unique_ptr<FastForward> forward_;  // nullptr: every packet is played
};

}  // namespace armilla::packets
