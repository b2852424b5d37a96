// Machine: devices (identical but for `others`) and the interconnect, as a hierarchy of dimensions (innermost
// first).
//
// Rank r has coordinate (r / stride_d) mod size_d in dimension d, with stride_d the product of the sizes
// before d: the first dimension varies fastest, as in ASTRA-sim. Bandwidth is per link and direction:
//   Ring            each rank has two links, to its neighbours in both directions
//   FullyConnected  each rank has one link to every other rank of its group
//   Switch          each rank has one link to the switch; the switch itself is non-blocking
// Latency is per hop: a Ring message hops from neighbour to neighbour the shorter way, FullyConnected is one
// hop, Switch two. A machine may also have an explicit graph of links (ir/interconnect.h).
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "ir/collective.h"
#include "ir/interconnect.h"
#include "ir/tensor.h"

namespace armilla {

// What a fit was made from: the least and the most flops (of memory-bound kernels: bytes) of one kernel.
struct FittedRange {
  double least = 0, most = std::numeric_limits<double>::infinity();
  bool holds(double amount) const { return least <= amount && amount <= most; }
  bool is_of_nothing() const { return most <= 0; }
};

// Rates of kernels by class and shape, fitted to measurements; what they mean: cost/device/kernels.h.
struct MatrixRates {
  double efficiency = 1;             // of the peak, of large tiles
  double ramp = 0;                   // of the inner size, to fill and drain the pipeline
  double tile_128 = 1, tile_64 = 1;  // of the efficiency, with smaller tiles
  // The efficiency in training steps, where their products are of another library than those of the table.
  std::optional<double> in_training{};
  FittedRange range{};  // of one product
};
struct AttentionRates {
  double forward = 1, backward = 1;  // of the peak
  double ramp = 0;                   // tasks per processor at which it is half as fast
  FittedRange range{};
};
struct MemoryRates {  // of the memory's bandwidth, by kernel
  double efficiency = 1, norm = 1, norm_backward = 1, activation = 1, rotary = 1, permute = 1, gather = 1,
         loss = 1, cast = 1;
  Time launch;  // as KernelRates::launch, of kernels that only move bytes
  FittedRange range{};
  // What of the L2 cache holds what the kernels before wrote, and how fast it is; 0: not known. Steps that
  // are simulated do without (docs/validation.md, which has what uses them).
  Bytes cache{};
  Bandwidth cache_bandwidth{};
};
struct KernelRates {
  std::int64_t processors = 1;  // that blocks of threads are dealt to
  std::int64_t threads = 0;     // that each of them holds; 0: not known
  Time launch;                  // from the end of the kernel before to the start of the work
  std::map<DType, MatrixRates> matrix;
  std::map<DType, AttentionRates> attention;
  std::optional<AttentionRates>
      flash_2;  // of the bf16 peak, where FlashAttention-2 is slower than `attention`
  std::optional<AttentionRates> flash_triton;  // likewise the first version's, in Triton
  std::optional<AttentionRates> scan;          // likewise of Mamba-2's, without ramp; an H100's where unknown
  MemoryRates memory;
  // Of the rate of a short burst, in a training loop (power, clocks, cold caches); more than 1 where kernels
  // have become better than those of the tables.
  double sustained = 1;
  std::string source;  // of the fits, with their residuals and ranges
};
// Squares of multipliers that a product's weights lie in while its rows stream through, as in TPUs
// (cost/device/arrays.h).
struct SystolicArrays {
  std::int64_t side = 128;  // of a square: the inner sizes of products are filled up to its multiples
  std::int64_t memories =
      1;  // cores with a memory of their own: each has its share of the rows, and all weights
  // Of fused attention: what it attains of the peak, with what is filled up; 0: what other products do. And
  // the tokens that its blocks have, which are computed whole at the edges of a mask.
  double attention_forward = 0, attention_backward = 0;
  std::int64_t attention_block = 0;
};

// Whether no kernel was measured: the rates are then another device's.
bool are_of_nothing(const KernelRates& rates);
// `sustained` at which the fastest products run at the peak.
double most_sustained(const KernelRates& rates);

struct Device {
  std::string name;
  std::string description;
  std::map<DType, FlopRate> matrix_rate;  // dense peak of the matrix units
  FlopRate vector_rate;                   // fp32 peak outside the matrix units
  Bytes memory;                           // as the device's own tools report it
  Bandwidth memory_bandwidth;
  Bandwidth host_bandwidth;  // to the CPU's memory, per direction; 0: unknown
  // What it draws while it computes, and while it does not (ir/derived/expense.h).
  std::optional<Power> busy_power{}, idle_power{};
  std::optional<Money> price{};  // of an hour, with its share of the server
  Bytes reserved{};              // of `memory`: what driver and context take before a framework allocates
  Bytes communicator_buffers{};  // of `memory`: what the collective library keeps per group of ranks
  Bytes product_workspace{};     // what a framework gives each of its threads that issue matrix products
  // Attainable fractions of the peaks, and what every kernel costs before it computes
  // (cost/device/roofline.h).
  double matrix_efficiency = 1;
  double vector_efficiency = 1;
  double memory_efficiency = 1;
  Time launch_overhead;
  // What the CPU needs to issue an operator in the framework's usual mode, with its small kernels; 0: a step
  // is issued as one program. kEagerIssue (ir/plan.h) where a plan asks for an eager host all the same.
  Time issue_time;
  std::optional<KernelRates> kernels;      // by shape, where they were measured (cost/device/kernels.h)
  std::optional<SystolicArrays> arrays{};  // where its matrix units are some
  std::string source;                      // where the figures come from
  std::vector<std::string> unverified;     // names of figures nobody has looked up yet
};

// Dense peak of matrix arithmetic in `dtype`; where the device lists none, the vector rate.
FlopRate matrix_rate(const Device& device, DType dtype);

enum class DimensionKind : std::uint8_t { ring, fully_connected, switched };
std::string_view name_of(DimensionKind kind);  // "Ring", "FullyConnected", "Switch"

// A way of the collective library to move data over a dimension: what a collective takes beyond the latencies
// and the bytes of its schedule:
//   launch + latency of the library's own rings or trees + bytes sent x (1 / share - 1) / bandwidth
// Of LL, LL128, Simple and SendRecv the one that NCCL takes, of others the fastest (sim/plan/library.cc).
struct CollectiveProtocol {
  std::string name;
  Time launch;
  // Of a ring, of which n members take n - 1, an all-reduce twice as many; and of messages of an all-to-all,
  // of which 16 are under way at once.
  Time step;
  double share = 1;  // of the attained bandwidth
  Time level{};      // of a tree, of which an all-reduce climbs log2(n) up and down, where that is faster
  // Through each further member in the dimensions inside, whom a ring passes in every step, a tree up
  // and down once.
  Time chain{};
  std::string where{};  // the place of its name in a file
};

// Of a Switch dimension whose members are joined by cables instead: between these two of them.
struct MemberCable {
  std::int32_t a = 0, b = 0;  // coordinates
  bool operator==(const MemberCable&) const = default;
};

struct Dimension {
  std::string name;  // "nvlink", "rail"; for reports
  DimensionKind kind = DimensionKind::switched;
  std::int64_t size = 1;
  Bandwidth bandwidth;
  Time latency;
  double efficiency = 1;  // of the bandwidth, attained by the collective library
  std::vector<CollectiveProtocol> protocols{};
  // At which the collective library moves what stays in a member's own memory: of n blocks of a collective
  // only n - 1 pass to others (docs/models/kernels.md). 0: not counted.
  Bandwidth own_block{};
  // What that library takes its trees for at most, per device, where it chooses between them and its rings:
  // among two members of the dimension, and among more (docs/models/collectives.md). 0: for no less than the
  // links.
  Bandwidth trees_of_two{}, trees_of_more{};
  // Switches that reduce and multicast: the algorithm that has them do so ("nvls", "sharp"), used where it is
  // faster, and what it takes beyond its schedule.
  std::optional<CollectiveProtocol> in_switch{};
  // Where there is no switch (a hybrid cube mesh): all cables of a group, parallel ones one by one.
  // `bandwidth` is then that of all cables of the member that has most, and cables are alike. What groups
  // attain: collective/cables.h.
  std::vector<MemberCable> cables{};
  // Of the links, where `bandwidth` is what the collective library attains of it in a run; else 0.
  Bandwidth of_links{};
};

// Ranks first .. last have another device than the machine's usual one.
struct OtherDevices {
  std::int64_t first = 0, last = 0;
  Device device;
};

struct Machine {
  std::string name;
  std::string description;
  Device device;
  std::vector<OtherDevices> others;  // ascending, not overlapping
  std::vector<Dimension> dimensions;
  std::string source;
  std::vector<std::string> unverified;
  std::optional<Power> host_power{};  // of the rest of a server, per device
  bool elastic = false;  // the last dimension takes any size: a building block, not one finished cluster
  // Of a torus of cubes of the size that its rings have: jobs get slices of at most so many devices, whole
  // cubes or a part of one, as even as they can be (derived/torus_slice.h); the last dimension joins slices.
  // 0: no torus, or one that is filled from its first dimension on.
  std::int64_t largest_slice = 0;
  // The links one by one, where they are no hierarchy; empty: those of the dimensions. Has at least as many
  // devices as the dimensions, which then say how collectives are planned.
  Interconnect graph{};
};

std::int64_t rank_count(const Machine& machine);

// "unverified figures of machine dgx-a100: rail.latency"; empty where all are verified.
std::string unverified_note(const Machine& machine);

// Of one cable of a dimension that has some.
Bandwidth cable_bandwidth(const Dimension& dimension);
std::int32_t cables_between(const Dimension& dimension, std::int32_t here, std::int32_t there);
// Of a message between two members of it: by their cables, else over PCIe (`host`: Device::host_bandwidth;
// where that is unknown, as over one cable). At most that of the dimension.
Bandwidth pair_bandwidth(const Dimension& dimension, std::int32_t here, std::int32_t there, Bandwidth host);

// 0: the machine's usual device, i + 1: that of `others[i]`. O(log others).
std::uint32_t device_number(const Machine& machine, std::int64_t rank);
const Device& device_of(const Machine& machine, std::int64_t rank);

// The first `ranks` devices as a machine of their own: inner dimensions stay whole, one is cut, outer ones
// fall away; the last dimension may grow when `elastic`. A torus that is handed out in slices gives one of
// `ranks` devices, or equal ones, as few as can be; `block`: how many neighbours talk most, which its rings
// are shaped for. Throws Error with the nearest possible counts when `ranks` leaves a dimension ragged or
// is no slice.
Machine with_ranks(const Machine& machine, std::int64_t ranks, bool elastic, const std::string& where,
                   std::int64_t block = 1);

void validate_machine(const Machine& machine);

// The machine's links as a graph: its own, or that of its dimensions. There the cables of dimension d stand
// behind those of the dimensions before, in this order, and no dimension of size 1 has any:
//   Ring            per rank: to the next
//   Switch          per rank: to the switch of its group; the groups' switches are nodes in the order of
//                   their first ranks
//   FullyConnected  per group in the order of first ranks: 0-1, 0-2, ... 1-2, ...
// Devices of a hierarchy forward.
Interconnect links_of(const Machine& machine);
// All of it that what comes of a run depends on, as text: equal for machines that are the same.
std::string dump_machine(const Machine& machine);

}  // namespace armilla
