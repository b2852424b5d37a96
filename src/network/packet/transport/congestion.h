// What hosts do about congestion: the rate of a queue pair after each acknowledgement. One struct per
// algorithm, and the settings that all share. Rates are whole bits per second, rounded down as ns-3's
// DataRate does.
//
//   DCQCN   Zhu et al., SIGCOMM 2015, with the timers of Mellanox's NICs and no byte counter
//   HPCC    Li et al., SIGCOMM 2019
//   TIMELY  Mittal et al., SIGCOMM 2015
//   DCTCP   Alizadeh et al., SIGCOMM 2010, on rates
//   Swift   Kumar et al., SIGCOMM 2020, on rates
//
// TCP's algorithms have windows: NewReno (RFC 5681), CUBIC (RFC 9438), DCTCP (RFC 8257).
#pragma once

#include <array>
#include <cstdint>

#include "ir/flow_traffic.h"

namespace armilla {

// What a switch writes into packets as they leave it: fields as wide as HPCC's header.
struct TelemetryHop {
  std::uint32_t time = 0;   // ns, 24 bits
  std::uint32_t bytes = 0;  // sent by the port, in units of 128 bytes, 20 bits
  std::uint32_t queue = 0;  // at the port, in units of 80 bytes, 17 bits
  std::uint32_t port = 0;
  std::int64_t bits_per_second = 0;
};

inline constexpr std::uint32_t kTelemetryHops = 5;

struct Telemetry {
  std::array<TelemetryHop, kTelemetryHops> hops;
  std::uint32_t count = 0;
};

// Of a sender, what its algorithm reads and sets.
struct RateState {
  std::int64_t rate = 0, line_rate = 0;  // bits per second
  std::int64_t round_trip_ns = 0;        // of the idle network
  std::int64_t window = 0;               // bytes; 0: none
  std::uint64_t next = 0;                // sequence number
};

struct DcqcnState {
  std::int64_t target = 0;
  double alpha = 1;
  bool marked_for_alpha = false, marked_for_decrease = false, started = false;
  std::int64_t stage = 0;

  void decrease(RateState& sender, const PacketSettings& settings);  // when its timer finds a mark
  void increase(RateState& sender, const PacketSettings& settings);
};

struct HpccState {
  struct PerHop {
    double utilisation = 1;
    std::int64_t rate = 0, stage = 0;
  };
  Telemetry last;
  std::uint64_t next_update = 0;
  std::int64_t rate = 0, stage = 0;
  double utilisation = 1;
  std::array<PerHop, kTelemetryHops> per_hop;

  // Returns the new rate, or -1 for no change.
  std::int64_t acknowledged(const RateState& sender, std::uint64_t sequence, const Telemetry& told,
                            const PacketSettings& settings);
};

// HPCC as htsim has it (hpcc.cpp), which is another algorithm than the paper's: utilisation is the average
// since the first acknowledgement, whose figures of the links are kept, and of no account until a round trip
// of 12 us is over; every acknowledgement moves the window, by a packet or by utilisation.
struct HtsimHpccState {
  static constexpr std::int64_t kRoundTripNs = 12'000;
  Telemetry first;
  std::uint64_t next_update = 0;
  std::int64_t stage = 0;
  double utilisation = 0.95;
  std::uint64_t window = 0;  // bytes
  // The host looks whether the window has room once in the time that a packet takes at window / 12 us,
  // and leaves packets to its link: so far it has left all before `committed`.
  std::uint64_t committed = 0;
  std::int64_t last_look_ps = -1;
  bool looks = false;  // will do so again

  // `frame`: bytes of a packet on the wire.
  void acknowledged(std::uint64_t sequence, const Telemetry& told, std::int64_t payload, std::int64_t frame,
                    const PacketSettings& settings);
  std::int64_t spacing_ps(std::int64_t frame) const;
};

struct TimelyState {
  static constexpr std::int64_t kLeaps = 5;  // the stage from which on all are alike
  std::uint64_t next_update = 0;
  std::int64_t rate = 0, stage = 0, last_round_trip_ns = 0;
  double difference_ns = 0;

  void acknowledged(RateState& sender, std::uint64_t sequence, std::int64_t round_trip_ns,
                    const PacketSettings& settings);
};

struct DctcpState {
  std::uint64_t next_update = 0, reduced_until = 0;
  bool reduced = false;
  double alpha = 1;
  std::int64_t marked = 0, batch = 0;  // packets

  void acknowledged(RateState& sender, std::uint64_t sequence, bool mark, const PacketSettings& settings);
};

struct SwiftState {
  std::int64_t last_decrease_ns = INT64_MIN / 2;

  void acknowledged(RateState& sender, std::int64_t now_ns, std::int64_t bytes, std::int64_t round_trip_ns,
                    std::int64_t hops, const PacketSettings& settings);
};

// The window of a TCP connection, in bytes. `payload` is the size of its segments, `under_way` what has been
// sent and neither acknowledged nor taken for lost.
struct TcpState {
  double window = 0;
  double threshold = 1e300;  // slow start ends here

  void begin(const PacketSettings& settings);
  // New data of so many bytes was acknowledged, up to `sequence`, outside a recovery; `next` is what will
  // be sent next.
  void acknowledged(std::int64_t now_ns, std::int64_t round_trip_ns, double bytes, std::uint64_t sequence,
                    std::uint64_t next, const PacketSettings& settings);
  // Data was acknowledged up to `sequence`, and whether it had been marked.
  void told_of_marks(std::uint64_t sequence, std::uint64_t next, double bytes, bool mark,
                     const PacketSettings& settings);
  // A recovery begins.
  void lost(double under_way, const PacketSettings& settings);
  void timed_out(double under_way, const PacketSettings& settings);

 private:
  double reduced(double under_way, const PacketSettings& settings);
  void grow_cubic(std::int64_t now_ns, std::int64_t round_trip_ns, double bytes, double payload);

  // HyStart (Ha and Rhee, Computer Networks 55(9), 2011): of the round trip under way
  struct Round {
    std::uint64_t end = 0;
    std::int64_t start_ns = 0, last_ns = 0, shortest_ns = INT64_MAX;
    int samples = 0;
  };
  void look_at_round(std::int64_t now_ns, std::int64_t round_trip_ns, double payload);
  Round round_;
  std::int64_t shortest_ns_ = INT64_MAX;

  // CUBIC, in segments
  bool reduced_ = false;        // ever
  double largest_ = 0;          // when it was last reduced
  std::int64_t epoch_ns_ = -1;  // when it began to grow again
  double epoch_window_ = 0, estimate_ = 0, origin_s_ = 0;
  // DCTCP
  double alpha_ = 1, bytes_ = 0, marked_ = 0;
  std::uint64_t window_end_ = 0, reduced_until_ = 0;
};

}  // namespace armilla
