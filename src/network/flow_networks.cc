#include "network/flow_networks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <variant>

#include "base/error.h"
#include "base/units_text.h"
#include "network/flit.h"
#include "network/flow.h"
#include "network/packet.h"
#include "network/routing/ways.h"
#include "network/routings.h"

namespace armilla {
namespace {

constexpr ParameterInfo kFlowRouting = {
    "routing", ParameterType::choice, "",
    "which ways flows take over a machine or a topology (armilla list routings); else ecmp-ns3, and "
    "dimension-order where devices forward; with cc ndp and eqds spray",
    kRoutings};

constexpr std::array kPacketParameters = with_transport({kFlowRouting});

constexpr std::array kFluidParameters = {
    kFlowRouting,
    kBandwidthFactorParameter,
    ParameterInfo{"latency-factor", ParameterType::number, "1", "times the links' delays"},
    ParameterInfo{"cross-traffic", ParameterType::fraction, "0",
                  "of its rate that a flow takes on the way back, for acknowledgements"},
    ParameterInfo{"weigh-by-latency", ParameterType::boolean, "false",
                  "shares in inverse proportion to the flows' latencies, as SimGrid's"},
};

// Cable C + r, of C, joins device r with its router, which takes the device's place.
Interconnect with_routers(Interconnect graph) {
  const auto devices = static_cast<std::uint32_t>(graph.devices());
  const auto first = static_cast<std::uint32_t>(graph.nodes.size());
  // The joint is as wide as all links of the device together and takes no time, so that it never holds
  // anything up.
  std::vector<LinkFigures> out(devices), in(devices);
  const auto move_end = [&](std::uint32_t& end, const LinkFigures& leaving, const LinkFigures& coming) {
    // Ends at switches stay where they are.
    if (end >= devices) return;
    out[end].bandwidth.value += leaving.bandwidth.value;
    in[end].bandwidth.value += coming.bandwidth.value;
    end += first;
  };
  for (Cable& cable : graph.cables) {
    move_end(cable.a, cable.there, cable.back);
    move_end(cable.b, cable.back, cable.there);
  }
  for (std::uint32_t device = 0; device < devices; ++device) {
    graph.nodes.push_back({NetworkNodeKind::switched, graph.nodes[device].name + " router"});
    graph.cables.push_back({device, first + device, out[device], in[device], 0});
  }
  graph.devices_forward = false;
  return graph;
}

// Each flow for itself, as ns-3 hashes it, is how they go where nothing is chosen.
std::string flow_routing(bool sprays, const ParameterValues& values, std::string_view otherwise) {
  if (values.is_set("routing")) return values.choice("routing");
  return std::string(sprays ? "spray" : otherwise);
}

// Hosts of `run` do not forward. Where devices do, a router takes the place of each, and the device hangs on
// it.
TrafficResult over_ways(FlowJob job, const FlowsOver& over, const ParameterValues& values, bool sprays,
                        TrafficResult (*run)(FlowJob, const ParameterValues&)) {
  const bool chosen = sprays || (values.is_set("routing") && values.choice("routing") != "ecmp-ns3");
  Ways ways(over.machine, {}, flow_routing(sprays, values, "dimension-order"), over.damage);
  const Interconnect& graph = ways.graph();
  job.graph = network_graph(graph.devices_forward ? with_routers(graph) : graph);
  // Links between devices have flow control, and nobody that marks: a host's own link is the wider one.
  if (graph.devices_forward) job.settings.congestion_control = CongestionControl::none;
  // Else flows are hashed hop by hop, as in ns-3.
  if (chosen || graph.devices_forward) {
    const auto cables = static_cast<std::uint32_t>(graph.cables.size());
    job.ways = [&ways, &graph, cables, found = FlowWays()](std::int64_t source,
                                                           std::int64_t destination) mutable {
      Message message;
      message.source = static_cast<std::int32_t>(source);
      message.destination = static_cast<std::int32_t>(destination);
      const std::span<const Ways::Way> direct = ways.ways(message);
      if (!graph.devices_forward) return direct;
      found.clear();
      // From the device to its router, the way between the routers, and down to the device.
      for (const Ways::Way& way : direct) {
        Ways::Way& whole = found.emplace_back();
        whole.push_back(2 * (cables + static_cast<std::uint32_t>(source)));
        whole.insert(whole.end(), way.begin(), way.end());
        whole.push_back(2 * (cables + static_cast<std::uint32_t>(destination)) + 1);
      }
      return std::span<const Ways::Way>(found);
    };
    job.choice = ways.routing().choice;
  }
  TrafficResult result = run(std::move(job), values);
  if (std::string collision = ways.collision_note(); !collision.empty())
    result.notes.push_back(std::move(collision));
  return result;
}

TrafficResult run_packet(FlowJob job, const ParameterValues& values) {
  set_transport(job, values);
  return packet_traffic(job);
}

TrafficResult run_packet_over(FlowJob job, const FlowsOver& over, const ParameterValues& values) {
  return over_ways(std::move(job), over, values, sprays(values), run_packet);
}

TrafficResult run_fluid(FlowJob job, const ParameterValues& values) {
  return flow_traffic(job, {bandwidth_factor_of(values), values.number("latency-factor"),
                            values.fraction("cross-traffic"), values.boolean("weigh-by-latency")});
}

TrafficResult run_fluid_over(FlowJob job, const FlowsOver& over, const ParameterValues& values) {
  return over_ways(std::move(job), over, values, false, run_fluid);
}

// Devices forward by themselves, by ways of the network's own.
TrafficResult run_flits_over(FlowJob job, const FlowsOver& over, const ParameterValues& values) {
  Interconnect links = links_of(over.machine);
  job.graph = network_graph(over.damage.empty() ? links : with_damage(links, over.damage));
  return flit_traffic(job, over.machine, over.damage, values);
}

bool never(const ParameterValues& /*values*/) {
  return false;
}

constexpr std::array kFlowNetworks = {
    FlowNetwork{"packet",
                "Ethernet with RoCE v2, TCP, NDP or EQDS, packet by packet, as HPCC's and ASTRA-sim's ns-3",
                kPacketParameters, true, sprays, run_packet, run_packet_over, 400, 15},
    FlowNetwork{"flow", "flows as fluids at max-min fair rates, as SimGrid's CM02", kFluidParameters, true,
                never, run_fluid, run_fluid_over, 330, 40},
    FlowNetwork{"flit", "routers with virtual channels and credits, flit by flit, as BookSim and Garnet",
                kFlitParameters, false, never, nullptr, run_flits_over, 1150, 24},
};

// Of all ways of a pair of devices together, on the average of some pairs; each link once.
double mean_links(Ways& ways, std::int64_t devices) {
  constexpr std::int64_t kPairs = 61;
  double sum = 0, pairs = 0;
  for (std::int64_t i = 0; i < kPairs; ++i) {
    Message message;
    message.source = static_cast<std::int32_t>(i * (devices - 1) / kPairs);
    message.destination = static_cast<std::int32_t>((29 * i + 31) % kPairs * devices / kPairs);
    if (message.source == message.destination) continue;
    try {
      sum += static_cast<double>(Ways::distinct_links(ways.ways(message)).size());
    } catch (const Error&) {
      continue;  // perhaps nobody asks for this way
    }
    ++pairs;
  }
  return sum / std::max(pairs, 1.0);
}

}  // namespace

std::span<const FlowNetwork> flow_networks() {
  return kFlowNetworks;
}

TrafficResult run_flows(const ComponentChoice& network, FlowJob job) {
  const FlowNetwork& row = find_component("network for flows", flow_networks(), network.name, network.where);
  const ParameterValues values(row.name, row.parameters, network.parameters);
  if (!row.has_hosts)
    throw Error(network.where, "has no hosts of ns-3, whose file these flows are of",
                "give the topology with --traffic flow.txt");
  if (values.is_set("routing") && values.choice("routing") != "ecmp-ns3")
    throw Error(values.where("routing"), "the file's flows go where ns-3's ECMP hashes them",
                "give a topology with --traffic");
  return row.run(std::move(job), values);
}

TrafficResult run_flows(const ComponentChoice& network, const Machine& machine,
                        std::span<const DamagedLink> damage, FlowJob job) {
  const FlowNetwork& row = find_component("network for flows", flow_networks(), network.name, network.where);
  const ParameterValues values(row.name, row.parameters, network.parameters);
  // Whose file has numbers for its nodes meets them again.
  const auto with_numbers = [graph = network_graph(links_of(machine))](TrafficResult result) {
    for (FlowResult& flow : std::get<FlowsResult>(result.outcome).flows) {
      flow.source = graph.number_of(flow.source);
      flow.destination = graph.number_of(flow.destination);
    }
    return result;
  };
  return with_numbers(row.run_over(std::move(job), {machine, damage}, values));
}

void check_memory(const ComponentChoice& network, const Machine& machine, std::span<const DamagedLink> damage,
                  const std::string& where, std::int64_t flows, std::int64_t bytes_after, Bytes left) {
  const FlowNetwork& row = find_component("network for flows", flow_networks(), network.name, network.where);
  const ParameterValues values(row.name, row.parameters, network.parameters);
  constexpr double kMostOfFlow = 10'000;
  if (static_cast<double>(flows) * kMostOfFlow <= static_cast<double>(left.value)) return;
  const std::string_view otherwise = machine.graph.empty() ? "dimension-order" : "ecmp";
  Ways ways(machine, {}, flow_routing(row.sprays(values), values, otherwise), damage);
  const double each =
      std::max(row.bytes_of_flow + row.bytes_of_link * mean_links(ways, ways.graph().devices()),
               static_cast<double>(bytes_after));
  const double needed = static_cast<double>(flows) * each;
  if (needed <= static_cast<double>(left.value)) return;
  const auto fit = static_cast<double>(left.value) / each;
  throw Error(
      where,
      fmt::format("{} flows would take about {:.0f} GB of memory on the network {}, and {:.3g} GB are left",
                  with_separators(flows), needed / 1e9, row.name, static_cast<double>(left.value) / 1e9),
      fmt::format("all-to-all:hosts={:.0f} would fit", std::max(std::floor(std::sqrt(fit)), 2.0)));
}

}  // namespace armilla
