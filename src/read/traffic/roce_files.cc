#include <fmt/format.h>

#include <cmath>

#include "base/suggest.h"
#include "read/roce.h"
#include "read/traffic/roce_words.h"

namespace armilla {

NetworkGraph parse_roce_topology(std::string_view text, const std::string& name,
                                 std::vector<std::string>* notes) {
  RoceWords words(text, name);
  NetworkGraph graph;
  constexpr std::int64_t kMost = 10'000'000;
  const bool simai = is_simai_topology(text);
  const std::int64_t nodes = words.whole("the number of nodes", 1, kMost);
  if (simai) words.whole("the GPUs of a server", 1, nodes);
  const std::int64_t nvswitches = simai ? words.whole("the number of NVSwitches", 0, nodes) : 0;
  const std::int64_t switches = nvswitches + words.whole("the number of switches", 0, nodes);
  const std::int64_t links = words.whole("the number of links", 0, kMost);
  if (simai) {
    words.skip_line();  // and the kind of GPU
    if (notes != nullptr)
      notes->push_back(fmt::format(
          "{} is a topology of SimAI's ns-3: its NVSwitches are switches as all others here", name));
  }
  graph.is_switch.resize(static_cast<std::size_t>(nodes));
  for (std::int64_t i = 0; i < switches; ++i) {
    const auto node = static_cast<std::size_t>(words.whole("a switch's number", 0, nodes - 1));
    if (graph.is_switch[node]) words.fail(fmt::format("switch {} is named twice", node));
    graph.is_switch[node] = true;
  }
  for (std::int64_t i = 0; i < links; ++i) {
    GraphLink link;
    link.a = words.whole(fmt::format("the first node of link {} of {}", i + 1, links), 0, nodes - 1);
    link.b = words.whole(fmt::format("the second node of link {} of {}", i + 1, links), 0, nodes - 1);
    if (link.a == link.b) words.fail(fmt::format("a link leads from node {} to itself", link.a));
    link.bits_per_second = words.bits_per_second("the link's rate");
    if (link.bits_per_second == 0) {
      words.fail(fmt::format("the link between {} and {} has no bandwidth", link.a, link.b), "leave it out");
    }
    link.delay_ns = words.duration_ns("the link's delay");
    link.loss = words.real("the link's probability of loss", 0, 1);
    if (link.loss == 1) words.fail("a link that loses every packet", "leave it out");
    graph.links.push_back(link);
  }
  const std::string surplus = surplus_links(words, links);
  if (notes != nullptr && !surplus.empty()) notes->push_back(surplus + " are left out, as in ns-3");
  return graph;
}

bool is_simai_topology(std::string_view text) {
  RoceWords words(text, "");
  std::size_t numbers = 0;
  for (auto word = words.next();
       word && !word->empty() && word->find_first_not_of("0123456789") == std::string_view::npos;
       word = words.next(true))
    ++numbers;
  return numbers == 5;
}

std::string surplus_links(RoceWords& words, std::int64_t links) {
  const std::optional<std::string_view> rest = words.next();
  if (!rest || rest->find_first_not_of("0123456789") != std::string_view::npos) return {};
  return fmt::format("{}: the links after the first {}, which the first line announces,", words.where(),
                     links);
}

std::vector<TrafficFlow> parse_roce_flows(std::string_view text, const std::string& name,
                                          const NetworkGraph& graph, std::string* surplus) {
  RoceWords words(text, name);
  const std::int64_t count = words.whole("the number of flows", 0, 100'000'000);
  std::vector<TrafficFlow> flows;
  // Every number from 0 is that of a node.
  std::vector<std::int64_t> place_of(graph.numbers.size());
  for (std::size_t place = 0; place < place_of.size(); ++place)
    place_of[static_cast<std::size_t>(graph.numbers[place])] = static_cast<std::int64_t>(place);
  const auto host = [&](std::string_view what) {
    const std::int64_t number = words.whole(what, 0, graph.nodes() - 1);
    const std::int64_t node = place_of.empty() ? number : place_of[static_cast<std::size_t>(number)];
    if (graph.is_switch[static_cast<std::size_t>(node)]) {
      words.fail(fmt::format("{}: node {} is a switch", what, number), "flows begin and end at hosts");
    }
    return node;
  };
  for (std::int64_t i = 0; i < count; ++i) {
    TrafficFlow flow;
    flow.source = host("the flow's source");
    flow.destination = host("the flow's destination");
    if (flow.source == flow.destination)
      words.fail(fmt::format("a flow from host {} to itself", graph.number_of(flow.source)));
    flow.priority = static_cast<int>(words.whole("the flow's priority", 1, 7));
    flow.port = static_cast<int>(words.whole("the flow's port", 0, 65535));
    flow.bytes = words.whole("the flow's bytes", 1, std::int64_t{1} << 50);
    flow.start_ns = std::llround(words.real("the flow's start", 0, 1e9) * 1e9);
    flows.push_back(flow);
  }
  // What follows may be a comment; a number begins another flow.
  if (const std::optional<std::string_view> rest = words.next();
      surplus != nullptr && rest && rest->find_first_not_of("0123456789") == std::string_view::npos)
    *surplus = fmt::format("{}: the flows after the first {}, which the first line announces,", words.where(),
                           count);
  return flows;
}

}  // namespace armilla
