#include "network/packet/transport/congestion.h"

#include <algorithm>
#include <cmath>

namespace armilla {
namespace {

std::int64_t whole(double rate) {
  return static_cast<std::int64_t>(rate);
}

std::int64_t bounded(double rate, const RateState& sender, const PacketSettings& settings) {
  if (!(rate < static_cast<double>(sender.line_rate))) return sender.line_rate;
  return std::max(whole(rate), whole(settings.min_rate));
}

}  // namespace

// ---- DCQCN

void DcqcnState::decrease(RateState& sender, const PacketSettings& settings) {
  if (settings.clamp_target || stage != 0) target = sender.rate;
  sender.rate = std::max(whole(settings.min_rate), whole(static_cast<double>(sender.rate) * (1 - alpha / 2)));
  stage = 0;
  marked_for_decrease = false;
}

void DcqcnState::increase(RateState& sender, const PacketSettings& settings) {
  if (stage >= settings.fast_recoveries) {
    target += whole(stage == settings.fast_recoveries ? settings.rate_step : settings.rate_leap);
    target = std::min(target, sender.line_rate);
  }
  sender.rate = sender.rate / 2 + target / 2;
  ++stage;
}

// ---- HPCC

std::int64_t HpccState::acknowledged(const RateState& sender, std::uint64_t sequence, const Telemetry& told,
                                     const PacketSettings& settings) {
  const bool whole_round_trip = sequence > next_update;
  if (!whole_round_trip && !settings.fast_react) return -1;
  if (next_update == 0) {
    next_update = sender.next;
    last = told;
    return -1;
  }

  const double base = static_cast<double>(sender.round_trip_ns);
  const std::uint32_t count = std::min(told.count, kTelemetryHops);
  std::array<bool, kTelemetryHops> looked_at = {};
  bool any = false;
  double most = 0;
  std::int64_t most_ns = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const TelemetryHop& now = told.hops[i];
    TelemetryHop& before = last.hops[i];
    if (settings.sample_feedback && now.queue == 0 && !whole_round_trip) continue;
    looked_at[i] = any = true;
    const std::int64_t unit = settings.telemetry_unit;
    std::int64_t elapsed_ns = (now.time - before.time) & 0xff'ffffU;
    const std::int64_t sent = static_cast<std::int64_t>((now.bytes - before.bytes) & 0xf'ffffU) * 128 * unit;
    const std::int64_t queue = static_cast<std::int64_t>(std::min(now.queue, before.queue)) * 80 * unit;
    const double link = static_cast<double>(now.bits_per_second);
    const double throughput = static_cast<double>(sent * 8) / (static_cast<double>(elapsed_ns) * 1e-9);
    const double load = throughput / link + static_cast<double>(queue) *
                                                static_cast<double>(sender.line_rate) / link /
                                                static_cast<double>(sender.window);
    if (settings.rate_per_hop) {
      elapsed_ns = std::min(elapsed_ns, sender.round_trip_ns);
      double& average = per_hop[i].utilisation;
      average = (average * static_cast<double>(sender.round_trip_ns - elapsed_ns) +
                 load * static_cast<double>(elapsed_ns)) /
                base;
    } else if (load > most) {
      most = load;
      most_ns = elapsed_ns;
    }
    before = now;
  }

  const auto adjusted = [&](std::int64_t from, std::int64_t stages, double average,
                            std::int64_t& new_stages) {
    const double load = average / settings.target_utilisation;
    std::int64_t changed = from;
    if (load >= 1 || stages >= settings.increase_stages) {
      const double divided = static_cast<double>(from) / load;
      changed = divided < 9e18 ? whole(divided) : INT64_MAX / 2;
      new_stages = 0;
    } else {
      new_stages = stages + 1;
    }
    return bounded(static_cast<double>(changed + whole(settings.rate_step)), sender, settings);
  };
  std::int64_t new_rate = -1;
  if (settings.rate_per_hop) {
    new_rate = sender.line_rate;
    for (std::uint32_t i = 0; i < count; ++i) {
      PerHop& hop = per_hop[i];
      if (!looked_at[i]) {
        new_rate = std::min(new_rate, hop.rate);
        continue;
      }
      std::int64_t stages = 0;
      const std::int64_t rate_here = adjusted(hop.rate, hop.stage, hop.utilisation, stages);
      new_rate = std::min(new_rate, rate_here);
      if (whole_round_trip) {
        hop.rate = rate_here;
        hop.stage = stages;
      }
    }
    if (!any) new_rate = -1;
  } else if (any) {
    most_ns = std::min(most_ns, sender.round_trip_ns);
    utilisation = (utilisation * static_cast<double>(sender.round_trip_ns - most_ns) +
                   most * static_cast<double>(most_ns)) /
                  base;
    std::int64_t stages = 0;
    new_rate = adjusted(rate, stage, utilisation, stages);
    if (whole_round_trip) {
      rate = new_rate;
      stage = stages;
    }
  }
  if (whole_round_trip) next_update = std::max(next_update, sender.next);
  return new_rate;
}

// ---- HPCC of htsim

void HtsimHpccState::acknowledged(std::uint64_t sequence, const Telemetry& told, std::int64_t payload,
                                  std::int64_t frame, const PacketSettings& settings) {
  constexpr std::int64_t kMostStages = 5;
  const std::uint32_t count = std::min(told.count, kTelemetryHops);
  if (first.count != told.count) {
    first = told;
  } else {
    double most = 0;
    std::int64_t most_ns = kRoundTripNs;
    const std::int64_t unit = settings.telemetry_unit;
    for (std::uint32_t i = 0; i < count; ++i) {
      const TelemetryHop &now = told.hops[i], &before = first.hops[i];
      const std::int64_t elapsed_ns = now.time - before.time;
      if (elapsed_ns == 0) continue;
      const std::int64_t sent = std::int64_t{now.bytes - before.bytes} * 128 * unit;
      // Of htsim's queues, which have the packet itself yet.
      const std::int64_t queue = std::min(now.queue, before.queue) * 80 * unit + frame;
      const double link = static_cast<double>(now.bits_per_second) / 8e9;  // bytes per ns
      const double load = static_cast<double>(queue) / (link * static_cast<double>(kRoundTripNs)) +
                          static_cast<double>(sent) / static_cast<double>(elapsed_ns) / link;
      if (load > most) {
        most = load;
        most_ns = elapsed_ns;
      }
    }
    // The weight is a quotient of whole numbers: none or all.
    if (most_ns >= kRoundTripNs) utilisation = most;
  }
  const bool whole_round_trip = sequence > next_update;
  if (utilisation >= settings.target_utilisation || stage >= kMostStages) {
    window =
        static_cast<std::uint64_t>(static_cast<double>(window) / (utilisation / settings.target_utilisation) +
                                   static_cast<double>(payload));
    if (whole_round_trip) stage = 0;
  } else {
    window += static_cast<std::uint64_t>(payload);
    if (whole_round_trip) ++stage;
  }
  if (whole_round_trip) next_update = committed;
}

std::int64_t HtsimHpccState::spacing_ps(std::int64_t frame) const {
  const double spacing = static_cast<double>(frame * kRoundTripNs * 1000) / static_cast<double>(window);
  return std::max(std::int64_t{1}, static_cast<std::int64_t>(spacing));
}

// ---- TIMELY

void TimelyState::acknowledged(RateState& sender, std::uint64_t sequence, std::int64_t round_trip_ns,
                               const PacketSettings& settings) {
  constexpr double kWeight = 0.875, kDecrease = 0.8;
  constexpr std::int64_t kLow = 50'000, kHigh = 500'000, kShortest = 20'000;  // ns
  if (sequence <= next_update) return;
  if (next_update != 0) {
    const double difference =
        (1 - kWeight) * difference_ns + kWeight * static_cast<double>(round_trip_ns - last_round_trip_ns);
    const double gradient = difference / static_cast<double>(kShortest);
    if (round_trip_ns < kLow || (round_trip_ns <= kHigh && gradient <= 0)) {
      sender.rate =
          std::min(sender.line_rate, rate + whole(stage < kLeaps ? settings.rate_step : settings.rate_leap));
      ++stage;
    } else {
      const double factor =
          round_trip_ns > kHigh
              ? 1 - kDecrease * (1 - static_cast<double>(kHigh) / static_cast<double>(round_trip_ns))
              : std::max(0.0, 1 - kDecrease * gradient);
      sender.rate = std::max(whole(settings.min_rate), whole(static_cast<double>(rate) * factor));
      stage = 0;
    }
    rate = sender.rate;
    difference_ns = difference;
  }
  if (sender.next > next_update) {
    next_update = sender.next;
    last_round_trip_ns = round_trip_ns;
  }
}

// ---- DCTCP

void DctcpState::acknowledged(RateState& sender, std::uint64_t sequence, bool mark,
                              const PacketSettings& settings) {
  marked += mark ? 1 : 0;
  const bool whole_window = sequence > next_update;
  if (whole_window) {
    const auto payload = static_cast<std::uint64_t>(settings.payload);
    if (next_update == 0) {
      batch = static_cast<std::int64_t>(sender.next / payload) + 1;
    } else {
      const double fraction = std::min(1.0, static_cast<double>(marked) / static_cast<double>(batch));
      alpha = (1 - settings.gain) * alpha + settings.gain * fraction;
      marked = 0;
      batch = sender.next < sequence ? 1 : static_cast<std::int64_t>((sender.next - sequence) / payload) + 1;
    }
    next_update = sender.next;
  }
  if (reduced && sequence > reduced_until) reduced = false;
  if (mark && !reduced) {
    sender.rate =
        std::max(whole(settings.min_rate), whole(static_cast<double>(sender.rate) * (1 - alpha / 2)));
    reduced = true;
    reduced_until = sender.next;
  }
  if (!reduced && whole_window)
    sender.rate = std::min(sender.line_rate, sender.rate + whole(settings.dctcp_step));
}

// ---- Swift

void SwiftState::acknowledged(RateState& sender, std::int64_t now_ns, std::int64_t bytes,
                              std::int64_t round_trip_ns, std::int64_t hops, const PacketSettings& settings) {
  // Target delay: base, a share per hop, and what flows with small windows may add (equation 2 of the paper);
  // windows and rates are the same thing over the round trip of the idle network.
  constexpr double kBeta = 0.8, kMostDecrease = 0.5, kPerHop = 1'000, kRange = 4.0;
  constexpr double kSmallest = 0.1, kLargest = 100;  // windows in packets between which the target is scaled
  const double base = static_cast<double>(sender.round_trip_ns);
  const double packet = static_cast<double>(settings.payload);
  const double window = std::max(1e-3, static_cast<double>(sender.rate) / 8e9 * base / packet);
  const double alpha = kRange / (1 / std::sqrt(kSmallest) - 1 / std::sqrt(kLargest));
  const double scaled = std::clamp(alpha / std::sqrt(window) - alpha / std::sqrt(kLargest), 0.0, kRange);
  const double target = base * (1 + 0.25 * scaled) + kPerHop * static_cast<double>(hops);
  const double delay = static_cast<double>(round_trip_ns);
  double rate = static_cast<double>(sender.rate);
  if (delay < target) {
    rate += settings.rate_step * static_cast<double>(bytes) / packet / std::max(1.0, window);
  } else if (now_ns - last_decrease_ns >= round_trip_ns) {
    rate *= std::max(1 - kBeta * (delay - target) / delay, 1 - kMostDecrease);
    last_decrease_ns = now_ns;
  }
  sender.rate = bounded(rate, sender, settings);
}

// ---- TCP

void TcpState::begin(const PacketSettings& settings) {
  *this = {};
  window = static_cast<double>(settings.initial_window * settings.payload);
  if (settings.first_threshold > 0)
    threshold = static_cast<double>(settings.first_threshold * settings.payload);
}

void TcpState::acknowledged(std::int64_t now_ns, std::int64_t round_trip_ns, double bytes,
                            std::uint64_t sequence, std::uint64_t next, const PacketSettings& settings) {
  const auto payload = static_cast<double>(settings.payload);
  if (window < threshold) {
    if (settings.congestion_control == CongestionControl::tcp_cubic) {
      look_at_round(now_ns, round_trip_ns, payload);
      if (sequence > round_.end) round_ = {next, now_ns, now_ns, INT64_MAX, 0};
    }
    window += std::min(bytes, payload);
  } else if (settings.congestion_control == CongestionControl::tcp_cubic) {
    grow_cubic(now_ns, round_trip_ns, bytes, payload);
  } else {
    window += payload * payload / window;
  }
}

// Slow start ends where acknowledgements come for as long as a round trip takes, or round trips have
// become longer.
void TcpState::look_at_round(std::int64_t now_ns, std::int64_t round_trip_ns, double payload) {
  constexpr double kLeastSegments = 16;
  constexpr std::int64_t kLongestGap = 2'000'000, kLeastDelay = 4'000'000;  // ns
  constexpr int kSamples = 8;
  shortest_ns_ = std::min(shortest_ns_, round_trip_ns);
  if (window < kLeastSegments * payload) return;
  bool full = false;
  if (now_ns - round_.last_ns <= kLongestGap) {
    round_.last_ns = now_ns;
    full = now_ns - round_.start_ns > shortest_ns_;
  }
  if (round_.samples < kSamples) {
    round_.shortest_ns = std::min(round_.shortest_ns, round_trip_ns);
    ++round_.samples;
  } else {
    full = full || round_.shortest_ns > shortest_ns_ + std::max(shortest_ns_ / 8, kLeastDelay);
  }
  if (full) threshold = window;
}

// RFC 9438, sections 4.2 to 4.5.
void TcpState::grow_cubic(std::int64_t now_ns, std::int64_t round_trip_ns, double bytes, double payload) {
  constexpr double kScale = 0.4, kBeta = 0.7, kFriendly = 3 * (1 - kBeta) / (1 + kBeta);
  const double segments = window / payload, acknowledged = bytes / payload;
  if (epoch_ns_ < 0) {
    epoch_ns_ = now_ns;
    epoch_window_ = estimate_ = segments;
    largest_ = std::max(largest_, segments);
    origin_s_ = std::cbrt((largest_ - segments) / kScale);
  }
  const auto at = [&](double seconds) {
    const double since = seconds - origin_s_;
    return kScale * since * since * since + largest_;
  };
  const double seconds = static_cast<double>(now_ns - epoch_ns_) * 1e-9;
  estimate_ += (estimate_ < largest_ ? kFriendly : 1) * acknowledged / segments;
  double grown = 0;  // segments
  if (at(seconds) < estimate_) {
    grown = std::max(0.0, estimate_ - segments);
  } else {
    const double target =
        std::clamp(at(seconds + static_cast<double>(round_trip_ns) * 1e-9), segments, 1.5 * segments);
    grown = (target - segments) / segments * acknowledged;
  }
  // Who left slow start and has not lost anything yet looks for more, as Linux does: a twentieth
  // per round trip.
  if (!reduced_) grown = std::max(grown, acknowledged / 20);
  window += grown * payload;
}

double TcpState::reduced(double under_way, const PacketSettings& settings) {
  constexpr double kBeta = 0.7;
  const auto payload = static_cast<double>(settings.payload);
  if (settings.congestion_control != CongestionControl::tcp_cubic)
    return std::max(under_way / 2, 2 * payload);
  // Fast convergence: who is reduced before it has come as far as last time makes room for others.
  const double segments = window / payload;
  reduced_ = true;
  largest_ = segments < largest_ ? segments * (1 + kBeta) / 2 : segments;
  epoch_ns_ = -1;
  return std::max(under_way * kBeta, 2 * payload);
}

void TcpState::lost(double under_way, const PacketSettings& settings) {
  window = threshold = reduced(under_way, settings);
}

void TcpState::timed_out(double under_way, const PacketSettings& settings) {
  threshold = reduced(under_way, settings);
  window = static_cast<double>(settings.payload);
}

void TcpState::told_of_marks(std::uint64_t sequence, std::uint64_t next, double bytes, bool mark,
                             const PacketSettings& settings) {
  if (settings.congestion_control != CongestionControl::tcp_dctcp) return;
  bytes_ += bytes;
  marked_ += mark ? bytes : 0;
  if (sequence > window_end_) {
    if (bytes_ > 0) alpha_ = (1 - settings.gain) * alpha_ + settings.gain * marked_ / bytes_;
    bytes_ = marked_ = 0;
    window_end_ = next;
  }
  if (!mark || sequence <= reduced_until_) return;
  window = threshold = std::max(window * (1 - alpha_ / 2), 2 * static_cast<double>(settings.payload));
  reduced_until_ = next;
}

}  // namespace armilla
