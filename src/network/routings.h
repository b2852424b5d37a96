// The names of the routings: which ways messages take over a graph of links (network/routing/ways.h).
#pragma once

#include <string_view>
#include <vector>

namespace armilla {

struct RoutingInfo {
  std::string_view name, help;
};
std::vector<RoutingInfo> routings();

// The names, separated by '|', and what the parameter means.
inline constexpr std::string_view kRoutings =
    "ecmp|ecmp-ns3|first|dimension-order|up-down|spray|adaptive|valiant|ugal|progressive";
inline constexpr std::string_view kRoutingHelp =
    "which ways messages take over a graph: armilla list routings";

}  // namespace armilla
