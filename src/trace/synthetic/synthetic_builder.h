// What the synthetic patterns share: one rank's trace built node by node, with dense ids from 0.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"
#include "base/registry.h"
#include "ir/formats/chakra.h"

namespace armilla {

class SyntheticRank {
 public:
  explicit SyntheticRank(std::int32_t rank) : rank_(rank) { trace_.version = "1.0.0"; }

  std::uint64_t compute(const std::string& name, std::uint64_t micros, std::span<const std::uint64_t> waits) {
    return add(ChakraNodeType::compute, "COMP_NODE_" + name, micros, waits);
  }
  std::uint64_t send(std::int32_t to, std::int64_t tag, std::int64_t bytes,
                     std::span<const std::uint64_t> waits) {
    const std::uint64_t id =
        add(ChakraNodeType::send, fmt::format("COMM_SEND_NODE_to_{}_{}", to, tag), 0, waits);
    message(rank_, to, tag, bytes);
    return id;
  }
  std::uint64_t receive(std::int32_t from, std::int64_t tag, std::int64_t bytes,
                        std::span<const std::uint64_t> waits) {
    const std::uint64_t id =
        add(ChakraNodeType::receive, fmt::format("COMM_RECV_NODE_from_{}_{}", from, tag), 0, waits);
    message(from, rank_, tag, bytes);
    return id;
  }
  std::uint64_t collective(const std::string& name, ChakraCollective kind, std::int64_t bytes,
                           std::span<const std::uint64_t> waits) {
    const std::uint64_t id = add(ChakraNodeType::collective, "COMM_COLL_NODE_" + name, 0, waits);
    trace_.add_integer("comm_type", ChakraValueKind::int64, static_cast<std::int64_t>(kind));
    trace_.add_integer("comm_size", ChakraValueKind::int64, bytes);
    return id;
  }
  std::size_t size() const { return trace_.size(); }
  ChakraTrace take() { return std::move(trace_); }

 private:
  std::uint64_t add(ChakraNodeType type, const std::string& name, std::uint64_t micros,
                    std::span<const std::uint64_t> waits) {
    const std::uint64_t id = trace_.size();
    trace_.add_node(id, type, name, micros);
    for (const std::uint64_t on : waits) trace_.add_data_dependence(on);
    trace_.add_integer("is_cpu_op", ChakraValueKind::boolean, 0);
    return id;
  }
  void message(std::int32_t from, std::int32_t to, std::int64_t tag, std::int64_t bytes) {
    trace_.add_integer("comm_src", ChakraValueKind::int32, from);
    trace_.add_integer("comm_dst", ChakraValueKind::int32, to);
    trace_.add_integer("comm_size", ChakraValueKind::int64, bytes);
    trace_.add_integer("comm_tag", ChakraValueKind::int32, tag);
  }

  std::int32_t rank_;
  ChakraTrace trace_;
};

using Waits = std::span<const std::uint64_t>;
using WaitList = std::vector<std::uint64_t>;

inline std::vector<SyntheticRank> synthetic_ranks(std::int64_t ranks) {
  std::vector<SyntheticRank> result;
  for (std::int32_t rank = 0; rank < ranks; ++rank) result.emplace_back(rank);
  return result;
}

inline std::vector<ChakraTrace> taken(std::vector<SyntheticRank>& ranks) {
  std::vector<ChakraTrace> traces;
  for (SyntheticRank& rank : ranks) traces.push_back(rank.take());
  return traces;
}

// A count with an upper bound, which ParameterInfo does not have.
inline std::int64_t count_up_to(const ParameterValues& values, std::string_view name, std::int64_t lowest,
                                std::int64_t highest) {
  const std::int64_t count = values.count(name);
  if (count < lowest || count > highest)
    throw Error(values.where(name), fmt::format("{} is not between {} and {}", count, lowest, highest));
  return count;
}

// Chakra's durations are whole microseconds.
inline std::uint64_t micros_of(const ParameterValues& values, std::string_view name) {
  const Time time = values.time(name);
  if (time.value % microseconds(1).value != 0)
    throw Error(values.where(name),
                fmt::format("{} is not a whole number of microseconds", values.text(name)),
                "traces count in microseconds");
  return static_cast<std::uint64_t>(time.value / microseconds(1).value);
}

}  // namespace armilla
