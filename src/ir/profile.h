// Profile: measured times of a job's events, one for every distinct one (DistSim, Lu et al. 2023, section
// 4.1: profile each event once, on few devices). Told apart as in `armilla events` (ir/derived/events.h).
//
// A computation that was not measured lies between two that were where both are of the same operator, phase
// and type, and none of its sizes is outside of theirs. Its share of what the device could do at best (the
// roofline with the peaks) is interpolated between them, in the logarithm of the sizes: a share changes
// slowly where a time changes as the shape does. Matrix products are also found, by their shape alone, among
// those measured as kProduct, whatever operator they belong to.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/units.h"
#include "ir/graph.h"
#include "ir/work.h"

namespace armilla {

// The operator of a product that was measured by itself (phase `other`, with the flops and bytes of its
// operands).
inline constexpr std::string_view kProduct = "matmul";

// What names a computation.
struct ComputationKey {
  std::string name;  // without its block, as JobEvent::name
  Phase phase = Phase::forward;
  std::string shapes;  // of its matrix products, as `shapes_text` writes them
  std::string type;
  std::int64_t flops = 0, bytes = 0;
  auto operator<=>(const ComputationKey&) const = default;
};

ComputationKey key_of(std::string name, Phase phase, const Work& work);
// That of one product measured by itself: operands are read and the result is written once.
ComputationKey product_key(const Gemm& gemm, DType dtype);

// "2 x 4096x1024x8192, 64x64x64": matrix products as m x n x k.
std::string shapes_text(std::span<const Gemm> gemms);
// The other way round; nothing where it is no such text.
std::optional<std::vector<Gemm>> shapes_from(std::string_view text);

// How a time was measured.
struct Measured {
  Time time;                 // the median
  Time spread{};             // between the quartiles; 0: unknown
  std::int64_t repeats = 0;  // 0: unknown
  std::string device{};      // as machines call it; empty: whichever the profile is used on
  bool operator==(const Measured&) const = default;
};

struct MeasuredComputation {
  ComputationKey key;
  Measured measured;
};

// Of a group of `ranks`: the name of a collective ("all-reduce") or "send".
struct CommunicationKey {
  std::string name;
  std::int64_t bytes = 0, ranks = 0;
  bool inter_node = false;
  auto operator<=>(const CommunicationKey&) const = default;
};

struct MeasuredCommunication {
  CommunicationKey key;
  Measured measured;
};

struct Profile {
  std::string file;                                 // empty: there is none
  std::vector<MeasuredComputation> computations{};  // every key once per device
  std::vector<MeasuredCommunication> communications{};
};

}  // namespace armilla
