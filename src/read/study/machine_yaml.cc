#include "read/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/error.h"
#include "base/suggest.h"
#include "base/units_text.h"
#include "ir/derived/rank_ranges.h"
#include "read/study/mapping_yaml.h"
#include "read/topology.h"
#include "zoo/zoo.h"

namespace armilla {
namespace {

constexpr const char* kMachineKeys =
    "a machine has the keys 'device' and 'dimensions', 'topology', or 'nodes' and 'links'";

std::string read_name(const Config& config) {
  const auto name = config.find("name");
  if (!name) return std::filesystem::path(config.file()).stem().string();
  if (name->text().empty()) throw Error(name->where(), "the name is empty");
  return name->text();
}

// Every entry must be the name of a figure, or a typing mistake would pass as "verified".
std::vector<std::string> read_unverified(const Config& config, const std::vector<std::string>& figures) {
  std::vector<std::string> unverified;
  const auto list = config.find("unverified");
  if (!list) return unverified;
  for (const Config& item : list->items()) {
    const std::string name = item.text();
    if (std::find(figures.begin(), figures.end(), name) == figures.end())
      throw Error(item.where(), fmt::format("there is no figure '{:.60}' here", name),
                  suggest(name, figures));
    unverified.push_back(name);
  }
  return unverified;
}

// What the name of a device or machine ends in, once overrides have changed figures of the file.
constexpr std::string_view kChanged = " (changed)";

// Whether overrides changed anything that times depend on.
bool changes_times(const Config& config) {
  constexpr std::array<std::string_view, 4> kExpenses = {"busy_power", "idle_power", "price", "host_power"};
  return std::ranges::any_of(config.entries(), [&](const auto& entry) {
    const auto& [key, value] = entry;
    if (std::ranges::find(kExpenses, key) != kExpenses.end()) return false;
    if (key == "device" && value.is_map() && !value.is_override()) return changes_times(value);
    return value.is_override() || value.has_overrides();
  });
}

// Figures that the user set are no longer the file's.
template <class Find>
void drop_overrides(std::vector<std::string>& unverified, const Find& find) {
  std::erase_if(unverified, [&](const std::string& figure) {
    const std::optional<Config> value = find(figure);
    return value && value->is_override();
  });
}

void read_efficiency(const Config& config, std::string_view key, double& efficiency) {
  const auto value = config.find(key);
  if (!value) return;
  efficiency = value->fraction();
  if (!(efficiency > 0)) throw Error(value->where(), "an efficiency must be more than 0");
}

SystolicArrays read_arrays(const Config& config) {
  SystolicArrays arrays;
  constexpr std::int64_t kMostSide = 1 << 16, kMostMemories = 1 << 10, kMostTokens = 1 << 30;
  if (const auto side = config.find("side")) arrays.side = side->count(1, kMostSide);
  if (const auto memories = config.find("memories")) arrays.memories = memories->count(1, kMostMemories);
  if (const auto attention = config.find("attention")) {
    read_efficiency(*attention, "forward", arrays.attention_forward);
    read_efficiency(*attention, "backward", arrays.attention_backward);
    if (const auto block = attention->find("block")) arrays.attention_block = block->count(0, kMostTokens);
    attention->reject_unknown_keys();
  }
  config.reject_unknown_keys();
  return arrays;
}

std::map<DType, FlopRate> read_matrix_rates(const Config& config) {
  std::map<DType, FlopRate> rates;
  for (const auto& [name, rate] : config.entries()) {
    const auto dtype = dtype_from_name(name);
    if (!dtype)
      throw Error(rate.where(), fmt::format("unknown type '{:.60}'", name),
                  suggest(name, std::span<const std::string_view>(dtype_names())));
    rates[*dtype] = rate.flop_rate();
  }
  return rates;
}

double read_share(const Config& config, std::string_view key, double otherwise) {
  double share = otherwise;
  read_efficiency(config, key, share);
  return share;
}

double read_number(const Config& config, std::string_view key, double otherwise) {
  const auto value = config.find(key);
  if (!value) return otherwise;
  const double number = parse_real(value->text(), value->where());
  if (!(number >= 0)) throw Error(value->where(), "expected a number of at least 0");
  return number;
}

void read_range(const Config& config, FittedRange& found) {
  const auto range = config.find("range");
  if (!range) return;
  const std::vector<Config> ends = range->items();
  if (ends.size() != 2)
    throw Error(range->where(), "expected the least and the most, such as [5.4e8, 1.7e14]");
  found = {parse_real(ends[0].text(), ends[0].where()), parse_real(ends[1].text(), ends[1].where())};
  // [0, 0]: of no measurement.
  const bool is_empty = found.least == 0 && found.most == 0;
  if (!is_empty && (!(found.least >= 0) || !(found.least < found.most)))
    throw Error(range->where(), "the least must be at least 0 and less than the most",
                "[0, 0] where nothing was measured");
}

void read_rates(const Config& config, MatrixRates& rates) {
  // Of the device that this one is like.
  if (config.has("efficiency")) rates.in_training.reset();
  read_efficiency(config, "efficiency", rates.efficiency);
  if (config.has("in_training")) read_efficiency(config, "in_training", rates.in_training.emplace());
  rates.ramp = read_number(config, "ramp", rates.ramp);
  read_efficiency(config, "tile_128", rates.tile_128);
  read_efficiency(config, "tile_64", rates.tile_64);
  read_range(config, rates.range);
}

void read_rates(const Config& config, AttentionRates& rates) {
  read_efficiency(config, "forward", rates.forward);
  read_efficiency(config, "backward", rates.backward);
  rates.ramp = read_number(config, "ramp", rates.ramp);
  read_range(config, rates.range);
}

// Over those that are there already.
template <class Rates>
void read_by_type(const Config& config, std::string_view key, std::map<DType, Rates>& rates) {
  const auto types = config.find(key);
  if (!types) return;
  for (const auto& [name, entry] : types->entries()) {
    const auto dtype = dtype_from_name(name);
    if (!dtype)
      throw Error(entry.where(), fmt::format("unknown type '{:.60}'", name),
                  suggest(name, std::span<const std::string_view>(dtype_names())));
    read_rates(entry, rates[*dtype]);
    entry.reject_unknown_keys();
  }
}

// Shares that are not told are the efficiency, which `known` memory has told already.
MemoryRates read_memory_rates(const Config& config, const MemoryRates* known, Time launch) {
  MemoryRates rates;
  if (known != nullptr) {
    rates = *known;
    read_efficiency(config, "efficiency", rates.efficiency);
  } else {
    const double usual = read_share(config, "efficiency", 1);
    rates = {usual, usual, usual, usual, usual, usual, usual, usual, usual, launch};
  }
  read_efficiency(config, "norm", rates.norm);
  read_efficiency(config, "norm_backward", rates.norm_backward);
  read_efficiency(config, "activation", rates.activation);
  read_efficiency(config, "rotary", rates.rotary);
  read_efficiency(config, "permute", rates.permute);
  read_efficiency(config, "gather", rates.gather);
  read_efficiency(config, "loss", rates.loss);
  read_efficiency(config, "cast", rates.cast);
  if (const auto own = config.find("launch")) rates.launch = own->time();
  read_range(config, rates.range);
  if (const auto cache = config.find("cache")) rates.cache = cache->bytes();
  if (const auto speed = config.find("cache_bandwidth")) rates.cache_bandwidth = speed->bandwidth();
  // One says nothing without the other.
  if ((rates.cache > Bytes(0)) != (rates.cache_bandwidth.value > 0))
    config.at(rates.cache > Bytes(0) ? "cache_bandwidth" : "cache");
  config.reject_unknown_keys();
  return rates;
}

void set_ranges(KernelRates& rates, const FittedRange& range) {
  for (auto& [dtype, of] : rates.matrix) of.range = range;
  for (auto& [dtype, of] : rates.attention) of.range = range;
  for (std::optional<AttentionRates>* const of : {&rates.flash_2, &rates.flash_triton, &rates.scan}) {
    if (*of) (*of)->range = range;
  }
  rates.memory.range = range;
}

// Those of the device that `like` names, which may be like another in turn, though not in a circle.
KernelRates rates_like(const Config& like, int in_turn) {
  constexpr int kMostInTurn = 4;
  if (in_turn == kMostInTurn)
    throw Error(like.where(), "is like another device, as that is like another, and so on",
                "name a device that has rates of its own");
  const Device device = load_device(name_or_path(like), like.where(), in_turn + 1);
  if (!device.kernels)
    throw Error(like.where(), fmt::format("{} has no rates of kernels", device.name), "name another device");
  return *device.kernels;
}

KernelRates read_kernel_rates(const Config& config, int in_turn) {
  const auto like = config.find("like");
  KernelRates rates = like ? rates_like(*like, in_turn) : KernelRates();
  // Before those that classes have of their own.
  if (const auto all = config.find("range")) {
    FittedRange range;
    read_range(config, range);
    set_ranges(rates, range);
  }
  // Needed, but where another device has them.
  const auto own = [&](std::string_view key) {
    return like ? config.find(key) : std::optional(config.at(key));
  };
  constexpr std::int64_t kMostProcessors = 1 << 20;
  if (const auto processors = own("processors")) rates.processors = processors->count(1, kMostProcessors);
  if (const auto threads = config.find("threads")) rates.threads = threads->count(1, kMostProcessors);
  if (const auto launch = own("launch")) rates.launch = launch->time();
  read_by_type(config, "matrix", rates.matrix);
  read_by_type(config, "attention", rates.attention);
  const auto of_all_types = [&](std::string_view key, std::optional<AttentionRates>& found) {
    const auto entry = config.find(key);
    if (!entry) return;
    if (!found) found.emplace();
    read_rates(*entry, *found);
    entry->reject_unknown_keys();
  };
  of_all_types("flash_2", rates.flash_2);
  of_all_types("flash_triton", rates.flash_triton);
  of_all_types("scan", rates.scan);
  if (!like) rates.memory.launch = rates.launch;
  if (const auto memory = config.find("memory"))
    rates.memory = read_memory_rates(*memory, like ? &rates.memory : nullptr, rates.launch);
  if (const auto sustained = config.find("sustained")) {
    std::string text = sustained->text();
    const bool is_percent = text.ends_with('%');
    if (is_percent) text.pop_back();
    rates.sustained = parse_real(text, sustained->where()) / (is_percent ? 100 : 1);
    // Times of another program may round at the peak itself.
    constexpr double kRounding = 1e-6;
    if (!(rates.sustained > 0) || rates.sustained > most_sustained(rates) * (1 + kRounding))
      throw Error(sustained->where(),
                  fmt::format("expected more than 0 and at most {:.4g}, at which products run at the peak",
                              most_sustained(rates)));
  }
  rates.source = config.text_at("source");
  config.reject_unknown_keys();
  return rates;
}

// Switches that reduce have one step, and neither rings nor trees.
enum class LibraryWay : std::uint8_t { rings_and_trees, in_switch };

CollectiveProtocol read_protocol(const Config& config, LibraryWay way) {
  CollectiveProtocol protocol;
  const Config name = config.at("name");
  protocol.name = name.text();
  protocol.where = name.where();
  protocol.launch = config.at("launch").time();
  protocol.step = config.at("step").time();
  protocol.share = read_share(config, "share", 1);
  if (way == LibraryWay::rings_and_trees) {
    const auto level = config.find("level");
    protocol.level = level ? level->time() : protocol.step * 2;
    if (const auto chain = config.find("chain")) protocol.chain = chain->time();
  }
  config.reject_unknown_keys();
  return protocol;
}

std::vector<CollectiveProtocol> read_protocols(const Config& config) {
  std::vector<CollectiveProtocol> protocols;
  for (const Config& item : config.items())
    protocols.push_back(read_protocol(item, LibraryWay::rings_and_trees));
  return protocols;
}

Device read_device_or_name(const Config& config) {
  return config.is_scalar() ? load_device(name_or_path(config), config.where()) : read_device(config);
}

// Sorted by rank. `size`: devices of the machine; 0: it grows with the plan.
std::vector<OtherDevices> read_other_devices(const Config& config, std::int64_t size) {
  std::vector<OtherDevices> others;
  for (const Config& item : config.items()) {
    const Config ranks = item.at("ranks");
    const Device device = read_device_or_name(item.at("device"));
    item.reject_unknown_keys();
    const std::vector<RankRange> ranges = parse_rank_ranges(ranks.text(), ranks.where());
    if (size > 0) check_rank_ranges(ranges, size, ranks.where());
    for (const RankRange& range : ranges) {
      for (const OtherDevices& other : others) {
        if (range.first <= other.last && other.first <= range.last)
          throw Error(ranks.where(),
                      fmt::format("rank {} has two devices", std::max(range.first, other.first)));
      }
      others.push_back({range.first, range.last, device});
    }
  }
  std::sort(others.begin(), others.end(),
            [](const OtherDevices& a, const OtherDevices& b) { return a.first < b.first; });
  return others;
}

// "0-3": one between two members. Parallel ones are said one by one.
std::vector<MemberCable> read_cables(const Config& config, const Dimension& dimension) {
  constexpr std::int64_t kMostMembers = 16;
  if (dimension.kind != DimensionKind::switched)
    throw Error(config.where(), "cables take the place of a switch", "the dimension's kind is to be Switch");
  if (dimension.in_switch)
    throw Error(config.where(), "joined by cables, members have no switch to reduce in");
  if (dimension.size > kMostMembers)
    throw Error(config.where(), fmt::format("{} members joined by cables", dimension.size),
                fmt::format("rings are looked for among at most {}", kMostMembers));
  std::vector<MemberCable> cables;
  for (const Config& item : config.items()) {
    const std::string text = item.text();
    const std::size_t dash = std::min(text.find('-'), text.size());
    const std::string from = text.substr(0, dash), to = text.substr(std::min(dash + 1, text.size()));
    const auto is_number = [](const std::string& word) {
      return !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
    };
    const std::int64_t a = is_number(from) ? parse_count(from, item.where()) : -1;
    const std::int64_t b = is_number(to) ? parse_count(to, item.where()) : -1;
    if (a == b || a < 0 || b < 0 || std::max(a, b) >= dimension.size)
      throw Error(item.where(), fmt::format("'{:.60}' is not a cable between two members", text),
                  fmt::format("members are 0 to {}: 0-1", dimension.size - 1));
    cables.push_back({static_cast<std::int32_t>(a), static_cast<std::int32_t>(b)});
  }
  if (cables.empty())
    throw Error(config.where(), "lists no cable", "omit it where a switch joins the members");
  return cables;
}

Dimension read_machine_dimension(const Config& config, std::size_t index) {
  constexpr DimensionKind kKinds[] = {DimensionKind::ring, DimensionKind::fully_connected,
                                      DimensionKind::switched};
  std::vector<std::string_view> kinds;
  for (const DimensionKind kind : kKinds) kinds.push_back(name_of(kind));
  Dimension dimension;
  const auto name = config.find("name");
  dimension.name = name ? name->text() : fmt::format("dim{}", index);
  dimension.kind = kKinds[config.at("kind").choice(kinds)];
  dimension.size = config.at("size").count(1, INT32_MAX);
  dimension.bandwidth = config.at("bandwidth").bandwidth();
  dimension.latency = config.at("latency").time();
  read_efficiency(config, "efficiency", dimension.efficiency);
  if (const auto protocols = config.find("protocols")) dimension.protocols = read_protocols(*protocols);
  if (const auto own_block = config.find("own_block")) dimension.own_block = own_block->bandwidth();
  if (const auto limit = config.find("tree_limit")) {
    if (index == 0 || dimension.protocols.empty())
      throw Error(limit->where(), "has no effect here",
                  "it counts between nodes, on a dimension that is not the first and has protocols");
    dimension.trees_of_two = limit->at("two").bandwidth();
    dimension.trees_of_more = limit->at("more").bandwidth();
    limit->reject_unknown_keys();
  }
  if (const auto in_switch = config.find("in_switch")) {
    if (dimension.kind != DimensionKind::switched)
      throw Error(in_switch->where(), "the dimension has no switch", "its kind is to be Switch");
    dimension.in_switch = read_protocol(*in_switch, LibraryWay::in_switch);
  }
  if (const auto cables = config.find("cables")) dimension.cables = read_cables(*cables, dimension);
  config.reject_unknown_keys();
  return dimension;
}

std::vector<Dimension> read_dimensions(const Config& config) {
  constexpr std::size_t kMost = 16;
  const std::vector<Config> items = config.items();
  if (items.empty()) throw Error(config.where(), "a machine has at least one dimension");
  if (items.size() > kMost) throw Error(config.where(), fmt::format("more than {} dimensions", kMost));
  std::vector<Dimension> dimensions;
  std::int64_t ranks = 1;
  for (std::size_t i = 0; i < items.size(); ++i) {
    Dimension dimension = read_machine_dimension(items[i], i);
    ranks *= dimension.size;  // both below 2^31
    if (ranks > INT32_MAX)
      throw Error(items[i].where(), fmt::format("the machine has more than {} devices here", INT32_MAX));
    for (const Dimension& other : dimensions) {
      if (other.name == dimension.name)
        throw Error(items[i].where(), fmt::format("two dimensions are called '{:.60}'", other.name));
    }
    dimensions.push_back(std::move(dimension));
  }
  return dimensions;
}

// The links and the dimensions: either may come without the other.
void read_interconnect(const Config& config, Machine& machine, std::vector<std::string>* warnings) {
  const auto topology = config.find("topology"), nodes = config.find("nodes"), cables = config.find("links");
  if (topology && nodes)
    throw Error(nodes->where(), "cannot be combined with 'topology'", "give one of them");
  if (cables && !nodes) throw Error(cables->where(), "is given without 'nodes', which they join");
  if (!topology && !nodes) {
    machine.dimensions = read_dimensions(config.at("dimensions"));
    return;
  }
  MachineLinks links = topology ? read_topology(*topology) : read_links(*nodes, config.at("links"));
  if (warnings != nullptr && !links.without_effect.empty()) warnings->push_back(links.without_effect);
  const bool own = config.has("dimensions");
  machine.graph = std::move(links.graph);
  machine.dimensions = own ? read_dimensions(config.at("dimensions")) : std::move(links.dimensions);
  const std::string where = topology ? topology->where() : nodes->where();
  if (own && machine.graph.empty())
    throw Error(config.at("dimensions").where(),
                "cannot be combined with a topology that has dimensions of its own");
  if (config.has("elastic"))
    throw Error(config.at("elastic").where(), "an explicit topology has the size that it has",
                "change the topology's parameters");
  for (const Cable& cable : machine.graph.cables) {
    if (cable.dimension >= machine.dimensions.size())
      throw Error(where, fmt::format("links belong to dimension {}, and there are {}", cable.dimension,
                                     machine.dimensions.size()));
  }
}

}  // namespace

Device read_device(const Config& config, int in_turn) {
  require_mapping(config, "a device", "a device has the keys 'memory', 'memory_bandwidth' and 'vector_rate'");
  Device device;
  device.name = read_name(config);
  device.description = config.text_at("description");
  device.memory = config.at("memory").bytes();
  if (device.memory.value < 1) throw Error(config.at("memory").where(), "a device needs memory");
  device.memory_bandwidth = config.at("memory_bandwidth").bandwidth();
  device.vector_rate = config.at("vector_rate").flop_rate();
  if (const auto host = config.find("host_bandwidth")) device.host_bandwidth = host->bandwidth();
  if (const auto reserved = config.find("reserved")) device.reserved = reserved->bytes();
  if (const auto buffers = config.find("communicator_buffers"))
    device.communicator_buffers = buffers->bytes();
  if (const auto workspace = config.find("product_workspace")) device.product_workspace = workspace->bytes();
  if (const auto power = config.find("busy_power"))
    device.busy_power = parse_power(power->text(), power->where());
  if (const auto power = config.find("idle_power")) {
    device.idle_power = parse_power(power->text(), power->where());
    if (device.busy_power && *device.idle_power > *device.busy_power)
      throw Error(power->where(), "is more than busy_power");
  }
  if (const auto price = config.find("price")) device.price = parse_price(price->text(), price->where());
  if (device.reserved >= device.memory)
    throw Error(config.at("reserved").where(), "leaves nothing of the memory");
  std::vector<std::string> figures = {
      "memory",          "reserved",    "communicator_buffers", "product_workspace", "memory_bandwidth",
      "host_bandwidth",  "vector_rate", "matrix_efficiency",    "vector_efficiency", "memory_efficiency",
      "launch_overhead", "issue_time",  "busy_power",           "idle_power",        "price"};
  if (const auto rates = config.find("matrix_rate")) {
    device.matrix_rate = read_matrix_rates(*rates);
    for (const auto& [dtype, rate] : device.matrix_rate)
      figures.push_back(fmt::format("matrix_rate.{}", name_of(dtype)));
  }
  read_efficiency(config, "matrix_efficiency", device.matrix_efficiency);
  read_efficiency(config, "vector_efficiency", device.vector_efficiency);
  read_efficiency(config, "memory_efficiency", device.memory_efficiency);
  if (const auto overhead = config.find("launch_overhead")) device.launch_overhead = overhead->time();
  if (const auto issue = config.find("issue_time")) device.issue_time = issue->time();
  if (const auto kernels = config.find("kernels")) device.kernels = read_kernel_rates(*kernels, in_turn);
  if (const auto arrays = config.find("arrays")) {
    device.arrays = read_arrays(*arrays);
    figures.insert(figures.end(), {"arrays.side", "arrays.memories", "arrays.attention"});
  }
  device.source = config.text_at("source");
  device.unverified = read_unverified(config, figures);
  // A changed device is no longer that of its file: its name says so, and figures that the user gave are not
  // the file's to verify.
  if (config.has_overrides()) {
    const auto rates = config.find("matrix_rate");
    drop_overrides(device.unverified, [&](const std::string& figure) {
      constexpr std::string_view kRate = "matrix_rate.";
      return figure.starts_with(kRate) ? rates->find(figure.substr(kRate.size())) : config.find(figure);
    });
  }
  config.reject_unknown_keys();
  if (changes_times(config)) device.name += kChanged;
  return device;
}

Machine read_machine(const Config& config, std::vector<std::string>* warnings) {
  require_mapping(config, "a machine", kMachineKeys);
  const bool has_links = config.has("dimensions") || config.has("topology") || config.has("nodes");
  if (!has_links && (config.has("memory_bandwidth") || config.has("model"))) {
    throw Error(config.where(),
                config.has("model") ? "is a study, not a machine" : "is a device, not a machine",
                kMachineKeys);
  }
  Machine machine;
  machine.name = read_name(config);
  machine.description = config.text_at("description");
  const std::vector<std::string> names = machine_names();
  if (!has_links && !config.has("device") && std::ranges::find(names, machine.name) != names.end()) {
    throw Error(
        config.where(), "the key 'device' is missing",
        fmt::format("for the machine of this name write machine: {}, and plan.ranks for the number of "
                    "devices",
                    machine.name));
  }
  machine.device = read_device_or_name(config.at("device"));
  read_interconnect(config, machine, warnings);
  if (const auto elastic = config.find("elastic")) machine.elastic = elastic->boolean();
  if (const auto slice = config.find("largest_slice")) {
    machine.largest_slice = slice->count(1, INT32_MAX);
    const std::span rings(machine.dimensions.data(), machine.dimensions.size() - 1);
    const bool is_torus = !rings.empty() && std::ranges::all_of(rings, [&](const Dimension& dimension) {
      return dimension.kind == DimensionKind::ring && dimension.size == machine.dimensions.front().size;
    });
    if (!machine.elastic || !is_torus)
      throw Error(slice->where(), "needs an elastic torus",
                  "give elastic: true, and Rings of one size before the last dimension, which joins slices");
    const std::int64_t of_rings = rank_count(machine) / machine.dimensions.back().size;
    if (machine.largest_slice < of_rings)
      throw Error(slice->where(),
                  fmt::format("is less than the {} of the rings", typed_count(of_rings, "device")));
  }
  if (const auto devices = config.find("devices"))
    machine.others = read_other_devices(*devices, machine.elastic ? 0 : rank_count(machine));
  if (const auto power = config.find("host_power"))
    machine.host_power = parse_power(power->text(), power->where());
  machine.source = config.text_at("source");
  std::vector<std::string> figures = {"host_power"};
  for (const Dimension& dimension : machine.dimensions) {
    figures.push_back(dimension.name + ".bandwidth");
    figures.push_back(dimension.name + ".latency");
  }
  machine.unverified = read_unverified(config, figures);
  if (config.has_overrides()) {
    const auto given = config.find("dimensions");
    const std::vector<Config> items = given ? given->items() : std::vector<Config>{};
    drop_overrides(machine.unverified, [&](const std::string& figure) {
      if (figure == "host_power") return config.find(figure);
      const std::size_t dot = figure.rfind('.');
      const auto dimension =
          std::find_if(machine.dimensions.begin(), machine.dimensions.end(),
                       [&](const Dimension& one) { return one.name == figure.substr(0, dot); });
      if (items.empty()) return std::optional<Config>();
      return items[static_cast<std::size_t>(dimension - machine.dimensions.begin())].find(
          figure.substr(dot + 1));
    });
  }
  config.reject_unknown_keys();
  if (changes_times(config)) machine.name += kChanged;
  validate_machine(machine);
  return machine;
}

std::string name_or_path(const Config& config) {
  const std::string text = config.text();
  if (text.empty()) throw Error(config.where(), "the name is empty");
  return !is_path(text) || text.starts_with('/') ? text : config.folder() + text;
}

}  // namespace armilla
