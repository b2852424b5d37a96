#include <algorithm>
#include <random>

#include "base/sorted.h"
#include "trace/synthetic.h"
#include "trace/synthetic/synthetic_builder.h"

namespace armilla {
namespace {

constexpr std::int64_t kMostJobRanks = 1 << 16;

std::int32_t npus_of(const ParameterValues& values) {
  return static_cast<std::int32_t>(count_up_to(values, "npus", 2, kMostJobRanks));
}

// Before anything is made: nodes in all, over ranks and rounds.
void check_nodes(std::int64_t nodes, std::int64_t times, const ParameterValues& values,
                 std::string_view name) {
  std::int64_t total = 0;
  if (__builtin_mul_overflow(nodes, times, &total) || total > kMaxSyntheticNodes)
    throw Error(values.where(name), fmt::format("more than {} nodes", kMaxSyntheticNodes));
}

}  // namespace

std::vector<ChakraTrace> make_ring(const ParameterValues& values, bool) {
  const std::int32_t npus = npus_of(values);
  const std::int64_t rounds = values.is_set("rounds") ? values.count("rounds") : npus - 1;
  check_nodes(3 * std::int64_t{npus}, rounds, values, values.is_set("rounds") ? "rounds" : "npus");
  const std::uint64_t micros = micros_of(values, "runtime");
  const std::int64_t bytes = values.bytes("bytes").value;
  std::vector<SyntheticRank> ranks = synthetic_ranks(npus);
  for (std::int32_t rank = 0; rank < npus; ++rank) {
    SyntheticRank& own = ranks[static_cast<std::size_t>(rank)];
    WaitList ready;
    for (std::int64_t round = 0; round < rounds; ++round) {
      own.send((rank + 1) % npus, round, bytes, ready);
      const std::uint64_t arrived = own.receive((rank + npus - 1) % npus, round, bytes, ready);
      ready = {own.compute(fmt::format("round_{}", round), micros, Waits(&arrived, 1))};
    }
  }
  return taken(ranks);
}

std::vector<ChakraTrace> make_tree(const ParameterValues& values, bool) {
  const std::int32_t npus = npus_of(values);
  const std::uint64_t micros = micros_of(values, "runtime");
  const std::int64_t bytes = values.bytes("bytes").value;
  std::vector<SyntheticRank> ranks = synthetic_ranks(npus);
  for (std::int32_t rank = 0; rank < npus; ++rank) {
    SyntheticRank& own = ranks[static_cast<std::size_t>(rank)];
    WaitList waits;
    // A binary tree by index: children of r are 2 r + 1 and 2 r + 2. Tag 0 goes up, tag 1 down.
    for (const std::int32_t child : {2 * rank + 1, 2 * rank + 2})
      if (child < npus) waits.push_back(own.receive(child, 0, bytes, {}));
    WaitList ready = {own.compute("combine", micros, waits)};
    if (rank > 0) {
      const std::int32_t parent = (rank - 1) / 2;
      own.send(parent, 0, bytes, ready);
      ready = {own.receive(parent, 1, bytes, ready)};
    }
    for (const std::int32_t child : {2 * rank + 1, 2 * rank + 2})
      if (child < npus) own.send(child, 1, bytes, ready);
  }
  return taken(ranks);
}

std::vector<ChakraTrace> make_all_to_all(const ParameterValues& values, bool) {
  const std::int32_t npus = npus_of(values);
  check_nodes(2 * std::int64_t{npus}, npus, values, "npus");
  const std::uint64_t micros = micros_of(values, "runtime");
  const std::int64_t bytes = values.bytes("bytes").value;
  std::vector<SyntheticRank> ranks = synthetic_ranks(npus);
  for (std::int32_t rank = 0; rank < npus; ++rank) {
    SyntheticRank& own = ranks[static_cast<std::size_t>(rank)];
    WaitList arrived;
    // Offsets instead of ranks, so that not everybody sends to rank 0 first.
    for (std::int32_t step = 1; step < npus; ++step) own.send((rank + step) % npus, 0, bytes, {});
    for (std::int32_t step = 1; step < npus; ++step)
      arrived.push_back(own.receive((rank + npus - step) % npus, 0, bytes, {}));
    own.compute("after", micros, arrived);
  }
  return taken(ranks);
}

std::vector<ChakraTrace> make_incast(const ParameterValues& values, bool) {
  const std::int32_t npus = npus_of(values);
  const std::int64_t rounds = values.count("rounds");
  check_nodes(2 * std::int64_t{npus}, rounds, values, "rounds");
  const std::uint64_t micros = micros_of(values, "runtime");
  const std::int64_t bytes = values.bytes("bytes").value;
  std::vector<SyntheticRank> ranks = synthetic_ranks(npus);
  WaitList ready;
  for (std::int64_t round = 0; round < rounds; ++round) {
    WaitList arrived;
    for (std::int32_t rank = 1; rank < npus; ++rank) {
      arrived.push_back(ranks[0].receive(rank, round, bytes, ready));
      // The senders do not wait for rank 0: what is measured is what the network makes of it.
      ranks[static_cast<std::size_t>(rank)].send(0, round, bytes, {});
    }
    ready = {ranks[0].compute(fmt::format("round_{}", round), micros, arrived)};
  }
  return taken(ranks);
}

namespace {

struct Pipeline {
  std::int32_t stages;
  std::int64_t batches, bytes;
  std::uint64_t forward, backward;  // us
};

Pipeline pipeline_of(const ParameterValues& values) {
  const auto stages = static_cast<std::int32_t>(count_up_to(values, "stages", 1, kMostJobRanks));
  const std::int64_t batches = count_up_to(values, "micro-batches", 1, INT32_MAX / 2);
  check_nodes(6 * std::int64_t{stages}, batches, values, "micro-batches");
  return {stages, batches, values.bytes("bytes").value, micros_of(values, "forward"),
          micros_of(values, "backward")};
}

// One stage: the passes run in the order they are added. Activations of micro-batch b carry tag 2b, gradients
// 2b + 1.
class Stage {
 public:
  Stage(const Pipeline& pipeline, std::int32_t stage, SyntheticRank& rank)
      : pipeline_(pipeline), stage_(stage), rank_(rank) {}

  void pass(bool forward, std::int64_t batch) {
    const bool comes_in = forward ? stage_ > 0 : stage_ + 1 < pipeline_.stages;
    const bool goes_out = forward ? stage_ + 1 < pipeline_.stages : stage_ > 0;
    const std::int32_t step = forward ? 1 : -1;
    const std::int64_t tag = 2 * batch + (forward ? 0 : 1);
    WaitList waits = last_;
    if (comes_in) waits.push_back(rank_.receive(stage_ - step, tag, pipeline_.bytes, {}));
    last_ = {rank_.compute(fmt::format("{}_{}", forward ? "forward" : "backward", batch),
                           forward ? pipeline_.forward : pipeline_.backward, waits)};
    if (goes_out) rank_.send(stage_ + step, tag, pipeline_.bytes, last_);
  }

 private:
  const Pipeline& pipeline_;
  std::int32_t stage_;
  SyntheticRank& rank_;
  WaitList last_;
};

}  // namespace

std::vector<ChakraTrace> make_gpipe(const ParameterValues& values, bool) {
  const Pipeline pipeline = pipeline_of(values);
  std::vector<SyntheticRank> ranks = synthetic_ranks(pipeline.stages);
  for (std::int32_t stage = 0; stage < pipeline.stages; ++stage) {
    Stage own(pipeline, stage, ranks[static_cast<std::size_t>(stage)]);
    for (std::int64_t batch = 0; batch < pipeline.batches; ++batch) own.pass(true, batch);
    for (std::int64_t batch = pipeline.batches; batch-- > 0;) own.pass(false, batch);
  }
  return taken(ranks);
}

std::vector<ChakraTrace> make_1f1b(const ParameterValues& values, bool) {
  const Pipeline pipeline = pipeline_of(values);
  std::vector<SyntheticRank> ranks = synthetic_ranks(pipeline.stages);
  for (std::int32_t stage = 0; stage < pipeline.stages; ++stage) {
    Stage own(pipeline, stage, ranks[static_cast<std::size_t>(stage)]);
    // As many forward passes ahead as stages follow.
    const std::int64_t warm_up = std::min<std::int64_t>(pipeline.batches, pipeline.stages - 1 - stage);
    for (std::int64_t batch = 0; batch < warm_up; ++batch) own.pass(true, batch);
    for (std::int64_t batch = warm_up; batch < pipeline.batches; ++batch) {
      own.pass(true, batch);
      own.pass(false, batch - warm_up);
    }
    for (std::int64_t batch = pipeline.batches - warm_up; batch < pipeline.batches; ++batch)
      own.pass(false, batch);
  }
  return taken(ranks);
}

// Events are drawn one after the other and wait only for earlier ones of their rank, so nothing waits in a
// circle; the all-reduces of a rank wait for one another, so all ranks have them in one order.
std::vector<ChakraTrace> make_random(const ParameterValues& values, bool) {
  const std::int32_t npus = npus_of(values);
  const std::int64_t events = values.count("nodes");
  const double messages = values.fraction("messages"), collectives = values.fraction("collectives");
  if (messages + collectives > 1)
    throw Error(values.where("collectives"), "messages and collectives are more than all events");
  // A message is two nodes, an all-reduce one per rank.
  check_nodes(events, collectives > 0 ? npus : 2, values, "nodes");
  const std::uint64_t micros = micros_of(values, "runtime");
  const std::int64_t bytes = values.bytes("bytes").value;
  std::mt19937_64 random(static_cast<std::uint64_t>(values.count("seed")));
  // The remainder's bias is nothing against 2^64; a standard distribution would differ between libraries.
  const auto below = [&](std::uint64_t limit) { return random() % limit; };
  std::vector<SyntheticRank> ranks = synthetic_ranks(npus);
  const auto waits = [&](const SyntheticRank& rank) {
    WaitList list;
    for (std::uint64_t i = rank.size() == 0 ? 0 : below(4); i > 0; --i) list.push_back(below(rank.size()));
    sort_unique(list);
    return list;
  };
  WaitList last_collective(static_cast<std::size_t>(npus), UINT64_MAX);
  for (std::int64_t event = 0; event < events; ++event) {
    // 53 random bits make a double in [0, 1).
    const double kind = static_cast<double>(random() >> 11) * 0x1p-53;
    if (kind < collectives) {
      for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        WaitList before = waits(ranks[rank]);
        const std::uint64_t last = last_collective[rank];
        if (last != UINT64_MAX && std::find(before.begin(), before.end(), last) == before.end())
          before.push_back(last);
        last_collective[rank] =
            ranks[rank].collective(fmt::format("{}", event), ChakraCollective::all_reduce, bytes, before);
      }
      continue;
    }
    const auto rank = static_cast<std::int32_t>(below(static_cast<std::uint64_t>(npus)));
    SyntheticRank& own = ranks[static_cast<std::size_t>(rank)];
    if (kind < collectives + messages) {
      const auto peer = static_cast<std::int32_t>(
          (static_cast<std::uint64_t>(rank) + 1 + below(static_cast<std::uint64_t>(npus) - 1)) %
          static_cast<std::uint64_t>(npus));
      SyntheticRank& other = ranks[static_cast<std::size_t>(peer)];
      own.send(peer, event, bytes, waits(own));
      other.receive(rank, event, bytes, waits(other));
    } else {
      // Up to twice the runtime, at least a microsecond.
      own.compute(fmt::format("{}", event), 1 + below(2 * micros + 1), waits(own));
    }
  }
  return taken(ranks);
}

}  // namespace armilla
