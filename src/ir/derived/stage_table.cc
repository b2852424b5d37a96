#include "ir/derived/stage_table.h"

#include <algorithm>

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

// The fullest of each run of samples is kept, so that peaks survive.
std::vector<MemorySample> thinned(const std::vector<MemorySample>& samples, std::size_t most) {
  if (samples.size() <= most) return samples;
  const std::size_t stride = (samples.size() + most - 1) / most;
  std::vector<MemorySample> kept;
  for (std::size_t i = 0; i < samples.size(); i += stride) {
    const auto first = samples.begin() + static_cast<std::ptrdiff_t>(i);
    const auto end = samples.begin() + static_cast<std::ptrdiff_t>(std::min(i + stride, samples.size()));
    kept.push_back(
        *std::max_element(first, end, [](const auto& a, const auto& b) { return a.held < b.held; }));
  }
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
  std::vector<const Interval*> when(run.graph.programs[memory.program].size());
  for (const Interval& interval : ranks.computes) when[interval.node] = &interval;
  // Weights, states and buffers are held all the time.
  const MemoryUse& use = memory.use;
  const Bytes always = use.peak() - use.activations - use.temporary - use.gradients;
  std::vector<MemorySample> samples = {{Time(0), always + memory.over_time.front().gradients, {}, {}}};
  bool between = true;  // computations
  for (const MemoryMoment& moment : memory.over_time) {
    const Bytes held = always + moment.activations + moment.temporary + moment.gradients;
    const MemorySample sample{Time(0), held, moment.activations, moment.temporary};
    const Interval* const interval = when[moment.node];
    if (interval == nullptr) {  // before or after what was recorded
      if (samples.size() == 1) samples.front() = sample;
      continue;
    }
    const Time at = std::max(samples.back().at, moment.at_end ? interval->end : interval->start);
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
    between = moment.at_end;
  }
  return thinned(samples, most);
}

}  // namespace armilla
