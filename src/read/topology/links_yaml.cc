#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/units_text.h"
#include "read/study.h"
#include "read/topology.h"
#include "zoo/zoo.h"

namespace armilla {
namespace {

constexpr std::int64_t kMostWritten = 1'000'000;  // nodes, and links

struct NamedNodes {
  Interconnect graph;
  std::map<std::string, std::uint32_t, std::less<>> numbers;
};

// Devices come first, whatever their place in the file; beyond that the order is the file's.
NamedNodes read_nodes(const Config& config) {
  struct Group {
    std::string name, where;
    NetworkNodeKind kind = NetworkNodeKind::switched;
    std::optional<std::int64_t> count;
  };
  constexpr std::array kKinds = {NetworkNodeKind::device, NetworkNodeKind::nic, NetworkNodeKind::switched};
  std::vector<std::string_view> names;
  for (const NetworkNodeKind kind : kKinds) names.push_back(name_of(kind));
  std::vector<Group> groups;
  for (const Config& item : config.items()) {
    Group group;
    group.where = item.at("name").where();
    group.name = item.at("name").text();
    group.kind = kKinds[item.at("kind").choice(names)];
    if (const auto count = item.find("count")) group.count = count->count(1, kMostWritten);
    if (group.name.empty()) throw Error(group.where, "the name is empty");
    item.reject_unknown_keys();
    groups.push_back(std::move(group));
  }
  NamedNodes named;
  const auto add = [&](const std::string& name, const Group& group) {
    if (!named.numbers.try_emplace(name, static_cast<std::uint32_t>(named.graph.nodes.size())).second)
      throw Error(group.where, fmt::format("two nodes are called '{:.60}'", name));
    if (static_cast<std::int64_t>(named.graph.nodes.size()) >= kMostWritten)
      throw Error(group.where, fmt::format("more than {} nodes", kMostWritten));
    named.graph.nodes.push_back({group.kind, name});
  };
  for (const bool devices : {true, false}) {
    for (const Group& group : groups) {
      if ((group.kind == NetworkNodeKind::device) != devices) continue;
      if (!group.count) add(group.name, group);
      for (std::int64_t i = 0; i < group.count.value_or(0); ++i)
        add(fmt::format("{}{}", group.name, i), group);
    }
  }
  return named;
}

// "leaf3" or "gpu[0-7]", or a list of such.
std::vector<std::uint32_t> read_ends(const Config& config, const NamedNodes& named) {
  std::vector<std::uint32_t> ends;
  const auto add = [&](const std::string& name) {
    const auto found = named.numbers.find(name);
    if (found == named.numbers.end())
      throw Error(config.where(), fmt::format("there is no node '{:.60}'", name), "'nodes' lists them");
    ends.push_back(found->second);
  };
  if (config.is_list()) {
    for (const Config& item : config.items()) {
      const std::vector<std::uint32_t> more = read_ends(item, named);
      ends.insert(ends.end(), more.begin(), more.end());
    }
    return ends;
  }
  const std::string text = config.text();
  const std::size_t open = text.find('['), dash = text.find('-', open);
  if (open == std::string::npos || dash == std::string::npos || !text.ends_with(']')) {
    add(text);
    return ends;
  }
  const std::int64_t first = parse_count(text.substr(open + 1, dash - open - 1), config.where());
  const std::int64_t last = parse_count(text.substr(dash + 1, text.size() - dash - 2), config.where());
  if (last < first || last - first >= kMostWritten)
    throw Error(config.where(), fmt::format("'{:.60}' is not a range of nodes", text));
  for (std::int64_t i = first; i <= last; ++i) add(fmt::format("{}{}", text.substr(0, open), i));
  return ends;
}

void read_figures(const Config& config, LinkFigures& figures, bool all) {
  if (const auto bandwidth = all ? config.at("bandwidth") : config.find("bandwidth"))
    figures.bandwidth = bandwidth->bandwidth();
  if (const auto latency = all ? config.at("latency") : config.find("latency"))
    figures.latency = latency->time();
  if (const auto loss = config.find("loss")) {
    figures.loss = loss->fraction();
    if (figures.loss >= 1) throw Error(loss->where(), "a link that loses every packet", "leave it out");
  }
}

}  // namespace

MachineLinks read_links(const Config& nodes, const Config& links) {
  NamedNodes named = read_nodes(nodes);
  Interconnect& graph = named.graph;
  for (const Config& item : links.items()) {
    const std::vector<std::uint32_t> from = read_ends(item.at("from"), named),
                                     to = read_ends(item.at("to"), named);
    Cable cable;
    read_figures(item, cable.there, true);
    cable.back = cable.there;
    if (const auto back = item.find("back")) {
      read_figures(*back, cable.back, false);
      back->reject_unknown_keys();
    }
    if (const auto derate = item.find("derate")) {
      const double share = derate->fraction();
      if (!(share > 0)) throw Error(derate->where(), "a link that carries nothing", "failed: true");
      cable.there.derate(share);
      cable.back.derate(share);
    }
    const auto failed = item.find("failed");
    const bool is_gone = failed && failed->boolean();
    if (const auto dimension = item.find("dimension"))
      cable.dimension = static_cast<std::uint32_t>(dimension->count(0, 15));
    item.reject_unknown_keys();
    for (const std::uint32_t a : from) {
      for (const std::uint32_t b : to) {
        if (a == b) throw Error(item.where(), fmt::format("joins '{}' with itself", graph.nodes[a].name));
        if (static_cast<std::int64_t>(graph.cables.size()) >= 16 * kMostWritten)
          throw Error(item.where(), fmt::format("more than {} links", 16 * kMostWritten));
        // Only here: a failed link is checked like any other, so that it can come back by one word.
        if (is_gone) continue;
        cable.a = a;
        cable.b = b;
        graph.cables.push_back(cable);
      }
    }
  }
  validate_interconnect(graph, nodes.where());
  Dimension dimension = one_dimension(graph, "fabric");
  return {std::move(graph), {std::move(dimension)}};
}

DamagedLink parse_damage(const std::string& text, const std::string& where) {
  // From behind: names of nodes may hold the sign, shares do not.
  const std::size_t equals = text.rfind('=');
  if (equals == std::string::npos) return {text, 0, where};
  const double share = parse_fraction(text.substr(equals + 1), where);
  return {text.substr(0, equals), share, where};
}

namespace {

// A machine without some of the links that its file has would be another one.
MachineLinks whole_file(const std::string& path) {
  MachineLinks links = read_topology_file(path);
  if (!links.surplus.empty())
    throw Error("", links.surplus + " would be left out",
                "announce them in the first line, or take them out of the file");
  return links;
}

}  // namespace

MachineLinks read_topology(const Config& config) {
  if (config.is_scalar()) {
    const std::string text = config.text();
    return is_path(text) && !names_topology(text) ? whole_file(name_or_path(config))
                                                  : make_topology(parse_component(text, config.where()));
  }
  ComponentChoice choice;
  choice.where = config.at("kind").where();
  choice.name = config.at("kind").text();
  for (const auto& [name, value] : config.entries()) {
    if (name != "kind") choice.parameters[name] = {value.text(), value.where()};
  }
  return make_topology(choice);
}

MachineLinks named_topology(const std::string& name) {
  return names_topology(name) ? make_topology(parse_component(name, name)) : whole_file(name);
}

}  // namespace armilla
