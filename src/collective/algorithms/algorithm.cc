#include "collective/algorithm.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/units_text.h"
#include "collective/algorithms/algorithms.h"

namespace armilla {
namespace {

// Leaves room to pad a buffer to whole blocks in 64 bits.
constexpr Bytes kMostBytes = Bytes(std::int64_t{1} << 60);

bool performs(const AlgorithmInfo& info, CollectiveKind kind) {
  return std::find(info.kinds.begin(), info.kinds.end(), kind) != info.kinds.end();
}

void check_request(const AlgorithmInfo& info, const ScheduleRequest& request, const std::string& where) {
  if (!performs(info, request.kind)) {
    throw Error(where, fmt::format("'{}' does not perform {}", info.name, name_of(request.kind)),
                fmt::format("use one of {}", fmt::join(algorithms_that_perform(request.kind), ", ")));
  }
  const std::int32_t most = request.payloads ? kMaxPayloadRanks : kMaxGroupRanks;
  if (request.ranks < 1 || request.ranks > most) {
    throw Error(where,
                fmt::format("{} over {} ranks: the count must lie between 1 and {}", name_of(request.kind),
                            request.ranks, most),
                "split the group over several dimensions");
  }
  if (has_root(request.kind) && (request.root < 0 || request.root >= request.ranks)) {
    throw Error(where, fmt::format("{} over {} has no member {} to be its root", name_of(request.kind),
                                   typed_count(request.ranks, "rank"), request.root));
  }
  if (request.bytes < Bytes(0) || request.bytes > kMostBytes) {
    throw Error(where, fmt::format("{} of {} bytes: the size must lie between 0 and {}",
                                   name_of(request.kind), request.bytes.value, kMostBytes.value));
  }
}

}  // namespace

std::span<const AlgorithmInfo> collective_algorithms() {
  static const std::array kTable = {ring_algorithm(),
                                    bidirectional_ring_algorithm(),
                                    direct_algorithm(),
                                    scatter_gather_algorithm(),
                                    halving_doubling_algorithm(),
                                    circulant_algorithm(),
                                    double_binary_tree_algorithm(),
                                    nvls_algorithm(),
                                    sharp_algorithm(),
                                    multicast_algorithm()};
  return kTable;
}

std::vector<std::string_view> algorithms_that_perform(CollectiveKind kind) {
  std::vector<std::string_view> names;
  for (const AlgorithmInfo& info : collective_algorithms()) {
    if (performs(info, kind)) names.push_back(info.name);
  }
  return names;
}

Algorithm::Algorithm(std::string_view text, const std::string& where)
    : info_(nullptr), values_("collective algorithm", {}), where_(where) {
  const ComponentChoice choice = parse_component(text, where);
  info_ = &find_component("collective algorithm", collective_algorithms(), choice.name, where);
  values_ = ParameterValues(info_->name, info_->parameters, choice.parameters);
}

bool Algorithm::performs(CollectiveKind kind) const {
  return armilla::performs(*info_, kind);
}

Schedule Algorithm::schedule(const ScheduleRequest& request) const {
  check_request(*info_, request, where_);
  if (request.ranks == 1) return {1, Addressing::absolute, 1, {RankSchedule{}}, {}};
  return info_->make(request, values_);
}

}  // namespace armilla
