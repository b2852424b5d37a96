#include "network/flow_networks.h"

#include <array>

#include "network/flow.h"
#include "network/packet.h"

namespace armilla {
namespace {

constexpr std::array kPacketParameters = {
    ParameterInfo{"cc", ParameterType::choice, "", "congestion control; else the file's",
                  kCongestionControls},
    ParameterInfo{"recovery", ParameterType::choice, "",
                  "what hosts send again after a loss; else the file's", kLossRecoveries},
    ParameterInfo{"timeout", ParameterType::time, "",
                  "without progress after a loss until a host sends again"},
    ParameterInfo{"timely-timestamps", ParameterType::boolean, "",
                  "false: TIMELY as ASTRA-sim's ns-3 has it, whose packets carry no time"},
};

TrafficResult run_packet(FlowJob job, const ParameterValues& values) {
  set_roce(job.settings, values);
  if (job.usual_settings) use_usual_settings(job.settings, job.graph);
  return packet_traffic(job);
}

constexpr std::array kFluidParameters = {
    ParameterInfo{"bandwidth-factor", ParameterType::fraction, "1",
                  "of the links' bandwidth that payload gets"},
    ParameterInfo{"latency-factor", ParameterType::count, "1", "times the links' delays"},
    ParameterInfo{"cross-traffic", ParameterType::fraction, "0",
                  "of its rate that a flow takes on the way back, for acknowledgements"},
    ParameterInfo{"weigh-by-latency", ParameterType::boolean, "false",
                  "shares in inverse proportion to the flows' latencies, as SimGrid's"},
};

TrafficResult run_fluid(FlowJob job, const ParameterValues& values) {
  return flow_traffic(
      job, {values.fraction("bandwidth-factor"), static_cast<double>(values.count("latency-factor")),
            values.fraction("cross-traffic"), values.boolean("weigh-by-latency")});
}

constexpr std::array kFlowNetworks = {
    FlowNetwork{"packet", "Ethernet with RoCE v2 or TCP, packet by packet, as HPCC's and ASTRA-sim's ns-3",
                kPacketParameters, run_packet},
    FlowNetwork{"flow", "flows as fluids at max-min fair rates, as SimGrid's CM02", kFluidParameters,
                run_fluid},
};

}  // namespace

std::span<const FlowNetwork> flow_networks() {
  return kFlowNetworks;
}

TrafficResult run_flows(const ComponentChoice& network, FlowJob job) {
  const FlowNetwork& row = find_component("network for flows", flow_networks(), network.name, network.where);
  return row.run(std::move(job), ParameterValues(row.name, row.parameters, network.parameters));
}

}  // namespace armilla
