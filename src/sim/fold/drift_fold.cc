#include "sim/fold/drift_fold.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "network/topology.h"
#include "sim/engine/native_run.h"
#include "sim/fold/run_parts.h"

namespace armilla {
namespace {

// What has not repeated for so long will not soon.
constexpr std::size_t kMostLooks = 128;
constexpr std::int64_t kMostPeriods = 64;
// Each look takes note of all stages and feeds, and is compared with those before.
constexpr std::size_t kMostStages = 64, kMostFeeds = 256;

}  // namespace

// Messages must take links of their ends alone, and lone collectives be known.
DriftFold::DriftFold(const NativePlay& play, bool may_look, const RunContext& context, const RunParts& parts)
    : context_(context),
      parts_(parts),
      // A window's bounds are moments of the run's clock, and stages that periods were left out of have
      // clocks of their own.
      may_look_(may_look && parts.periods.has_loops() && !play.options.every_message &&
                play.options.window.from == Time(0) && play.options.window.until == kEndOfTime &&
                promises_of(play.study.network).over_dimensions &&
                std::ranges::none_of(play.study.machine.dimensions, passes_others)),
      later_by_(context.classes.real.size()) {
  if (may_look_) context.observers.push_back(this);
}

void DriftFold::begin(std::size_t loop) {
  is_looking_ = false;
  if (!may_look_ || differ_) return;
  loop_ = loop;
  is_looking_ = find_stages() && order_stages() && have_own_links();
}

bool DriftFold::find_stages() {
  const Graph& graph = context_.graph;
  const std::size_t ranks = context_.classes.real.size();
  std::vector<std::size_t> joined(ranks);
  std::iota(joined.begin(), joined.end(), 0);
  const auto root = [&](std::size_t rank) {
    // Path halving (Tarjan and van Leeuwen 1984) keeps sets of thousands of ranks flat.
    while (joined[rank] != rank) rank = joined[rank] = joined[joined[rank]];
    return rank;
  };
  // Source, destination, tag and bytes of channels; messages sent and received in a period.
  std::map<std::tuple<std::int32_t, std::int32_t, std::uint32_t, std::int64_t>,
           std::pair<std::int64_t, std::int64_t>>
      channels;
  std::vector<std::int64_t> calls(ranks);  // by the first member of their groups
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const std::int32_t real = context_.classes.real[rank];
    const Program& program = graph.programs[graph.program_of[static_cast<std::size_t>(real)]];
    const Loop& loop = program.loops[loop_];
    // The last of the periods that are written: all are alike but for what reaches back behind the first.
    for (std::uint32_t node = loop.end - loop.period; node < loop.end; ++node) {
      const std::uint64_t payload = program.payload[node];
      switch (program.kind[node]) {
        case NodeKind::compute:
        case NodeKind::delay:
          break;
        case NodeKind::collective: {
          const CollectiveCall& call = graph.collectives[payload];
          const FoldedFamily& family = context_.classes.families[call.family];
          const std::int32_t group = family.group_of[rank];
          if (call.custom >= 0 || group < 0 || !parts_.memoised.is_lone(call.family, group)) return false;
          const std::vector<std::int32_t>& members = family.groups[static_cast<std::size_t>(group)];
          // Once for the group, however many of its members are simulated.
          calls[rank] += members.front() == static_cast<std::int32_t>(rank) ? 1 : 0;
          for (const std::int32_t member : members)
            joined[root(static_cast<std::size_t>(member))] = root(rank);
          break;
        }
        case NodeKind::send: {
          const PointToPoint& transfer = graph.transfers[payload];
          const std::int32_t to = simulated(context_.peers.of(real, transfer));
          ++channels[{static_cast<std::int32_t>(rank), to, transfer.tag, transfer.bytes.value}].first;
          break;
        }
        case NodeKind::receive: {
          const PointToPoint& transfer = graph.transfers[payload];
          const std::int32_t from = simulated(context_.peers.of(real, transfer));
          ++channels[{from, static_cast<std::int32_t>(rank), transfer.tag, transfer.bytes.value}].second;
          break;
        }
        case NodeKind::memory_load:
        case NodeKind::memory_store:
          // Remote memory is shared by all: what one stage stores there may make another wait.
          return false;
      }
    }
  }
  stages_.clear();
  feeds_.clear();
  stage_of_.assign(ranks, 0);
  std::map<std::size_t, std::size_t> numbers;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto [number, fresh] = numbers.try_emplace(root(rank), stages_.size());
    if (fresh) stages_.emplace_back();
    stage_of_[rank] = number->second;
    stages_[number->second].ranks.push_back(static_cast<std::int32_t>(rank));
    stages_[number->second].calls += calls[rank];
  }
  if (stages_.size() > kMostStages || channels.size() > kMostFeeds) return false;
  std::map<std::int32_t, std::size_t> fed_by;  // by rank: of several, their messages would meet on its link
  for (const auto& [ends, messages] : channels) {
    const auto& [source, destination, tag, bytes] = ends;
    const std::size_t from = stage_of(source), to = stage_of(destination);
    // What is sent and not received in the same period piles up, and no state of the receiver returns.
    // Messages within a stage would be on its links while it is looked at.
    if (messages.first != messages.second || from == to) return false;
    if (fed_by.try_emplace(destination, from).first->second != from) return false;
    stages_[to].feeds.push_back(feeds_.size());
    Feed& feed = feeds_.emplace_back();
    feed.from = from;
    feed.to = to;
    feed.channel = {0, context_.classes.real_rank(source), context_.classes.real_rank(destination), tag,
                    Bytes(bytes)};
    feed.messages = messages.first;
    feed.arrived = parts_.messages.arrived(feed.channel);
  }
  return !feeds_.empty();
}

// Takes away stages that nothing left feeds, until none is left or all are fed.
bool DriftFold::order_stages() {
  std::vector<std::size_t> feeders(stages_.size());
  for (const Feed& feed : feeds_) ++feeders[feed.to];
  order_.clear();
  for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
    if (feeders[stage] == 0) order_.push_back(stage);
  }
  for (std::size_t next = 0; next < order_.size(); ++next) {
    for (const Feed& feed : feeds_) {
      if (feed.from == order_[next] && --feeders[feed.to] == 0) order_.push_back(feed.to);
    }
  }
  return order_.size() == stages_.size();
}

// Every link is used by messages of one source or to one destination, whenever they are sent.
bool DriftFold::have_own_links() {
  struct Use {
    std::int32_t source = 0, destination = 0;
    bool one_source = true, one_destination = true;
  };
  std::map<std::uint32_t, Use> uses;
  std::set<std::pair<std::int32_t, std::int32_t>> known;
  MessageWays::Links links;
  for (std::size_t rank = 0; rank < context_.classes.real.size(); ++rank) {
    const std::int32_t real = context_.classes.real[rank];
    const Program& program =
        context_.graph.programs[context_.graph.program_of[static_cast<std::size_t>(real)]];
    for (std::uint32_t node = 0; node < program.size(); ++node) {
      if (program.kind[node] != NodeKind::send) continue;
      const std::int32_t to = context_.peers.of(real, context_.graph.transfers[program.payload[node]]);
      if (!known.emplace(real, to).second) continue;
      links.clear();
      parts_.memoised.add_links(real, to, links);
      // One that leaves the source and one that leads to the destination: on more, it would pass links of
      // others.
      if (links.size() > 2) return false;
      const auto source = static_cast<std::int32_t>(rank);
      for (const std::uint32_t link : links) {
        Use& use = uses.try_emplace(link, Use{source, simulated(to)}).first->second;
        use.one_source = use.one_source && use.source == source;
        use.one_destination = use.one_destination && use.destination == simulated(to);
        if (!use.one_source && !use.one_destination) return false;
      }
    }
  }
  return true;
}

bool DriftFold::round_over() {
  for (Stage& stage : stages_) {
    const std::int64_t period = parts_.periods.period(stage.ranks.front());
    if (period == stage.latest || period < 0) continue;
    // A message or a collective under way is on links, whose state is no stage's: such moments are passed
    // over.
    const bool is_quiet = std::ranges::all_of(stage.ranks, [&](std::int32_t rank) {
      return parts_.periods.is_inside(rank, loop_) && !parts_.recorder.communicates(rank);
    });
    if (!is_quiet) continue;
    if (look(stage)) return true;
    if (!is_looking_) return false;
  }
  return false;
}

bool DriftFold::look(Stage& stage) {
  StateDigest state;
  if (!add_state(state, stage)) return false;
  const Time now = context_.queue.now();
  Look look{{now, {}, {}},
            parts_.periods.period(stage.ranks.front()),
            parts_.recorder.sums(now),
            parts_.memoised.sums()};
  for (const Feed& feed : feeds_) {
    look.counts.arrived.push_back(feed.arrived);
    look.counts.here.push_back(parts_.messages.arrived(feed.channel));
  }
  stage.latest = look.period;
  const auto [before, fresh] = stage.looks.try_emplace(state.value());
  if (!fresh) {
    const Look& then = before->second;
    // A stage that comes into an older state than its last one, or that took another time for it, begins its
    // list anew: only looks of one and the same repetition may be compared with those of other stages.
    const bool goes_on = stage.repeats && stage.periods() == look.period - then.period &&
                         stage.length() == now - then.counts.at;
    if (!goes_on) stage.alike.assign(1, then.counts);
    stage.alike.push_back(look.counts);
    stage.from = then;
    stage.until = look;
  }
  stage.repeats = !fresh;
  before->second = std::move(look);
  if (stage.looks.size() >= kMostLooks || stage.alike.size() >= kMostLooks) {
    end();
    return false;
  }
  return std::ranges::all_of(stages_, &Stage::repeats) && try_to_leave_out();
}

// False where something of the stage is about to happen that has no place in its state.
bool DriftFold::add_state(StateDigest& state, const Stage& stage) const {
  const std::size_t number = stage_of(stage.ranks.front());
  const Time now = context_.queue.now();
  for (const std::int32_t rank : stage.ranks)
    parts_.periods.add_state(state, rank, parts_.periods.period(stage.ranks.front()));
  bool is_known = true;
  context_.queue.for_each_pending([&](const Event& event) {
    if (event.target == parts_.messages.target()) {
      const std::int32_t receiver = parts_.messages.late_receiver(event.argument);
      // A receive that found its message there is told so by an event of the messages, which no state of a
      // stage holds.
      is_known = is_known && (receiver < 0 || stage_of(simulated(receiver)) != number);
    }
    if (event.target != parts_.walker.target() || stage_of(RankWalker::rank_of(event.argument)) != number)
      return;
    const Digest what = parts_.walker.describe(event.argument);
    state.add('z', event.time.value - now.value, what.low, what.high);
  });
  parts_.messages.for_each_waiting([&](const Channel& channel, std::int64_t place, const Notice& notice) {
    if (stage_of(simulated(channel.destination)) != number) return;
    const Digest what = parts_.walker.describe(notice.argument);
    state.add('p', channel.source, channel.tag, channel.bytes.value, place, what.low, what.high);
  });
  return is_known;
}

bool DriftFold::holds(std::size_t number, const Counts& look, std::int64_t periods) const {
  const Feed& feed = feeds_[number];
  const Stage &from = stages_[feed.from], &to = stages_[feed.to];
  const Time pace = from.pace(periods), own = to.pace(periods);
  // At the same pace the same number lies ready at each look, or the receiver gains on its sender or loses.
  if (pace == own) {
    return from.since <= look.at && std::ranges::all_of(to.alike, [&](const Counts& later) {
             return later.at < look.at || later.here[number] == look.here[number];
           });
  }
  // A faster sender is ahead more and more: it must have been so far ahead at the receiver's first look
  // already that nothing the receiver took since then was sent before the sender began to repeat.
  return pace < own && feed.last_wait < look.at && look.at + own <= to.until.counts.at &&
         look.arrived[number] - look.here[number] >= from.at(from.since).arrived[number];
}

bool DriftFold::goes_on(Stage& stage, std::int64_t periods) const {
  for (const Counts& look : stage.alike) {
    // A whole repetition has to lie behind it.
    if (look.at > stage.from.counts.at) return false;
    if (!std::ranges::all_of(stage.feeds, [&](std::size_t feed) { return holds(feed, look, periods); }))
      continue;
    stage.since = look.at;
    return true;
  }
  return false;
}

bool DriftFold::performs_all(const Stage& stage) const {
  std::int64_t performed = 0;
  // Of collectives that are played one by one the messages would have to be told apart by stages, and are
  // not.
  for (const auto& [which, count] : stage.until.performed) {
    const auto& [f, g, play] = which;
    if (&stages_[stage_of(context_.classes.families[f].groups[g].front())] != &stage) continue;
    const auto before = stage.from.performed.find(which);
    performed += count - (before == stage.from.performed.end() ? 0 : before->second);
  }
  return performed == stage.calls * stage.periods();
}

bool DriftFold::try_to_leave_out() {
  if (parts_.periods.loop() != loop_ || !parts_.periods.is_inside()) return false;
  std::int64_t periods = 1;
  for (const Stage& stage : stages_) {
    // The same number is taken out of every loop, and of each stage whole repetitions only.
    periods = std::lcm(periods, stage.periods());
    if (periods > kMostPeriods) return false;
  }
  const std::int64_t times = parts_.periods.spare_periods() / periods;
  if (times < 1) return false;
  for (const Stage& stage : stages_) {
    if (!performs_all(stage)) return false;
    for (const std::int32_t rank : stage.ranks) {
      // A host that is faster than its rank gets further ahead in every period, and has been waited for by
      // nobody; one that falls behind takes time that no state of the rank shows.
      if (!parts_.periods.host_repeats(rank, stage.from.counts.at, stage.length(), stage.periods()))
        return false;
    }
  }
  if (!std::ranges::all_of(order_, [&](std::size_t stage) { return goes_on(stages_[stage], periods); }))
    return false;
  leave_out(times * periods);
  return true;
}

void DriftFold::leave_out(std::int64_t periods) {
  std::vector<Time> skipped(later_by_.size());
  for (const Stage& stage : stages_) {
    const std::int64_t times = periods / stage.periods();
    const Repetition repetition{stage.from.counts.at, stage.until.counts.at, times};
    parts_.recorder.repeat(stage.ranks, stage.from.ranks, stage.until.ranks, repetition);
    for (const std::int32_t rank : stage.ranks)
      skipped[static_cast<std::size_t>(rank)] = repetition.skipped();
    parts_.memoised.repeat(stage.from.performed, stage.until.performed, times,
                           [&](std::int32_t rank) { return &stages_[stage_of(rank)] == &stage; });
  }
  count_messages(periods);
  parts_.periods.leave_out(periods, skipped);
  // Added, as an earlier loop may have made some of them later.
  for (std::size_t rank = 0; rank < skipped.size(); ++rank) later_by_[rank] += skipped[rank];
  for (Stage& stage : stages_) {
    stage.coming = 0;
    stage.has_waited = stage.is_exchanging = false;
  }
  is_looking_ = false;
  compare_clocks();
}

// Those of nodes; those of collectives are counted by how often these were performed.
void DriftFold::count_messages(std::int64_t periods) {
  for (const Feed& feed : feeds_) {
    context_.network.count(
        {.source = feed.channel.source, .destination = feed.channel.destination, .bytes = feed.channel.bytes},
        feed.messages * periods);
  }
}

void DriftFold::compare_clocks() {
  differ_ = std::ranges::any_of(later_by_, [&](Time time) { return time != later_by_.front(); });
}

DriftFold::Feed* DriftFold::feed_over(const Channel& channel) {
  if (!is_looking_) return nullptr;
  for (Feed& feed : feeds_) {
    if (source_of(feed.channel) == source_of(channel) &&
        destination_of(feed.channel) == destination_of(channel) && feed.channel.tag == channel.tag &&
        feed.channel.bytes == channel.bytes && channel.space == 0)
      return &feed;
  }
  return nullptr;
}

void DriftFold::leaves(const Channel& channel) {
  if (!differ_) return;
  const std::int32_t source = source_of(channel), destination = destination_of(channel);
  if (later_by(source) == later_by(destination)) return;
  Stage& stage = stages_[stage_of(destination)];
  if (later_by(source) < later_by(destination)) {
    // It leaves at another moment than its receiver's: only as in the loop.
    const bool is_fed = std::ranges::any_of(
        stage.feeds, [&](std::size_t feed) { return feeds_[feed].from == stage_of(source); });
    if (!is_fed || stage.has_waited || stage.is_exchanging) throw ClocksDisagree();
    // Counted until it arrives: meanwhile the stage must not be made to wait, or the message would come too
    // early.
    ++stage.coming;
    return;
  }
  // The sender is later than the receiver's clock says. As the receiver is idle, that it stands still until
  // then changes nothing but when it goes on.
  const Time pause = later_by(source) - later_by(destination);
  if (stage.coming > 0) throw ClocksDisagree();
  for (const std::int32_t rank : stage.ranks) {
    if (!parts_.recorder.is_idle(rank) || !parts_.periods.is_idle(rank)) throw ClocksDisagree();
    parts_.recorder.pause(rank, context_.queue.now(), pause);
    parts_.periods.pause(rank, pause);
    later_by_[static_cast<std::size_t>(rank)] += pause;
  }
  stage.has_waited = true;
  compare_clocks();
}

void DriftFold::arrives(const Channel& channel) {
  if (Feed* const feed = feed_over(channel); feed != nullptr) ++feed->arrived;
  if (!differ_) return;
  const std::int32_t source = source_of(channel), destination = destination_of(channel);
  Stage& stage = stages_[stage_of(destination)];
  if (later_by(source) < later_by(destination) && stage.coming > 0) --stage.coming;
}

void DriftFold::waits(const Channel& channel) {
  if (Feed* const feed = feed_over(channel); feed != nullptr) feed->last_wait = context_.queue.now();
  if (later_by(source_of(channel)) < later_by(destination_of(channel))) throw ClocksDisagree();
}

void DriftFold::meets(const Channel& channel) {
  if (Feed* const feed = feed_over(channel); feed != nullptr) feed->last_wait = context_.queue.now();
  if (later_by(source_of(channel)) != later_by(destination_of(channel))) throw ClocksDisagree();
}

void DriftFold::issues(std::int32_t rank, std::uint32_t number) {
  if (!differ_) return;
  const FoldedFamily& family = context_.classes.families[number];
  const std::int32_t group = family.group_of[static_cast<std::size_t>(rank)];
  if (group < 0) throw ClocksDisagree();
  for (const std::int32_t member : family.groups[static_cast<std::size_t>(group)]) {
    if (later_by(member) != later_by(rank)) throw ClocksDisagree();
  }
  if (parts_.memoised.is_lone(number, group)) return;
  Stage& stage = stages_[stage_of(rank)];
  if (stage.coming > 0) throw ClocksDisagree();
  stage.is_exchanging = true;
}

}  // namespace armilla
