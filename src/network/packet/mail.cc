#include "network/packet/mail.h"

#include <algorithm>
#include <span>

namespace armilla::packets {

void Mail::post(std::uint32_t connection, std::int64_t bytes, std::uint64_t message) {
  Box& box = boxes_[connection];
  // What takes no bytes is told of, too.
  const auto least = static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 1));
  const auto largest = static_cast<std::uint64_t>(core_.settings.payload);
  const std::uint64_t begin = box.end;
  // Rounded up to whole packets in sequence numbers alone; on the wire the last one is as short as it is.
  box.end += (least + largest - 1) / largest * largest;
  box.messages.push_back({box.end, begin + least, message});
}

std::uint64_t Mail::begin_next(std::uint32_t connection) {
  Box& box = boxes_[connection];
  if (box.arrived == box.posted) {
    box.forgotten = box.arrived;
    // No more than these move up, however many are posted ahead.
    if (box.messages.size() - box.forgotten <= box.forgotten) {
      box.messages.erase(box.messages.begin(),
                         box.messages.begin() + static_cast<std::ptrdiff_t>(box.forgotten));
      box.posted = box.arrived = box.forgotten = 0;
    }
  }
  return box.messages[box.posted++].end;
}

// What has arrived and was forgotten is sent again in full packets.
std::uint32_t Mail::wire_payload(std::uint32_t connection, std::uint64_t sequence,
                                 std::uint64_t payload) const {
  const Box& box = boxes_[connection];
  const std::span<const Message> messages = std::span(box.messages).subspan(box.forgotten);
  const std::size_t known = box.arrived - box.forgotten;
  // Most often that of the first message to arrive, or of one soon after; what has arrived can be many.
  const bool arrived = known > 0 && sequence < messages[known - 1].end;
  const auto message =
      arrived ? std::ranges::upper_bound(messages, sequence, {}, &Message::end)
              : std::find_if(messages.begin() + static_cast<std::ptrdiff_t>(known), messages.end(),
                             [&](const Message& one) { return sequence < one.end; });
  if (message == messages.end() || sequence >= message->bytes_end) return static_cast<std::uint32_t>(payload);
  return static_cast<std::uint32_t>(std::min(payload, message->bytes_end - sequence));
}

}  // namespace armilla::packets
