#include "network/network.h"

#include <array>

#include "network/analytical.h"

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
};

}  // namespace

std::span<const NetworkInfo> networks() {
  return kNetworks;
}

std::unique_ptr<Network> make_network(const ComponentChoice& choice, const NetworkSetup& setup) {
  const NetworkInfo& info = find_component<NetworkInfo>("network", networks(), choice.name, choice.where);
  return info.make(setup, ParameterValues(info.name, info.parameters, choice.parameters));
}

}  // namespace armilla
