#include "ir/machine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "base/checked.h"
#include "base/nearest_divisor.h"
#include "base/units_text.h"
#include "ir/derived/torus_slice.h"

namespace armilla {

FlopRate matrix_rate(const Device& device, DType dtype) {
  const auto found = device.matrix_rate.find(dtype);
  return found != device.matrix_rate.end() ? found->second : device.vector_rate;
}

bool are_of_nothing(const KernelRates& rates) {
  const auto is_of_nothing = [](const auto& row) { return row.second.range.is_of_nothing(); };
  return rates.memory.range.is_of_nothing() &&
         std::all_of(rates.matrix.begin(), rates.matrix.end(), is_of_nothing) &&
         std::all_of(rates.attention.begin(), rates.attention.end(), is_of_nothing);
}

double most_sustained(const KernelRates& rates) {
  double fastest = 0;
  for (const auto& [dtype, of] : rates.matrix)
    fastest = std::max(fastest, of.in_training.value_or(of.efficiency));
  for (const auto& [dtype, of] : rates.attention) fastest = std::max({fastest, of.forward, of.backward});
  return fastest > 0 ? 1 / fastest : 1;
}

std::string_view name_of(DimensionKind kind) {
  switch (kind) {
    case DimensionKind::ring:
      return "Ring";
    case DimensionKind::fully_connected:
      return "FullyConnected";
    case DimensionKind::switched:
      return "Switch";
  }
  return "?";
}

std::string unverified_note(const Machine& machine) {
  if (machine.unverified.empty()) return {};
  return fmt::format("unverified figures of machine {}: {}", machine.name,
                     fmt::join(machine.unverified, ", "));
}

std::int64_t rank_count(const Machine& machine) {
  std::int64_t count = 1;
  for (const Dimension& dimension : machine.dimensions)
    count = checked_multiply(count, dimension.size, machine.name);
  return count;
}

Bandwidth cable_bandwidth(const Dimension& dimension) {
  std::map<std::int32_t, std::int64_t> ends;
  std::int64_t most = 1;
  // The bandwidth of a dimension is what its best joined member has, over all of its cables together.
  for (const MemberCable& cable : dimension.cables) most = std::max({most, ++ends[cable.a], ++ends[cable.b]});
  return Bandwidth(dimension.bandwidth.value / static_cast<double>(most));
}

std::int32_t cables_between(const Dimension& dimension, std::int32_t here, std::int32_t there) {
  return static_cast<std::int32_t>(std::ranges::count_if(dimension.cables, [&](const MemberCable& cable) {
    return (cable.a == here && cable.b == there) || (cable.a == there && cable.b == here);
  }));
}

Bandwidth pair_bandwidth(const Dimension& dimension, std::int32_t here, std::int32_t there, Bandwidth host) {
  const std::int32_t cables = cables_between(dimension, here, there);
  if (cables == 0 && host.value > 0) return std::min(host, dimension.bandwidth);
  return Bandwidth(std::max(cables, 1) * cable_bandwidth(dimension).value);
}

// Ranges are sorted by rank. 0 is the usual device.
std::uint32_t device_number(const Machine& machine, std::int64_t rank) {
  const auto after =
      std::upper_bound(machine.others.begin(), machine.others.end(), rank,
                       [](std::int64_t r, const OtherDevices& other) { return r < other.first; });
  if (after == machine.others.begin() || rank > std::prev(after)->last) return 0;
  return static_cast<std::uint32_t>(after - machine.others.begin());
}

const Device& device_of(const Machine& machine, std::int64_t rank) {
  const std::uint32_t number = device_number(machine, rank);
  return number == 0 ? machine.device : machine.others[number - 1].device;
}

// What to do about ranks that do not fill whole groups of `covered`: other counts, or fewer devices of every
// group (most of them), as where jobs of 256 take 64 GPUs of racks of 72.
std::string ways_to_fill(const Machine& machine, std::int64_t ranks, std::int64_t covered, bool elastic) {
  const std::int64_t below = ranks / covered * covered;
  std::string ways = fmt::format("the nearest counts that do are {} and {}", below, below + covered);
  const Dimension& innermost = machine.dimensions.front();
  if (innermost.size != covered || !innermost.cables.empty() || !machine.graph.empty()) return ways;
  std::int64_t part = covered - 1;
  while (2 * part >= covered && ranks % part != 0) --part;
  const bool has_groups = elastic || ranks / part <= rank_count(machine) / covered;
  if (2 * part >= covered && part > 1 && has_groups)
    ways += fmt::format(", or take {} of each group: machine.dimensions.0.size={}", part, part);
  return ways;
}

// The dimensions that a job finds. Slices are of whole cubes, which the machine's own sizes are; several of
// them are as large as can be.
std::vector<Dimension> dimensions_for(const Machine& machine, std::int64_t ranks, std::int64_t block,
                                      const std::string& where) {
  std::vector<Dimension> dimensions = machine.dimensions;
  if (machine.largest_slice == 0) return dimensions;
  const std::size_t rings = dimensions.size() - 1;
  const std::int64_t cube = dimensions.front().size;
  std::int64_t of_cube = 1;
  for (std::size_t d = 0; d < rings; ++d) of_cube *= cube;
  const auto slice_of = [&](std::int64_t count) {
    if (count <= machine.largest_slice) return count;
    if (count % of_cube == 0 && of_cube <= machine.largest_slice)
      return of_cube * largest_divisor(count / of_cube, machine.largest_slice / of_cube);
    // Slices that are less than a cube.
    return of_cube > machine.largest_slice ? largest_divisor(count, machine.largest_slice) : 0;
  };
  const auto sides_of = [&](std::int64_t count) {
    const std::int64_t slice = slice_of(count);
    return slice > 0 ? slice_sides(slice, rings, cube, block) : std::vector<std::int64_t>();
  };
  const std::vector<std::int64_t> sides = sides_of(ranks);
  if (sides.empty()) {
    // The next whole cube is one.
    std::int64_t below = ranks - 1, above = ranks + 1;
    while (sides_of(below).empty()) --below;
    while (sides_of(above).empty()) ++above;
    throw Error(where,
                fmt::format("{} are not a slice of machine '{}'", typed_count(ranks, "rank"), machine.name),
                fmt::format("ranks could be {} or {}", below, above));
  }
  for (std::size_t d = 0; d < rings; ++d) dimensions[d].size = sides[d];
  return dimensions;
}

// Inner dimensions are filled first; the last one that is needed may be used in part.
Machine with_ranks(const Machine& machine, std::int64_t ranks, bool elastic, const std::string& where,
                   std::int64_t block) {
  const std::vector<Dimension> dimensions = dimensions_for(machine, ranks, block, where);
  Machine part = machine;
  part.largest_slice = 0;
  part.dimensions.clear();
  std::int64_t covered = 1;
  for (std::size_t d = 0; d < dimensions.size() && covered < ranks; ++d) {
    Dimension dimension = dimensions[d];
    const std::int64_t whole = checked_multiply(covered, dimension.size, machine.name);
    const bool grows = elastic && d + 1 == dimensions.size();
    if (ranks < whole || grows) {
      if (ranks % covered != 0) {
        throw Error(
            where,
            fmt::format("{} {} not fill whole groups of {} on machine '{}'", typed_count(ranks, "rank"),
                        ranks == 1 ? "does" : "do", covered, machine.name),
            ways_to_fill(machine, ranks, covered, elastic));
      }
      // Cables name members: nobody says how those of a larger node would be joined.
      if (!dimension.cables.empty() && ranks / covered > dimension.size)
        throw Error(where,
                    fmt::format("{} do not fit the {} that the cables of machine '{}' join",
                                typed_count(ranks, "rank"), typed_count(dimension.size * covered, "device"),
                                machine.name),
                    "use fewer ranks, or give the machine a dimension above");
      dimension.size = ranks / covered;
    }
    covered = checked_multiply(covered, dimension.size, machine.name);
    part.dimensions.push_back(dimension);
  }
  if (covered < ranks) {
    throw Error(
        where,
        fmt::format("{} do not fit machine '{}' of {}", typed_count(ranks, "rank"), machine.name,
                    typed_count(covered, "device")),
        fmt::format("use at most {} or enlarge a dimension of the machine", typed_count(covered, "rank")));
  }
  // Links of a graph belong to a dimension whether or not ranks are told apart by it.
  for (std::size_t d = part.dimensions.size(); d < machine.dimensions.size() && !machine.graph.empty(); ++d) {
    part.dimensions.push_back(machine.dimensions[d]);
    part.dimensions.back().size = 1;
  }
  // Nothing rests on figures of dimensions that are left out.
  std::erase_if(part.unverified, [&](const std::string& figure) {
    const auto is_of = [&](const Dimension& dimension) { return figure.starts_with(dimension.name + "."); };
    return std::ranges::any_of(machine.dimensions, is_of) && std::ranges::none_of(part.dimensions, is_of);
  });
  return part;
}

void validate_machine(const Machine& machine) {
  const std::string where = fmt::format("machine '{}'", machine.name);
  for (const Dimension& dimension : machine.dimensions) {
    const std::string place = fmt::format("{}, dimension '{}'", where, dimension.name);
    if (dimension.size < 1)
      throw Error(place, fmt::format("has a size of {}", dimension.size), "the size must be at least 1");
    if (!(dimension.bandwidth.value > 0)) throw Error(place, "has no bandwidth");
    if (dimension.latency < Time(0)) throw Error(place, "has a negative latency");
  }
  if (rank_count(machine) > INT32_MAX) throw Error(where, "has more than 2147483647 devices");
  if (!machine.graph.empty()) {
    validate_interconnect(machine.graph, where);
    if (machine.graph.devices() < rank_count(machine)) {
      throw Error(where, fmt::format("its dimensions have {}, its links join {}",
                                     typed_count(rank_count(machine), "device"), machine.graph.devices()));
    }
  }
  const Device& device = machine.device;
  if (!(device.vector_rate.value > 0) || !(device.memory_bandwidth.value > 0)) {
    throw Error(fmt::format("{}, device '{}'", where, device.name),
                "needs a vector rate and a memory bandwidth");
  }
}

Interconnect links_of(const Machine& machine) {
  if (!machine.graph.empty()) return machine.graph;
  Interconnect graph;
  graph.devices_forward = true;
  const std::int64_t ranks = rank_count(machine);
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    graph.nodes.push_back({NetworkNodeKind::device, fmt::format("rank {}", rank)});
  std::int64_t stride = 1;
  for (std::uint32_t d = 0; d < machine.dimensions.size(); ++d) {
    const Dimension& dimension = machine.dimensions[d];
    const std::int64_t size = dimension.size;
    const LinkFigures figures = {dimension.bandwidth, dimension.latency, 0};
    const auto add = [&](std::int64_t a, std::int64_t b) {
      graph.cables.push_back(
          {static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b), figures, figures, d});
    };
    const auto with = [&](std::int64_t rank, std::int64_t coordinate) {
      return rank + (coordinate - rank / stride % size) * stride;
    };
    const auto switches = static_cast<std::int64_t>(graph.nodes.size());
    for (std::int64_t rank = 0; rank < ranks && size > 1; ++rank) {
      const std::int64_t here = rank / stride % size;
      switch (dimension.kind) {
        case DimensionKind::ring:
          add(rank, with(rank, (here + 1) % size));
          break;
        case DimensionKind::switched:
          if (here == 0) {
            graph.nodes.push_back(
                {NetworkNodeKind::switched,
                 fmt::format("switch {}", static_cast<std::int64_t>(graph.nodes.size()) - ranks)});
          }
          add(rank, switches + rank / (stride * size) * stride + rank % stride);
          break;
        case DimensionKind::fully_connected:
          for (std::int64_t i = 0; here == 0 && i < size; ++i) {
            for (std::int64_t j = i + 1; j < size; ++j) add(with(rank, i), with(rank, j));
          }
          break;
      }
    }
    stride *= size;
  }
  return graph;
}

namespace {

// All that times, memory and expenses depend on.
std::string dump_device(const Device& d) {
  std::string text = fmt::format(
      "device {} memory {} {} {} {} bandwidth {} {} vector {} efficiency {} {} {} launch {} issue {}\n",
      d.name, d.memory.value, d.reserved.value, d.communicator_buffers.value, d.product_workspace.value,
      d.memory_bandwidth.value, d.host_bandwidth.value, d.vector_rate.value, d.matrix_efficiency,
      d.vector_efficiency, d.memory_efficiency, d.launch_overhead.value, d.issue_time.value);
  for (const auto& [dtype, rate] : d.matrix_rate)
    text += fmt::format("matrix {} {}\n", name_of(dtype), rate.value);
  const auto figure = [](const auto& value) { return value ? fmt::format("{}", value->value) : "unknown"; };
  text += fmt::format("power {} {} price {}\n", figure(d.busy_power), figure(d.idle_power), figure(d.price));
  if (const auto& a = d.arrays)
    text += fmt::format("arrays {} {} {} {} {}\n", a->side, a->memories, a->attention_forward,
                        a->attention_backward, a->attention_block);
  if (!d.kernels) return text;
  const KernelRates& k = *d.kernels;
  const auto attention = [](const AttentionRates& a) {
    return fmt::format("{} {} {} {} {}", a.forward, a.backward, a.ramp, a.range.least, a.range.most);
  };
  text += fmt::format("kernels {} {} {}\n", k.processors, k.launch.value, k.sustained);
  for (const auto& [dtype, m] : k.matrix) {
    text += fmt::format("matrix kernels {} {} {} {} {} {} {} {}\n", name_of(dtype), m.efficiency,
                        m.in_training.value_or(m.efficiency), m.ramp, m.tile_128, m.tile_64, m.range.least,
                        m.range.most);
  }
  for (const auto& [dtype, a] : k.attention)
    text += fmt::format("attention kernels {} {}\n", name_of(dtype), attention(a));
  if (k.flash_2) text += fmt::format("flash 2 {}\n", attention(*k.flash_2));
  if (k.flash_triton) text += fmt::format("flash triton {}\n", attention(*k.flash_triton));
  if (k.scan) text += fmt::format("scan {}\n", attention(*k.scan));
  const MemoryRates& m = k.memory;
  return text + fmt::format("memory kernels {} {} {} {} {} {} {} {} {} {} {} {}\n", m.efficiency, m.norm,
                            m.norm_backward, m.activation, m.rotary, m.permute, m.gather, m.loss, m.cast,
                            m.launch.value, m.range.least, m.range.most);
}

std::string dump_protocol(const CollectiveProtocol& protocol) {
  return fmt::format("protocol {} {} {} {} {} {}\n", protocol.name, protocol.launch.value,
                     protocol.step.value, protocol.share, protocol.level.value, protocol.chain.value);
}

}  // namespace

std::string dump_machine(const Machine& machine) {
  std::string text = fmt::format("machine {} {}", machine.name, dump_device(machine.device));
  for (const OtherDevices& other : machine.others)
    text += fmt::format("ranks {} to {} {}", other.first, other.last, dump_device(other.device));
  if (machine.elastic) text += "elastic\n";
  if (machine.largest_slice > 0) text += fmt::format("slices of at most {}\n", machine.largest_slice);
  if (machine.host_power) text += fmt::format("host power {}\n", machine.host_power->value);
  for (const Dimension& d : machine.dimensions) {
    text += fmt::format("dimension {} {} {} bandwidth {} B/s latency {} ps efficiency {}\n", d.name,
                        name_of(d.kind), d.size, d.bandwidth.value, d.latency.value, d.efficiency);
    if (d.own_block.value > 0) text += fmt::format("own block {} B/s\n", d.own_block.value);
    if (d.trees_of_two.value > 0 || d.trees_of_more.value > 0)
      text +=
          fmt::format("trees of two {} B/s of more {} B/s\n", d.trees_of_two.value, d.trees_of_more.value);
    for (const CollectiveProtocol& protocol : d.protocols) text += dump_protocol(protocol);
    if (d.in_switch) text += "in the switch: " + dump_protocol(*d.in_switch);
    for (const MemberCable& cable : d.cables)
      text += fmt::format("cable of members {} {}\n", cable.a, cable.b);
  }
  for (const InterconnectNode& node : machine.graph.nodes)
    text += fmt::format("node {} {}\n", node.name, name_of(node.kind));
  const auto figures = [](const LinkFigures& link) {
    std::string line =
        fmt::format("{} B/s {} ps loss {}", link.bandwidth.value, link.latency.value, link.loss);
    if (link.whole) line += fmt::format(" of {} B/s", link.whole->value);
    return line;
  };
  for (const Cable& cable : machine.graph.cables) {
    text += fmt::format("cable {} {} dimension {} there {} back {}\n", cable.a, cable.b, cable.dimension,
                        figures(cable.there), figures(cable.back));
  }
  return text;
}

}  // namespace armilla
