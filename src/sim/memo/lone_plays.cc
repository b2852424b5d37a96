#include "sim/memo/lone_plays.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace armilla {
namespace {

// Messages that all plays of a run remember; beyond that they would take more memory than they save
// time.
constexpr std::size_t kMostRemembered = std::size_t{1} << 21;

}  // namespace

// Passes messages on.
class LonePlays::Tap final : public Network {
 public:
  Tap(LonePlays& plays, std::unique_ptr<Network> network) : plays_(plays), network_(std::move(network)) {}

  Time send(const Message& message) override {
    plays_.remember(message);
    return network_->send(message);
  }
  void count(const Message& message, std::int64_t times) override { network_->count(message, times); }
  std::vector<LinkUse> links() const override { return network_->links(); }
  std::int64_t messages() const override { return network_->messages(); }

 private:
  LonePlays& plays_;
  std::unique_ptr<Network> network_;
};

LonePlays::LonePlays(const Graph& graph, const Study& study, const RankClasses& classes,
                     CollectivePlanner& planner)
    : graph_(graph), study_(study), run_classes_(classes), planner_(planner) {
  const Device& device = study.machine.device;
  for (const OtherDevices& other : study.machine.others) {
    if (study.collectives.charge_reductions && other.device.memory_bandwidth != device.memory_bandwidth)
      possible_ = false;
  }
}

const LonePlay* LonePlays::find(std::uint32_t call_id, const GroupMembers& group) {
  if (!possible_) return nullptr;
  const CollectiveCall& call = graph_.collectives[call_id];
  const Key key{call.kind,
                call.bytes.value,
                call.root,
                call.routing,
                group.layouts.front()->shape,
                representation(group)};
  const auto [found, fresh] = known_.try_emplace(key);
  Known& known = found->second;
  if (fresh) return nullptr;
  if (!known.is_played) {
    known.is_played = true;
    known.play = play(call_id, group);
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
            group.family->member_of[static_cast<std::size_t>(run_classes_.simulated_rank(rank))]);
    }
    description.push_back(number->second);
    description.push_back(layout.flat_position(group.real[m]));
  }
  const auto next = static_cast<std::uint32_t>(representations_.size());
  return of_group->second = representations_.try_emplace(std::move(description), next).first->second;
}

void LonePlays::set_classes(std::uint32_t family_id, const GroupMembers& group) {
  classes_.real = group.real;
  classes_.sizes.assign(group.real.size(), 1);
  classes_.simulated_of.resize(static_cast<std::size_t>(graph_.ranks), -1);
  for (const GroupLayout* const layout : std::set(group.layouts.begin(), group.layouts.end())) {
    for (const std::int32_t rank : layout->ranks) {
      classes_.simulated_of[static_cast<std::size_t>(rank)] =
          group.family->member_of[static_cast<std::size_t>(run_classes_.simulated_rank(rank))];
    }
  }
  classes_.families.assign(graph_.families.size(), {});
  FoldedFamily& family = classes_.families[family_id];
  family.groups.resize(1);
  family.groups.front().members.resize(group.real.size());
  std::iota(family.groups.front().members.begin(), family.groups.front().members.end(), 0);
  family.group_of.assign(group.real.size(), 0);
  family.member_of = family.groups.front().members;
}

std::optional<LonePlay> LonePlays::play(std::uint32_t call_id, const GroupMembers& group) {
  if (!network_) {
    network_ = std::make_unique<Tap>(
        *this, make_network(study_.network, {study_.machine, queue_, *this, run_classes_.stands_for}));
    queue_.add_observer(*this);  // after the network, which also looks for ends of rounds
  }
  set_classes(graph_.collectives[call_id].family, group);
  const std::size_t members = group.real.size();
  Order order(OrderRule::rounds, classes_.simulated(), queue_);
  const RunContext context{graph_, classes_, queue_, order, *network_};
  Messenger messenger(context, false);
  CustomRunner custom(context, messenger);
  GroupTable groups(graph_, classes_, planner_);
  CollectiveRunner runner(context,
                          {study_.collectives, static_cast<std::uint32_t>(study_.machine.dimensions.size()),
                           std::vector(members, study_.machine.device.memory_bandwidth)},
                          planner_, groups, custom, *this);
  group_ = &group;
  runner_ = &runner;
  order_ = &order;
  begin_ = queue_.now();
  started_ = 0;
  distinct_ = 0;
  ends_.assign(members, std::nullopt);
  members_.assign(members, {});
  sent_.assign(members, {});
  for (std::int32_t m = 0; m < classes_.simulated(); ++m) runner.issue(m, 0, call_id, 0);
  possible_ = queue_.run();  // or time itself is at an end
  const bool is_fit = is_uniform();
  const auto sent = std::move(sent_);
  if (!is_fit) return std::nullopt;
  LonePlay played;
  played.duration = ends_.front()->time - begin_;
  for (std::size_t m = 0; m < members; ++m) {
    for (const auto& [message, times] : sent[m])
      members_[m].sent.push_back(
          {std::get<0>(message), std::get<1>(message), Bytes(std::get<2>(message)), times});
  }
  played.members = std::move(members_);
  remembered_ += distinct_;
  return played;
}

bool LonePlays::is_uniform() const {
  return remembered_ + distinct_ <= kMostRemembered && started_ == static_cast<std::int32_t>(ends_.size()) &&
         ends_.front() && ends_.front()->round == 1 && ends_.front()->time > begin_ &&
         std::all_of(ends_.begin(), ends_.end(), [&](const auto& end) { return end == ends_.front(); });
}

void LonePlays::remember(const Message& message) {
  if (remembered_ + distinct_ > kMostRemembered) return;
  const auto sender = static_cast<std::size_t>(classes_.simulated_rank(message.source));
  const std::int32_t to = group_->layouts[sender]->flat_position(message.destination);
  const auto [times, fresh] = sent_[sender].try_emplace({to, message.dimension, message.bytes.value});
  ++times->second;
  distinct_ += fresh ? 1 : 0;
}

void LonePlays::collective_started(std::int32_t, std::uint32_t) {
  if (queue_.now() == begin_) ++started_;
}

void LonePlays::collective_finished(std::int32_t rank, std::uint32_t) {
  ends_[static_cast<std::size_t>(rank)] = End{queue_.now(), round_};
}

void LonePlays::chunk_finished(std::int32_t rank, std::uint32_t, const ChunkPhase& phase) {
  ChunkPhase relative = phase;
  relative.ready = phase.ready - begin_;
  relative.start = phase.start - begin_;
  relative.end = phase.end - begin_;
  members_[static_cast<std::size_t>(rank)].phases.push_back(relative);
}

void LonePlays::round_over() {
  if (round_time_ != queue_.now()) round_ = 0;
  round_time_ = queue_.now();
  ++round_;
  order_->take_turns([&](std::int32_t rank) { runner_->take_turn(rank); });
}

}  // namespace armilla
