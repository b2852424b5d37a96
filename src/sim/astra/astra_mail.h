// Messages between streams: how sends meet receives, as in ASTRA-sim.
//
//   arrivals    1.0: an arrival is scheduled when the message is sent or when its receive is posted,
//               whichever comes last, and so takes its place among the events of its moment; 2.x: always when
//               the message is sent (1.0: AnalyticalNetwork.cc, sim_send and sim_recv)
//   rendezvous  a message of 8192 bytes from the receiver precedes every message
// Point-to-point nodes are matched by their tags (sim/engine/messenger.h), at a hash look-up each; here a
// slot, a place in the receiver's mailbox, is known beforehand: messages of one sender, or of one step.
//
// Cost per message: one network event, O(1).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/slots.h"
#include "ir/formats/system_layer.h"
#include "sim/astra/astra_streams.h"
#include "sim/engine/messenger.h"
#include "sim/engine/run_context.h"

namespace armilla {

struct AstraMessage {
  std::uint32_t from = 0, to = 0;  // streams
  std::int32_t slot = 0;
  std::int64_t bytes = 0;
  std::int32_t sender_slot = 0;  // place of its handshake in the sender's mailbox
  bool handshakes = true;
};

class AstraMail {
 public:
  // `streams` by their ids; it may grow. `target` hears of events (AstraEvent) and asks here what they mean.
  AstraMail(const RunContext& context, const SystemLayer& system, Blocks<AstraStream>& streams,
            std::uint32_t target);

  // Makes a chunk's mailboxes.
  void open(AstraChunk& chunk) const;
  // The stream begins its phase: what came too soon is there now.
  void begin(std::uint32_t id);

  // The sender sends.
  void transmit(const AstraMessage& message);
  // Whether a message is one for the network and nothing else: it need not pass here.
  bool is_direct(bool handshakes) const { return !matches_ && !(system_.rendezvous && handshakes); }
  // The receiver waits for the message, and says so to its sender.
  void post(const AstraMessage& message);
  // It waits for it.
  void post_now(AstraStream& stream, std::int32_t slot) {
    if (stream.rank == 0) note_posted(*stream.chunk, slot);
    if (matches_) {
      match(stream.id, slot);
    } else if (stream.mailbox[slot]++ < 0) {
      schedule_now(pack(AstraEvent::late_receive, stream.id, stream.phase, slot));
    }
  }

  // Events. Whether a message that arrives is received now.
  bool arrives(std::uint32_t id, std::uint8_t phase, std::int32_t slot) {
    const AstraStream& stream = streams_[id];
    if (stream.state == StreamState::running && stream.phase == phase) return stream.mailbox[slot]-- > 0;
    streams_[id].chunk->early[early_key(id, phase)].push_back(slot);
    return false;
  }
  void handshake_arrives(std::uint32_t handshake);
  void late_handshake(std::uint32_t handshake);

 private:
  std::size_t place_of(std::uint32_t id, std::int32_t slot) const {
    const AstraChunk& chunk = *streams_[id].chunk;
    return static_cast<std::size_t>(id - chunk.first_stream) * static_cast<std::size_t>(chunk.slots) +
           static_cast<std::size_t>(slot);
  }
  std::uint64_t early_key(std::uint32_t id, std::uint8_t phase) const {
    return std::uint64_t{id - streams_[id].chunk->first_stream} << 8 | phase;
  }
  std::int32_t& box(Boxes& boxes, std::uint32_t id, std::int32_t slot) {
    return boxes.open[place_of(id, slot)];
  }
  static bool meets_receive(Boxes& boxes, std::size_t place, Time arrival);
  static std::optional<Time> meets_message(Boxes& boxes, std::size_t place);
  void note_posted(AstraChunk& chunk, std::int32_t slot) const;
  void match(std::uint32_t id, std::int32_t slot);
  Message on_network(const AstraMessage& message, std::uint64_t argument) const;
  void schedule_now(std::uint64_t argument);
  void schedule_at(Time time, std::uint64_t argument);
  void transmit_now(const AstraMessage& message);

  RunContext context_;
  const SystemLayer& system_;
  Blocks<AstraStream>& streams_;
  std::uint32_t target_;
  // 1.0 on its own network, which says when messages arrive, every rank played: arrivals wait for the receive
  // to be posted
  bool matches_;
  Slots<AstraMessage> handshakes_;
};

}  // namespace armilla
