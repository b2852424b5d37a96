#include "network/flow.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/units_text.h"
#include "network/flow/max_min.h"
#include "network/routes.h"

namespace armilla {
namespace {

struct Fluid {
  double left = 0;            // bits
  double rate = 0;            // bits per second
  std::int64_t since_ps = 0;  // when `left` was true
  std::int64_t done_ps = INT64_MAX;
  bool flowing = false;
};

// When a flow is expected to be done. One that finishes later than expected is put back when its time comes.
struct Expected {
  std::int64_t ps = 0;
  std::uint32_t flow = 0;
  friend bool operator<(const Expected& a, const Expected& b) {  // of heaps: the first one on top
    return a.ps != b.ps ? a.ps > b.ps : a.flow > b.flow;
  }
};

}  // namespace

FlowSharingOutcome share_flows(const FlowJob& job, const FlowSharing& sharing) {
  const NetworkGraph& graph = job.graph;
  const std::vector<std::uint32_t> ends = ends_of(job.flows);
  const Routes routes(graph, job.settings.payload, ends);
  const std::vector<FlowAddress> addresses = addresses_of(job.flows);

  std::vector<double> capacities;
  for (const GraphLink& link : graph.links) {
    const std::int64_t back = link.back ? link.back->bits_per_second : link.bits_per_second;
    for (const std::int64_t bits : {link.bits_per_second, back})
      capacities.push_back(static_cast<double>(bits) * sharing.bandwidth_factor);
  }
  std::vector<std::uint32_t> begin = {0};
  std::vector<MaxMin::Use> uses;
  std::vector<double> weights;
  std::vector<std::int64_t> moving_ps;  // when each flow begins to move
  for (std::size_t i = 0; i < job.flows.size(); ++i) {
    double latency_ns = 0;
    for (const bool back : {false, true}) {
      if (back && sharing.cross_traffic == 0) continue;
      const FlowAddress address = back ? addresses[i].back() : addresses[i];
      for (std::uint32_t node = address.source; node != address.destination;) {
        const std::uint32_t port = next_port(graph, routes, node, address);
        if (port == kNoPort) {
          throw Error(
              job.where,
              fmt::format("no way leads from host {} to host {}", address.source, address.destination),
              "hosts do not forward: every way goes over switches");
        }
        const double share = back ? sharing.cross_traffic : 1;
        const auto known = std::find_if(uses.begin() + begin.back(), uses.end(),
                                        [&](const MaxMin::Use& use) { return use.link == port; });
        if (known == uses.end()) {
          uses.push_back({port, share});
        } else {
          known->share += share;
        }
        const GraphLink& link = graph.links[port / 2];
        if (!back)
          latency_ns += static_cast<double>(port % 2 == 1 && link.back ? link.back->delay_ns : link.delay_ns);
        node = static_cast<std::uint32_t>(port % 2 == 0 ? link.b : link.a);
      }
    }
    begin.push_back(static_cast<std::uint32_t>(uses.size()));
    latency_ns *= sharing.latency_factor;
    weights.push_back(sharing.weigh_by_latency ? 1 / std::max(1e-3, latency_ns) : 1);
    moving_ps.push_back(job.flows[i].start_ns * 1000 + std::llround(latency_ns * 1000));
  }

  MaxMin rates(std::move(capacities), std::move(begin), std::move(uses), std::move(weights));
  FlowSharingOutcome outcome;
  outcome.fct_ps.assign(job.flows.size(), -1);
  std::vector<std::uint32_t> coming(job.flows.size());
  for (std::uint32_t i = 0; i < coming.size(); ++i) coming[i] = i;
  std::stable_sort(coming.begin(), coming.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return moving_ps[a] < moving_ps[b]; });

  std::vector<Fluid> fluids(job.flows.size());
  std::vector<Expected> expected;
  const std::int64_t stop_ps =
      job.settings.stop_ns < INT64_MAX / 1000 ? job.settings.stop_ns * 1000 : INT64_MAX;
  const auto expect = [&](std::uint32_t flow) {
    expected.push_back({fluids[flow].done_ps, flow});
    std::push_heap(expected.begin(), expected.end());
  };
  std::size_t next = 0;
  std::int64_t now = 0;
  while (next < coming.size() || !expected.empty()) {
    // What is next: a flow that begins to move, or one that is done.
    const std::int64_t begins = next < coming.size() ? moving_ps[coming[next]] : INT64_MAX;
    const std::int64_t ends_at = expected.empty() ? INT64_MAX : expected.front().ps;
    if (std::min(begins, ends_at) > stop_ps) break;
    now = std::min(begins, ends_at);
    bool changed = false;
    while (!expected.empty() && expected.front().ps == now) {
      const std::uint32_t flow = expected.front().flow;
      std::pop_heap(expected.begin(), expected.end());
      expected.pop_back();
      Fluid& fluid = fluids[flow];
      if (!fluid.flowing) continue;
      if (fluid.done_ps > now) {  // it slowed down since
        expect(flow);
        continue;
      }
      fluid.flowing = false;
      outcome.fct_ps[flow] = now - job.flows[flow].start_ns * 1000;
      rates.remove(flow);
      ++outcome.events;
      changed = true;
    }
    for (; next < coming.size() && moving_ps[coming[next]] == now; ++next) {
      const std::uint32_t flow = coming[next];
      fluids[flow].flowing = true;
      fluids[flow].left = static_cast<double>(job.flows[flow].bytes) * 8;
      fluids[flow].since_ps = now;
      rates.add(flow);
      ++outcome.events;
      changed = true;
    }
    if (!changed) continue;
    for (const std::uint32_t flow : rates.solve()) {
      Fluid& fluid = fluids[flow];
      ++outcome.rates;
      const double rate = rates.rate(flow);
      if (rate == fluid.rate) continue;
      fluid.left = std::max(0.0, fluid.left - fluid.rate * static_cast<double>(now - fluid.since_ps) * 1e-12);
      fluid.since_ps = now;
      fluid.rate = rate;
      const double takes_ps = fluid.left / rate * 1e12;
      const std::int64_t done_ps =
          takes_ps < 9e18 - static_cast<double>(now) ? now + std::llround(takes_ps) : INT64_MAX;
      const bool sooner = done_ps < fluid.done_ps;
      fluid.done_ps = done_ps;
      if (sooner) expect(flow);
    }
  }
  outcome.end_ps = now;
  return outcome;
}

TrafficResult flow_traffic(const FlowJob& job, const FlowSharing& sharing) {
  const FlowSharingOutcome outcome = share_flows(job, sharing);
  TrafficResult result;
  const std::int64_t switches = std::count(job.graph.is_switch.begin(), job.graph.is_switch.end(), true);
  result.title =
      fmt::format("{} flows at max-min fair rates: {} hosts, {} switches, {} links", job.flows.size(),
                  job.graph.nodes() - switches, switches, job.graph.links.size());
  FlowsResult flows;
  for (std::size_t i = 0; i < job.flows.size(); ++i) {
    const TrafficFlow& asked = job.flows[i];
    const std::int64_t fct_ps = outcome.fct_ps[i];
    flows.flows.push_back({asked.source, asked.destination, asked.bytes,
                           static_cast<double>(asked.start_ns) / 1e9, static_cast<double>(fct_ps) / 1e12,
                           fct_ps >= 0});
  }
  flows.events = outcome.events;
  result.outcome = std::move(flows);
  result.facts.emplace_back("rates", fmt::format("{} worked out", with_separators(outcome.rates)));
  if (job.settings.loss > 0 || job.settings.link_down_ns > 0) {
    result.notes.push_back("rates know nothing of losses, nor of a link that fails");
  }
  return result;
}

}  // namespace armilla
