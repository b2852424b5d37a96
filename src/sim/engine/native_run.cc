#include "sim/engine/native_run.h"

#include <algorithm>
#include <tuple>

namespace armilla {
namespace {

// They are mostly in order: those that come too late are taken out, and merged.
template <class Record, class Key>
void put_in_order(std::vector<Record>& records, const Key& key) {
  std::vector<Record> late;
  auto end = records.begin();  // of those in order
  for (Record& record : records) {
    if (end != records.begin() && key(record) < key(*(end - 1))) {
      late.push_back(std::move(record));
      continue;
    }
    if (&*end != &record) *end = std::move(record);
    ++end;
  }
  if (late.empty()) return;
  std::ranges::sort(late, {}, key);
  std::ranges::move(late, end);
  std::ranges::inplace_merge(records, end, {}, key);
}

// In order of their ends, and where these are equal by what they are, not by how the run came to know of
// them: evaluated collectives tell all of their chunks at once.
void order_records(Result& result) {
  const auto by_end = [](const Interval& interval) { return std::tuple(interval.end, interval.node); };
  const auto by_chunk = [](const ChunkInterval& chunk) {
    return std::tuple(chunk.end, chunk.node, chunk.chunk, chunk.phase);
  };
  for (RankClass& ranks : result.classes) {
    put_in_order(ranks.collectives, by_end);
    put_in_order(ranks.others, by_end);
    put_in_order(ranks.chunks, by_chunk);
  }
  put_in_order(result.collectives, [](const CollectiveRecord& record) {
    return std::tuple(record.finished, record.program, record.node);
  });
}

}  // namespace

NativeRun::NativeRun(const NativePlay& play)
    : effort_(effort_of(play.graph, play.issued, play.classes, play.planner, play.options.max_messages)),
      order_(shares_memory(play.options.remote_memory) ? OrderRule::rounds_by_number : OrderRule::rounds,
             play.classes.simulated(), queue_),
      network_(make_network(play.study.network, {.machine = play.study.machine,
                                                 .queue = queue_,
                                                 .labels = *this,
                                                 .stands_for = play.classes.stands_for,
                                                 .slow_links = play.study.what_if.links,
                                                 .damage = play.study.what_if.damage,
                                                 .packets = play.options.packets,
                                                 .foreseen = {effort_.all_messages, effort_.all_bytes},
                                                 .shared_dimensions = play.shared_dimensions,
                                                 .link_classes = play.classes.links})),
      context_{play.graph, play.classes, play.peers, queue_, order_, *network_, observers_},
      groups_(play.graph, play.classes, play.planner),
      recorder_(play.graph, play.classes, play.options, Counting::native),
      times_(play.graph, play.study.machine, play.study.what_if, play.costs, play.classes),
      messenger_(context_, false),
      custom_(context_, messenger_),
      runner_(play, context_, groups_, custom_, walker_),
      memories_(context_, play.options.remote_memory),
      progress_(*play.options.progress, effort_),
      walker_(context_, {*this, messenger_, memories_, times_, recorder_, progress_}, false,
              play.options.watched_ends) {
  // Behind the network, which also looks for ends of rounds; before those who look at what turns have done.
  queue_.add_observer(*this);
}

void NativeRun::play() {
  walker_.start();
  has_started();
  walker_.finish([&] {
    was_stuck_ = true;
    const bool any = runner_.start_oldest_waiting();
    round_over();
    is_unstuck();
    return any;
  });
}

Result NativeRun::recorded() {
  Result result;
  recorder_.finish(result);
  order_records(result);
  return result;
}

Result NativeRun::result() {
  Result result = recorded();
  result.events = queue_.handled();
  result.links = network_->links();
  result.notes = network_->notes();
  result.messages = network_->messages();
  return result;
}

// Every rank that something happened to acts once.
void NativeRun::round_over() {
  rounds_ = round_time_ == queue_.now() ? rounds_ + 1 : 1;
  round_time_ = queue_.now();
  const bool any = order_.take_turns([&](std::int32_t rank) {
    if (order_.is_marked(rank, TurnPart::pass)) take_turn_of_pass(rank);
    if (order_.is_marked(rank, TurnPart::runner)) runner_.take_turn(rank);
    if (order_.is_marked(rank, TurnPart::custom)) custom_.take_turn(rank);
    if (order_.is_marked(rank, TurnPart::walker)) walker_.take_turn(rank);
  });
  if (any) progress_.messages_done(network_->messages() - network_->messages_under_way());
}

// Besides those of collectives: the node of the program a message belongs to; in custom collectives, how many
// the rank had sent before.
MessageLabel NativeRun::label(const Message& message) const {
  if (message.target == runner_.target()) return runner_.label(message);
  const std::uint64_t program = context_.graph.program_of[static_cast<std::size_t>(message.source)];
  if (message.target != messenger_.target() || messenger_.space(message.argument) > 0)
    return {{program << 32 | UINT32_MAX, message.order, 0}};
  return {{program << 32 | (UINT32_MAX - 1), messenger_.sender_argument(message.argument) & UINT32_MAX, 0}};
}

}  // namespace armilla
