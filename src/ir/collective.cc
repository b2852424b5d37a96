#include "ir/collective.h"

namespace armilla {

std::string_view name_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return "all-reduce";
    case CollectiveKind::reduce_scatter:
      return "reduce-scatter";
    case CollectiveKind::all_gather:
      return "all-gather";
    case CollectiveKind::all_to_all:
      return "all-to-all";
    case CollectiveKind::broadcast:
      return "broadcast";
    case CollectiveKind::reduce:
      return "reduce";
    case CollectiveKind::barrier:
      return "barrier";
  }
  return "?";
}

std::optional<CollectiveKind> collective_from_name(std::string_view name) {
  for (const CollectiveKind kind : kCollectiveKinds) {
    if (name_of(kind) == name) return kind;
  }
  return std::nullopt;
}

std::string_view name_of(ChunkOrder order) {
  switch (order) {
    case ChunkOrder::lifo:
      return "lifo";
    case ChunkOrder::fifo:
      return "fifo";
    case ChunkOrder::priority:
      return "priority";
  }
  return "?";
}

std::string_view name_of(CollectiveLimit limit) {
  switch (limit) {
    case CollectiveLimit::bandwidth:
      return "bandwidth";
    case CollectiveLimit::algorithm:
      return "algorithm";
    case CollectiveLimit::latency:
      return "latency";
    case CollectiveLimit::pipelining:
      return "pipelining";
    case CollectiveLimit::sharing:
      return "shared links";
  }
  return "?";
}

std::string where_of(const CollectiveOptions& options, CollectiveKind kind) {
  if (!options.algorithms_by_kind.contains(kind)) return options.algorithms_where;
  const auto found = options.where_by_kind.find(kind);
  return found != options.where_by_kind.end() ? found->second : "collectives." + std::string(name_of(kind));
}

std::string_view name_of(Decomposition decomposition) {
  switch (decomposition) {
    case Decomposition::multi_axis:
      return "multi-axis";
    case Decomposition::bandwidth_aware:
      return "bandwidth-aware";
    case Decomposition::baseline:
      return "baseline";
    case Decomposition::flat:
      return "flat";
  }
  return "?";
}

}  // namespace armilla
