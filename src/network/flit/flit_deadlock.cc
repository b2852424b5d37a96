#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "network/flit/flit_network.h"

namespace armilla {
namespace {

// Beyond it, a check takes longer than many runs; those find a deadlock when it happens.
constexpr std::size_t kMostRoutes = std::size_t{1} << 22;

// A set of virtual channels of an output, named by the set's first; every route of the network that uses
// the output uses one of its sets. An edge leads from a set that a packet may hold to one that it may
// then wait for.
struct Dependences {
  std::uint32_t vcs = 0;
  std::vector<std::vector<std::uint32_t>> after;  // [output * vcs + first of the set]

  void add(std::uint32_t from, std::uint32_t to) {
    std::vector<std::uint32_t>& edges = after[from];
    if (std::find(edges.begin(), edges.end(), to) == edges.end()) edges.push_back(to);
  }
};

struct Step {
  std::uint32_t output;
  std::uint8_t phase;
  bool ejects;
};

// Where a packet may go that came in here.
void steps_from(const FlitNetwork& network, std::uint32_t input_port, std::uint32_t destination,
                std::uint8_t phase, std::vector<Step>& steps) {
  const std::uint32_t router = network.router_of_port[input_port], first = network.first_port[router];
  const std::uint32_t input = input_port - first;
  const RouteEntry& entry = network.route(router, destination);
  steps.clear();
  if (network.rule == RouteRule::dateline && !entry.ejects && input / 2 == entry.port / 2) {
    steps.push_back({first + (input ^ 1), phase, false});
    return;
  }
  if (network.rule == RouteRule::dateline && !entry.ejects) phase = entry.phase;
  if (network.rule == RouteRule::global_hops)
    phase = static_cast<std::uint8_t>((input < network.node_ports ? 0 : phase) | entry.phase);
  for (std::uint32_t choice = 0; choice < std::max<std::uint32_t>(entry.choices, 1); ++choice)
    steps.push_back({first + entry.port + choice, phase, entry.ejects});
}

// All ways to one destination, from every node.
void follow(const FlitNetwork& network, std::uint32_t destination, Dependences& dependences) {
  struct Visit {
    std::uint32_t output;
    std::uint8_t phase;
  };
  std::vector<Visit> waiting;
  std::array<std::vector<bool>, 2> seen = {std::vector<bool>(network.ports()),
                                           std::vector<bool>(network.ports())};
  std::vector<Step> steps;
  const auto vc_of = [&](const Step& step) {
    return vc_range(network.rule, step.ejects, step.phase, dependences.vcs).first;
  };
  const auto enter = [&](const Step& step) {
    if (step.ejects || seen[step.phase][step.output]) return;
    seen[step.phase][step.output] = true;
    waiting.push_back({step.output, step.phase});
  };
  for (std::uint32_t node = 0; node < network.nodes; ++node) {
    steps_from(network, network.outputs[network.ports() + node].input, destination, 0, steps);
    for (const Step& step : steps) enter(step);
  }
  while (!waiting.empty()) {
    const auto [output, phase] = waiting.back();
    waiting.pop_back();
    steps_from(network, network.outputs[output].input, destination, phase, steps);
    for (const Step& step : steps) {
      if (step.ejects) continue;
      dependences.add(output * dependences.vcs + vc_of({output, phase, false}),
                      step.output * dependences.vcs + vc_of(step));
      enter(step);
    }
  }
}

// Outputs and sets along a cycle; empty: there is none.
std::vector<std::uint32_t> find_cycle(const Dependences& dependences) {
  enum : std::uint8_t { fresh, open, closed };
  std::vector<std::uint8_t> state(dependences.after.size(), fresh);
  std::vector<std::pair<std::uint32_t, std::size_t>> way;
  for (std::uint32_t start = 0; start < dependences.after.size(); ++start) {
    if (state[start] != fresh) continue;
    way.assign(1, {start, 0});
    state[start] = open;
    while (!way.empty()) {
      auto& [at, next] = way.back();
      if (next == dependences.after[at].size()) {
        state[at] = closed;
        way.pop_back();
        continue;
      }
      const std::uint32_t to = dependences.after[at][next++];
      if (state[to] == open) {
        std::vector<std::uint32_t> cycle;
        auto one = std::find_if(way.begin(), way.end(), [&](const auto& step) { return step.first == to; });
        for (; one != way.end(); ++one) cycle.push_back(one->first);
        return cycle;
      }
      if (state[to] != fresh) continue;
      state[to] = open;
      way.emplace_back(to, 0);
    }
  }
  return {};
}

bool sets_overlap(RouteRule rule, std::uint32_t vcs) {
  if (rule != RouteRule::dateline) return false;
  const VcRange lower = vc_range(rule, false, 0, vcs), upper = vc_range(rule, false, 1, vcs);
  return lower != upper && upper.first <= lower.last;
}

}  // namespace

std::string possible_deadlock(const FlitNetwork& network, std::int64_t virtual_channels) {
  Dependences dependences;
  dependences.vcs = static_cast<std::uint32_t>(virtual_channels);
  if (network.routes.size() > kMostRoutes || sets_overlap(network.rule, dependences.vcs)) return {};
  dependences.after.resize(static_cast<std::size_t>(network.ports()) * dependences.vcs);
  for (std::uint32_t destination = 0; destination < network.nodes; ++destination)
    follow(network, destination, dependences);
  const std::vector<std::uint32_t> cycle = find_cycle(dependences);
  if (cycle.empty()) return {};
  std::string text;
  for (const std::uint32_t one : cycle)
    text += network.input_name(network.outputs[one / dependences.vcs].input) + ", ";
  return text + "and " + network.input_name(network.outputs[cycle.front() / dependences.vcs].input) +
         " again";
}

}  // namespace armilla
