// Selective repeat, as RoCE (IRN) and TCP have it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace armilla::packets {

// What arrived out of order, and what the sender knows of it. In packets of the flow.
struct Selective {
  std::vector<std::uint64_t> arrived;  // bit per packet
  std::vector<std::uint64_t> known;    // the same, as far as the sender has been told
  std::uint64_t highest_arrived = 0;
  std::uint64_t highest_known = 0;  // below it, what is not known is taken for lost
  bool recovering = false;          // `resend` is to be sent again
  std::uint64_t resend = 0;         // everything lost before it has been sent again
  std::uint64_t recover_until = 0;  // what is lost beyond begins a new recovery

  static bool has(const std::vector<std::uint64_t>& bits, std::uint64_t packet) {
    return (bits[packet / 64] >> (packet % 64) & 1) != 0;
  }
  static void set(std::vector<std::uint64_t>& bits, std::uint64_t packet) {
    bits[packet / 64] |= std::uint64_t{1} << (packet % 64);
  }
  bool knows(std::uint64_t packet) const { return has(known, packet); }
  // The same so many packets further on; all before has arrived.
  void shift(std::uint64_t packets);
  void grow(std::size_t words) {
    arrived.resize(words);
    known.resize(words);
  }
  // The first byte that has not arrived, of a flow of so many, once all before `next` has.
  std::uint64_t expected(std::uint64_t next, std::uint64_t payload, std::uint64_t size) const {
    while (next * payload < size && has(arrived, next)) ++next;
    return std::min(next * payload, size);
  }
  void find_lost() {
    while (resend < highest_known && knows(resend)) ++resend;
    recovering = resend < highest_known;
  }
};

inline void Selective::shift(std::uint64_t packets) {
  const std::size_t words = packets / 64, rest = packets % 64;
  for (std::vector<std::uint64_t>* bits : {&arrived, &known}) {
    for (std::size_t word = bits->size(); word-- > 0;) {
      std::uint64_t moved = ~std::uint64_t{0};  // of what comes in from below
      if (word >= words) {
        const std::uint64_t below = word > words ? (*bits)[word - words - 1] : ~std::uint64_t{0};
        moved = rest == 0 ? (*bits)[word - words] : (*bits)[word - words] << rest | below >> (64 - rest);
      }
      (*bits)[word] = moved;
    }
  }
  for (std::uint64_t* place : {&highest_arrived, &highest_known, &resend, &recover_until}) *place += packets;
}

}  // namespace armilla::packets
