// The packet network alone: events and packets over links (data, acknowledgements, pulls) per second, by what
// hosts speak.
#include <benchmark/benchmark.h>

#include "goal_reporter.h"
#include "network/packet.h"

namespace armilla {
namespace {

// k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 core switches; 100 Gb/s and 1 us everywhere.
NetworkGraph three_tiers(std::int64_t k) {
  const std::int64_t half = k / 2, hosts = k * half * half, edges = k * half;
  NetworkGraph graph;
  graph.is_switch.assign(static_cast<std::size_t>(hosts), false);
  graph.is_switch.resize(static_cast<std::size_t>(hosts + 2 * edges + half * half), true);
  const auto join = [&](std::int64_t a, std::int64_t b) {
    graph.links.push_back({a, b, 100'000'000'000, 1000, 0});
  };
  for (std::int64_t host = 0; host < hosts; ++host) join(host, hosts + host / half);
  for (std::int64_t edge = 0; edge < edges; ++edge) {
    for (std::int64_t up = 0; up < half; ++up) {
      join(hosts + edge, hosts + edges + edge / half * half + up);
      join(hosts + edges + edge, hosts + 2 * edges + edge % half * half + up);
    }
  }
  return graph;
}

void run_flows_of(benchmark::State& state, FlowJob job, CongestionControl control) {
  job.where = "bench";
  job.settings.congestion_control = control;
  use_usual_settings(job.settings, job.graph);
  std::int64_t events = 0, frames = 0;
  for (auto _ : state) {
    const PacketOutcome outcome = simulate_packets(job);
    events += outcome.events;
    frames += outcome.frames;
  }
  state.counters["packet_hops"] =
      benchmark::Counter(static_cast<double>(frames), benchmark::Counter::kIsRate);
  set_goal(state, "events", static_cast<double>(events), 15e6);
}

void packet_incast(benchmark::State& state, CongestionControl control) {
  FlowJob job;
  job.graph = three_tiers(4);
  for (std::int64_t host = 1; host < 16; ++host) job.flows.push_back({host, 0, 1'000'000});
  run_flows_of(state, std::move(job), control);
}
BENCHMARK_CAPTURE(packet_incast, dcqcn, CongestionControl::dcqcn);
BENCHMARK_CAPTURE(packet_incast, tcp_cubic, CongestionControl::tcp_cubic);
BENCHMARK_CAPTURE(packet_incast, ndp, CongestionControl::ndp);
BENCHMARK_CAPTURE(packet_incast, eqds, CongestionControl::eqds);

void packet_all_to_all(benchmark::State& state, CongestionControl control) {
  FlowJob job;
  job.graph = three_tiers(8);
  for (std::int64_t from = 0; from < 128; ++from) {
    for (std::int64_t to = 0; to < 128; ++to) {
      if (from != to) job.flows.push_back({from, to, 50'000});
    }
  }
  run_flows_of(state, std::move(job), control);
}
BENCHMARK_CAPTURE(packet_all_to_all, dcqcn, CongestionControl::dcqcn)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(packet_all_to_all, ndp, CongestionControl::ndp)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace armilla
