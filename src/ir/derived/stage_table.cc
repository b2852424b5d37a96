#include "ir/derived/stage_table.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "ir/derived/metrics.h"

namespace armilla {

bool is_recorded(const RankClass& ranks) {
  return !ranks.computes.empty() || !ranks.collectives.empty() || !ranks.others.empty();
}

// A class whose intervals were recorded, where the program has one.
std::vector<const RankClass*> representatives(const Run& run) {
  std::vector<const RankClass*> chosen(run.graph.programs.size());
  for (const RankClass& ranks : run.result.classes) {
    const RankClass*& current = chosen[ranks.program];
    if (current == nullptr || (!is_recorded(*current) && is_recorded(ranks))) current = &ranks;
  }
  return chosen;
}

namespace {

constexpr std::string_view kHost = "host memory", kMessages = "messages";
constexpr int kComputing = -1;

// What a node in flight is called in the table; empty: it is no communication of its own.
std::string_view kind_of(const Graph& graph, const Program& program, std::uint32_t node) {
  const std::uint64_t payload = program.payload[node];
  switch (program.kind[node]) {
    case NodeKind::collective:
      return graph.families[graph.collectives[payload].family].name;
    case NodeKind::send: {
      const PointToPoint& transfer = graph.transfers[payload];
      return transfer.peer_kind == PeerKind::rank ? kMessages
                                                  : std::string_view(graph.families[transfer.family].name);
    }
    case NodeKind::memory_load:
    case NodeKind::memory_store:
      return kHost;
    case NodeKind::delay:
      return program.lane[node] == Lane::host ? kHost : std::string_view();
    case NodeKind::compute:
    case NodeKind::receive:
      break;
  }
  return {};
}

std::vector<std::string_view> all_kinds(const Graph& graph) {
  std::vector<std::string_view> kinds;
  for (const GroupFamily& family : graph.families) {
    if (std::find(kinds.begin(), kinds.end(), family.name) == kinds.end()) kinds.push_back(family.name);
  }
  for (const std::string_view kind : {kMessages, kHost}) {
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
  }
  return kinds;
}

struct Change {
  Time at;
  int kind = kComputing;
  int by = 0;
};

void add_changes(std::vector<Change>& changes, const Interval& interval, int kind) {
  if (interval.end <= interval.start) return;
  changes.push_back({interval.start, kind, 1});
  changes.push_back({interval.end, kind, -1});
}

// A sweep over starts and ends: while nothing is computed, time goes to the first kind in flight, so the
// parts add up.
std::vector<Time> exposed_times(const Run& run, const RankClass& ranks,
                                const std::vector<std::string_view>& kinds) {
  const Program& program = run.graph.programs[ranks.program];
  std::vector<Time> exposed(kinds.size());
  std::vector<Change> changes;
  for (const auto* intervals : {&ranks.collectives, &ranks.others}) {
    for (const Interval& interval : *intervals) {
      const auto found = std::find(kinds.begin(), kinds.end(), kind_of(run.graph, program, interval.node));
      if (found != kinds.end()) add_changes(changes, interval, static_cast<int>(found - kinds.begin()));
    }
  }
  if (changes.empty()) return exposed;
  const auto earlier = [](const Change& a, const Change& b) { return a.at < b.at; };
  std::sort(changes.begin(), changes.end(), earlier);
  // Computations follow each other on a device: of millions of a trace, most stand in order as they are.
  const auto communications = static_cast<std::ptrdiff_t>(changes.size());
  changes.reserve(changes.size() + 2 * ranks.computes.size());
  for (const Interval& interval : ranks.computes) add_changes(changes, interval, kComputing);
  const auto computations = changes.begin() + communications;
  if (!std::is_sorted(computations, changes.end(), earlier)) std::sort(computations, changes.end(), earlier);
  std::inplace_merge(changes.begin(), computations, changes.end(), earlier);
  std::vector<int> in_flight(kinds.size());
  int computing = 0;
  Time since;
  for (const Change& change : changes) {
    if (computing == 0) {
      const auto first = std::find_if(in_flight.begin(), in_flight.end(), [](int n) { return n > 0; });
      if (first != in_flight.end())
        exposed[static_cast<std::size_t>(first - in_flight.begin())] +=
            between(ranks.repeated, since, change.at);
    }
    (change.kind == kComputing ? computing : in_flight[static_cast<std::size_t>(change.kind)]) += change.by;
    since = change.at;
  }
  return exposed;
}

// Drops the kinds that no stage waited for.
void keep_exposed_kinds(StageTable& table) {
  for (std::size_t kind = table.kinds.size(); kind-- > 0;) {
    const auto offset = static_cast<std::ptrdiff_t>(kind);
    if (std::any_of(table.stages.begin(), table.stages.end(),
                    [&](const StageSummary& stage) { return stage.exposed[kind] > Time(0); })) {
      continue;
    }
    table.kinds.erase(table.kinds.begin() + offset);
    for (StageSummary& stage : table.stages) stage.exposed.erase(stage.exposed.begin() + offset);
  }
}

}  // namespace

std::vector<std::pair<std::string_view, Time>> exposed_by_kind(const Run& run, const RankClass& ranks) {
  const std::vector<std::string_view> kinds = all_kinds(run.graph);
  const std::vector<Time> exposed = exposed_times(run, ranks, kinds);
  std::vector<std::pair<std::string_view, Time>> times;
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    if (exposed[kind] > Time(0)) times.emplace_back(kinds[kind], exposed[kind]);
  }
  return times;
}

StageTable stage_table(const Run& run) {
  StageTable table;
  table.kinds = all_kinds(run.graph);
  const std::vector<const RankClass*> chosen = representatives(run);
  std::vector<std::size_t> stage_of(chosen.size(), SIZE_MAX);
  for (std::size_t program = 0; program < chosen.size(); ++program) {
    if (chosen[program] == nullptr) continue;
    const RankClass& ranks = *chosen[program];
    stage_of[program] = table.stages.size();
    StageSummary& stage = table.stages.emplace_back();
    stage.program = static_cast<std::uint32_t>(program);
    stage.compute = stage.least_compute = stage.most_compute = ranks.compute;
    stage.exposed = exposed_times(run, ranks, table.kinds);
    // What neither computes nor waits for communication is the bubble.
    stage.bubble = run.result.iteration - ranks.compute;
    for (const Time exposed : stage.exposed) stage.bubble -= exposed;
  }
  for (const RankClass& ranks : run.result.classes) {
    StageSummary& stage = table.stages[stage_of[ranks.program]];
    stage.ranks += ranks.ranks;
    stage.least_compute = std::min(stage.least_compute, ranks.compute);
    stage.most_compute = std::max(stage.most_compute, ranks.compute);
  }
  for (const RoleMemory& memory : run.roles) {
    if (memory.program < stage_of.size() && stage_of[memory.program] != SIZE_MAX)
      table.stages[stage_of[memory.program]].peak = memory.use.peak();
  }
  keep_exposed_kinds(table);
  return table;
}

namespace {

// Sums over all ranks, in seconds.
struct Sums {
  double compute = 0, bubble = 0, host = 0, all = 0;
};

Sums sums_of(const Run& run) {
  Sums sums;
  const Time iteration = run.result.iteration;
  for (const RankClass& ranks : run.result.classes) {
    const auto count = static_cast<double>(ranks.ranks);
    sums.compute += in_seconds(ranks.compute) * count;
    sums.host += in_seconds(ranks.host_waits) * count;
    sums.bubble += in_seconds(idle(ranks, iteration) - ranks.host_waits) * count;
    sums.all += in_seconds(iteration) * count;
  }
  return sums;
}

}  // namespace

double bubble_fraction(const Run& run) {
  const Sums sums = sums_of(run);
  return sums.all > 0 ? sums.bubble / sums.all : 0;
}

double bubble_ratio(const Run& run) {
  const Sums sums = sums_of(run);
  return sums.compute > 0 ? sums.bubble / sums.compute : 0;
}

double host_fraction(const Run& run) {
  const Sums sums = sums_of(run);
  return sums.all > 0 ? sums.host / sums.all : 0;
}

namespace {

// A moment as it was recorded; of a loop (ir/graph.h) its last period is as often as it was played.
struct PlayedMoment {
  const MemoryMoment* moment = nullptr;
  Time at;
  Bytes more;  // activations that rounds before it have left
};

class PlayedMoments {
 public:
  PlayedMoments(const Program& program, const RankClass& ranks, const std::vector<MemoryMoment>& moments)
      : moments_(moments), first_(program.size() + 1), when_(ranks.computes.size()) {
    for (const Interval& interval : ranks.computes) ++first_[interval.node + 1];
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    std::vector<std::size_t> next_of(first_.begin(), first_.end() - 1);
    for (const Interval& interval : ranks.computes) when_[next_of[interval.node]++] = &interval;
    auto next = moments_.begin();
    for (const Loop& loop : program.loops) {
      const auto begin_of = [&](std::uint32_t node) {
        return std::ranges::lower_bound(moments_, node, {}, &MemoryMoment::node);
      };
      const auto before = begin_of(loop.end - 2 * loop.period), last = begin_of(loop.end - loop.period),
                 end = begin_of(loop.end);
      if (last == end || last - before != end - last) continue;
      add(next, last);
      next = end;
      // GPipe's forward passes leave something behind, which its backward passes take.
      const Bytes grown = last->activations - before->activations;
      for (std::size_t again = 0;; ++again) {
        const bool is_last =
            std::none_of(last, end, [&](auto& moment) { return was_played(moment, again + 1); });
        // What follows another round is not as what follows the last one, which is written.
        for (auto moment = last; moment != end; ++moment)
          add(is_last ? *moment : *(moment - (last - before)), *moment, again,
              is_last ? more_ : more_ + grown);
        if (is_last) break;
        more_ += grown;
      }
    }
    add(next, moments_.end());
  }
  const std::vector<PlayedMoment>& all() const { return all_; }

 private:
  using Iterator = std::vector<MemoryMoment>::const_iterator;
  bool was_played(const MemoryMoment& moment, std::size_t again) const {
    return first_[moment.node + 1] - first_[moment.node] > again;
  }
  void add(Iterator begin, Iterator end) {
    for (auto moment = begin; moment < end; ++moment) add(*moment, *moment, 0, more_);
  }
  // What is held then, and the moment when.
  void add(const MemoryMoment& holds, const MemoryMoment& moment, std::size_t again, Bytes more) {
    const bool played = was_played(moment, again);
    if (!played && again > 0) return;
    // Before or after what was recorded: nowhere.
    const Interval* const interval = played ? when_[first_[moment.node] + again] : nullptr;
    all_.push_back({&holds,
                    interval == nullptr ? kEndOfTime
                    : moment.at_end     ? interval->end
                                        : interval->start,
                    more});
  }

  const std::vector<MemoryMoment>& moments_;
  std::vector<std::size_t> first_;     // of a node, in
  std::vector<const Interval*> when_;  // by node
  std::vector<PlayedMoment> all_;
  Bytes more_;
};

// Samples in order, and those of what is repeated as often as it is. Of very many repetitions some are left
// out, the last is there.
template <class Add>
void expand(const std::vector<MemorySample>& samples, const std::vector<Repetition>& repeated,
            const Add& add) {
  constexpr std::int64_t kMost = 1 << 17;
  Time later;
  Bytes more;
  auto next = samples.begin();
  const auto behind = [&](Time at) {
    return std::upper_bound(next, samples.end(), at,
                            [](Time t, const auto& sample) { return t < sample.at; });
  };
  const auto add_all = [&](auto begin, auto end) {
    for (auto sample = begin; sample != end; ++sample)
      add(MemorySample{sample->at + later, sample->held + more, sample->activations + more,
                       sample->temporary});
  };
  for (const Repetition& again : repeated) {
    const auto begin = behind(again.from), end = behind(again.until);
    add_all(next, begin);
    add_all(begin, end);
    next = end;
    if (begin != end && begin != samples.begin()) {
      const Bytes grown = std::prev(end)->activations - std::prev(begin)->activations;
      const std::int64_t step = std::max<std::int64_t>(1, again.times * (end - begin) / kMost);
      const Time first = later;
      const Bytes least = more;
      for (std::int64_t k = again.times % step == 0 ? step : again.times % step; k <= again.times;
           k += step) {
        later = first + (again.until - again.from) * k;
        more = least + grown * k;
        add_all(begin, end);
      }
      later = first;
    }
    later += again.skipped();
  }
  add_all(next, samples.end());
}

// The fullest of each run of samples is kept, so that peaks survive.
std::vector<MemorySample> thinned(const std::vector<MemorySample>& samples,
                                  const std::vector<Repetition>& repeated, std::size_t most) {
  std::size_t all = 0, seen = 0;
  expand(samples, repeated, [&](const MemorySample&) { ++all; });
  const std::size_t stride = all <= most ? 1 : (all + most - 1) / most;
  std::vector<MemorySample> kept;
  expand(samples, repeated, [&](const MemorySample& sample) {
    if (seen++ % stride == 0) {
      kept.push_back(sample);
    } else if (sample.held > kept.back().held) {
      kept.back() = sample;
    }
  });
  return kept;
}

}  // namespace

std::vector<MemorySample> memory_over_time(const Run& run, const RoleMemory& memory, std::size_t most) {
  const std::vector<const RankClass*> chosen = representatives(run);
  if (memory.program >= chosen.size() || chosen[memory.program] == nullptr) return {};
  return memory_over_time(run, *chosen[memory.program], memory, most);
}

std::vector<MemorySample> memory_over_time(const Run& run, const RankClass& ranks, const RoleMemory& memory,
                                           std::size_t most) {
  if (!is_recorded(ranks) || memory.over_time.empty() || most < 2) return {};
  // Weights, states and buffers are held all the time.
  const MemoryUse& use = memory.use;
  const Bytes always = use.peak() - use.activations - use.temporary - use.gradients;
  std::vector<MemorySample> samples = {{Time(0), always + memory.over_time.front().gradients, {}, {}}};
  bool between = true;  // computations
  const PlayedMoments played(run.graph.programs[memory.program], ranks, memory.over_time);
  for (const auto& [moment, when, more] : played.all()) {
    const Bytes activations = moment->activations + more;
    const Bytes held = always + activations + moment->temporary + moment->gradients;
    const MemorySample sample{Time(0), held, activations, moment->temporary};
    if (when == kEndOfTime) {
      if (samples.size() == 1) samples.front() = sample;
      continue;
    }
    const Time at = std::max(samples.back().at, when);
    // What is freed at a moment can be given out again at the same: a dip that takes no time is none. What is
    // there at the end of a computation and gone with the next, such as gradients of a pass that are added up
    // behind it, is a peak.
    const auto is_dip = [&] {
      const Bytes beside = samples.size() > 1 ? std::max(samples[samples.size() - 2].held, held) : held;
      return samples.back().held <= beside;
    };
    if (between && samples.back().at == at && is_dip()) samples.pop_back();
    samples.push_back(sample);
    samples.back().at = at;
    between = moment->at_end;
  }
  return thinned(samples, ranks.repeated, most);
}

}  // namespace armilla
