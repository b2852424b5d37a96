#include "network/network.h"

#include <algorithm>
#include <array>

#include "network/analytical.h"
#include "network/astra_network.h"

namespace armilla {
namespace {

constexpr std::array kAnalyticalParameters = {
    ParameterInfo{"switching", ParameterType::choice, "cut-through",
                  "how a message passes a node between two links: as its first byte arrives, or once it is "
                  "there as a whole (as ASTRA-sim's congestion-aware backend)",
                  "cut-through|store-and-forward"},
};

constexpr std::array kNetworks = {
    NetworkInfo{"analytical",
                "latency per hop and size/bandwidth once; links serve messages first come, first served, cut "
                "through from hop to hop",
                kAnalyticalParameters,
                {.independent_delays = false, .meets_on_links_only = true},
                make_analytical},
    NetworkInfo{"analytical-unshared",
                "the same without sharing: every concurrent message gets a link's full bandwidth (as "
                "ASTRA-sim's congestion-unaware "
                "backend); optimistic wherever messages overlap",
                {},
                {.independent_delays = true, .meets_on_links_only = true},
                make_analytical_unshared},
    NetworkInfo{"astra1",
                "ASTRA-sim 1.0's: a time of its own for every message, truncated after every term",
                {},
                {.independent_delays = true},
                make_astra1},
    NetworkInfo{"astra2-unaware",
                "ASTRA-sim 2's congestion-unaware backend, truncated to nanoseconds",
                {},
                {.independent_delays = true},
                make_astra2_unaware},
    NetworkInfo{"astra2-aware",
                "ASTRA-sim 2's congestion-aware backend: whole messages stored and forwarded",
                {},
                {},
                make_astra2_aware},
};
constexpr std::size_t kNativeNetworks = 2;

}  // namespace

std::span<const NetworkInfo> networks() {
  return std::span(kNetworks).first(kNativeNetworks);
}

NetworkPromises promises_of(const ComponentChoice& network) {
  return find_component<NetworkInfo>("network", networks(), network.name, network.where).promises;
}

std::unique_ptr<Network> make_network(const ComponentChoice& choice, const NetworkSetup& setup) {
  const NetworkInfo& info = find_component<NetworkInfo>("network", networks(), choice.name, choice.where);
  return info.make(setup, ParameterValues(info.name, info.parameters, choice.parameters));
}

std::unique_ptr<Network> make_astra_network(Semantics semantics, const NetworkSetup& setup) {
  const NetworkInfo& info = *std::ranges::find(kNetworks, name_of(semantics), &NetworkInfo::name);
  return info.make(setup, ParameterValues(info.name, info.parameters, {}));
}

}  // namespace armilla
