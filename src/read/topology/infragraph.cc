#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/config.h"
#include "base/error.h"
#include "base/units_text.h"
#include "read/topology.h"
#include "read/topology/importers.h"

namespace armilla {
namespace {

// Counts multiply through devices within devices: a few lines could ask for more than fits into memory.
constexpr std::int64_t kMostInGraph = 1'000'000;

// "gpu[0:4]" in Python's notation: a name and which of its `count`.
struct Slice {
  std::string name;
  std::int64_t first = 0, end = INT64_MAX;
};

Slice read_slice(const Config& config) {
  const std::string text = config.text();
  Slice slice;
  const std::size_t open = text.find('[');
  slice.name = text.substr(0, open);
  if (open == std::string::npos) return slice;
  if (!text.ends_with(']')) throw Error(config.where(), fmt::format("'{:.60}' has no ']'", text));
  const std::string inside = text.substr(open + 1, text.size() - open - 2);
  const std::size_t colon = inside.find(':');
  const auto number = [&](const std::string& digits, std::int64_t otherwise) {
    return digits.empty() ? otherwise : parse_count(digits, config.where());
  };
  if (colon == std::string::npos) {
    slice.first = number(inside, 0);
    slice.end = slice.first + 1;
  } else {
    if (inside.find(':', colon + 1) != std::string::npos)
      throw Error(config.where(), fmt::format("'{:.60}' has a step", text), "as in npu[0:4]");
    slice.first = number(inside.substr(0, colon), 0);
    slice.end = number(inside.substr(colon + 1), INT64_MAX);
  }
  return slice;
}

struct LinkKind {
  std::optional<Bandwidth> bandwidth;  // not given: links are as wide as the widest of the file
  Time latency;
};

// {choice: gigabits_per_second, gigabits_per_second: 100}
double read_choice(const Config& config, std::string& unit) {
  unit = config.at("choice").text();
  return parse_real(config.at(unit).text(), config.at(unit).where());
}

LinkKind read_link_kind(const Config& link) {
  LinkKind kind;
  const auto physical = link.find("physical");
  if (!physical) return kind;
  std::string unit;
  if (const auto bandwidth = physical->find("bandwidth")) {
    const double amount = read_choice(*bandwidth, unit);
    if (unit == "gigabits_per_second") {
      kind.bandwidth = Bandwidth(amount * 1e9 / 8);
    } else if (unit == "gigabytes_per_second") {
      kind.bandwidth = Bandwidth(amount * 1e9);
    } else {
      throw Error(bandwidth->where(), fmt::format("'{:.60}' says nothing of how many lanes there are", unit),
                  "gigabits_per_second or gigabytes_per_second");
    }
    if (!(amount > 0)) throw Error(bandwidth->where(), "is a link without bandwidth");
  }
  if (const auto latency = physical->find("latency")) {
    const double amount = read_choice(*latency, unit);
    const std::map<std::string, double> seconds = {{"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};
    if (!seconds.contains(unit))
      throw Error(latency->where(), fmt::format("unknown unit '{:.60}'", unit), "ms, us or ns");
    kind.latency = from_seconds(amount * seconds.at(unit));
  }
  return kind;
}

class InfragraphReader {
 public:
  explicit InfragraphReader(const Config& config) : config_(config) {
    for (const Config& device : config.at("devices").items())
      devices_.emplace(device.at("name").text(), device);
    read_links(config_, {});
  }

  Interconnect read() {
    for (const Config& instance : config_.at("instances").items()) {
      const std::string name = instance.at("name").text();
      const std::int64_t count = instance.at("count").count(1, kMostInGraph);
      instances_[name] = count;
      for (std::int64_t i = 0; i < count; ++i)
        expand(instance.at("device"), fmt::format("{}.{}", name, i), 0);
    }
    for (const Config& edge : config_.at("edges").items()) {
      join(edge, link_kind(edge.at("link"), {}), [&](const Config& end) {
        const Slice of = read_slice(end.at("instance"));
        const auto known = instances_.find(of.name);
        if (known == instances_.end())
          throw Error(end.at("instance").where(), fmt::format("there is no instance '{:.60}'", of.name));
        return components(end, places(of, known->second, end.at("instance"), ""));
      });
    }
    return devices_first();
  }

 private:
  struct Edge {
    std::uint32_t a = 0, b = 0;
    LinkKind kind;
  };

  void read_links(const Config& config, const std::string& device) {
    const auto links = config.find("links");
    if (!links || !links->is_list()) return;
    for (const Config& link : links->items())
      kinds_.insert_or_assign({device, link.at("name").text()}, read_link_kind(link));
  }

  const LinkKind& link_kind(const Config& name, const std::string& device) const {
    const auto found = kinds_.find({device, name.text()});
    if (found == kinds_.end())
      throw Error(name.where(), fmt::format("there is no link '{:.60}'", name.text()), "'links' lists them");
    return found->second;
  }

  // The components of a device, as nodes "place.name.i", and what joins them.
  void expand(const Config& device_name, const std::string& place, int depth) {
    // A device that holds itself would never end.
    constexpr int kDeepest = 8;
    const auto found = devices_.find(device_name.text());
    if (found == devices_.end())
      throw Error(device_name.where(), fmt::format("there is no device '{:.60}'", device_name.text()),
                  "'devices' lists them");
    if (depth > kDeepest)
      throw Error(device_name.where(), fmt::format("devices within devices, {} deep", depth));
    const Config& device = found->second;
    read_links(device, device_name.text());
    for (const Config& component : device.at("components").items()) {
      const std::string name = component.at("name").text();
      const std::string choice = component.at("choice").text();
      const std::int64_t count = component.at("count").count(0, kMostInGraph);
      counts_[place + "." + name] = count;
      for (std::int64_t i = 0; i < count; ++i) {
        const std::string own = fmt::format("{}.{}.{}", place, name, i);
        if (choice == "device") {
          expand(component.at("name"), own, depth + 1);
          continue;
        }
        if (static_cast<std::int64_t>(nodes_.size()) >= kMostInGraph)
          throw Error(component.where(), fmt::format("more than {} components", kMostInGraph));
        // CPUs and bridges only pass on, as switches do: nothing in a job runs on them.
        const NetworkNodeKind kind = choice == "npu" || choice == "xpu" || choice == "gpu"
                                         ? NetworkNodeKind::device
                                     : choice == "nic" ? NetworkNodeKind::nic
                                                       : NetworkNodeKind::switched;
        numbers_.emplace(own, static_cast<std::uint32_t>(nodes_.size()));
        nodes_.push_back({kind, own});
      }
    }
    const auto edges = device.find("edges");
    if (!edges || !edges->is_list()) return;
    for (const Config& edge : edges->items()) {
      join(edge, link_kind(edge.at("link"), device_name.text()), [&](const Config& end) {
        std::vector<std::string> of = {place};
        if (const auto inner = end.find("device")) {
          const Slice slice = read_slice(*inner);
          of = places(slice, count_of(place, slice.name, *inner), *inner, place + ".");
        }
        return components(end, of);
      });
    }
  }

  std::int64_t count_of(const std::string& place, const std::string& name, const Config& config) const {
    const auto found = counts_.find(place + "." + name);
    if (found == counts_.end())
      throw Error(config.where(), fmt::format("'{:.60}' has no component '{:.60}'", place, name));
    return found->second;
  }

  static std::vector<std::string> places(const Slice& slice, std::int64_t count, const Config& config,
                                         const std::string& before) {
    if (slice.first >= count || (slice.end > count && slice.end != INT64_MAX) || slice.first >= slice.end)
      throw Error(config.where(), fmt::format("there are {} of '{:.60}'", count, slice.name),
                  "they count from 0");
    std::vector<std::string> names;
    for (std::int64_t i = slice.first; i < std::min(slice.end, count); ++i)
      names.push_back(fmt::format("{}{}.{}", before, slice.name, i));
    return names;
  }

  std::vector<std::uint32_t> components(const Config& end, const std::vector<std::string>& of) const {
    const Config component = end.at("component");
    const Slice slice = read_slice(component);
    std::vector<std::uint32_t> found;
    for (const std::string& place : of) {
      for (const std::string& name :
           places(slice, count_of(place, slice.name, component), component, place + ".")) {
        const auto node = numbers_.find(name);
        if (node == numbers_.end())
          throw Error(component.where(), fmt::format("'{:.60}' is made of components of its own", name),
                      "name one of them, and it as 'device'");
        found.push_back(node->second);
      }
    }
    return found;
  }

  template <class Ends>
  void join(const Config& edge, const LinkKind& kind, const Ends& ends_of) {
    const std::vector<std::uint32_t> from = ends_of(edge.at("ep1")), to = ends_of(edge.at("ep2"));
    const auto add = [&](std::uint32_t a, std::uint32_t b) {
      if (static_cast<std::int64_t>(edges_.size()) >= 16 * kMostInGraph)
        throw Error(edge.where(), fmt::format("more than {} edges", 16 * kMostInGraph));
      edges_.push_back({a, b, kind});
    };
    const auto scheme = edge.find("scheme");
    const bool many = scheme ? scheme->choice({"one2one", "many2many"}) == 1 : edge.at("many2many").boolean();
    if (many) {
      // Within one component each pair once.
      for (const std::uint32_t a : from) {
        for (const std::uint32_t b : to) {
          if (a != b && (from != to || a < b)) add(a, b);
        }
      }
      return;
    }
    if (from.size() != to.size())
      throw Error(edge.where(),
                  fmt::format("joins {} with {}, one by one", typed_count(from.size(), "end"), to.size()),
                  "as many on both sides, or many2many");
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (from[i] != to[i]) add(from[i], to[i]);
    }
  }

  Interconnect devices_first() const {
    Interconnect graph;
    std::vector<std::uint32_t> number(nodes_.size());
    for (const bool devices : {true, false}) {
      for (std::size_t node = 0; node < nodes_.size(); ++node) {
        if ((nodes_[node].kind == NetworkNodeKind::device) != devices) continue;
        number[node] = static_cast<std::uint32_t>(graph.nodes.size());
        graph.nodes.push_back(nodes_[node]);
      }
    }
    if (graph.devices() == 0)
      throw Error(config_.at("devices").where(), "no component is an accelerator", "choice: npu or xpu");
    Bandwidth widest;
    for (const Edge& edge : edges_) widest = std::max(widest, edge.kind.bandwidth.value_or(Bandwidth(0)));
    if (!(widest.value > 0))
      throw Error(config_.at("edges").where(), "no link has a bandwidth",
                  "physical: {bandwidth: {choice: gigabits_per_second, gigabits_per_second: 400}}");
    for (const Edge& edge : edges_) {
      const LinkFigures figures = {edge.kind.bandwidth.value_or(widest), edge.kind.latency, 0};
      graph.cables.push_back({number[edge.a], number[edge.b], figures, figures, 0});
    }
    return graph;
  }

  const Config& config_;
  std::map<std::string, Config> devices_;
  std::map<std::pair<std::string, std::string>, LinkKind>
      kinds_;                                      // by device, empty: between instances; and name
  std::map<std::string, std::int64_t> instances_;  // how many
  std::map<std::string, std::int64_t> counts_;     // components, by place
  std::map<std::string, std::uint32_t> numbers_;   // nodes, by name
  std::vector<InterconnectNode> nodes_;
  std::vector<Edge> edges_;
};

}  // namespace

MachineLinks read_infragraph(const std::string& path) {
  const Config config = Config::read(path);
  Interconnect graph = InfragraphReader(config).read();
  validate_interconnect(graph, path);
  Dimension dimension = one_dimension(graph, "fabric");
  return {std::move(graph), {std::move(dimension)}};
}

}  // namespace armilla
