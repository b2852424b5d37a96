#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "base/units_text.h"
#include "trace/surgery.h"

namespace armilla {
namespace {

constexpr std::int64_t kMaxScaledRanks = 1 << 20;

// Communicators of the scaled job and, per copy, what the old names became.
class Groups {
 public:
  Groups(const TraceSet& job, std::int32_t replicas, std::int32_t replica_size)
      : ranks_(static_cast<std::int32_t>(job.ranks.size())),
        replicas_(replicas),
        replica_size_(replica_size) {
    for (const auto& [name, communicator] : job.communicators) {
      // New names must not collide with old ones: numbers go on after the largest.
      const auto number = number_from<std::int64_t>(name);
      all_numbers_ = all_numbers_ && number;
      next_number_ = std::max(next_number_, number.value_or(0) + 1);
    }
    for (const auto& [name, communicator] : job.communicators) add(name, communicator);
  }

  const Communicators& communicators() const { return communicators_; }
  // Nothing when the name is not known.
  const std::string* renamed(const std::string& name, std::int32_t copy) const {
    const auto found = names_.find(name);
    if (found == names_.end()) return nullptr;
    return &found->second[found->second.size() == 1 ? 0 : static_cast<std::size_t>(copy)];
  }

 private:
  void add(const std::string& name, const Communicator& communicator) {
    const std::set<std::int32_t> members(communicator.ranks.begin(), communicator.ranks.end());
    for (const std::int32_t rank : members) {
      if (rank < 0 || rank >= ranks_)
        throw Error(communicator.where,
                    fmt::format("communicator '{}' has rank {} of {}", name, rank, ranks_));
    }
    // All ranks: the group of a data-parallel job, which grows with it.
    if (static_cast<std::int32_t>(members.size()) == ranks_) return extend(name, communicator, ranks_);
    const bool within = std::all_of(members.begin(), members.end(), [&](std::int32_t rank) {
      return rank / replica_size_ == *members.begin() / replica_size_;
    });
    if (within) return copy(name, communicator);
    // The same in every replica: moved on by a replica, the group has to be itself.
    for (const std::int32_t rank : members) {
      if (!members.contains((rank + replica_size_) % ranks_))
        throw Error(communicator.where,
                    fmt::format("communicator '{}' is neither within a replica of {} nor the same in all",
                                name, typed_count(replica_size_, "rank")),
                    "does another --replica-size fit?");
    }
    extend(name, communicator, ranks_);
  }

  void extend(const std::string& name, const Communicator& communicator, std::int32_t stride) {
    Communicator& wide = communicators_[name];
    wide.where = communicator.where;
    for (std::int32_t copy = 0; copy < replicas_; ++copy)
      for (const std::int32_t rank : communicator.ranks) wide.ranks.push_back(rank + copy * stride);
    names_[name] = {name};
  }

  void copy(const std::string& name, const Communicator& communicator) {
    std::vector<std::string>& names = names_[name];
    for (std::int32_t copy = 0; copy < replicas_; ++copy) {
      // ASTRA-sim 2 wants numbers.
      names.push_back(copy == 0      ? name
                      : all_numbers_ ? fmt::format("{}", next_number_++)
                                     : fmt::format("{}.{}", name, copy));
      Communicator& own = communicators_[names.back()];
      own.where = communicator.where;
      for (const std::int32_t rank : communicator.ranks) own.ranks.push_back(rank + copy * ranks_);
    }
  }

  std::int32_t ranks_, replicas_, replica_size_;
  bool all_numbers_ = true;
  std::int64_t next_number_ = 1;
  Communicators communicators_;
  std::map<std::string, std::vector<std::string>> names_;
};

class Scaler {
 public:
  Scaler(const TraceSet& job, const Groups& groups)
      : ranks_(static_cast<std::int32_t>(job.ranks.size())), groups_(groups) {}

  // Only what names ranks changes. Work, sizes and dependences of a rank do not depend on how many copies
  // there are.
  ChakraTrace scaled(const ChakraTrace& original, std::int32_t copy) const {
    ChakraTrace trace = original;
    for (std::size_t node = 0; node < trace.size(); ++node) {
      for (std::uint64_t i = trace.first_attribute[node]; i < trace.first_attribute[node + 1]; ++i) {
        const std::string_view name = trace.strings.at(trace.attribute[i].name);
        if (name == "comm_src" || name == "comm_dst")
          shift(trace, node, trace.attribute[i], copy);
        else if (name == "pg_name")
          rename(trace, node, trace.attribute[i], copy);
        else if (name == "involved_dim")
          widen(trace, node, trace.attribute[i]);
      }
    }
    return trace;
  }

 private:
  void shift(const ChakraTrace& trace, std::size_t node, ChakraAttribute& attribute,
             std::int32_t copy) const {
    const std::int64_t peer = integer_value(trace, node, attribute);
    // Collectives and receives carry unused peers, such as -1.
    if (trace.type[node] != ChakraNodeType::send && trace.type[node] != ChakraNodeType::receive) return;
    if (peer < 0 || peer >= ranks_)
      throw Error(location(trace, node),
                  fmt::format("{} is {}, not a rank of {}", trace.strings.at(attribute.name), peer, ranks_));
    // Copy i holds the ranks from i N on.
    const std::int64_t moved = peer + std::int64_t{copy} * ranks_;
    const bool real =
        attribute.kind() == ChakraValueKind::real32 || attribute.kind() == ChakraValueKind::real64;
    attribute.value =
        real ? std::bit_cast<std::uint64_t>(static_cast<double>(moved)) : std::bit_cast<std::uint64_t>(moved);
  }

  void rename(ChakraTrace& trace, std::size_t node, ChakraAttribute& attribute, std::int32_t copy) const {
    const std::string name(text_value(trace, node, attribute));
    if (const std::string* renamed = groups_.renamed(name, copy)) {
      attribute.value = trace.strings.add(*renamed);
    } else if (!name.empty() && name != "0") {
      throw Error(location(trace, node), fmt::format("communicator '{}' is not known", name),
                  "name the file of communicators with --communicators");
    }
  }

  static void widen(ChakraTrace& trace, std::size_t node, ChakraAttribute& attribute) {
    const std::vector<bool> involved = boolean_values(trace, node, attribute);
    // All dimensions involved: the copies' dimension is to be involved, too, which is what a list that does
    // not mention it means.
    if (std::find(involved.begin(), involved.end(), false) == involved.end()) return;
    const std::size_t first = trace.list_values.size();
    trace.list_values.insert(trace.list_values.end(), involved.begin(), involved.end());
    trace.list_values.push_back(0);
    attribute.value = first;
    ++attribute.count;
  }

  std::int32_t ranks_;
  const Groups& groups_;
};

}  // namespace

TraceSet scale_ranks(const TraceSet& job, std::int32_t replicas, std::int32_t replica_size) {
  const auto ranks = static_cast<std::int64_t>(job.ranks.size());
  if (replica_size == 0) replica_size = static_cast<std::int32_t>(ranks);
  if (ranks == 0 || replicas < 1 || ranks * replicas > kMaxScaledRanks)
    throw Error(
        "--scale-ranks",
        fmt::format("{} {} of {}", replicas, replicas == 1 ? "copy" : "copies", typed_count(ranks, "rank")),
        fmt::format("at most {} ranks", kMaxScaledRanks));
  if (replica_size < 1 || ranks % replica_size != 0)
    throw Error("--replica-size",
                fmt::format("{} {} not a whole number of replicas of {}", typed_count(ranks, "rank"),
                            ranks == 1 ? "is" : "are", replica_size));
  const Groups groups(job, replicas, replica_size);
  const Scaler scaler(job, groups);
  TraceSet result;
  result.communicators = groups.communicators();
  for (std::int32_t copy = 0; copy < replicas; ++copy)
    for (const ChakraTrace& trace : job.ranks) result.ranks.push_back(scaler.scaled(trace, copy));
  return result;
}

}  // namespace armilla
