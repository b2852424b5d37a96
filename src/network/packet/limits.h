// How long packets take to play, how many are too many, and where fast-forward plays them all.
#pragma once

#include <string>
#include <string_view>

#include "ir/flow_traffic.h"
#include "ir/play_time.h"

namespace armilla {

// Of packets of data.
PlayTime play_time(double packets, CongestionControl control);
// Throws Error, with an estimate of the time, for more packets than anyone would wait for: those of `what`,
// whose size is set by `payload`.
void check_packets(const std::string& where, std::string_view what, std::string_view payload, double packets,
                   CongestionControl control);

// With settings that fast-forward does not know.
std::string why_all_is_played(const PacketSettings& settings);

}  // namespace armilla
