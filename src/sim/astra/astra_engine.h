// AstraEngine: collectives as ASTRA-sim's system layer executes them, event for event.
//
// A collective is cut into chunks; a chunk on one rank is a *stream* that passes through phases
// (sim/astra/astra_plan.h), waits its turn in queues (sim/astra/astra_queues.h) and sends and receives
// (sim/astra/astra_mail.h). What it does in a phase is a schedule (sim/astra/astra_schedule.h), one
// interpreter of which is driven by three stimuli: the beginning, a message received, and a packet that
// has crossed between network endpoint and memory ("bundle": endpoint delay, then, for data that is
// reduced, three passes over local memory). Sources: astra-sim 2.x Sys.cc, StreamBaseline.cc,
// PacketBundle.cc, MemBus.cc.
//
// What differs between the profiles is data in SystemLayer plus three policies here:
//   phase barrier   1.0: all ranks, of all groups, leave a chunk's phase together, the last one to finish
//                   last; they make one instance, which is planned once
//   idle ranks      1.0's boost mode: only ranks in line with rank 0 take part in a phase, the others wait at
//                   its barrier
//   reduction cost  2.x: 3 trunc(bytes / local-mem-bw); 1.0: 3 trunc(bytes / 500,000 bytes per ns)
//
// Apart from the native CollectiveRunner: there a step ends when all it waits for is there, here every packet
// goes on as soon as its own crossing ends (direct has a window of them under way across what would be
// steps), and each crossing is an event whose place in its moment decides who goes first.
//
// Cost per message: one network event and one agenda event, O(1) each; memory per chunk and rank about 100
// bytes plus 4 per distinct sender.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/slots.h"
#include "event/event_queue.h"
#include "ir/formats/system_layer.h"
#include "ir/graph.h"
#include "sim/astra/astra_mail.h"
#include "sim/astra/astra_plan.h"
#include "sim/astra/astra_queues.h"
#include "sim/astra/astra_streams.h"
#include "sim/astra/shared_bus.h"
#include "sim/engine/collective_instances.h"
#include "sim/engine/custom_runner.h"
#include "sim/engine/run_context.h"

namespace armilla {

class RankWalker;

class AstraEngine final : public EventHandler, public CollectiveExecutor {
 public:
  // Where the order is watched, rank 0 stands for all: the graph must pass `can_fold`
  // (sim/astra/astra_fold.h).
  AstraEngine(const RunContext& context, const SystemLayer& system, CustomRunner& custom, RankWalker& walker);
  AstraEngine(const AstraEngine&) = delete;
  AstraEngine& operator=(const AstraEngine&) = delete;

  void issue(std::int32_t rank, std::uint32_t node, std::uint32_t call, std::uint64_t sequence) override;
  std::int32_t missing_member(std::int32_t rank, std::uint32_t node) const override {
    return instances_.missing_member(rank, node);
  }
  const AstraPlanner& planner() const { return planner_; }

  void handle(std::uint64_t argument) override;

 private:
  // Statistics of rank 0 alone.
  struct Messages {
    Time time;
    std::int32_t count = 0;
  };

  // Making of streams.
  void make_chunks(std::uint32_t instance);
  void make_chunk(std::uint32_t instance, std::vector<AstraPhase> phases);
  void create_stream(AstraChunk& chunk, std::uint32_t member, std::int32_t rank, std::int32_t priority);

  // Their way through the queues.
  void proceed(std::uint32_t id);
  void advance(std::uint32_t id);
  void start_streams(std::int32_t rank, std::uint32_t queue);
  void begin_collective(std::uint32_t id);
  void begin(std::uint32_t id);
  void release(AstraChunk& chunk);
  void enter_phase(std::uint32_t id);
  bool is_idle(const AstraStream& stream) const;
  void report_phase(std::uint32_t id);

  // What they do in a phase (sim/astra/astra_schedule.h).
  static const AstraPhase& phase_of(const AstraStream& stream) { return *stream.current; }
  void cross(AstraStream& stream);
  void reduce(const AstraStream& stream, std::int32_t row);
  void received(AstraStream& stream, std::int32_t slot);
  void go_on(AstraStream& stream);
  void send(AstraStream& stream, const AstraTransfer& transfer);
  void post(AstraStream& stream, const AstraTransfer& transfer);
  Time reduction_time(std::int64_t bytes);

  void find_peer(AstraStream& stream, const AstraTransfer& transfer) const;
  std::uint32_t stream_at(const AstraStream& stream, std::int32_t position) const;
  std::int32_t rank_at(const AstraStream& stream, std::int32_t position) const;
  std::int32_t position_of(const AstraStream& stream, const AstraTransfer& transfer) const;

  RunContext context_;
  const SystemLayer& system_;
  CustomRunner& custom_;
  RankWalker& walker_;
  AstraPlanner planner_;
  std::uint32_t target_;
  bool together_;                                    // 1.0: all groups of a family make one instance
  Blocks<AstraStream> streams_;                      // a block per chunk
  std::vector<std::unique_ptr<AstraChunk>> chunks_;  // ids are never used twice
  CollectiveInstances instances_;
  AstraQueues queues_;
  AstraMail mail_;
  std::vector<Messages> messages_;  // per stream, filled for those of rank 0
  std::pair<std::int64_t, Time> last_reduction_ = {-1, {}};
  SharedBuses buses_;
};

}  // namespace armilla
