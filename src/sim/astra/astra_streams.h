// What ASTRA-sim's system layer works on: a *stream* is a chunk of a collective on one rank, on its way
// through the phases of its chunk. Streams of a chunk lie side by side; a message names the one that receives
// it. Plain data of sim/astra/astra_engine.h, with the meaning of its events.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/units.h"
#include "sim/astra/astra_plan.h"

namespace armilla {

enum class StreamState : std::uint8_t { absent, waiting, running, done };

struct AstraChunk;

// A chunk on one rank. What every message needs comes first.
struct AstraStream {
  static constexpr std::int32_t kNobodyYet = INT32_MIN;

  StreamState state = StreamState::absent;
  std::uint8_t phase = 0;
  bool reversed = false;  // anticlockwise
  bool idle = false;      // in the current phase
  std::int32_t rank = 0;
  std::int32_t* mailbox = nullptr;  // its part of the chunk's
  // Where it stands in its role: the next step and packet, and how often those rows have been done.
  const AstraRole* role = nullptr;
  const AstraPhase* current = nullptr;  // phase
  const AstraStep* step = nullptr;
  const AstraCrossing* crossing = nullptr;
  std::int32_t step_times = 0, crossing_times = 0;
  std::int32_t crossed = 0;     // packets, since the last step
  std::int32_t received = 0;    // messages
  std::int32_t unanswered = 0;  // of them, since the last packet
  // To whom it sent last in this phase: as AstraTransfer::peer names it, rank and stream.
  std::int32_t last_peer = kNobodyYet, last_to = 0;
  std::uint32_t last_stream = 0;
  std::uint32_t id = 0;
  AstraChunk* chunk = nullptr;
  std::int32_t here = 0;   // its position in the current phase's line of ranks
  std::uint32_t base = 0;  // the first stream of its group
  std::int32_t priority = 0;
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

struct AstraChunk {
  std::uint32_t id = 0;  // into chunks_
  std::uint32_t instance = 0;
  std::uint32_t number = 0;  // within its collective
  std::uint32_t first_stream = 0;
  std::uint32_t custom = 0;                 // instance of the custom runner
  const std::int32_t* member_of = nullptr;  // of its family
  std::vector<AstraPhase> phases;
  std::int32_t slots = 1;  // of a stream's mailbox
  Boxes mail;              // [member][slot]
  Boxes handshakes;        // [member][slot]: sends that wait for their handshake; empty without rendezvous
  std::vector<std::uint32_t>
      queues;  // [member][phase]: number and direction; empty when a level has one queue
  std::unordered_map<std::uint64_t, std::vector<std::int32_t>>
      early;  // by (member, phase), slots of messages
              // for phases not reached yet
  std::vector<std::uint32_t> at_barrier;
  std::vector<Time> posted;  // per slot, on rank 0, for its statistics
  std::uint32_t members = 0, members_left = 0;
};

// An event's argument: 4 bits of kind, 6 of phase, 22 of slot or row of packets, 32 of stream.
enum class AstraEvent : std::uint8_t {
  message,           // has arrived
  late_receive,      // a receive was posted for a message that is here; 1.0: they have met, and it arrives
  handshake,         // has arrived at the sender-to-be
  late_handshake,    // a send was begun for a handshake that is here
  bundle,            // has crossed between endpoint and memory
  bundle_to_reduce,  // likewise, and its data is to be reduced
  custom_done        // a custom collective of the stream
};

inline constexpr int kSlotShift = 32, kPhaseShift = 54, kKindShift = 60;

inline std::uint64_t pack(AstraEvent kind, std::uint32_t stream, std::uint8_t phase, std::int32_t slot) {
  return std::uint64_t{static_cast<std::uint8_t>(kind)} << kKindShift | std::uint64_t{phase} << kPhaseShift |
         std::uint64_t{static_cast<std::uint32_t>(slot)} << kSlotShift | stream;
}

inline AstraEvent event_of(std::uint64_t argument) {
  return static_cast<AstraEvent>(argument >> kKindShift);
}
inline std::uint8_t phase_of_event(std::uint64_t argument) {
  return static_cast<std::uint8_t>(argument >> kPhaseShift & ((1U << (kKindShift - kPhaseShift)) - 1));
}
inline std::int32_t slot_of_event(std::uint64_t argument) {
  return static_cast<std::int32_t>(argument >> kSlotShift & ((1U << (kPhaseShift - kSlotShift)) - 1));
}

}  // namespace armilla
