// Appends nodes to a rank's program. Its computations form one chain, in the order of the schedule, so that
// no later micro-batch overtakes; communications wait for what they are told. Between `split` and `join`
// there are several chains beside each other (DualPipe): the device runs the first of the ready computations.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/sorted.h"
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
    return add_to_chain(NodeKind::compute, label, work, waits);
  }
  // A computation of known length.
  std::uint32_t occupy(const NodeLabel& label, Time duration, std::span<const std::uint32_t> waits) {
    return add_to_chain(NodeKind::delay, label, static_cast<std::uint64_t>(duration.value), waits);
  }
  // `chains` chains of computations follow those so far; `use` says which one goes on, `join` makes them one
  // again.
  void split(std::size_t chains) {
    chains_.assign(chains, last_);
    chain_ = 0;
  }
  void use(std::size_t chain) {
    chains_[chain_] = last_;
    last_ = chains_[chain_ = chain];
  }
  void join() {
    for (std::size_t chain = 0; chain < chains_.size(); ++chain) {
      if (chain != chain_) last_.insert(last_.end(), chains_[chain].begin(), chains_[chain].end());
    }
    sort_unique(last_);
  }
  // A computation that the chain does not wait for; it runs once the device is free.
  std::uint32_t compute_aside(const NodeLabel& label, std::uint32_t work,
                              std::span<const std::uint32_t> waits) {
    return program_.add(NodeKind::compute, label.phase, label.name, label.layer, work, waits);
  }
  // Likewise of known length.
  std::uint32_t occupy_aside(const NodeLabel& label, Time duration, std::span<const std::uint32_t> waits) {
    const auto payload = static_cast<std::uint64_t>(duration.value);
    return program_.add(NodeKind::delay, label.phase, label.name, label.layer, payload, waits);
  }
  std::uint32_t communicate(NodeKind kind, const NodeLabel& label, std::uint64_t payload,
                            std::span<const std::uint32_t> waits) {
    return program_.add(kind, label.phase, label.name, label.layer, payload, waits);
  }
  // Time that passes on no device.
  std::uint32_t pause(const NodeLabel& label, Time duration, std::span<const std::uint32_t> waits) {
    const std::uint32_t node = occupy_aside(label, duration, waits);
    program_.lane[node] = Lane::none;
    return node;
  }
  // A copy over the link to the CPU, one at a time.
  std::uint32_t host_copy(const NodeLabel& label, Time duration, std::span<const std::uint32_t> waits) {
    const std::uint32_t node = occupy_aside(label, duration, waits);
    program_.lane[node] = Lane::host;
    return node;
  }

  void stand_for(std::uint32_t node, std::uint32_t parts) { program_.set_parts(node, parts); }

  // Of the chain; kNoNode before the first.
  std::uint32_t last_compute() const { return last_.empty() ? kNoNode : last_.back(); }
  // What its next computation follows: several after `join`.
  std::span<const std::uint32_t> last_computes() const { return last_; }
  std::uint32_t size() const { return program_.size(); }

 private:
  std::uint32_t add_to_chain(NodeKind kind, const NodeLabel& label, std::uint64_t payload,
                             std::span<const std::uint32_t> waits) {
    scratch_.assign(waits.begin(), waits.end());
    for (const std::uint32_t last : last_) {
      if (std::find(waits.begin(), waits.end(), last) == waits.end()) scratch_.push_back(last);
    }
    last_.assign(1, program_.add(kind, label.phase, label.name, label.layer, payload, scratch_));
    return last_.front();
  }

  Program& program_;
  std::vector<std::uint32_t> last_;  // ascending
  std::vector<std::vector<std::uint32_t>> chains_;
  std::size_t chain_ = 0;
  std::vector<std::uint32_t> scratch_;
};

// Adds `node` to a list of what to wait for, unless it is none.
inline void add_wait(std::vector<std::uint32_t>& waits, std::uint32_t node) {
  if (node != kNoNode) waits.push_back(node);
}

}  // namespace armilla
