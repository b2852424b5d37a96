#include "study/validate/row_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <numeric>
#include <regex>
#include <string_view>

#include "base/error.h"
#include "base/nearest_divisor.h"
#include "base/text.h"
#include "read/study.h"

namespace armilla {
namespace {

struct KnownDevice {
  std::array<std::string_view, 3> words;  // that its name must have; the first known device counts
  std::string_view device, cluster;
  // Of a server: each serves as many of its devices in a row as the others; 0: one each.
  std::int64_t adapters = 0;
  double adapter_rate = 0;  // of one, in B/s; 0: its part of the server's
  bool sockets = false;     // between servers: TCP, no RDMA
};
constexpr std::array kKnownDevices = {
    KnownDevice{{"a100", "pairwise"}, "a100-80gb-pcie", "azure-nc96", 1, 0, true},
    KnownDevice{{"h100", "pairwise"}, "h100-pcie", "nvl-pairs", 1, 0, true},
    KnownDevice{{"a100", "pcie", "40gb"}, "a100-40gb-pcie", "dgx-a100"},
    KnownDevice{{"a100", "pcie"}, "a100-80gb-pcie", "dgx-a100"},
    KnownDevice{{"a100", "40gb"}, "a100-40gb-sxm", "dgx-a100"},
    KnownDevice{{"a100", " on unnamed"}, "a100-80gb-sxm", "hgx-staged", 4, 7.8e9},
    KnownDevice{{"a100", " on omni-path"}, "a100-80gb-sxm", "hgx-omni-path"},
    KnownDevice{{"a100", ""}, "a100-80gb-sxm", "dgx-a100"},
    KnownDevice{{"a800", ""}, "a800-sxm", "dgx-a100"},
    KnownDevice{{"a40", ""}, "a40", "ethernet-rack"},
    KnownDevice{{"a10", ""}, "a10", "ethernet-rack"},
    KnownDevice{{"l40s", ""}, "l40s", "ethernet-rack"},
    KnownDevice{{"l4", ""}, "l4", "ethernet-rack"},
    KnownDevice{{"t4", ""}, "t4", "ethernet-rack"},
    KnownDevice{{"gh200", ""}, "gh200-96gb", "ethernet-rack"},
    KnownDevice{{"h100", "96gb"}, "h100-96gb-sxm", "dgx-h100"},
    KnownDevice{{"h100", "pcie"}, "h100-pcie", "dgx-h100"},
    KnownDevice{{"h100", " on efa"}, "h100-sxm", "aws-p5"},
    KnownDevice{{"h100", ""}, "h100-sxm", "dgx-h100"},
    KnownDevice{{"h200", ""}, "h200-sxm", "dgx-h200"},
    KnownDevice{{"h800", ""}, "h800-sxm", "dgx-h100"},
    KnownDevice{{"h20", "141gb"}, "h20-141gb", "dgx-h100"},
    KnownDevice{{"h20", ""}, "h20-96gb", "dgx-h100"},
    KnownDevice{{"gb200", ""}, "gb200", "gb200-nvl72"},
    KnownDevice{{"gb300", ""}, "gb300", "gb200-nvl72"},
    KnownDevice{{"b200", ""}, "b200-hgx", "dgx-b200"},
    KnownDevice{{"b300", ""}, "b300-hgx", "dgx-b300"},
    KnownDevice{{"v100", "dgx-2"}, "v100-32gb-sxm2", "dgx-2"},
    KnownDevice{{"v100", "16gb"}, "v100-16gb-sxm2", "dgx-1"},
    KnownDevice{{"v100", ""}, "v100-32gb-sxm2", "dgx-1"},
    KnownDevice{{"mi300x", ""}, "mi300x", "mi300x"},
    KnownDevice{{"mi350x", ""}, "mi350x", "mi350x"},
    KnownDevice{{"mi355x", ""}, "mi355x", "mi355x"},
    KnownDevice{{"tpu", "v4"}, "tpu-v4", "tpu-v4"},
    KnownDevice{{"tpu", "v5e"}, "tpu-v5e", "tpu-v5e"},
    KnownDevice{{"tpu", "v5p"}, "tpu-v5p", "tpu-v5p"},
    KnownDevice{{"tpu", "v6e"}, "tpu-v6e", "tpu-v6e"},
    KnownDevice{{"tpu7x", ""}, "tpu-7x", "tpu-7x"},
    KnownDevice{{"tpu-7x", ""}, "tpu-7x", "tpu-7x"},
    KnownDevice{{"tpu", "v3"}, "tpu-v3", "tpu-v4"},
};

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}
bool is_letter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0;
}

// "efa" in "8x efa (4 per node)", not in "default"; in lower case.
bool has_whole_word(const std::string& text, std::string_view word) {
  const auto is_in_word = [&](std::size_t at) {
    return at < text.size() && (is_digit(text[at]) || is_letter(text[at]) || text[at] == '_');
  };
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    if ((at == 0 || !is_in_word(at - 1)) && !is_in_word(at + word.size())) return true;
  }
  return false;
}

// Whether the name has the model of a device: "a100" in "8xA100-SXM" and "DGXA100", not in "A1000" or
// "A100X", a converged accelerator; "h200" is not in "GH200", a superchip.
bool has_model(const std::string& name, std::string_view model) {
  const auto at = [&](std::size_t place) { return place < name.size() ? name[place] : ' '; };
  for (std::size_t begin = name.find(model); begin != std::string::npos;
       begin = name.find(model, begin + 1)) {
    const std::size_t end = begin + model.size();
    const bool is_converged = at(end) == 'x' && !is_digit(at(end + 1));
    const bool is_superchip = begin > 0 && at(begin - 1) == 'g' && (begin == 1 || !is_letter(at(begin - 2)));
    if (!is_digit(at(end)) && !is_converged && !is_superchip) return true;
  }
  return false;
}

// "40 GB" as "40gb"; not "400 Gb/s".
std::string spelled_device(const std::string& name) {
  static const std::regex kMemory(R"((\d) ?gb(?!/|ps|it)\b)");
  return std::regex_replace(lower_case(name), kMemory, "$1gb");
}

// A name that tells another memory than the device has is of another device.
void check_memory(const std::string& spelled, const KnownDevice& known, const std::string& name,
                  const std::string& where) {
  constexpr double kApart = 0.03, kGigabyte = 1e9, kGibibyte = 1 << 30;
  static const std::regex kMemory(R"((\d{2,3})gb\b)");
  std::smatch memory;
  if (!std::regex_search(spelled, memory, kMemory)) return;
  const auto has = static_cast<double>(load_device(std::string(known.device), where).memory.value);
  // "80 GB" are 80 GiB less what the driver keeps, "192 GB" of a B200 what they say.
  for (const double unit : {kGibibyte, kGigabyte}) {
    if (std::abs(std::stod(memory[1]) * unit / has - 1) <= kApart) return;
  }
  throw Error(where,
              fmt::format("'{:.60}' is not known: {} has {:.0f} GiB", name, known.device, has / kGibibyte),
              "armilla list devices names those that are");
}

const KnownDevice& known_device(const std::string& name, const std::string& where) {
  const std::string lower = spelled_device(name);
  const std::vector<std::string> all = device_names();
  // H100 NVL and H200 NVL are others than the zoo's: the first has 94 GB, 3.9 TB/s and 835 TFLOPS.
  static const std::regex kNvl(R"(h[12]00[ _-]?nvl\b)");
  const bool is_other = std::regex_search(lower, kNvl);
  for (const KnownDevice& known : kKnownDevices) {
    const bool meant = has_model(lower, known.words[0]) && lower.find(known.words[1]) != std::string::npos &&
                       lower.find(known.words[2]) != std::string::npos;
    if (!meant || is_other || std::find(all.begin(), all.end(), known.device) == all.end()) continue;
    constexpr std::string_view kInPairs = "pairwise";
    if (lower.find(kInPairs) != std::string::npos && known.words[1] != kInPairs)
      throw Error(
          where, fmt::format("'{:.60}' has devices bridged in pairs, which no machine of the zoo has", name));
    check_memory(lower, known, name, where);
    return known;
  }
  throw Error(where, fmt::format("device '{:.60}' is not known", name),
              "armilla list devices names those that are");
}

// Of a rack with room for `most`: as many as divide the devices, so that every rack holds as many. Groups of
// replicas that begin and end within racks would be planned as one ring over one NIC, which NCCL's rings, one
// per NIC, are not: the largest rack counts that whole blocks and replicas fill.
std::int64_t rack_size(const RowMachine& row, std::int64_t most) {
  const auto fits = [&](std::int64_t size) {
    return row.block == 0 || row.block % size == 0 || size % row.stage == 0 ||
           (size % row.block == 0 && row.stage % size == 0);
  };
  for (std::int64_t size = std::min(row.devices, most); size > 1; --size) {
    if (row.devices % size == 0 && fits(size)) return size;
  }
  return 1;
}

Dimension plain_switch(std::string name, std::int64_t size, Bandwidth bandwidth, Time latency) {
  Dimension dimension;
  dimension.name = std::move(name);
  dimension.size = size;
  dimension.bandwidth = bandwidth;
  dimension.latency = latency;
  return dimension;
}

constexpr double kGigabit = 1e9 / 8;

// A device's part of what the notes say a node has ("800 Gb/s per node total"), or 0.
double part_of_total(const RowMachine& row) {
  static const std::regex kTotal(R"((\d{1,6}) ?(?:Gb/s|Gbit/s|Gbps) per node total)");
  std::smatch total;
  if (row.devices_per_node < 1 || !std::regex_search(row.notes, total, kTotal)) return 0;
  return std::stod(total[1]) * kGigabit / static_cast<double>(row.devices_per_node);
}

// A device's part of the NICs that the notes count in a node ("4x Omni-Path 100 Gb/s HCAs/node"), or 0.
double shared_bandwidth(const RowMachine& row) {
  constexpr std::size_t kLongest = 200;
  static const std::regex kNics(R"((\d{1,4})x \D*(\d{1,4}) ?(?:Gb/s|Gbit/s|Gbps) .*node.*)");
  static const std::regex kUnit(R"(\d ?(?:Gb/s|Gbit/s|Gbps))");
  std::smatch rate;
  const std::size_t unit = std::regex_search(row.notes, rate, kUnit)
                               ? static_cast<std::size_t>(rate.position())
                               : std::string::npos;
  if (row.devices_per_node < 1 || unit == std::string::npos) return 0;
  const std::size_t begin = row.notes.find_last_of(";,", unit) + 1;  // 0 where there is none
  const std::string fact = row.notes.substr(begin, std::min(row.notes.find(';', unit) - begin, kLongest));
  std::smatch nics;
  if (!std::regex_search(fact, nics, kNics)) return 0;
  return std::stod(nics[1]) * std::stod(nics[2]) * kGigabit / static_cast<double>(row.devices_per_node);
}

// Of a server of `whole` devices, of which some are used, with the adapters that serve these.
double device_part(const KnownDevice& known, double server_rate, std::int64_t whole, std::int64_t used) {
  const double each =
      known.adapter_rate > 0 ? known.adapter_rate : server_rate / static_cast<double>(known.adapters);
  const std::int64_t serving = (used * known.adapters + whole - 1) / whole;
  return std::min(server_rate, static_cast<double>(serving) * each) / static_cast<double>(used);
}

bool is_rack(const Machine& machine) {
  constexpr std::int64_t kServer = 8;
  return machine.dimensions.front().size > kServer;
}
bool has_servers(const Machine& machine) {
  return machine.largest_slice == 0 && !is_rack(machine);
}

void shape(Machine& machine, const RowMachine& row, const KnownDevice& known, const std::string& where) {
  if (machine.largest_slice > 0) {
    if (row.devices_per_node > 0) machine.largest_slice = row.devices_per_node;
    machine = with_ranks(machine, row.devices, true, where, std::max<std::int64_t>(1, row.block));
    return;
  }
  std::vector<Dimension>& dimensions = machine.dimensions;
  const bool rack = is_rack(machine);
  const std::int64_t most =
      rack || row.devices_per_node == 0 ? dimensions.front().size : row.devices_per_node;
  const std::int64_t whole = dimensions.front().size;
  dimensions.front().size = rack ? rack_size(row, most) : largest_divisor(row.devices, most);
  if (dimensions.size() > 1) dimensions.back().size = row.devices / dimensions.front().size;
  if (known.adapters > 0) {
    double& rate = dimensions.back().bandwidth.value;
    rate = device_part(known, rate * static_cast<double>(whole), whole, dimensions.front().size);
  }
  const double total = part_of_total(row);
  const double inter = total > 0                 ? total
                       : row.inter_bandwidth > 0 ? row.inter_bandwidth
                                                 : shared_bandwidth(row);
  if (inter <= 0) return;
  // Fewer of the same adapters, or faster ones, of which NCCL makes more channels each.
  Dimension& between = dimensions.back();
  for (Bandwidth* of_trees : {&between.trees_of_two, &between.trees_of_more})
    of_trees->value *= inter / between.bandwidth.value;
  between.bandwidth = Bandwidth(inter);
}

}  // namespace

Device device_of_row(const std::string& device, const std::string& where) {
  return load_device(std::string(known_device(device, where).device), where);
}

std::pair<std::string, std::int64_t> server_of(const std::string& device, const std::string& where) {
  const std::string cluster(known_device(device, where).cluster);
  const Machine machine = load_machine(cluster, where);
  return {cluster, machine.largest_slice > 0 ? 0 : machine.dimensions.front().size};
}

bool by_sockets(const std::string& device, const std::string& where) {
  return known_device(device, where).sockets;
}

Machine machine_of(const RowMachine& row, const std::string& where) {
  const std::string told = lower_case(row.device + ' ' + row.notes);
  const auto tells = [&](std::string_view word) { return has_whole_word(told, word); };
  std::string device = row.device;
  if (tells("efa")) device += " on efa";
  if (tells("omni-path") || tells("omni path") || tells("omnipath")) device += " on omni-path";
  const KnownDevice& known = known_device(device, where);
  // Cards whose neighbours are behind PCIe alone: servers of the zoo join theirs by NVLink.
  if (row.devices > 1 && known.words[1] == "pcie")
    throw Error(where, fmt::format("'{:.60}' has devices on PCIe alone, which no machine of the zoo has",
                                   row.device));
  Machine machine = load_machine(std::string(known.cluster), where);
  if (machine.device.name != known.device) {
    machine.device = load_device(std::string(known.device), where);
    machine.name = fmt::format("{} with {}", known.cluster, known.device);
  }
  if (has_servers(machine) && row.devices_per_node > 0 && row.devices > row.devices_per_node &&
      row.devices % row.devices_per_node != 0)
    throw Error(where, fmt::format("{} GPUs do not fill nodes of {}", row.devices, row.devices_per_node),
                "expected whole nodes");
  shape(machine, row, known, where);
  // All of it is shaped for the row's devices.
  machine.elastic = false;
  std::erase_if(machine.dimensions, [](const Dimension& dimension) { return dimension.size == 1; });
  if (machine.dimensions.empty())
    machine.dimensions.push_back(plain_switch("none", 1, Bandwidth(1e9), Time(0)));
  return machine;
}

}  // namespace armilla
