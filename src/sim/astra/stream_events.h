// What an event of the stream engine means, packed into its argument. Private to sim/.
#pragma once

#include <cstdint>

namespace armilla {

// An event's argument: 4 bits of kind, 6 of phase, 22 of slot or packet, 32 of stream.
enum class StreamEvent : std::uint8_t {
  message,          // has arrived
  late_receive,     // a receive was posted for a message that is here; 1.0: they have met, and it arrives
  handshake,        // has arrived at the sender-to-be
  late_handshake,   // a send was begun for a handshake that is here
  bundle,           // has crossed between endpoint and memory
  bundle_to_reduce  // likewise, and its data is to be reduced
};

inline constexpr int kSlotShift = 32, kPhaseShift = 54, kKindShift = 60;

inline std::uint64_t pack(StreamEvent kind, std::uint32_t stream, std::uint8_t phase, std::int32_t slot) {
  return std::uint64_t{static_cast<std::uint8_t>(kind)} << kKindShift | std::uint64_t{phase} << kPhaseShift |
         std::uint64_t{static_cast<std::uint32_t>(slot)} << kSlotShift | stream;
}

inline StreamEvent event_of(std::uint64_t argument) {
  return static_cast<StreamEvent>(argument >> kKindShift);
}
inline std::uint8_t phase_of_event(std::uint64_t argument) {
  return static_cast<std::uint8_t>(argument >> kPhaseShift & ((1U << (kKindShift - kPhaseShift)) - 1));
}
inline std::int32_t slot_of_event(std::uint64_t argument) {
  return static_cast<std::int32_t>(argument >> kSlotShift & ((1U << (kPhaseShift - kSlotShift)) - 1));
}

}  // namespace armilla
