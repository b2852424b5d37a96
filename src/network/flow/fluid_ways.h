// What a fluid uses of the links of its ways, as its routing says (WayChoice, ir/flow_traffic.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/flow_traffic.h"
#include "network/flow/max_min.h"

namespace armilla {

// One way; the least loaded one (least_loaded); or a share of all. A link's load is what each of its flows
// would have to wait for a byte if one more came: (flows + 1) / capacity.
// Shares are rounded to multiples of kShareUnit.
std::vector<MaxMin::Use> choose_ways(std::span<const std::vector<std::uint32_t>> ways, WayChoice choice,
                                     const MaxMin& rates);
// The same share of all ways.
std::vector<MaxMin::Use> shares_of(std::span<const std::vector<std::uint32_t>> ways);

}  // namespace armilla
