// Random small jobs for tests that demand equal results of a folded and an unfolded run.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "cost/cost.h"
#include "sim/simulate.h"

namespace armilla {

// A flop takes so many picoseconds.
class LinearCost : public CostModel {
 public:
  explicit LinearCost(std::int64_t picoseconds) : picoseconds_(picoseconds) {}
  Time time(const Work& work) const override { return Time(work.flops.value * picoseconds_); }
  FlopRate peak(DType) const override { return teraflops(1); }

 private:
  std::int64_t picoseconds_;
};

struct RandomJob {
  Graph graph;
  Study study;
  SimulationOptions options;
};

// Up to 24 ranks on up to three dimensions, up to four programs along one logical axis; computations,
// collectives of all kinds along logical axes, in pairs and over all, messages to the next of a group and
// from stage to stage or to one rank.
class RandomJobs {
 public:
  explicit RandomJobs(std::uint32_t seed) : random_(seed) {}
  RandomJob make();
  // With programs that have loops: some steps, then some again and again, then others.
  // So often, one loop behind the other.
  RandomJob make_looping(std::uint32_t loops = 1);
  // With messages that share links (network flow): those of the dimensions, or of a graph of stars, leaves
  // and spines or rails, whose cables are mostly alike.
  RandomJob make_on_links();
  RandomJob make_looping_on_links(std::uint32_t loops = 1);
  // Whose dimensions are all rings.
  RandomJob make_on_torus();
  RandomJob make_looping_on_torus(std::uint32_t loops = 1);
  // Of stages, each of which sends to the next one again and again, then each to the one before, at paces of
  // their own, which is mostly another one for each.
  RandomJob make_drifting();

 private:
  static constexpr double kMostMessages = 20'000;

  std::uint32_t pick(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
  bool one_in(std::uint32_t n) { return pick(n) == 0; }

  void begin();
  void add_step();
  void make_repeating(std::uint32_t loops);
  void close_loops(const std::vector<std::uint32_t>& first);
  void add_cables(Dimension& dimension);
  void make_machine();
  void put_on_links();
  // Returns about how many there are then, at most.
  double shorten(double most_messages);
  void make_graph();
  void make_groups();
  void make_choices();
  void make_what_if();
  void add_family(const std::vector<std::int64_t>& key_of_rank);
  bool mixes_programs(const GroupFamily& family) const;
  void add_computation();
  void add_collective();
  bool has_stages() const;
  void add_pass(bool forward, const std::vector<std::int64_t>& durations);
  void add_shift();
  void add_stage_message();
  void add_incast();
  void add_memory();
  void add_custom();
  // Appends a node to a program, after a random earlier one or two; returns its id.
  std::uint32_t append(std::size_t program, NodeKind kind, std::uint64_t payload);

  std::mt19937 random_;
  bool on_torus_ = false;
  bool ties_ = false;   // much at once: equal sizes, few dependences
  bool loops_ = false;  // dependences reach back a few nodes only
  bool lone_ = false;   // one thing after the other, mostly collectives of one family
  std::uint32_t lone_family_ = 0;
  RandomJob job_;
  std::vector<std::int64_t> axes_;  // of the logical grid
  std::size_t stage_axis_ = 0;
  std::uint32_t stage_family_ = 0;
};

}  // namespace armilla
