#include "network/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "network/astra_network.h"
#include "network/dimensions/analytical.h"
#include "network/flit.h"
#include "network/flow.h"
#include "network/packet.h"
#include "network/routings.h"

namespace armilla {
namespace {

constexpr std::array kAnalyticalParameters = {
    ParameterInfo{"switching", ParameterType::choice, "cut-through",
                  "how a message passes a node between two links: as its first byte arrives, or once it is "
                  "there as a whole (as ASTRA-sim's congestion-aware backend)",
                  "cut-through|store-and-forward"},
    ParameterInfo{"sharing", ParameterType::choice, "fair",
                  "how collectives of different groups and messages of pipelines share the links by which "
                  "they leave a rank: each gets an equal part, or the first to come is served first",
                  "fair|first-come"},
};

constexpr std::array kFlowParameters = {
    kBandwidthFactorParameter,
    ParameterInfo{"routing", ParameterType::choice, "ecmp", kRoutingHelp, kRoutings},
};

constexpr std::array kPacketNetworkParameters = with_transport({
    ParameterInfo{
        "routing", ParameterType::choice, "",
        "which ways messages take over a graph: armilla list routings; else ecmp, with ndp and eqds spray",
        kRoutings},
    ParameterInfo{"seed", ParameterType::count, "", "of marks, losses, trims and names of paths; else 1"},
});

constexpr std::array kNetworks = {
    NetworkInfo{"analytical",
                "latency per hop and size/bandwidth once, cut through from hop to hop; collectives of "
                "different groups and messages of pipelines share links in equal parts, those of one are "
                "served first come, first served",
                kAnalyticalParameters,
                {.independent_delays = false, .over_dimensions = true},
                make_analytical},
    NetworkInfo{"analytical-unshared",
                "the same without sharing: every concurrent message gets a link's full bandwidth (as "
                "ASTRA-sim's congestion-unaware "
                "backend); optimistic wherever messages overlap",
                {},
                {.independent_delays = true, .over_dimensions = true},
                make_analytical_unshared},
    NetworkInfo{"flow",
                "messages as fluids at max-min fair rates, over any graph of links (as SimGrid's CM02)",
                kFlowParameters,
                {.grows_trees = true},
                make_flow_network,
                flow_links},
    NetworkInfo{"packet",
                "Ethernet with RoCE v2, TCP, NDP or EQDS, packet by packet, over any graph of links: "
                "congestion control, PFC, "
                "ECN, losses (as HPCC's and ASTRA-sim's ns-3)",
                kPacketNetworkParameters,
                {.plays_bytes = true},
                make_packet_network},
    NetworkInfo{"flit",
                "routers with virtual channels and credits, flit by flit and cycle by cycle, over any graph "
                "of links (as BookSim and Garnet)",
                kFlitParameters,
                {.plays_bytes = true},
                make_flit_network},
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
// The rows behind these are ASTRA-sim's own, which only its semantics choose: no user names them.
constexpr std::size_t kNativeNetworks = 5;

}  // namespace

std::span<const NetworkInfo> networks() {
  return std::span(kNetworks).first(kNativeNetworks);
}

NetworkPromises promises_of(const ComponentChoice& network) {
  return find_component<NetworkInfo>("network", networks(), network.name, network.where).promises;
}

void check_network(const ComponentChoice& network) {
  const NetworkInfo& info = find_component<NetworkInfo>("network", networks(), network.name, network.where);
  ParameterValues(info.name, info.parameters, network.parameters);
}

std::unique_ptr<Network> make_network(const ComponentChoice& choice, const NetworkSetup& setup) {
  const NetworkInfo& info = find_component<NetworkInfo>("network", networks(), choice.name, choice.where);
  // Networks that see dimensions have no link that could fail by itself; to leave the damage out in silence
  // would be wrong.
  if (!setup.damage.empty() && info.promises.over_dimensions) {
    throw Error(setup.damage.front().where,
                fmt::format("network '{}' knows the dimensions of a machine, not its links", info.name),
                "choose flow, packet or flit");
  }
  return info.make(setup, ParameterValues(info.name, info.parameters, choice.parameters));
}

void put_busiest_first(std::vector<LinkUse>& uses) {
  std::ranges::stable_sort(uses, std::ranges::greater(), &LinkUse::busy);
}

const LinkClasses& each_link_itself() {
  static const LinkClasses none;
  return none;
}

std::unique_ptr<MessageLinks> message_links(const ComponentChoice& choice, const Machine& machine,
                                            const WhatIf& what_if) {
  const NetworkInfo& info = find_component<NetworkInfo>("network", networks(), choice.name, choice.where);
  if (info.links == nullptr) return nullptr;
  return info.links(machine, what_if, ParameterValues(info.name, info.parameters, choice.parameters));
}

std::unique_ptr<Network> make_astra_network(Semantics semantics, const ComponentChoice& instead,
                                            const NetworkSetup& setup) {
  if (!instead.name.empty()) return make_counted(semantics, make_network(instead, setup), setup);
  const NetworkInfo& info = *std::ranges::find(kNetworks, name_of(semantics), &NetworkInfo::name);
  return info.make(setup, ParameterValues(info.name, info.parameters, {}));
}

}  // namespace armilla
