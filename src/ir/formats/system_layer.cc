#include "ir/formats/system_layer.h"

#include <fmt/format.h>

#include "base/checked.h"

namespace armilla {
namespace {

constexpr double kFileGigabyte = 1024.0 * 1024.0 * 1024.0;

// How many links carry a message of one direction. ASTRA-sim 1.0 gives a message all links of the NPU in a
// Ring; of those, half point each way.
double links_per_direction(const StreamDimension& dimension) {
  switch (dimension.kind) {
    case DimensionKind::ring:
      return static_cast<double>(dimension.links / 2);
    case DimensionKind::fully_connected:
      return static_cast<double>(dimension.size > 1 ? dimension.links / (dimension.size - 1)
                                                    : dimension.links);
    case DimensionKind::switched:
      return static_cast<double>(dimension.links);
  }
  return 1;
}

// What a message pays besides its links, as latency per hop: two network interfaces, and the router of a
// switch. Exact for one hop, and for the two of a Switch.
double latency_per_hop(const StreamDimension& dimension) {
  const double ends = 2 * dimension.nic_latency_ns;
  return dimension.kind == DimensionKind::switched
             ? dimension.latency_ns + (ends + dimension.router_latency_ns) / 2
             : dimension.latency_ns + ends;
}

// Figures of the accelerator the files leave open. They price nothing unless the roofline is on, and then
// the files give them.
constexpr double kOtherwise = 1e12;

}  // namespace

std::string_view name_of(Semantics semantics) {
  switch (semantics) {
    case Semantics::native:
      return "native";
    case Semantics::astra1:
      return "astra1";
    case Semantics::astra2_unaware:
      return "astra2-unaware";
    case Semantics::astra2_aware:
      return "astra2-aware";
  }
  return "?";
}

std::int64_t rank_count(const SystemLayer& system) {
  std::int64_t count = 1;
  for (const StreamDimension& dimension : system.dimensions)
    count = checked_multiply(count, dimension.size, "network configuration");
  return count;
}

Machine machine_of(const SystemLayer& system) {
  Machine machine;
  machine.name = "network configuration";
  machine.description = "from ASTRA-sim's files";
  machine.source = "ASTRA-sim network and system files";
  machine.device.name = "npu";
  machine.device.vector_rate = FlopRate(system.peak_flops > 0 ? system.peak_flops : kOtherwise);
  machine.device.memory_bandwidth =
      Bandwidth(system.memory_bytes_per_second > 0 ? system.memory_bytes_per_second : kOtherwise);
  for (std::size_t d = 0; d < system.dimensions.size(); ++d) {
    const StreamDimension& from = system.dimensions[d];
    const double links = system.semantics == Semantics::astra1 ? links_per_direction(from) : 1;
    Dimension dimension;
    dimension.name = fmt::format("dim{}", d);
    dimension.kind = from.kind;
    dimension.size = from.size;
    dimension.bandwidth = Bandwidth(from.bandwidth * links * kFileGigabyte);
    dimension.latency = from_seconds(latency_per_hop(from) * 1e-9);
    machine.dimensions.push_back(std::move(dimension));
  }
  machine.graph = system.links;
  validate_machine(machine);
  return machine;
}

}  // namespace armilla
