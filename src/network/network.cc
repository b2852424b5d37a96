#include "network/network.h"

#include <array>

#include "network/analytical.h"

namespace armilla {
namespace {

constexpr std::array kNetworks = {
    NetworkInfo{"analytical",
                "latency per hop and size/bandwidth once; links serve messages first come, first served, cut "
                "through from hop to hop",
                {},
                {.independent_delays = false, .meets_at_ends_only = true},
                make_analytical},
    NetworkInfo{"analytical-unshared",
                "the same without sharing: every concurrent message gets a link's full bandwidth (as "
                "ASTRA-sim's congestion-unaware "
                "backend); optimistic wherever messages overlap",
                {},
                {.independent_delays = true, .meets_at_ends_only = true},
                make_analytical_unshared},
};

}  // namespace

std::span<const NetworkInfo> networks() {
  return kNetworks;
}

std::unique_ptr<Network> make_network(const ComponentChoice& choice, const Machine& machine, Fold fold,
                                      EventQueue& queue, MessageSink& sink) {
  const NetworkInfo& info = find_component<NetworkInfo>("network", networks(), choice.name, choice.where);
  return info.make(machine, ParameterValues(info.name, info.parameters, choice.parameters), fold, queue,
                   sink);
}

}  // namespace armilla
