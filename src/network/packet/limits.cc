#include "network/packet/limits.h"

#include <fmt/format.h>

#include <array>

#include "base/error.h"
#include "network/packet/wire.h"
#include "network/rough_time.h"

namespace armilla {

std::string why_all_is_played(const PacketSettings& settings) {
  const CongestionControl control = settings.congestion_control;
  if (family_of(control) != TransportFamily::roce || control == CongestionControl::dctcp ||
      control == CongestionControl::swift)
    return fmt::format("{} is played packet by packet", row_of(control).title);
  if (settings.link_down_ns > 0) return "with a link that fails every packet is played";
  if (settings.nic_pauses > 0) return "with pauses by NICs every packet is played";
  if (settings.recovery == LossRecovery::go_back_0) return "go-back-0 is played packet by packet";
  if (control == CongestionControl::timely && settings.timely_without_timestamps)
    return "TIMELY without time stamps is played packet by packet";
  if (control == CongestionControl::hpcc) return "HPCC is played packet by packet where a job sends messages";
  return settings.recovery == LossRecovery::selective
             ? "selective repeat is played packet by packet where a job sends messages"
             : "receivers that acknowledge less than every packet are played packet by packet where a job "
               "sends "
               "messages";
}

PlayTime play_time(double packets, CongestionControl control) {
  // Rings of data-parallel training on 2 to 64 GPUs play 4.5e6 to 6.6e6 packets a second with RoCE, 6.4e6 to
  // 8.3e6 with TCP, 5e6 to 6.2e6 with NDP and 1.4e6 to 5.1e6 with EQDS: none plays more than this.
  constexpr double kFastest = 1e7;
  // Measured with all-to-all among 512 GPUs, fewer with telemetry (HPCC) or spraying.
  constexpr std::array kOfFamily = {9e5, 6.5e5, 2.4e5, 7e4};  // RoCE, TCP, NDP, EQDS
  const double slowest =
      control == CongestionControl::hpcc ? 5e5 : kOfFamily[static_cast<std::size_t>(family_of(control))];
  return {packets / kFastest, packets / slowest};
}

void check_packets(const std::string& where, std::string_view what, std::string_view payload, double packets,
                   CongestionControl control) {
  if (packets < static_cast<double>(kMostPackets)) return;
  throw Error(
      where,
      fmt::format("the {} are {:.2g} packets, which would take about {} (fewer than {:.0e} are simulated)",
                  what, packets, rough_time(play_time(packets, control).most),
                  static_cast<double>(kMostPackets)),
      fmt::format("--network flow takes a time that does not depend on the bytes; a larger {} makes fewer "
                  "packets",
                  payload));
}

}  // namespace armilla
