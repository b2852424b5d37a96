// The packet simulation: ports, queue pairs and packets, and the events that move them. `network/packet.h`
// says what it models. simulation.cc moves events and packets, hosts.cc, switches.cc and failures.cc say what
// those do, set_up.cc builds them; messages.cc does connections; transport.h is what hosts speak;
// congestion.h and event_wheel.h are its parts. Nothing is allocated per packet once the pools have grown to
// what is under way at one time.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/huge_pages.h"
#include "ir/play_time.h"
#include "network/link_samples.h"
#include "network/packet.h"
#include "network/packet/congestion.h"
#include "network/packet/connection_sets.h"
#include "network/packet/event_wheel.h"
#include "network/packet/random_streams.h"
#include "network/packet/way_store.h"
#include "network/packet/wire.h"
#include "network/routes.h"

namespace armilla {

// Of packets of data.
PlayTime play_time(double packets, CongestionControl control);
// Throws Error, with an estimate of the time, for more packets than anyone would wait for: those of `what`,
// whose size is set by `payload`.
void check_packets(const std::string& where, std::string_view what, std::string_view payload, double packets,
                   CongestionControl control);

// With settings that fast-forward does not know.
std::string why_all_is_played(const PacketSettings& settings);

class PacketSimulation {
 public:
  explicit PacketSimulation(const FlowJob& job);
  ~PacketSimulation();

  PacketOutcome run();

  // Instead of flows known beforehand: connections (queue pairs) that messages are posted to while time
  // goes on. A connection that has nothing to send, or to hear of, starts anew with its next message,
  // at line rate.

  // Each way: the ports that packets leave by, from a host to a host; all leave by the same. Acknowledgements
  // take the first one back. Of several the job's choice is made packet by packet, and nothing is taken for
  // lost because it is late.
  std::uint32_t connect(std::span<const std::vector<std::uint32_t>> ways);
  // Not before what has been played. A message begins when all else of its nanosecond has happened, those of
  // one nanosecond in the order of their connections. When the first one of a connection brings together what
  // shared no port before, events of one nanosecond go by sets from then on, in the order of their first
  // connections: so sets do not depend on when others were played.
  void post(std::uint32_t connection, std::int64_t bytes, std::uint64_t message, std::int64_t at_ns);
  // Or flows that come one by one (FlowJob::flows_come), told by `message` when they are acknowledged as a
  // whole; not before what has been played. Source ports count from 10000 for each pair of hosts. With RoCE a
  // flow that is over is forgotten as soon as nothing of it is under way.
  void begin(TrafficFlow flow, std::uint64_t message, std::int64_t at_ns);
  // Plays until something arrives as a whole, at most until `end_ns`; returns whether it did. Messages of
  // `end_ns` itself do not begin yet: more may be posted.
  bool play_until(std::int64_t end_ns);
  // What arrived at now_ns(): messages by their numbers, flows in order; forgets it.
  std::vector<std::uint64_t> take_arrived() { return std::exchange(arrived_, {}); }
  std::int64_t now_ns() const { return events_.now(); }
  // That are remembered.
  std::size_t flows() const { return flows_.size() - free_flows_.size(); }
  // Of what comes next; INT64_MAX: nothing moves any more.
  std::int64_t next_ns() const {
    if (pending_ == 0) return INT64_MAX;
    return posts_.empty() ? events_.next_time() : std::min(events_.next_time(), posts_.front().ns + 1);
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
  std::int64_t frames() const;
  // Of what has happened so far: packets dropped by full buffers or lost on links, timers that ran out, hosts
  // and switches told to pause, packets marked.
  std::int64_t dropped_packets() const { return outcome_.dropped_packets; }
  std::int64_t lost_packets() const { return outcome_.lost_packets; }
  std::int64_t timeouts() const { return outcome_.timeouts; }
  std::int64_t pauses() const { return outcome_.pauses; }
  std::int64_t marked_packets() const { return outcome_.marked_packets; }
  Carried carried(std::uint32_t port) const { return {ports_[port].carried_bytes, ports_[port].busy_ps}; }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr int kPriorities = 8;

  // What hosts speak, and its kinds: transport.h.
  class Transport;
  class Roce;
  class Tcp;
  class Pulled;
  class Ndp;
  class Eqds;
  struct Selective;
  static std::unique_ptr<Transport> make_transport(PacketSimulation& simulation);
  static std::unique_ptr<Transport> make_roce(PacketSimulation& simulation);
  static std::unique_ptr<Transport> make_tcp(PacketSimulation& simulation);
  static std::unique_ptr<Transport> make_ndp(PacketSimulation& simulation);
  static std::unique_ptr<Transport> make_eqds(PacketSimulation& simulation);

  // What switches do about what they have no room for: they keep it from coming by PFC, drop it, or cut it
  // down to its headers, which go before data.
  enum class SwitchDiscipline : std::uint8_t { pause, drop, trim };

  // Fast-forward over what goes on alike: forward/fast_forward.h.
  class FastForward;
  struct Shift;
  class Words;

  // Kinds of events. Those from kTimer on are the transport's but kGoOn to kCompare, which are
  // fast-forward's; from kGoOn on they move nothing by themselves.
  enum : std::uint32_t {
    kDue,
    kInstall,
    kStart,
    kSent,
    kArrived,
    kWake,
    kTimeout,
    kNicResume,
    kNicMayPause,
    kLinkDown,
    kPauseOver,
    kTimer,
    kGoOn,
    kRepeat,
    kCrowded,
    kCompare,
    kIdleTimers
  };

  enum class PacketKind : std::uint8_t { data, ack, nack, pull, request, pause, resume };

  struct alignas(64) Packet {
    std::uint32_t next = kNone;  // in the queue that it waits in
    std::uint32_t flow = 0;      // of pause and resume: unused
    std::uint64_t sequence = 0;  // of data: its first byte; of acknowledgements: the next byte awaited
    std::uint64_t repeat = 0;    // of acknowledgements: what arrived, or did not, out of order; by transport
    std::uint64_t pull = 0;      // up to where the sender was pulled, or, in data, wants to be
    std::int64_t sent_ns = 0;    // of data and what answers it: when the data left
    std::uint32_t port = 0;      // where it arrives next, then where it arrived
    std::uint32_t step = 0;      // in ways_: the port that it leaves by next
    std::uint32_t size = 0;      // bytes on the wire
    std::uint16_t payload = 0;   // of data
    std::uint16_t path = 0;      // by name, of transports that spray
    PacketKind kind = PacketKind::data;
    std::uint8_t priority = 0;
    bool marked = false;   // by a switch
    bool echo = false;     // of acknowledgements: the data had been marked
    bool trimmed = false;  // data whose payload a switch cut off
    bool asks = false;     // to be answered even if it arrived before; of the answer: that it was
  };

  struct Queue {
    std::uint32_t head = kNone, tail = kNone;
  };

  // What a switch keeps per port and priority.
  struct alignas(32) Shares {
    std::uint32_t arrived = 0;   // bytes held that came in here, but those in headroom
    std::uint32_t headroom = 0;  // bytes held in headroom
    std::uint32_t leaving = 0;   // bytes held that leave here
    Queue queue;                 // of packets that leave here
    bool pausing = false;        // the peer was told to be silent
  };

  struct alignas(64) Port {
    std::uint32_t node = 0;
    std::uint32_t nic = kNone;  // of hosts
    bool at_switch = false, up = true, busy = false;
    std::uint8_t paused = 0;   // bit per priority: told to be silent
    std::uint8_t waiting = 0;  // of switches, bit per priority: packets wait
    std::uint8_t last_served = 0;
    std::uint8_t threshold_shift = 3;  // the share of the free buffer beyond which it pauses: 2^-shift
    const std::int64_t* transmission_ps = nullptr;  // by size
    std::int64_t delay_ns = 0;
    std::int32_t carry_ps = 0;      // of the last transmission, beyond whole nanoseconds
    std::uint32_t sending = kNone;  // of a port that is busy: the packet
    Queue acknowledgements;         // of hosts
    std::uint32_t queued = 0;       // of switches: bytes
    std::uint32_t headroom_limit = 0;
    std::uint32_t loss_stream = kNone;  // into losses_, where what arrives may be lost
    // What is needed less often.
    std::int64_t carried_bytes = 0, busy_ps = 0, frames = 0;
    double loss = 0;
    EcnThresholds ecn;
    std::int64_t rate = 0;
  };
  static_assert(sizeof(Port) == 128);

  struct Pauses {  // of a port
    std::array<std::int64_t, kPriorities> since_ns = {};
    std::int64_t sum_ns = 0;  // all priorities
  };

  // What a NIC looks at to choose whose turn it is.
  struct Turn {
    std::int64_t next_send_ns = 0;
    std::uint32_t flow = 0;
    std::uint8_t priority = 0;
    bool ready = false;  // has bytes to send and room in its window
    bool finished = false;
  };

  struct Nic {
    std::vector<Turn> turns;  // of its flows; or of those in line (flows_in_line_), the first at `last`
    std::uint32_t last = 0;
    std::int64_t wake_ns = -1;  // when it looks again; -1: not foreseen
    std::uint32_t wake_stamp = 0;
    bool may_pause = true;
    std::int64_t pauses = 0;
  };

  struct Switch {
    std::uint32_t buffer_left = 0;  // beyond reserves and headroom
    std::uint32_t shared_used = 0;
    std::uint32_t calm = 0;  // no port pauses its peer as long as each holds less of what came in there
    bool joins = false;      // what shares no port shares its buffer: it came near to pausing a peer
  };

  // What every packet needs of its flow first, what losses and starts need last.
  struct alignas(64) Flow : RateState {
    std::uint64_t size = 0, acknowledged = 0;
    std::int64_t next_send_ns = 0;
    std::uint32_t port = 0, exit = 0;             // of the NICs of its source and of its destination
    std::uint32_t way_there = 0, way_back = 0;    // beyond them, in ways_
    std::uint32_t turn = kNone;                   // at its source's NIC
    std::uint32_t last_size = 0;                  // on the wire
    std::uint64_t expected = 0;                   // by the receiver
    std::uint64_t highest = 0;                    // sequence number ever sent
    std::uint32_t ways = 1;                       // how many
    std::uint32_t ways_there = 0, ways_back = 0;  // where there are several: lists in ways_
    std::uint8_t priority = 0;
    bool started = false, finished = false, timer = false;
    bool ask = false;  // with the next packet whether the one before was lost, or its acknowledgement
    std::uint32_t packets_spread = 0;
    std::uint32_t under_way = 0;  // packets, where flows are forgotten
    FlowAddress address;
    std::uint32_t increase_stamp = 0;
    std::uint32_t life = 0;  // of a connection: how often it has started anew; of flows 0
    std::int64_t start_ns = 0;
    // Losses
    std::uint64_t last_nack = 0;
    std::int64_t next_nack_ns = 0;
    std::uint64_t timer_mark = 0;
    int retries = 0;
    bool lost_on_link = false;  // something, since the timer was set
    std::uint32_t hops = 0;

    // `least`: what acknowledgements come for, at the finest.
    bool window_full(bool follows_rate, std::uint64_t least) const {
      if (window == 0) return false;
      std::uint64_t limit = static_cast<std::uint64_t>(window);
      if (follows_rate) {
        limit = std::max<std::uint64_t>(
            1, limit * static_cast<std::uint64_t>(rate) / static_cast<std::uint64_t>(line_rate));
      }
      return next - acknowledged >= std::max(limit, least);
    }
  };

  // What a connection carries. Sequence numbers of a message begin at a multiple of the payload, so that
  // packets never span two messages; its last packet is shorter on the wire than in them.
  struct Mail {
    struct Message {
      std::uint64_t end = 0, bytes_end = 0;  // in sequence numbers
      std::uint64_t number = 0;
    };
    std::vector<Message> messages;
    std::size_t posted = 0, arrived = 0, forgotten = 0;  // of them
    std::uint64_t end = 0;                               // of all messages ever
  };
  // A message to begin, the next one of its connection; kNone: sets to become one, as buffers fill.
  struct Post {
    std::int64_t ns = 0;
    std::uint32_t connection = 0;
    auto operator<=>(const Post&) const = default;
  };

  void build();
  void add_flow(const TrafficFlow& asked, const FlowAddress& address);
  void set_up_flow(std::uint32_t flow, const TrafficFlow& asked, const FlowAddress& address);
  void forget_if_over(std::uint32_t flow);
  void begin_message(std::uint32_t connection);
  void begin_messages();
  void crowded(std::uint32_t entry);
  void join_sets(std::uint32_t connection);
  void join_at_switch(std::uint32_t node);
  void join(std::uint32_t into, std::uint32_t from);
  void note_order(std::uint32_t set, std::uint32_t other);
  void order_events();
  std::uint32_t set_of(const WheelEvent& event) const;  // kNone: of none
  // The ports that its data, or its acknowledgements (`back`), leave by: visit(port, back).
  template <class Visit>
  void for_each_port(const Flow& flow, const Visit& visit) const;
  void restart(std::uint32_t connection);
  void note_arrivals(std::uint32_t connection);
  std::uint32_t wire_payload(std::uint32_t connection, std::uint64_t sequence, std::uint64_t payload) const;
  void start_flow(std::uint32_t flow);
  void find_ways(std::uint32_t flow);
  // PacketFlowOutcome's.
  void note_least(std::uint32_t flow, std::span<const std::vector<std::uint32_t>> ways);
  std::int64_t least_ns(std::uint64_t size, std::span<const std::vector<std::uint32_t>> ways) const;
  void find_shortest(std::uint32_t node, std::uint32_t host, std::size_t most,
                     std::vector<std::uint32_t>& way, std::vector<std::vector<std::uint32_t>>& ways) const;
  [[noreturn]] void no_way(const Flow& flow) const;
  void add_ways(Flow& flow, std::span<const std::vector<std::uint32_t>> ways);
  std::uint32_t choose_way(Flow& flow) const;
  void choose_again(Packet& packet);

  std::uint32_t new_packet();
  void free_packet(std::uint32_t packet);
  void append(Queue& queue, std::uint32_t packet);
  std::uint32_t take(Queue& queue);

  // Where its bytes are counted; nullptr: nowhere.
  PacketBytes* account_of(const Packet& packet) {
    if (packet.kind == PacketKind::data) return &outcome_.data;
    return packet.kind < PacketKind::pause ? &outcome_.acknowledgements : nullptr;
  }

  bool play(std::int64_t end_ns);
  void handle(const WheelEvent& event);
  static constexpr std::size_t kManyPackets = 4096;  // more than the processor keeps close to it
  void look_ahead() const;
  // A port, a packet, or what packets need of a flow first: two lines of the processor's cache.
  static void fetch(const void* at) {
    __builtin_prefetch(at, 1);
    __builtin_prefetch(static_cast<const char*>(at) + 64, 1);
  }
  void schedule(std::int64_t time, std::uint32_t kind, std::uint32_t subject, std::uint32_t stamp = 0);
  std::int64_t transmit(std::uint32_t port, std::uint32_t packet);
  void serve(std::uint32_t port);
  void serve_host(std::uint32_t port);
  void serve_first_in_line(std::uint32_t port, Nic& nic);
  void serve_switch(std::uint32_t port);
  void leave_switch(std::uint32_t port, std::uint32_t packet, std::uint8_t queue);
  void join_nic(std::uint32_t flow);
  void refresh(std::uint32_t flow);  // whenever what decides about sending has changed
  std::uint32_t next_data(std::uint32_t flow);

  void arrive(std::uint32_t packet);
  void forward(std::uint32_t packet);
  bool trim(std::uint32_t packet, std::uint32_t exit);
  static std::uint64_t coin_bits(std::uint64_t& coins);
  bool throw_coin();
  static bool happens(double probability, std::uint64_t& coins);
  bool marks(double probability, std::uint32_t port);
  bool is_beyond_port_queue(std::int64_t held);  // TCP over ports with queues of their own
  void receive_data(std::uint32_t packet);
  void receive_acknowledgement(std::uint32_t packet);
  void answer(std::uint32_t packet, PacketKind kind);

  void finish(std::uint32_t flow);
  void drop(std::uint32_t packet, bool on_link);
  void timeout(std::uint32_t flow);
  void pause_peer(std::uint32_t port, int priority, bool pause);
  std::uint32_t threshold(const Port& port) const;
  bool is_crowded(const Port& port, const Shares& in) const;
  void link_down();
  void end_pause(std::uint32_t port, std::size_t priority);
  void sum_pauses();
  void count_in_flight();
  void explain_deadlock() const;

  const FlowJob& job_;
  const PacketSettings& settings_;
  int ack_priority_ = 3;
  bool hashed_ = false;  // a link failed: packets find their way hop by hop

  EventWheel events_;
  std::int64_t pending_ = 0;  // events but timers of congestion control, which move nothing by themselves
  std::unique_ptr<FastForward> forward_;  // nullptr: every packet is played
  std::int64_t look_at_ = INT64_MAX;      // events handled, after which it looks for what goes on alike
  HugeVector<Port> ports_;
  HugeVector<std::array<Shares, kPriorities>> shares_;  // per port, of switches
  std::vector<Pauses> pauses_;                          // per port
  std::vector<std::uint32_t> first_ports_;              // per node, into node_ports_
  std::vector<std::uint32_t> node_ports_;
  std::vector<Nic> nics_;
  std::vector<Switch> switches_;  // per node
  HugeVector<Flow> flows_;
  std::unique_ptr<Transport> transport_;
  SwitchDiscipline discipline_ = SwitchDiscipline::pause;  // the transport's
  bool has_telemetry_ = false;                             // the same
  bool flows_in_line_ = false;                             // the same
  WayStore ways_;
  HugeVector<Packet> packets_;
  std::vector<Telemetry> telemetry_;  // per packet, where there is any
  std::uint32_t free_packets_ = kNone;
  std::vector<std::vector<std::int64_t>> transmission_;  // ps by class of rate and size
  std::vector<Mail> mail_;                               // per flow, where flows are connections
  std::vector<Post> posts_;                              // a heap, the earliest first
  std::vector<std::uint32_t> beginning_;                 // connections, a message of which begins now
  bool can_repeat_ = false;                              // sets of connections: fast-forward could skip some
  std::vector<std::uint32_t> crowded_;                   // switches, whose sets become one now
  std::vector<std::uint32_t> order_of_port_, ordered_;   // while sets are joined: the first connection; ports
  ConnectionSets sets_{0};                               // of those a message of which has begun
  std::vector<std::uint64_t> arrived_;                   // messages
  std::vector<std::uint64_t> message_of_;                // per flow, where flows come one by one
  bool forgets_ = false;                                 // flows that are over
  std::vector<std::uint32_t> free_flows_;
  std::unordered_map<std::uint64_t, std::uint16_t> next_source_port_;  // by pair of hosts, for these
  std::vector<std::uint32_t> failed_;
  std::vector<std::uint32_t> ends_;  // hosts that packets go to
  Routes routes_;
  Routes::Largest largest_;
  FirstDraws marking_;                        // of jobs of ns-3, as it draws
  std::vector<std::uint64_t> marking_coins_;  // of others: per port, so that none depends on another
  std::vector<RandomStream> losses_;
  std::int64_t trim_limit_ = 0;                                    // bytes of data at a port
  std::int64_t port_limit_ = INT64_MAX, port_random_ = INT64_MAX;  // bytes: all is dropped above, a tenth
  std::uint64_t coins_ = 0;                                        // thrown for who is trimmed
  std::optional<LinkSampler> sampler_;                             // where the job is to be sampled
  PacketOutcome outcome_;
};

inline std::uint32_t PacketSimulation::new_packet() {
  if (free_packets_ != kNone) {
    const std::uint32_t packet = free_packets_;
    free_packets_ = packets_[packet].next;
    if (free_packets_ != kNone) __builtin_prefetch(&packets_[free_packets_], 1);
    packets_[packet] = {};
    return packet;
  }
  packets_.emplace_back();
  if (has_telemetry_) telemetry_.emplace_back();
  return static_cast<std::uint32_t>(packets_.size() - 1);
}
inline void PacketSimulation::forget_if_over(std::uint32_t index) {
  Flow& flow = flows_[index];
  if (!flow.started || !flow.finished || flow.turn != kNone || flow.under_way > 0 || flow.timer) return;
  flow.started = false;
  free_flows_.push_back(index);
}
inline void PacketSimulation::free_packet(std::uint32_t packet) {
  if (forgets_ && packets_[packet].kind < PacketKind::pause) {
    --flows_[packets_[packet].flow].under_way;
    forget_if_over(packets_[packet].flow);
  }
  packets_[packet].next = free_packets_;
  free_packets_ = packet;
}
inline void PacketSimulation::append(Queue& queue, std::uint32_t packet) {
  packets_[packet].next = kNone;
  if (queue.head == kNone) {
    queue.head = packet;
  } else {
    packets_[queue.tail].next = packet;
  }
  queue.tail = packet;
}
inline std::uint32_t PacketSimulation::take(Queue& queue) {
  const std::uint32_t packet = queue.head;
  queue.head = packets_[packet].next;
  if (queue.head != kNone)
    __builtin_prefetch(&packets_[queue.head], 1);  // in long queues it was touched long ago
  return packet;
}

inline void PacketSimulation::schedule(std::int64_t time, std::uint32_t kind, std::uint32_t subject,
                                       std::uint32_t stamp) {
  if (kind < kGoOn) ++pending_;
  events_.schedule(time, kind, subject, stamp);
}
// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
inline std::uint64_t PacketSimulation::coin_bits(std::uint64_t& coins) {
  std::uint64_t bits = coins += 0x9e3779b97f4a7c15U;
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9U;
  return (bits ^ bits >> 27) * 0x94d049bb133111ebU;
}
inline bool PacketSimulation::throw_coin() {
  return coin_bits(coins_) >> 63 != 0;
}
inline bool PacketSimulation::happens(double probability, std::uint64_t& coins) {
  return static_cast<double>(coin_bits(coins) >> 11) * 0x1p-53 < probability;
}
inline std::uint32_t PacketSimulation::threshold(const Port& port) const {
  const Switch& here = switches_[port.node];
  return (here.buffer_left - here.shared_used) >> port.threshold_shift;
}
// Whether what came in at a switch's port may soon make it pause its peer, or does.
inline bool PacketSimulation::is_crowded(const Port& port, const Shares& in) const {
  return in.pausing || in.headroom > 0 || in.arrived >= kReserve + switches_[port.node].calm;
}
}  // namespace armilla
