// Sizes and times of what goes over links, and of what hosts and switches keep.
#pragma once

#include <cstdint>

namespace armilla {

// Sizes on the wire: PPP 2, IP 20, UDP 8, sequence and priority 6; acknowledgements fill a frame of 60
// bytes at least.
inline constexpr std::uint32_t kDataHeader = 36, kSmallestFrame = 60, kPauseFrame = 31;
inline constexpr std::uint32_t kLinkAndIp = 22, kAcknowledgementHeader = 12;
inline constexpr std::uint32_t kTelemetry = 42, kTimeStamp = 8;  // HPCC's, TIMELY's and Swift's
// NDP and EQDS: all headers, of data, and of a packet that has none or was cut; and what pulls are
// paced by: NDP's are for that share of a link, EQDS's come after that share of a packet's time.
inline constexpr std::uint32_t kPulledHeader = 64;
inline constexpr double kPullRate = 0.99;
inline constexpr std::uint32_t kTcpHeader = 32;                              // with time stamps (RFC 7323)
inline constexpr std::uint32_t kReserve = 4096, kResumeOffset = 3072;        // bytes, per port and priority
inline constexpr std::int64_t kNackInterval = 500'000;                       // ns
inline constexpr std::int64_t kLongestPauseBits = 65535 * 512;               // IEEE 802.1Qbb
inline constexpr std::int64_t kNicPause = 10'000, kNicPauseGap = 1'000'000;  // ns
inline constexpr int kRetries = 7;
inline constexpr std::int64_t kMostPackets = 1'000'000'000;  // fewer are simulated

// Time to send, to the nearest nanosecond, halves down.
inline std::int64_t transmission_ns(std::uint32_t bytes, std::int64_t bits_per_second) {
  const std::int64_t twice = static_cast<std::int64_t>(bytes) * 16'000'000'000;
  return (twice + bits_per_second - 1) / (2 * bits_per_second);
}

// A pause that nobody ends is over after this time.
inline std::int64_t longest_pause_ns(std::int64_t bits_per_second) {
  return kLongestPauseBits * 1'000'000'000 / bits_per_second;
}

}  // namespace armilla
