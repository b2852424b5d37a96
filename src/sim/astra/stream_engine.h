// StreamEngine: collectives as ASTRA-sim's system layer executes them, event for event.
//
// A collective is cut into chunks; a chunk on one rank is a *stream* that passes through phases
// (sim/astra/stream_plan.h). Per rank and queue a list of streams waits in order of priority; a fixed number
// of them runs. A running phase is a small machine driven by three stimuli: its beginning, a message
// received, and a packet that has crossed between network endpoint and memory ("bundle": endpoint delay,
// then, for data that is reduced, three passes over local memory). Sources: astra-sim 2.x Sys.cc,
// StreamBaseline.cc, PacketBundle.cc, MemBus.cc, Ring.cc, AllToAll.cc, HalvingDoubling.cc,
// DoubleBinaryTreeAllReduce.cc.
//
// What differs between the profiles is data in SystemLayer plus three policies here:
//   phase barrier   1.0: all ranks, of all groups, leave a chunk's phase together, the last one to finish
//                   last; they make one instance, which is planned once
//   arrivals        1.0: an arrival is scheduled when the message is sent or when its receive is posted,
//                   whichever comes last, and so takes its place among the events of its moment; 2.x: always
//                   when the message is sent (1.0: AnalyticalNetwork.cc, sim_send and sim_recv)
//   idle ranks      1.0's boost mode: only ranks in line with rank 0 take part in a phase, the others wait at
//                   its barrier
//   reduction cost  2.x: 3 trunc(bytes / local-mem-bw); 1.0: 3 trunc(bytes / 500,000 bytes per ns)
//   rendezvous      a message of 8192 bytes from the receiver precedes every message
// Unlike the peers, ranks agree on which collective is which by its place among those of its communicator,
// not by a counter over all of them, so that uneven histories do not deadlock.
//
// Cost per message: one network event and one agenda event, O(1) each; memory per chunk and rank about 100
// bytes plus 4 per distinct sender.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "event/event_queue.h"
#include "ir/formats/system_layer.h"
#include "ir/graph.h"
#include "network/stream_network.h"
#include "sim/astra/shared_bus.h"
#include "sim/astra/stream_plan.h"
#include "sim/engine/collective_executor.h"
#include "sim/engine/custom_runner.h"
#include "sim/engine/rank_agenda.h"

namespace armilla {

class StreamEngine final : public CollectiveExecutor,
                           public EventHandler,
                           public CustomClient,
                           public BusClient {
 public:
  StreamEngine(const Graph& graph, const SystemLayer& system, EventQueue& queue, RankAgenda& agenda,
               StreamNetwork& network, CustomRunner& custom, CollectiveClient& client);
  // Rank 0 stands for all; `ties` learns whether it may. The graph must pass `can_fold`
  // (sim/fold/stream_fold.h).
  void fold(TieWatch& ties) {
    ties_ = &ties;
    matches_ = false;
  }
  StreamEngine(const StreamEngine&) = delete;
  StreamEngine& operator=(const StreamEngine&) = delete;
  ~StreamEngine() override;

  void issue(std::int32_t rank, std::uint32_t node, std::uint32_t call) override;
  std::int32_t missing_member(std::int32_t rank, std::uint32_t node) const override;
  const StreamPlanner& planner() const { return planner_; }

  void handle(std::uint64_t argument) override;
  void custom_finished(std::uint64_t argument) override;
  void bus_crossed(std::uint64_t argument) override;

 private:
  enum class State : std::uint8_t { absent, waiting, running, done };

  struct Chunk;

  // A chunk on one rank.
  struct Stream {
    Chunk* chunk = nullptr;
    const StreamPhase* current = nullptr;  // phase
    std::int32_t* mailbox = nullptr;       // its part of the chunk's
    std::int32_t rank = 0;
    std::int32_t here = 0;   // its position in the current phase's line of ranks
    std::uint32_t base = 0;  // the first stream of its group
    std::int32_t priority = 0;
    State state = State::absent;
    std::uint8_t phase = 0;
    std::uint8_t stage = 0;  // of a machine; 0 at the beginning of a phase
    bool toggle = false;
    bool reversed = false;  // anticlockwise
    bool idle = false;      // in the current phase
    std::int32_t inserted = 0, sent = 0, received = 0, free = 0;
    std::int32_t without_latency = 0, with_latency = 0;  // packets left before the kind changes
    std::uint32_t step = 0;
    std::uint32_t queue = 0;
    Time ready, start;
  };

  // What waits for its other half, per place: receives posted (counted up) or messages sent or there (down).
  struct Boxes {
    std::vector<std::int32_t> open;
    // 1.0 only: when the first message that waits arrives, and the further ones of the same place.
    std::vector<Time> arrivals;
    std::vector<std::pair<std::size_t, Time>> further;
  };

  struct Chunk {
    std::uint32_t id = 0;  // into chunks_
    std::uint32_t instance = 0;
    std::uint32_t number = 0;  // within its collective
    std::uint32_t first_stream = 0;
    std::uint32_t custom = 0;                 // instance of the custom runner
    const std::int32_t* member_of = nullptr;  // of its family
    std::vector<StreamPhase> phases;
    std::int32_t slots = 1;  // of a stream's mailbox
    Boxes mail;              // [member][slot]
    Boxes handshakes;        // [member][slot]: sends that wait for their handshake; empty without rendezvous
    std::vector<std::uint16_t>
        queues;  // [member][phase]: number and direction; empty when a level has one queue
    std::unordered_map<std::uint64_t, std::vector<std::int32_t>>
        early;  // by (member, phase), slots of messages
                // for phases not reached yet
    std::vector<std::uint32_t> at_barrier;
    std::vector<Time> posted;  // per slot, on rank 0, for its statistics
    std::int64_t members_left = 0;
  };

  struct Issue {
    std::uint32_t node = 0;
    std::int32_t chunks_left = -1;  // -1: not issued
    bool started = false;
  };
  struct Instance {
    std::uint32_t call = 0, family = 0;
    std::int32_t group = 0;     // 0 for all groups of 1.0
    std::vector<Issue> issues;  // per member
    std::vector<std::uint32_t> chunks;
    std::int64_t members_left = 0;
  };
  struct Family {
    std::vector<std::int32_t> member_of;                // per rank, its place in its instances
    std::vector<std::uint32_t> base_of;                 // per rank, the place of the first of its group
    std::vector<std::vector<std::int32_t>> members;     // ranks; per group, 1.0: of all groups
    std::vector<std::vector<std::uint32_t>> instances;  // per group, 1.0: one list; in order of issue
    std::vector<std::uint32_t> issued;                  // per rank, how many
  };
  struct Queue {
    std::vector<std::uint32_t> streams;  // the running ones first
    std::int64_t running = 0;
  };
  struct Allocator {  // of a level's queues, as ASTRA-sim's QueueLevelHandler
    std::int32_t any = 0, first = 0, second = 0;
  };
  struct Rank {
    std::vector<Queue> queues;
    std::vector<Allocator> allocators;  // per level
    std::int32_t priority = 0;
  };
  // Statistics of rank 0 alone.
  struct Messages {
    Time time;
    std::int32_t count = 0;
  };

  // Making of streams.
  void add_family(const GroupFamily& family);
  std::uint32_t instance_for(std::int32_t rank, std::uint32_t call);
  std::uint32_t make_instance(std::int32_t group, std::uint32_t call);
  std::uint32_t make_chunk(std::uint32_t instance, std::vector<StreamPhase> phases);
  void create_stream(Chunk& chunk, std::uint32_t member, std::int32_t rank, std::int32_t priority);
  std::int32_t priority_of(Rank& rank, const CollectiveCall& call);
  std::pair<std::uint32_t, bool> allocate_queue(Rank& rank, const StreamPhase& phase);

  // Their way through the queues.
  void proceed(std::uint32_t id);
  void advance(std::uint32_t id);
  void insert(Queue& queue, std::uint32_t id);
  bool goes_before(const Stream& waiting, const Stream& stream) const;
  void stream_added(Rank& rank, std::uint32_t queue);
  void stream_removed(Rank& rank, std::uint32_t queue);
  void start_streams(Rank& rank, std::uint32_t queue);
  void begin_collective(std::uint32_t id);
  void begin(std::uint32_t id);
  void finish_stream(std::uint32_t id);
  void release(Chunk& chunk);
  void enter_phase(std::uint32_t id);
  bool is_idle(const Stream& stream) const;
  void report_phase(std::uint32_t id);

  // The machines of the phases.
  static const StreamPhase& phase_of(const Stream& stream) { return *stream.current; }
  void received(std::uint32_t id, std::int32_t slot);
  void crossed(std::uint32_t id);
  void insert_packet(std::uint32_t id);
  void bundle(std::uint32_t id, bool to_endpoint, bool reduced, bool returned, std::int32_t packet);
  void bundle_crossed(std::uint32_t id, bool reduced, std::int32_t packet);
  void send_packet(std::uint32_t id);
  void tree_begins(std::uint32_t id);
  void tree_received(std::uint32_t id);
  void tree_crossed(std::uint32_t id);
  void tree_sends(std::uint32_t id, std::int32_t position, std::int32_t relation, std::int32_t own_relation);
  void tree_posts(std::uint32_t id, std::int32_t position, std::int32_t relation, std::int32_t own_relation);
  void next_schedule_step(std::uint32_t id);
  Time reduction_time(const Stream& stream, std::int32_t packet);
  Time reduction_time(std::int64_t bytes) const;

  // Messages. A slot is a place in the receiver's mailbox: messages of one sender, or of one step.
  struct Message {
    std::uint32_t from = 0, to = 0;  // streams
    std::int32_t slot = 0;
    std::int64_t bytes = 0;
    std::int32_t sender_slot = 0;  // place of its handshake in the sender's mailbox
    bool handshakes = true;
  };
  std::uint32_t stream_at(const Stream& stream, std::int32_t position) const;
  std::int32_t rank_at(const Stream& stream, std::int32_t position) const;
  void schedule_now(std::uint64_t argument);
  std::int32_t position_of(const Stream& stream, std::int32_t packet, bool source) const;
  std::size_t place_of(std::uint32_t id, std::int32_t slot) const {
    const Chunk& chunk = *streams_[id].chunk;
    return static_cast<std::size_t>(id - chunk.first_stream) * static_cast<std::size_t>(chunk.slots) +
           static_cast<std::size_t>(slot);
  }
  std::int32_t& box(Boxes& boxes, std::uint32_t id, std::int32_t slot) {
    return boxes.open[place_of(id, slot)];
  }
  static bool meets_receive(Boxes& boxes, std::size_t place, Time arrival);
  static std::optional<Time> meets_message(Boxes& boxes, std::size_t place);
  StreamMessage on_network(const Message& message, std::uint64_t argument) const;
  void schedule_at(Time time, std::uint64_t argument);
  void transmit(const Message& message);
  void transmit_now(const Message& message);
  std::uint32_t keep_handshake(const Message& message);
  void post(const Message& message);
  void post_now(std::uint32_t id, std::int32_t slot);
  void arrive(std::uint32_t id, std::uint8_t phase, std::int32_t slot);
  void handshake_arrives(std::uint32_t handshake);

  const Graph& graph_;
  const SystemLayer& system_;
  EventQueue& queue_;
  RankAgenda& agenda_;
  StreamNetwork& network_;
  CustomRunner& custom_;
  CollectiveClient& client_;
  TieWatch* ties_ = nullptr;  // set: folded
  StreamPlanner planner_;
  std::uint32_t target_;
  std::int64_t running_limit_;
  bool together_;  // 1.0: all groups of a family make one instance
  bool matches_;   // 1.0, every rank played: arrivals wait for the receive to be posted

  std::vector<Stream> streams_;                                        // blocks of one chunk each, used again
  std::vector<std::pair<std::uint32_t, std::uint32_t>> free_streams_;  // first, how many
  std::vector<std::unique_ptr<Chunk>> chunks_;                         // ids are never used twice
  std::vector<std::unique_ptr<Instance>> instances_;                   // likewise
  std::vector<Family> families_;
  std::vector<Rank> ranks_;
  std::vector<Messages> messages_;  // per stream, filled for those of rank 0
  std::pair<std::int64_t, Time> last_reduction_ = {-1, {}};
  std::vector<Message> handshakes_;
  std::vector<std::uint32_t> free_handshakes_;
  std::unique_ptr<SharedBuses> buses_;
};

}  // namespace armilla
