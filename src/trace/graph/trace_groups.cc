#include "trace/graph/trace_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/suggest.h"

namespace armilla {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxDimensions = 32;

// PyTorch's input is a list of one string, as Python prints it: ['[{"pg_name": "0", "ranks": []}]'].
// Both forms occur: JSON, and Python's way of printing a list of one string, whose brackets and quotes are
// cut off.
Json parsed_list(std::string_view text) {
  constexpr bool kNoExceptions = false;
  const auto parse = [](std::string_view part) {
    return Json::parse(part.begin(), part.end(), nullptr, kNoExceptions);
  };
  Json whole = parse(text);
  if (whole.is_array() && whole.size() == 1 && whole[0].is_string())
    whole = parse(whole[0].get<std::string>());
  if (whole.is_array()) return whole;
  if (text.size() < 4) return {};
  return parse(text.substr(2, text.size() - 4));
}

bool is_process_group_list(const Json& list) {
  return list.is_array() && !list.empty() && std::all_of(list.begin(), list.end(), [](const Json& group) {
           return group.is_object() && group.contains("pg_name") && group.contains("ranks");
         });
}

// An empty list of ranks is the default process group, everyone.
Communicator communicator(const Json& group, std::string where, std::int64_t ranks) {
  Communicator result{{}, std::move(where)};
  const Json& members = group["ranks"];
  if (!members.is_array()) throw Error(result.where, "'ranks' of a process group is not a list");
  for (const Json& member : members) {
    const std::int64_t rank = member.is_number_integer() ? member.get<std::int64_t>() : -1;
    if (rank < 0 || rank >= ranks)
      throw Error(result.where,
                  fmt::format("a process group has the rank {}, but the job has the ranks 0 to {}",
                              member.dump(), ranks - 1));
    result.ranks.push_back(static_cast<std::int32_t>(rank));
  }
  std::vector<std::int32_t> sorted = result.ranks;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    throw Error(result.where, "a process group lists a rank twice");
  if (result.ranks.empty()) {
    result.ranks.resize(static_cast<std::size_t>(ranks));
    std::iota(result.ranks.begin(), result.ranks.end(), 0);
  }
  return result;
}

// pg_name occurs as text and as a number.
std::string communicator_name(const ChakraTrace& trace, std::size_t node) {
  const ChakraAttribute* attribute = trace.find(node, "pg_name");
  if (attribute == nullptr) return "";
  const bool text =
      attribute->kind() == ChakraValueKind::string || attribute->kind() == ChakraValueKind::bytes;
  if (text || attribute->is_list()) return std::string(text_value(trace, node, *attribute));
  return fmt::format("{}", integer_value(trace, node, *attribute));
}

}  // namespace

TraceGroups::TraceGroups(std::vector<std::int64_t> dimension_sizes, bool as_astra)
    : sizes_(std::move(dimension_sizes)), as_astra_(as_astra) {
  if (sizes_.size() > kMaxDimensions)
    throw Error("", fmt::format("a network of {} dimensions; at most {} are possible", sizes_.size(),
                                kMaxDimensions));
  for (const std::int64_t size : sizes_) {
    if (size < 1 || size > INT32_MAX || (ranks_ *= size) > INT32_MAX)
      throw Error("", "the network's dimensions make no possible number of ranks");
  }
  // Number 0 is the world, so that the other groups' numbers are indices.
  groups_.emplace_back();
}

// Dimensions of size 1 make no difference, so masks leave them out and equal groups get one number. What the
// list does not mention is involved.
std::uint32_t TraceGroups::along(const std::vector<bool>& involved_dimensions) {
  std::uint32_t mask = 0, wide = 0;
  for (std::size_t d = 0; d < sizes_.size(); ++d) {
    if (sizes_[d] == 1) continue;
    wide |= 1U << d;
    if (d >= involved_dimensions.size() || involved_dimensions[d]) mask |= 1U << d;
  }
  if (mask == 0) return kNobody;
  if (mask == wide) return kWorld;
  const auto [found, fresh] = by_mask_.try_emplace(mask, static_cast<std::uint32_t>(groups_.size()));
  if (fresh) groups_.push_back({mask, {}, {}});
  return found->second;
}

// All ranks in another order than their own are another group natively, as positions differ; ASTRA-sim does
// not tell.
std::uint32_t TraceGroups::of(const std::vector<std::int32_t>& members) {
  if (members.size() < 2) return kNobody;
  if (static_cast<std::int64_t>(members.size()) == ranks_ &&
      (as_astra_ || std::is_sorted(members.begin(), members.end())))
    return kWorld;
  const auto [found, fresh] = by_members_.try_emplace(members, static_cast<std::uint32_t>(groups_.size()));
  if (fresh) {
    groups_.push_back({0, members, members});
    std::sort(groups_.back().sorted.begin(), groups_.back().sorted.end());
  }
  return found->second;
}

std::int64_t TraceGroups::size(std::uint32_t group) const {
  if (group == kNobody) return 1;
  if (group == kWorld) return ranks_;
  if (groups_[group].mask == 0) return static_cast<std::int64_t>(groups_[group].members.size());
  std::int64_t product = 1;
  for (std::size_t d = 0; d < sizes_.size(); ++d) {
    if (groups_[group].mask >> d & 1) product *= sizes_[d];
  }
  return product;
}

bool TraceGroups::has(std::uint32_t group, std::int32_t rank) const {
  if (group == kNobody || group == kWorld || groups_[group].mask != 0) return true;
  return std::binary_search(groups_[group].sorted.begin(), groups_[group].sorted.end(), rank);
}

// In a grid, ranks that differ in the involved dimensions only. Offsets double up dimension by dimension, as
// in counting with mixed radix.
std::vector<std::int32_t> TraceGroups::members(std::uint32_t group, std::int32_t rank) const {
  if (group != kWorld && groups_[group].mask == 0) return groups_[group].members;
  std::vector<std::int32_t> result;
  std::int64_t weight = 1;
  std::vector<std::int64_t> offsets = {0};
  std::int64_t origin = rank;
  for (std::size_t d = 0; d < sizes_.size(); ++d) {
    if (group == kWorld || groups_[group].mask >> d & 1) {
      origin -= rank / weight % sizes_[d] * weight;
      const std::size_t before = offsets.size();
      for (std::int64_t i = 1; i < sizes_[d]; ++i) {
        for (std::size_t o = 0; o < before; ++o) offsets.push_back(offsets[o] + i * weight);
      }
    }
    weight *= sizes_[d];
  }
  for (const std::int64_t offset : offsets) result.push_back(static_cast<std::int32_t>(origin + offset));
  std::sort(result.begin(), result.end());
  return result;
}

std::string TraceGroups::describe(std::uint32_t group) const {
  if (group == kNobody) return "nobody";
  if (group == kWorld) return "all ranks";
  std::string text = groups_[group].mask == 0 ? "ranks" : "dimensions";
  constexpr std::size_t kShown = 8;
  std::vector<std::int64_t> numbers(groups_[group].members.begin(), groups_[group].members.end());
  for (std::size_t d = 0; d < sizes_.size(); ++d) {
    if (groups_[group].mask >> d & 1) numbers.push_back(static_cast<std::int64_t>(d));
  }
  for (std::size_t i = 0; i < std::min(numbers.size(), kShown); ++i)
    text += fmt::format("{}{}", i == 0 ? " " : ", ", numbers[i]);
  if (numbers.size() > kShown) text += fmt::format(" and {} more", numbers.size() - kShown);
  return text;
}

// Disjoint groups may share one family (ir/graph.h: a rank is in at most one group of a family). First fit
// keeps their number small; grids are families by themselves.
std::vector<GroupFamily> TraceGroups::families(std::vector<std::uint32_t>& family_of) const {
  std::vector<GroupFamily> families = {world_family(ranks_)};
  family_of.assign(groups_.size(), 0);
  std::size_t first_of_lists = SIZE_MAX;
  for (const bool lists : {false, true}) {
    if (lists) first_of_lists = families.size();
    for (std::size_t g = 1; g < groups_.size(); ++g) {
      const Group& group = groups_[g];
      if ((group.mask == 0) != lists) continue;
      if (!lists) {
        family_of[g] = static_cast<std::uint32_t>(families.size());
        families.push_back(grid_family(sizes_, group.mask));
        continue;
      }
      const auto free = [&](const GroupFamily& family) {
        return std::all_of(group.members.begin(), group.members.end(), [&](std::int32_t rank) {
          return family.group_of[static_cast<std::size_t>(rank)] < 0;
        });
      };
      auto family =
          std::find_if(families.begin() + static_cast<std::ptrdiff_t>(first_of_lists), families.end(), free);
      if (family == families.end()) {
        families.push_back({fmt::format("communicators {}", families.size() - first_of_lists + 1),
                            {},
                            std::vector<std::int32_t>(static_cast<std::size_t>(ranks_), -1),
                            0});
        family = families.end() - 1;
      }
      for (const std::int32_t rank : group.members)
        family->group_of[static_cast<std::size_t>(rank)] = static_cast<std::int32_t>(family->groups.size());
      family->groups.push_back(group.members);
      family_of[g] = static_cast<std::uint32_t>(family - families.begin());
    }
  }
  return families;
}

// Process groups of the trace's own metadata override those of the job.
Communicators communicators_of(const ChakraTrace& trace, const Communicators& of_job, std::int64_t ranks) {
  Communicators result = of_job;
  for (std::size_t node = 0; node < trace.size(); ++node) {
    if (trace.type[node] != ChakraNodeType::metadata || trace.inputs[node] == 0) continue;
    const Json list = parsed_list(trace.strings.at(trace.ios[trace.inputs[node]].values));
    if (!is_process_group_list(list)) {
      // A node that calls itself process_group and holds something else is an error, any other metadata is
      // not.
      const bool promises = trace.name_of_node(node).find("process_group") != std::string_view::npos;
      const bool empty = (list.is_array() && list.empty()) || trace.ios[trace.inputs[node]].values == 0;
      if (promises && !empty)
        throw Error(location(trace, node), "its inputs are not a list of process groups",
                    R"(expected text such as ['[{"pg_name": "1", "ranks": [0, 1]}]'])");
      continue;
    }
    for (const Json& group : list) {
      const Json& name = group["pg_name"];
      result.insert_or_assign(name.is_string() ? name.get<std::string>() : name.dump(),
                              communicator(group, location(trace, node), ranks));
    }
  }
  return result;
}

std::uint32_t group_of_node(const ChakraTrace& trace, std::size_t node, RankGroups& own,
                            TraceGroups& groups) {
  const std::string name = communicator_name(trace, node);
  if (const auto known = own.known.find(name); known != own.known.end()) return known->second;
  const auto found = own.communicators.find(name);
  if (found == own.communicators.end()) {
    // "" and "0" are everyone, unless the job defines them, or the dimensions that involved_dim names.
    if (name.empty() || name == "0") {
      const ChakraAttribute* dimensions = trace.find(node, "involved_dim");
      return dimensions == nullptr ? groups.along({})
                                   : groups.along(boolean_values(trace, node, *dimensions));
    }
    std::vector<std::string> known;
    for (const auto& [other, unused] : own.communicators) known.push_back(other);
    throw Error(location(trace, node), fmt::format("communicator '{}' does not exist", name),
                known.empty() ? "name a file of communicator groups, or leave out pg_name for all ranks"
                              : suggest(name, known));
  }
  const std::vector<std::int32_t>& members = found->second.ranks;
  if (std::find(members.begin(), members.end(), own.rank) == members.end())
    throw Error(location(trace, node),
                fmt::format("rank {} calls communicator '{}', but is not one of its ranks", own.rank, name),
                found->second.where.empty() ? "" : fmt::format("it is defined at {}", found->second.where));
  const std::uint32_t group = groups.of(members);
  own.known.emplace(name, group);
  return group;
}

}  // namespace armilla
