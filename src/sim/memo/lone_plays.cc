#include "sim/memo/lone_plays.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "sim/engine/native_run.h"

namespace armilla {
namespace {

// Messages and moments that all plays of a run remember; beyond that they would take more memory than they
// save time.
constexpr std::size_t kMostRemembered = std::size_t{1} << 21;

// At which a run has rounds.
class Moments final : public RoundObserver {
 public:
  explicit Moments(const NativeRun& run) : run_(run) {}
  void round_over() override {
    if (all.empty() || all.back() != run_.now()) all.push_back(run_.now());
  }
  std::vector<Time> all;

 private:
  const NativeRun& run_;
};

// Whether what was played can stand for any play: all members start at once, and are through together in the
// first round of a later moment.
bool is_uniform(const NativeRun& run, const std::vector<RankClass>& members) {
  const Time end = members.front().finish;
  return run.ran_smoothly() && end > Time(0) && std::ranges::all_of(members, [&](const RankClass& member) {
           return member.finish == end && std::ranges::any_of(member.chunks, [](const ChunkInterval& chunk) {
                    return chunk.start == Time(0);
                  });
         });
}

}  // namespace

TimeSet::TimeSet(std::vector<Time> ascending) : times_(std::move(ascending)) {
  constexpr std::size_t kBitsEach = 16;
  const std::size_t bits = std::bit_ceil(std::max<std::size_t>(64, kBitsEach * times_.size()));
  mask_ = bits - 1;
  bits_.assign(bits / 64, 0);
  for (const Time time : times_) {
    const std::uint64_t bit = hash(time) & mask_;
    bits_[bit / 64] |= std::uint64_t{1} << bit % 64;
  }
}

LonePlays::LonePlays(const NativePlay& run, KnownPlays& known, MessageWays& ways)
    : graph_(run.graph),
      study_(run.study),
      classes_(run.classes),
      planner_(run.planner),
      ways_(ways),
      shared_dimensions_(run.shared_dimensions),
      known_(known),
      run_(known_.runs++) {
  const Device& device = study_.machine.device;
  for (const OtherDevices& other : study_.machine.others) {
    // A reduction takes as long as its rank's memory does, and which ranks are members is no part of the key.
    if (study_.collectives.charge_reductions && other.device.memory_bandwidth != device.memory_bandwidth)
      possible_ = false;
  }
}

const LonePlay* LonePlays::find(std::uint32_t call_id, std::uint32_t group_class, const GroupMembers& group,
                                bool passes_others) {
  if (!possible_) return nullptr;
  const CollectiveCall& call = graph_.collectives[call_id];
  const KnownPlays::Key key{CallKey(call), group.layouts.front()->shape, representation(group),
                            links_used(call, group_class, group, passes_others), shared_dimensions_};
  const auto [found, fresh] = known_.plays.try_emplace(key);
  KnownPlays::Known& known = found->second;
  // Played when it comes up for the second time: what happens once is cheaper to play where it is.
  if (fresh) return nullptr;
  if (!known.is_played) {
    known.is_played = true;
    known.play = play(call_id, group_class, group);
  }
  return known.play ? &*known.play : nullptr;
}

// Which member represents each rank of every member's own group, and where in it the member stands. Without
// folding all own the same group and represent themselves.
std::uint32_t LonePlays::representation(const GroupMembers& group) {
  const auto [of_group, fresh] = representation_of_.try_emplace(&group);
  if (!fresh) return of_group->second;
  std::map<const GroupLayout*, std::int32_t> numbers;
  std::vector<std::int32_t> description;
  for (std::size_t m = 0; m < group.layouts.size(); ++m) {
    const GroupLayout& layout = *group.layouts[m];
    const auto [number, is_new] = numbers.try_emplace(&layout, static_cast<std::int32_t>(numbers.size()));
    if (is_new) {
      for (const std::int32_t rank : layout.ranks)
        description.push_back(
            group.family->member_of[static_cast<std::size_t>(classes_.simulated_rank(rank))]);
    }
    description.push_back(number->second);
    description.push_back(layout.flat_position(group.real[m]));
  }
  const auto next = static_cast<std::uint32_t>(known_.representations.size());
  return of_group->second = known_.representations.try_emplace(std::move(description), next).first->second;
}

// Folded links and those of ranks passed are others' as well, so that groups then are told apart, in each run
// anew.
std::uint32_t LonePlays::links_used(const CollectiveCall& call, std::uint32_t group_class,
                                    const GroupMembers& group, bool passes_others) {
  const bool are_others = passes_others || !classes_.links.stands_for.empty();
  std::vector<std::uint64_t> description = are_others
                                               ? std::vector<std::uint64_t>{run_, call.family, group_class}
                                               : ways_.description(call, group);
  const auto next = static_cast<std::uint32_t>(known_.kinds_of_links.size() + 1);
  const std::size_t length = description.size();
  const auto [kind, fresh] = known_.kinds_of_links.try_emplace(std::move(description), next);
  if (fresh && (known_.links_remembered += length) > kMostRemembered) possible_ = false;
  return kind->second;
}

std::optional<LonePlay> LonePlays::play(std::uint32_t call_id, std::uint32_t group_class,
                                        const GroupMembers& group) {
  const CollectiveCall& call = graph_.collectives[call_id];
  one_node_.ranks = graph_.ranks;
  one_node_.program_of.resize(static_cast<std::size_t>(graph_.ranks));
  one_node_.collectives = {call};
  // At its own place, by which the planner knows its groups.
  one_node_.families.resize(graph_.families.size());
  if (one_node_.families[call.family].groups.empty())
    one_node_.families[call.family] = graph_.families[call.family];
  if (one_node_.programs.empty())
    one_node_.programs.emplace_back().add(NodeKind::collective, Phase::other, one_node_.names.add(""), -1, 0,
                                          {});
  SimulationOptions options;
  options.every_message = true;
  options.record_ranks = group.real;
  const RankClasses alone = only_group(classes_, call.family, group_class);
  const std::vector<Issued> issued = issued_by(one_node_);
  const Peers no_peers(one_node_);
  NativeRun run({one_node_, issued, study_, no_peers, {}, alone, planner_, options, shared_dimensions_});
  Moments moments(run);
  run.tell_of_rounds(moments);
  run.play();
  std::vector<RankClass> members = std::move(run.recorded().classes);
  // Remembered, too, as none: it is not tried again.
  if (!is_uniform(run, members)) return std::nullopt;
  LonePlay played;
  // What comes on top of the schedule is added where the call is made (RankWalker::collective_finished).
  played.duration = members.front().finish - planner_.overhead(call, group.layouts.front()->shape);
  // Its end is an event of the run.
  std::erase_if(moments.all, [&](Time moment) { return moment >= played.duration; });
  played.moments = TimeSet(std::move(moments.all));
  for (RankClass& member : members) played.members.push_back({std::move(member.chunks), {}});
  if (!remember_sent(call, group, played)) return std::nullopt;
  return played;
}

// False where that would be too much to remember.
bool LonePlays::remember_sent(const CollectiveCall& call, const GroupMembers& group, LonePlay& play) {
  using Kinds = std::map<std::tuple<std::int32_t, std::uint32_t, std::int64_t, Leg, float>, std::int64_t>;
  std::vector<Kinds> sent(group.real.size());
  for_each_message(planner_, call, group, [&](std::size_t m, const Message& message, std::int64_t times) {
    const std::int32_t to = group.layouts[m]->flat_position(message.destination);
    sent[m][{to, message.dimension, message.bytes.value, message.leg, message.share}] += times;
  });
  known_.remembered += play.moments.size();
  for (std::size_t m = 0; m < sent.size(); ++m) {
    known_.remembered += sent[m].size();
    if (known_.remembered > kMostRemembered) return false;
    for (const auto& [message, times] : sent[m])
      play.members[m].sent.push_back({std::get<0>(message), std::get<1>(message), Bytes(std::get<2>(message)),
                                      times, std::get<3>(message), std::get<4>(message)});
  }
  return true;
}

}  // namespace armilla
