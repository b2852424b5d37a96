#include "ir/derived/communication.h"

#include <algorithm>
#include <utility>

#include "ir/derived/metrics.h"
#include "ir/derived/stage_table.h"

namespace armilla {
namespace {

// What a rank of one program does of one kind.
struct Use {
  std::uint32_t program = 0;
  std::int64_t calls = 0;
  double bytes = 0, factor = 1;  // bus bandwidth counts bytes x factor
  double queued = 0, limit = 0;  // seconds
  std::vector<std::pair<Time, Time>> spans;
};

using Uses = std::vector<Use>;

Use& use_of(Uses& uses, std::uint32_t program) {
  const auto found =
      std::find_if(uses.begin(), uses.end(), [&](const Use& use) { return use.program == program; });
  if (found != uses.end()) return *found;
  uses.emplace_back().program = program;
  return uses.back();
}

// Time in which at least one of them is under way: all that is recorded, and what is in the part that repeats
// as often as it does.
Time time_of(std::vector<std::pair<Time, Time>>& spans, const std::vector<Repetition>& repeated) {
  std::sort(spans.begin(), spans.end());
  Time sum, until;
  for (const auto& [start, end] : spans) {
    if (end <= until) continue;
    sum += between(repeated, std::max(start, until), end);
    until = end;
  }
  return sum;
}

std::vector<std::int64_t> ranks_per_program(const Run& run) {
  std::vector<std::int64_t> ranks(run.graph.programs.size());
  for (const RankClass& each : run.result.classes) ranks[each.program] += each.ranks;
  return ranks;
}

// When the iteration ends in terms of what was recorded.
Time recorded_end(const Run& run) {
  Time end = run.result.iteration;
  if (run.result.classes.empty()) return end;
  for (const Repetition& again : run.result.classes.front().repeated) end -= again.skipped();
  return end;
}

// Of a call that began before an iteration of the steady state did: the next one begins as early before the
// iteration ends (study/run/steady_state.h).
void add_span(Use& use, Time start, Time end, Time iteration_end) {
  use.spans.emplace_back(std::max(start, Time(0)), end);
  if (start < Time(0)) use.spans.emplace_back(std::max(start + iteration_end, Time(0)), iteration_end);
}

// Of a program that ranks run: the one whose intervals and collectives are recorded.
const RankClass& first_class(const Run& run, std::uint32_t program) {
  return *std::ranges::find(run.result.classes, program, &RankClass::program);
}

// `limit_holds`: no call is faster than its links' limit; calls that overlap on different links then only
// fill the time together.
RankTraffic per_rank(Uses& uses, const std::vector<std::int64_t>& ranks, bool limit_holds, const Run& run) {
  RankTraffic traffic;
  double calls = 0, bytes = 0, bus_bytes = 0, seconds = 0, queued = 0, limit = 0;
  for (Use& use : uses) {
    const auto weight = static_cast<double>(ranks[use.program]);
    const Time time = time_of(use.spans, first_class(run, use.program).repeated);
    traffic.ranks += ranks[use.program];
    traffic.most_time = std::max(traffic.most_time, time);
    calls += weight * static_cast<double>(use.calls);
    bytes += weight * use.bytes;
    bus_bytes += weight * use.bytes * use.factor;
    seconds += weight * in_seconds(time);
    queued += weight * use.queued;
    limit += weight * use.limit;
  }
  if (traffic.ranks == 0) return traffic;
  const auto all = static_cast<double>(traffic.ranks);
  traffic.calls = calls / all;
  traffic.bytes = Bytes(static_cast<std::int64_t>(std::min(bytes / all, 9e18)));
  // One role's time is exact; a mean is as exact as a double.
  traffic.time = uses.size() == 1 ? traffic.most_time : from_seconds(seconds / all);
  traffic.queued = from_seconds(queued / all);
  if (seconds > 0) {
    traffic.bandwidth = Bandwidth(bus_bytes / seconds);
    traffic.link_share = limit_holds ? std::min(1.0, limit / seconds) : limit / seconds;
  }
  return traffic;
}

}  // namespace

std::vector<CollectiveSummary> summarize_collectives(const Run& run) {
  struct Row {
    CollectiveSummary summary;
    double limit = 0;  // seconds at the links' limit
    Uses uses;
  };
  std::vector<Row> rows;
  const Time end = recorded_end(run);
  for (const CollectiveRecord& record : run.result.collectives) {
    const CollectiveCall& call = run.graph.collectives[record.call];
    // Names of groups in a trace say little: only lowered jobs are told apart by axis.
    const std::string_view axis =
        has_model(run) ? std::string_view(run.graph.families[call.family].name) : std::string_view();
    auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& known) {
      const CollectiveSummary& summary = known.summary;
      return summary.kind == call.kind && summary.axis == axis && summary.algorithm == record.algorithm &&
             summary.group_size == record.group_size;
    });
    if (row == rows.end()) {
      row = rows.emplace(rows.end());
      row->summary.kind = call.kind;
      row->summary.algorithm = record.algorithm;
      row->summary.group_size = record.group_size;
      row->summary.axis = axis;
    }
    CollectiveSummary& summary = row->summary;
    const auto times = static_cast<double>(record.times);
    summary.count += record.times;
    summary.bytes = saturating_add(summary.bytes, saturating_multiply(call.bytes, record.times));
    summary.time = later(summary.time, saturating_multiply(record.finished - record.started, record.times));
    summary.queued = later(summary.queued, saturating_multiply(record.started - record.issued, record.times));
    // A broadcast's root, and a member with few messages, are done before the others have theirs. Links that
    // are not shared may be done after the last.
    const Time own = record.finished - record.started;
    const bool others_go_on = run.result.collectives.size() == 1 && record.busiest_link > own &&
                              record.busiest_link <= run.result.iteration - record.started;
    const bool is_early = (call.kind == CollectiveKind::broadcast && !call.takes_turns) || others_go_on;
    const double limit = in_seconds(is_early ? std::min(record.link_limit, own) : record.link_limit);
    row->limit += limit * times;
    Use& use = use_of(row->uses, record.program);
    use.calls += record.times;
    use.bytes += static_cast<double>(call.bytes.value) * times;
    use.factor = bus_factor(call.kind, record.group_size);
    use.queued += in_seconds(record.started - record.issued) * times;
    use.limit += limit * times;
    add_span(use, record.started, record.finished, end);
  }
  const std::vector<std::int64_t> ranks = ranks_per_program(run);
  std::vector<CollectiveSummary> summaries;
  for (Row& row : rows) {
    CollectiveSummary& summary = row.summary;
    const double seconds = in_seconds(summary.time);
    summary.per_rank = per_rank(row.uses, ranks, row.limit <= seconds, run);
    if (seconds > 0) {
      summary.bus_bandwidth = Bandwidth(static_cast<double>(summary.bytes.value) *
                                        bus_factor(summary.kind, summary.group_size) / seconds);
      summary.link_share = row.limit / seconds;
    }
    summaries.push_back(std::move(summary));
  }
  std::stable_sort(summaries.begin(), summaries.end(),
                   [](const auto& a, const auto& b) { return a.per_rank.time > b.per_rank.time; });
  return summaries;
}

namespace {

// Least time a message needs on the links between two ranks.
double link_limit(const Machine& machine, std::int64_t from, std::int64_t to, Bytes bytes) {
  double slowest = 0;
  for (const Dimension& dimension : machine.dimensions) {
    const double bandwidth = dimension.bandwidth.value;
    if (from % dimension.size != to % dimension.size && (slowest <= 0 || bandwidth < slowest))
      slowest = bandwidth;
    from /= dimension.size;
    to /= dimension.size;
  }
  return slowest > 0 ? static_cast<double>(bytes.value) / slowest : 0;
}

}  // namespace

std::vector<MessageSummary> summarize_messages(const Run& run) {
  struct Row {
    MessageSummary summary;
    Uses uses;
  };
  std::vector<Row> rows;
  const Peers peers(run.graph);
  const Time end = recorded_end(run);
  // One recorded class stands for all ranks of a program.
  for (const RankClass* const ranks : representatives(run)) {
    if (ranks == nullptr) continue;
    const Program& program = run.graph.programs[ranks->program];
    for (const Interval& interval : ranks->others) {
      if (program.kind[interval.node] != NodeKind::send) continue;
      const PointToPoint& transfer = run.graph.transfers[program.payload[interval.node]];
      const std::string_view axis = transfer.peer_kind == PeerKind::rank || !has_model(run)
                                        ? std::string_view()
                                        : std::string_view(run.graph.families[transfer.family].name);
      auto row = std::find_if(rows.begin(), rows.end(),
                              [&](const Row& known) { return known.summary.axis == axis; });
      if (row == rows.end()) {
        row = rows.emplace(rows.end());
        row->summary.axis = axis;
      }
      Use& use = use_of(row->uses, ranks->program);
      use.spans.emplace_back(interval.start, interval.end);
      // Cut at the end of an iteration of the steady state, where the one before left as much at its begin:
      // of the two parts that is counted.
      if (run.iterations > 1 && interval.end == end) continue;
      MessageSummary& summary = row->summary;
      const std::int64_t times = interval.times;
      summary.count += times;
      summary.bytes = saturating_add(summary.bytes, saturating_multiply(transfer.bytes, times));
      summary.time = later(summary.time, saturating_multiply(interval.end - interval.start, times));
      use.calls += times;
      use.bytes += static_cast<double>(transfer.bytes.value) * static_cast<double>(times);
      use.limit += link_limit(run.study.machine, ranks->representative,
                              peers.of(ranks->representative, transfer), transfer.bytes) *
                   static_cast<double>(times);
    }
  }
  const std::vector<std::int64_t> ranks = ranks_per_program(run);
  std::vector<MessageSummary> summaries;
  for (Row& row : rows) {
    row.summary.per_rank = per_rank(row.uses, ranks, true, run);
    summaries.push_back(row.summary);
  }
  std::stable_sort(summaries.begin(), summaries.end(),
                   [](const auto& a, const auto& b) { return a.per_rank.time > b.per_rank.time; });
  return summaries;
}

HappenedCollectives collectives_one_by_one(const Run& run, std::int64_t most) {
  std::vector<std::vector<const CollectiveRecord*>> of_program(run.graph.programs.size());
  for (const CollectiveRecord& record : run.result.collectives) of_program[record.program].push_back(&record);
  HappenedCollectives listed;
  for (std::uint32_t program = 0; program < of_program.size(); ++program) {
    const std::vector<const CollectiveRecord*>& records = of_program[program];
    if (records.empty()) continue;
    std::int64_t room = most;
    Time later;
    const auto list = [&](auto begin, auto end) {
      for (auto record = begin; record != end; ++record, --room) {
        if (room == 0) return;
        listed.all.push_back({*record, later});
      }
    };
    auto next = records.begin();
    for (const Repetition& again : first_class(run, program).repeated) {
      const auto behind = [&](Time at) {
        return std::upper_bound(next, records.end(), at,
                                [](Time time, const auto* record) { return time < record->finished; });
      };
      const auto begin = behind(again.from), end = behind(again.until);
      list(next, end);
      next = end;
      const Time first = later;
      for (std::int64_t k = 1; k <= again.times && begin != end && room > 0; ++k) {
        later += again.until - again.from;
        list(begin, end);
      }
      later = first + again.skipped();
    }
    list(next, records.end());
    for (const CollectiveRecord* const record : records) listed.left_out += record->times;
    listed.left_out -= most - room;
  }
  std::ranges::sort(listed.all, {}, [](const HappenedCollective& each) {
    return std::pair(each.record->finished + each.later, each.record);
  });
  return listed;
}

std::optional<CommunicationSpread> communication_spread(const Run& run) {
  constexpr std::int64_t kWorthSaying = 100;  // one part in so many of the iteration
  std::vector<std::optional<CommunicationSpread>> spreads(run.graph.programs.size());
  for (const RankClass& ranks : run.result.classes) {
    std::optional<CommunicationSpread>& spread = spreads[ranks.program];
    if (!spread) spread = {ranks.program, ranks.communication, ranks.communication};
    spread->least = std::min(spread->least, ranks.communication);
    spread->most = std::max(spread->most, ranks.communication);
  }
  std::optional<CommunicationSpread> widest;
  Time least_shown = Time(run.result.iteration.value / kWorthSaying);
  for (const std::optional<CommunicationSpread>& spread : spreads) {
    if (!spread || spread->most - spread->least <= least_shown) continue;
    least_shown = spread->most - spread->least;
    widest = spread;
  }
  return widest;
}

}  // namespace armilla
