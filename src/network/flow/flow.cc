#include "network/flow.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/units_text.h"
#include "network/flow/fluid_ways.h"
#include "network/flow/max_min.h"
#include "network/links/link_samples.h"
#include "network/routing/routes.h"

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

// Per flow the way there and the way back, as ECMP hashes them.
std::vector<FlowWays> hashed_ways(const FlowJob& job) {
  const std::vector<std::uint32_t> ends = ends_of(job.flows);
  const Routes routes(job.graph, job.settings.payload, ends);
  std::vector<FlowWays> ways;
  for (const FlowAddress& address : addresses_of(job.flows)) {
    // There, and back.
    FlowWays& both = ways.emplace_back(2);
    for (const bool back : {false, true}) {
      const FlowAddress from = back ? address.back() : address;
      // By hops, as a switch would: each hashes the flow's address with a seed of its own.
      for (std::uint32_t node = from.source; node != from.destination;) {
        const std::uint32_t port = next_port(job.graph, routes, node, from);
        if (port == kNoPort) {
          throw Error(job.where,
                      fmt::format("no way leads from {} to {}", job.graph.called(from.source, "host"),
                                  job.graph.called(from.destination, "host")),
                      "hosts do not forward: every way goes over switches");
        }
        both[back ? 1 : 0].push_back(port);
        const GraphLink& link = job.graph.links[port / 2];
        node = static_cast<std::uint32_t>(port % 2 == 0 ? link.b : link.a);
      }
    }
  }
  return ways;
}

// A fluid and the acknowledgements on its way back.
std::vector<MaxMin::Use> with_cross_traffic(std::vector<MaxMin::Use> uses, std::span<const MaxMin::Use> back,
                                            double share) {
  for (const MaxMin::Use& use : back) {
    const auto known = std::ranges::find(uses, use.link, &MaxMin::Use::link);
    if (known == uses.end()) {
      uses.push_back({.link = use.link, .share = use.share * share});
    } else {
      known->share += use.share * share;
    }
  }
  return uses;
}

}  // namespace

double bandwidth_factor_of(const ParameterValues& values) {
  const double factor = values.fraction("bandwidth-factor");
  if (!(factor > 0))
    throw Error(values.where("bandwidth-factor"), "leaves no bandwidth", "more than 0, at most 1");
  return factor;
}

FlowSharingOutcome share_flows(const FlowJob& job, const FlowSharing& sharing) {
  job.progress->begin("simulating fluids");
  const NetworkGraph& graph = job.graph;
  std::vector<double> capacities;
  for (const GraphLink& link : graph.links) {
    const std::int64_t back = link.back ? link.back->bits_per_second : link.bits_per_second;
    // Both directions of a link are links of their own, so that what comes back takes nothing from what goes.
    for (const std::int64_t bits : {link.bits_per_second, back})
      capacities.push_back(static_cast<double>(bits) * sharing.bandwidth_factor);
  }
  const std::vector<double> widths = capacities;
  MaxMin rates(capacities);

  const auto delay_ns = [&](std::span<const MaxMin::Use> uses) {
    double sum = 0;
    for (const MaxMin::Use& use : uses) {
      const GraphLink& link = graph.links[use.link / 2];
      sum += use.share *
             static_cast<double>(use.link % 2 == 1 && link.back ? link.back->delay_ns : link.delay_ns);
    }
    return sum;
  };
  const bool hashed = !job.ways, adaptive = is_adaptive(job.choice);
  const std::vector<FlowWays> both = hashed ? hashed_ways(job) : std::vector<FlowWays>{};
  const auto ways_of = [&](std::uint32_t flow) {
    return job.ways(job.flows[flow].source, job.flows[flow].destination);
  };
  std::vector<std::uint32_t> number_of(job.flows.size());  // among the rates
  std::vector<std::uint32_t> flow_at;
  FlowSharingOutcome outcome;
  outcome.least_ps.resize(job.flows.size());
  // When each flow begins to move. One that chooses its way does so then, after the delays of the shortest.
  std::vector<std::int64_t> moving_ps;
  const auto open = [&](std::uint32_t flow) {
    double weight = 1;
    std::vector<MaxMin::Use> there, back;
    if (hashed) {
      there = choose_ways(std::span(both[flow]).first(1), WayChoice::first, rates);
      // Acknowledgements are hashed by themselves, so that they may come back by another way.
      back = choose_ways(std::span(both[flow]).last(1), WayChoice::first, rates);
    } else {
      there = choose_ways(ways_of(flow), job.choice, rates);
      // Where the way is chosen, acknowledgements take the same links back.
      for (const MaxMin::Use& use : there) back.push_back({.link = use.link ^ 1, .share = use.share});
    }
    const double latency_ns = delay_ns(there) * sharing.latency_factor;
    double takes_s = 0;
    for (const MaxMin::Use& use : there)
      takes_s =
          std::max(takes_s, static_cast<double>(job.flows[flow].bytes) * 8 * use.share / widths[use.link]);
    // What chooses its way has waited for the delays of the shortest, whatever it chose.
    const double waited_ps =
        adaptive ? static_cast<double>(moving_ps[flow] - job.flows[flow].start_ns * 1000) : latency_ns * 1e3;
    outcome.least_ps[flow] = waited_ps + takes_s * 1e12;
    if (sharing.weigh_by_latency) weight = 1 / std::max(1e-3, latency_ns);
    if (sharing.cross_traffic > 0) there = with_cross_traffic(std::move(there), back, sharing.cross_traffic);
    number_of[flow] = rates.open(there, weight);
    flow_at.push_back(flow);
    return latency_ns;
  };
  for (std::uint32_t flow = 0; flow < job.flows.size(); ++flow) {
    const double latency_ns =
        adaptive ? delay_ns(choose_ways(ways_of(flow), WayChoice::first, rates)) * sharing.latency_factor
                 : open(flow);
    moving_ps.push_back(job.flows[flow].start_ns * 1000 + std::llround(latency_ns * 1000));
  }

  outcome.fct_ps.assign(job.flows.size(), -1);
  std::vector<std::uint32_t> coming(job.flows.size());
  for (std::uint32_t i = 0; i < coming.size(); ++i) coming[i] = i;
  // Those that begin at one moment keep the file's order, in which they choose their ways.
  std::stable_sort(coming.begin(), coming.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return moving_ps[a] < moving_ps[b]; });

  std::optional<LinkSampler> sampler;
  if (job.sampled) sampler.emplace(graph);
  std::vector<Fluid> fluids(job.flows.size());
  // At its rate until now.
  const auto carry = [&](std::uint32_t flow, std::int64_t now_ps) {
    Fluid& fluid = fluids[flow];
    const double bits =
        std::min(fluid.left, fluid.rate * static_cast<double>(now_ps - fluid.since_ps) * 1e-12);
    if (sampler) {
      for (const MaxMin::Use& use : rates.uses(number_of[flow]))
        sampler->carries(use.link, static_cast<double>(fluid.since_ps) * 1e-3,
                         static_cast<double>(now_ps) * 1e-3, bits / 8 * use.share);
    }
    fluid.left =
        std::max(0.0, fluid.left - fluid.rate * static_cast<double>(now_ps - fluid.since_ps) * 1e-12);
    fluid.since_ps = now_ps;
  };
  std::vector<Expected> expected;
  // A stop beyond what 64 bits hold in picoseconds is none.
  const std::int64_t stop_ps =
      job.settings.stop_ns < INT64_MAX / 1000 ? job.settings.stop_ns * 1000 : INT64_MAX;
  const auto expect = [&](std::uint32_t flow) {
    expected.push_back({fluids[flow].done_ps, flow});
    std::push_heap(expected.begin(), expected.end());
  };
  std::size_t next = 0, done = 0;
  std::int64_t now = 0;
  while (next < coming.size() || !expected.empty()) {
    // What is next: a flow that begins to move, or one that is done.
    const std::int64_t begins = next < coming.size() ? moving_ps[coming[next]] : INT64_MAX;
    const std::int64_t ends_at = expected.empty() ? INT64_MAX : expected.front().ps;
    if (std::min(begins, ends_at) > stop_ps) break;
    now = std::min(begins, ends_at);
    bool changed = false;
    // Ends before beginnings: who chooses its way at this moment sees the links without those that are over.
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
      carry(flow, now);
      outcome.fct_ps[flow] = now - job.flows[flow].start_ns * 1000;
      rates.remove(number_of[flow]);
      ++outcome.events;
      job.progress->update(static_cast<double>(++done) / static_cast<double>(job.flows.size()));
      changed = true;
    }
    for (; next < coming.size() && moving_ps[coming[next]] == now; ++next) {
      const std::uint32_t flow = coming[next];
      fluids[flow].flowing = true;
      fluids[flow].left = static_cast<double>(job.flows[flow].bytes) * 8;
      fluids[flow].since_ps = now;
      if (adaptive) open(flow);
      rates.add(number_of[flow]);
      ++outcome.events;
      changed = true;
    }
    // Rates once per moment, after all that begins or ends in it.
    if (!changed) continue;
    for (const std::uint32_t number : rates.solve()) {
      const std::uint32_t flow = flow_at[number];
      Fluid& fluid = fluids[flow];
      ++outcome.rates;
      const double rate = rates.rate(number);
      if (rate == fluid.rate) continue;
      carry(flow, now);
      fluid.rate = rate;
      const double takes_ps = fluid.left / rate * 1e12;
      const std::int64_t done_ps =
          // Past 9e18 ps the sum would overflow; such a flow has no end.
          takes_ps < 9e18 - static_cast<double>(now) ? now + std::llround(takes_ps) : INT64_MAX;
      const bool sooner = done_ps < fluid.done_ps;
      fluid.done_ps = done_ps;
      // Only a sooner end needs an entry of its own; a later one is found when the earlier entry comes.
      if (sooner) expect(flow);
    }
  }
  for (std::uint32_t flow = 0; flow < fluids.size(); ++flow) {
    if (fluids[flow].flowing) carry(flow, now);
  }
  if (sampler) outcome.samples = sampler->samples((now + 999) / 1000);
  return outcome;
}

TrafficResult flow_traffic(const FlowJob& job, const FlowSharing& sharing) {
  const FlowSharingOutcome outcome = share_flows(job, sharing);
  TrafficResult result;
  const std::int64_t switches = std::count(job.graph.is_switch.begin(), job.graph.is_switch.end(), true);
  result.title = fmt::format("{} at max-min fair rates: {}, {}, {}", counted(job.flows.size(), "flow"),
                             counted(job.graph.nodes() - switches, "host"), counted(switches, "switch"),
                             counted(job.graph.links.size(), "link"));
  FlowsResult flows;
  for (std::size_t i = 0; i < job.flows.size(); ++i) {
    const TrafficFlow& asked = job.flows[i];
    const std::int64_t fct_ps = outcome.fct_ps[i];
    flows.flows.push_back({asked.source, asked.destination, asked.bytes,
                           static_cast<double>(asked.start_ns) / 1e9, static_cast<double>(fct_ps) / 1e12,
                           fct_ps >= 0, outcome.least_ps[i] / 1e12});
  }
  flows.events = outcome.events;
  flows.samples = outcome.samples;
  result.outcome = std::move(flows);
  result.facts.emplace_back("rates", fmt::format("{} worked out", with_separators(outcome.rates)));
  if (job.settings.loss > 0 || job.settings.link_down_ns > 0) {
    result.notes.push_back("rates know nothing of losses, nor of a link that fails");
  }
  return result;
}

}  // namespace armilla
