#include "sim/fold/layer_loops.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/splitmix.h"
#include "sim/engine/successors.h"

namespace armilla {
namespace {

// Fewer periods are not worth a loop: some are played until what they do repeats.
constexpr std::uint32_t kFewestPeriods = 8;

// For payloads of nodes, those that mean the same are one number.
struct EqualPayloads {
  std::vector<std::uint64_t> works, calls;
};

// By the first of equal things; `key` tells most of those that differ apart.
template <class Thing, class Key>
std::vector<std::uint64_t> equal_ones(const std::vector<Thing>& things, const Key& key) {
  std::map<decltype(key(things.front())), std::vector<std::size_t>> known;
  std::vector<std::uint64_t> equal;
  for (std::size_t i = 0; i < things.size(); ++i) {
    std::vector<std::size_t>& others = known[key(things[i])];
    const auto same =
        std::ranges::find_if(others, [&](std::size_t other) { return things[other] == things[i]; });
    equal.push_back(same == others.end() ? i : *same);
    if (same == others.end()) others.push_back(i);
  }
  return equal;
}

EqualPayloads equal_payloads(const Graph& graph, ChunkOrder order) {
  std::vector<CollectiveCall> calls = graph.collectives;
  if (order != ChunkOrder::priority) {
    for (CollectiveCall& call : calls) call.priority = 0;
  }
  return {equal_ones(graph.works, [](const Work& work) { return std::pair(work.flops, work.bytes); }),
          equal_ones(calls, [](const CollectiveCall& call) { return std::pair(call.kind, call.bytes); })};
}

// A stretch of nodes that repeats, and what is done with it.
struct Stretched {
  std::uint32_t first = 0, period = 0, periods = 0;  // of the whole program
  std::uint32_t least = 0;                           // periods that are kept at least
  std::vector<std::uint32_t> awaited;  // nodes of a period that are waited for, each of all periods
  std::uint32_t written_first = 0;     // in the new program

  std::uint32_t end() const { return first + periods * period; }
  // Of those whose ends wait for the one before, the first is in front of the loop: it waits for none.
  std::uint32_t kept() const { return least + in_front(); }
  std::uint32_t in_front() const { return awaited.empty() ? 0 : 1; }
  std::uint32_t left_out() const { return periods - kept(); }
  // Each period with the node that waits for what is awaited.
  std::uint32_t written_period() const { return period + in_front(); }
};

class LayerLoops {
 public:
  LayerLoops(const Graph& graph, const Program& program, ChunkOrder order)
      : program_(program), equal_(equal_payloads(graph, order)), features_(program.size()) {
    for (std::uint32_t node = 0; node < program.size(); ++node) features_[node] = feature(node);
    find();
  }

  // False where there are none, or the program cannot have loops.
  bool can_be_written() {
    // Computations wait for one another, so that which one is next is no matter of when they are ready.
    if (stretches_.empty() || std::ranges::find(program_.lane, Lane::host) != program_.lane.end() ||
        !computes_in_order(program_))
      return false;
    // What cannot be said of a loop is not made one.
    while (!stretches_.empty()) {
      const std::size_t before = stretches_.size();
      look_at_dependences();
      if (stretches_.size() == before) break;
    }
    return !stretches_.empty();
  }

  Program written() {
    Program all;
    all.role = program_.role;
    all.issue_time = program_.issue_time;
    all.issue_start = program_.issue_start;
    new_number_.assign(program_.size(), 0);
    auto stretch = stretches_.begin();
    for (std::uint32_t node = 0; node < program_.size();) {
      if (stretch == stretches_.end() || node < stretch->first) {
        add(all, node++, nullptr);
        continue;
      }
      stretch->written_first = all.size();
      for (; node < stretch->first + stretch->kept() * stretch->period; ++node) {
        add(all, node, &*stretch);
        if ((node + 1 - stretch->first) % stretch->period == 0 && !stretch->awaited.empty())
          add_end_of_layer(all, node, *stretch);
      }
      all.loops.push_back({stretch->written_first + stretch->in_front() * stretch->written_period(),
                           all.size(), stretch->written_period(), stretch->left_out()});
      node = stretch->end();
      ++stretch;
    }
    return all;
  }

 private:
  std::uint64_t payload(std::uint32_t node) const {
    const std::uint64_t payload = program_.payload[node];
    switch (program_.kind[node]) {
      case NodeKind::compute:
        return equal_.works[payload];
      case NodeKind::collective:
        return equal_.calls[payload];
      default:
        return payload;
    }
  }
  std::uint64_t feature(std::uint32_t node) const {
    std::uint64_t hash = hash_with(static_cast<std::uint64_t>(program_.kind[node]), payload(node));
    hash = hash_with(hash, static_cast<std::uint64_t>(program_.phase[node]) << 8 |
                               static_cast<std::uint64_t>(program_.lane[node]));
    for (const std::uint32_t dependence : program_.dependences(node))
      hash = hash_with(hash, node - dependence);
    return hash;
  }
  // Whether a node is the one a period before again.
  bool is_again(std::uint32_t node, std::uint32_t period) const {
    const std::uint32_t before = node - period;
    if (features_[node] != features_[before]) return false;
    const auto now = program_.dependences(node), then = program_.dependences(before);
    return program_.kind[node] == program_.kind[before] && payload(node) == payload(before) &&
           program_.phase[node] == program_.phase[before] && program_.lane[node] == program_.lane[before] &&
           (program_.parts.empty() || program_.parts[node] == program_.parts[before]) &&
           std::ranges::equal(
               now, then, {}, [&](std::uint32_t d) { return d; },
               [&](std::uint32_t d) { return d + period; });
  }

  // From the first place on, where the node was seen last is a period before, if it repeats often enough.
  void find() {
    std::unordered_map<std::uint64_t, std::uint32_t> seen;
    std::uint32_t free_from = 0;  // behind the stretch before
    for (std::uint32_t node = 0; node < program_.size(); ++node) {
      const auto [last, fresh] = seen.try_emplace(features_[node], node);
      if (fresh) continue;
      const std::uint32_t first = std::exchange(last->second, node), period = node - first;
      if (first < free_from) continue;
      std::uint32_t end = node;
      while (end < program_.size() && is_again(end, period)) ++end;
      const std::uint32_t periods = (end - first) / period;
      if (periods < kFewestPeriods) continue;
      Stretched stretch{first, period, periods, least_kept(first, period), {}, 0};
      if (stretch.least + 2 > periods) continue;
      stretches_.push_back(std::move(stretch));
      free_from = stretches_.back().end();
      node = free_from - 1;
      seen.clear();
    }
  }

  // Two, and as many as dependences reach back.
  std::uint32_t least_kept(std::uint32_t first, std::uint32_t period) const {
    std::uint32_t furthest = 0;
    for (std::uint32_t node = first + period; node < first + 2 * period; ++node) {
      for (const std::uint32_t dependence : program_.dependences(node))
        furthest = std::max(furthest, dependence < node ? node - dependence : program_.size());
    }
    return std::max(2U, (furthest + period - 1) / period + 1);
  }

  Stretched* stretch_with(std::uint32_t node) {
    const auto behind = std::ranges::upper_bound(stretches_, node, {}, &Stretched::first);
    if (behind == stretches_.begin()) return nullptr;
    Stretched& stretch = *std::prev(behind);
    return node < stretch.end() ? &stretch : nullptr;
  }

  // Which nodes are awaited of all periods. Drops the first stretch that cannot be a loop.
  void look_at_dependences() {
    for (Stretched& stretch : stretches_) stretch.awaited.clear();
    std::vector<std::uint32_t> times;  // by node of a period
    for (std::uint32_t node = stretches_.front().first; node < program_.size(); ++node) {
      const auto dependences = program_.dependences(node);
      Stretched* const own = stretch_with(node);
      // What waits for nothing is ready from the start, wherever it stands.
      if (dependences.empty()) {
        stretches_.erase(stretches_.begin());
        return;
      }
      // Nodes of a loop but for its first periods wait for none in front of it, as those kept say.
      const bool is_kept = own == nullptr || node < own->first + own->kept() * own->period;
      if (!is_kept) continue;
      for (auto dependence = dependences.begin(); dependence != dependences.end();) {
        Stretched* const stretch = *dependence >= node ? nullptr : stretch_with(*dependence);
        if (*dependence >= node) {
          stretches_.clear();
          return;
        }
        if (stretch == nullptr || stretch == own || is_written(*stretch, *dependence)) {
          ++dependence;
          continue;
        }
        // All of them in a row.
        const std::uint32_t place = (*dependence - stretch->first) % stretch->period;
        std::uint32_t found = 0;
        for (const std::uint32_t other : dependences) {
          found += other >= stretch->first && other < stretch->end() &&
                           (other - stretch->first) % stretch->period == place
                       ? 1
                       : 0;
        }
        if (found != stretch->periods || own != nullptr || !only_computes_from(node)) {
          stretches_.erase(stretches_.begin() + (stretch - stretches_.data()));
          return;
        }
        if (std::ranges::find(stretch->awaited, place) == stretch->awaited.end())
          stretch->awaited.push_back(place);
        ++dependence;
      }
    }
  }
  // Then a round more before it begins is noticed by nobody.
  bool only_computes_from(std::uint32_t node) const {
    return std::all_of(program_.lane.begin() + node, program_.lane.end(),
                       [](Lane lane) { return lane == Lane::device; });
  }
  // Seen from behind the loop, its last periods.
  static bool is_written(const Stretched& stretch, std::uint32_t node) {
    return (node - stretch.first) / stretch.period >= stretch.left_out();
  }

  void add(Program& all, std::uint32_t node, const Stretched* own) {
    std::vector<std::uint32_t> dependences;
    for (const std::uint32_t dependence : program_.dependences(node)) {
      const Stretched* const stretch = stretch_with(dependence);
      std::uint32_t written = 0;
      if (stretch == nullptr || stretch == own) {
        written = new_number_[dependence];
      } else if (is_written(*stretch, dependence)) {
        written = new_number_[dependence - stretch->left_out() * stretch->period];
      } else {
        written =
            stretch->written_first + stretch->kept() * stretch->written_period() - 1;  // for all of them
      }
      if (std::ranges::find(dependences, written) == dependences.end()) dependences.push_back(written);
    }
    new_number_[node] = all.size();
    all.add(program_.kind[node], program_.phase[node], program_.name[node], program_.layer[node],
            program_.payload[node], dependences);
    all.lane.back() = program_.lane[node];
    if (program_.has_parts(node)) all.set_parts(all.size() - 1, program_.parts[node]);
    // Those of a loop are told apart by nothing.
    if (own != nullptr && node >= own->first + own->period) {
      const std::uint32_t before = new_number_[node - own->period];
      all.name.back() = all.name[before];
      all.layer.back() = all.layer[before];
      all.payload.back() = all.payload[before];
    }
  }

  void add_end_of_layer(Program& all, std::uint32_t last, const Stretched& stretch) {
    std::vector<std::uint32_t> dependences;
    for (const std::uint32_t place : stretch.awaited)
      dependences.push_back(new_number_[last + 1 - stretch.period + place]);
    const bool is_first = last + 1 == stretch.first + stretch.period;
    if (!is_first) dependences.push_back(all.size() - stretch.written_period());
    const std::uint32_t name = all.name.back();
    all.add(NodeKind::delay, Phase::other, name, -1, 0, dependences);
    all.lane.back() = Lane::none;
  }

  const Program& program_;
  EqualPayloads equal_;
  std::vector<std::uint64_t> features_;
  std::vector<Stretched> stretches_;
  std::vector<std::uint32_t> new_number_;  // of nodes that are written
};

}  // namespace

std::optional<Graph> in_layer_loops(const Graph& graph, ChunkOrder order) {
  if (graph.programs.size() != 1 || !graph.programs.front().file_id.empty()) return std::nullopt;
  const Program& program = graph.programs.front();
  const Program whole = written_out(program);
  LayerLoops loops(graph, whole, order);
  if (!loops.can_be_written()) return std::nullopt;
  Program shorter = loops.written();
  constexpr std::uint32_t kSpared = 2;  // at least half
  if (shorter.size() > program.size() / kSpared) return std::nullopt;
  Graph result{
      graph.ranks,     {},           graph.program_of, graph.families, graph.works, graph.collectives,
      graph.transfers, graph.custom, graph.parts,      graph.names,    graph.layers};
  result.programs.push_back(std::move(shorter));
  return result;
}

}  // namespace armilla
