// Appends nodes to a rank's program. Its computations form one chain, in the order of the schedule, so that
// no later micro-batch overtakes; communications wait for what they are told.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/units.h"
#include "ir/graph.h"

namespace armilla {

inline constexpr std::uint32_t kNoNode = std::numeric_limits<std::uint32_t>::max();

// What a node is called and where it belongs.
struct NodeLabel {
  Phase phase = Phase::other;
  std::uint32_t name = 0;
  std::int32_t layer = -1;
};

class ProgramWriter {
 public:
  explicit ProgramWriter(Program& program) : program_(program) {}

  std::uint32_t compute(const NodeLabel& label, std::uint32_t work, std::span<const std::uint32_t> waits) {
    scratch_.assign(waits.begin(), waits.end());
    if (last_ != kNoNode && std::find(waits.begin(), waits.end(), last_) == waits.end())
      scratch_.push_back(last_);
    return last_ = program_.add(NodeKind::compute, label.phase, label.name, label.layer, work, scratch_);
  }
  // A computation that the chain does not wait for; it runs once the device is free.
  std::uint32_t compute_aside(const NodeLabel& label, std::uint32_t work,
                              std::span<const std::uint32_t> waits) {
    return program_.add(NodeKind::compute, label.phase, label.name, label.layer, work, waits);
  }
  std::uint32_t communicate(NodeKind kind, const NodeLabel& label, std::uint64_t payload,
                            std::span<const std::uint32_t> waits) {
    return program_.add(kind, label.phase, label.name, label.layer, payload, waits);
  }
  // A copy over the link to the CPU, one at a time.
  std::uint32_t host_copy(const NodeLabel& label, Time duration, std::span<const std::uint32_t> waits) {
    const auto payload = static_cast<std::uint64_t>(duration.value);
    const std::uint32_t node =
        program_.add(NodeKind::delay, label.phase, label.name, label.layer, payload, waits);
    program_.lane[node] = Lane::host;
    return node;
  }

  std::uint32_t last_compute() const { return last_; }  // kNoNode before the first
  std::uint32_t size() const { return program_.size(); }

 private:
  Program& program_;
  std::uint32_t last_ = kNoNode;
  std::vector<std::uint32_t> scratch_;
};

// Adds `node` to a list of what to wait for, unless it is none.
inline void add_wait(std::vector<std::uint32_t>& waits, std::uint32_t node) {
  if (node != kNoNode) waits.push_back(node);
}

}  // namespace armilla
