#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/checked.h"
#include "network/flow.h"
#include "network/flow/fluid_ways.h"
#include "network/flow/fluids.h"
#include "network/flow/max_min.h"
#include "network/links/senders_on_links.h"
#include "network/routing/routes.h"
#include "network/routing/switch_trees.h"
#include "network/routing/ways.h"

namespace armilla {
namespace {

std::vector<double> capacities_of(const Ways& ways, double factor) {
  std::vector<double> capacities;
  for (const DirectedLink& link : ways.links())
    capacities.push_back(link.figures.bandwidth.value * factor);  // bytes per second
  return capacities;
}

// Messages of one sender from one device to another keep their order; those of several share links.
class FluidNetwork final : public Network, public RoundObserver, public Fluids::Client {
 public:
  FluidNetwork(const NetworkSetup& setup, const ParameterValues& values)
      : queue_(setup.queue),
        labels_(setup.labels),
        ways_(setup.machine, setup.slow_links, values.choice("routing"), setup.damage),
        trees_(ways_.link_graph()),
        adaptive_(is_adaptive(ways_.routing().choice)),
        fluids_(queue_, MaxMin(capacities_of(ways_, bandwidth_factor_of(values))), *this),
        carried_(ways_.links().size()),
        classes_(setup.link_classes) {
    queue_.add_observer(*this);
    if (setup.shared_dimensions != 0) senders_.emplace(carried_.size());
    if (!folds()) return;
    rank_sizes_.resize(setup.stands_for.size());
    for (const std::int32_t rank : setup.stands_for) ++rank_sizes_[static_cast<std::size_t>(rank)];
  }
  FluidNetwork(const FluidNetwork&) = delete;
  FluidNetwork& operator=(const FluidNetwork&) = delete;

  std::uint32_t switch_tree(std::span<const std::int32_t> members, CollectiveKind kind) override {
    return trees_.find(members, kind);
  }

  Time send(const Message& message) override {
    ++sent_;
    std::vector<MaxMin::Use> uses;
    Time latency;
    if (message.tree != kNoTree) {
      SwitchTrees::Branch branch =
          trees_.branch(message.tree, message.leg, message.source, message.destination);
      latency = branch.latency;
      uses = std::move(branch.links);
    } else {
      // One that may choose does so when it begins to move, and waits for the latencies of the first way.
      uses = choose_ways(ways_.ways(message), adaptive_ ? WayChoice::first : ways_.routing().choice,
                         fluids_.rates());
      latency = latency_of(uses);
    }
    if (folds()) uses = folded(uses, message.source);
    if (!adapts(message)) add_up(uses, message.bytes, 1);
    const std::uint32_t number =
        fluids_.open(uses, message.bytes, connection_of(message), later(queue_.now(), latency));
    if (number >= under_way_.size()) under_way_.resize(number + 1);
    under_way_[number] = message;
    // Nobody can say when: others that come may slow it down.
    return kEndOfTime;
  }

  // Each sees the loads of those before it: an order of events is no order of what they are.
  void sort(std::span<std::uint32_t> numbers) const override {
    if (!adaptive_) return;
    std::ranges::sort(numbers, {}, [&](std::uint32_t number) {
      const Message& message = under_way_[number];
      return std::tuple(message.source, message.destination, message.sender);
    });
  }

  bool chooses() const override { return adaptive_; }

  void begins(std::uint32_t number) override {
    const Message& message = under_way_[number];
    // It chooses when it begins to move, by the loads of that moment, which it could not know when it was
    // sent.
    if (adapts(message)) {
      MaxMin& rates = fluids_.rates();
      const std::vector<MaxMin::Use> uses = choose_ways(ways_.ways(message), ways_.routing().choice, rates);
      rates.change(number, uses);
      add_up(uses, message.bytes, 1);
    }
    for (const MaxMin::Use& use : uses_of_senders(number))
      senders_->enter(use.link, message.sender, queue_.now(), sums_of(use.link));
  }

  // The receiver may send, and what is under way move in memory.
  void is_through(std::uint32_t number) override {
    ++arrived_;
    const Message& message = under_way_[number];
    for (const MaxMin::Use& use : uses_of_senders(number))
      senders_->leave(use.link, message.sender, queue_.now(), sums_of(use.link));
    const std::uint32_t target = message.target;
    const std::uint64_t argument = message.argument;
    fluids_.close(number);
    queue_.handler(target).handle(argument);
  }

  void round_over() override { fluids_.round_over(); }

  void count(const Message& message, std::int64_t times) override {
    std::vector<MaxMin::Use> uses = choose_ways(ways_.ways(message), ways_.routing().choice, fluids_.rates());
    if (folds()) uses = folded(uses, message.source);
    add_up(uses, message.bytes, times);
  }
  // Rates depend neither on the time nor on the order in which flows came.
  bool add_state(StateDigest& state) const override {
    fluids_.add_state(state, [&](std::uint32_t number) {
      const Message& message = under_way_[number];
      const Digest told = labels_.describe(message.target, message.argument);
      return digest_of(message.source, message.destination, message.sender, message.tree, message.bytes.value,
                       labels_.label(message).parts[2], told.low, told.high);
    });
    if (!adaptive_) return true;
    fluids_.for_each_moving([&](std::uint32_t number) {
      const Message& message = under_way_[number];
      if (!adapts(message)) return;
      for (const MaxMin::Use& use : fluids_.rates().uses(number))
        state.add('u', message.source, message.destination, use.link);
    });
    return true;
  }
  NetworkSums sums() const override {
    NetworkSums sums{carried_, messages_};
    if (senders_) senders_->bring_up(sums.links, queue_.now());
    return sums;
  }
  void repeat(const NetworkSums& from, const NetworkSums& until, std::int64_t times) override {
    messages_ += (until.messages - from.messages) * times;
    for (std::size_t link = 0; link < carried_.size(); ++link) {
      NetworkSums::Carried& sum = carried_[link];
      const NetworkSums::Carried &before = from.links[link], &after = until.links[link];
      sum.busy = later(sum.busy, saturating_multiply(after.busy - before.busy, times));
      sum.bytes = saturating_add(sum.bytes, saturating_multiply(after.bytes - before.bytes, times));
      sum.shared = later(sum.shared, saturating_multiply(after.shared - before.shared, times));
    }
  }

  std::vector<LinkUse> links() const override { return ways_.used(carried_, classes_); }
  std::int64_t messages() const override { return messages_; }
  std::int64_t messages_under_way() const override { return sent_ - arrived_; }
  std::vector<std::string> notes() const override {
    std::string collision = ways_.collision_note();
    return collision.empty() ? std::vector<std::string>{} : std::vector{std::move(collision)};
  }

 private:
  // Over trees, each link of a member is one: chunks go up one after the other, while others come down.
  std::uint32_t connection_of(const Message& message) {
    const bool in_tree = message.tree != kNoTree;
    auto& numbers = in_tree ? tree_connections_ : connection_numbers_;
    const std::uint64_t ends =
        in_tree ? trees_.link_of_member(message.tree, message.leg, message.source, message.destination)
                : ends_of(message);
    const auto [found, fresh] = numbers.try_emplace({ends, message.sender}, Fluids::kNoConnection);
    if (fresh) found->second = fluids_.add_connection();
    return found->second;
  }

  // What goes along a tree has its way.
  bool adapts(const Message& message) const { return adaptive_ && message.tree == kNoTree; }

  // What is looked at of a message that begins or ends.
  std::span<const MaxMin::Use> uses_of_senders(std::uint32_t number) const {
    const bool is_shared = senders_ && under_way_[number].bytes > Bytes(0);
    return is_shared ? fluids_.rates().uses(number) : std::span<const MaxMin::Use>();
  }
  SendersOnLinks::Sums sums_of(std::uint32_t link) { return {carried_[link].shared, carried_[link].senders}; }

  // Of the way, or of all ways on the average, as each carries its share.
  Time latency_of(std::span<const MaxMin::Use> uses) const {
    Time sum;
    WideProduct shared = 0;  // in picoseconds times kShareUnit, exactly: in whatever order links come
    for (const MaxMin::Use& use : uses) {
      const Time latency = ways_.links()[use.link].figures.latency;
      if (use.share == 1) {
        sum = later(sum, latency);
      } else {
        // Shares are whole multiples of kShareUnit (2^-30), so this division is exact.
        shared += static_cast<WideProduct>(use.share / kShareUnit) * latency.value;
      }
    }
    constexpr WideProduct kUnits = 1 << 30;
    const WideProduct rounded = (shared + kUnits / 2) / kUnits;
    return later(sum, Time(static_cast<std::int64_t>(std::min<WideProduct>(rounded, kEndOfTime.value))));
  }

  bool folds() const { return !classes_.stands_for.empty(); }

  // By links that stand for theirs. Every rank of the sender's class sends such a message, and every link of
  // a class carries as many of them.
  std::vector<MaxMin::Use> folded(std::span<const MaxMin::Use> uses, std::int32_t source) const {
    std::vector<MaxMin::Use> together;
    for (const MaxMin::Use& use : uses) {
      const std::uint32_t link = classes_.stands_for[use.link];
      const auto known = std::ranges::find_if(
          together, [&](const MaxMin::Use& other) { return other.link == link && other.share == use.share; });
      if (known == together.end()) {
        together.push_back({.link = link, .share = use.share});
      } else {
        ++known->copies;
      }
    }
    for (MaxMin::Use& use : together) {
      const std::int64_t all = use.copies * rank_sizes_[static_cast<std::size_t>(source)];
      use.copies = static_cast<std::uint32_t>(all / classes_.sizes[use.link]);
    }
    return together;
  }

  void add_up(std::span<const MaxMin::Use> uses, Bytes whole, std::int64_t times) {
    messages_ += times;
    for (const MaxMin::Use& use : uses) {
      NetworkSums::Carried& sum = carried_[use.link];
      const Bandwidth bandwidth = ways_.links()[use.link].figures.bandwidth;
      const Bytes bytes =
          use.share == 1 ? whole : Bytes(std::llround(static_cast<double>(whole.value) * use.share));
      const std::int64_t all = times * use.copies;
      sum.busy = later(sum.busy, saturating_multiply(time_to_move(bytes, bandwidth), all));
      sum.bytes = saturating_add(sum.bytes, saturating_multiply(bytes, all));
    }
  }

  EventQueue& queue_;
  const MessageLabels& labels_;
  Ways ways_;
  SwitchTrees trees_;
  bool adaptive_;
  Fluids fluids_;
  std::vector<Message> under_way_;  // by their numbers as fluids
  std::unordered_map<ConnectionKey, std::uint32_t, ConnectionHash> connection_numbers_;
  std::unordered_map<ConnectionKey, std::uint32_t, ConnectionHash> tree_connections_;
  std::vector<NetworkSums::Carried> carried_;
  std::optional<SendersOnLinks> senders_;  // where there are several
  const LinkClasses& classes_;
  std::vector<std::int64_t> rank_sizes_;  // of classes, per rank that stands for others
  std::int64_t messages_ = 0, sent_ = 0, arrived_ = 0;
};

class FlowLinks final : public MessageLinks {
 public:
  FlowLinks(const Machine& machine, const WhatIf& what_if, std::string_view routing)
      : ways_(machine, what_if.links, routing, what_if.damage) {}
  bool are_fixed() const override { return !is_adaptive(ways_.routing().choice); }
  std::uint32_t links() const override { return static_cast<std::uint32_t>(ways_.links().size()); }
  std::tuple<std::uint32_t, double, std::int64_t> kind(std::uint32_t link) const override {
    const DirectedLink& it = ways_.links()[link];
    return {it.dimension, it.figures.bandwidth.value, it.figures.latency.value};
  }
  bool any_by_chance() const override { return ways_.any_by_chance(); }
  std::vector<LinkShare> used(std::int32_t source, std::int32_t destination) override {
    if (std::exchange(destination_, destination) != destination) ways_.forget_some();
    return shares_of(ways_.ways({.source = source, .destination = destination, .bytes = {}}));
  }

 private:
  Ways ways_;
  std::int32_t destination_ = -1;  // that was asked for last
};

}  // namespace

std::unique_ptr<MessageLinks> flow_links(const Machine& machine, const WhatIf& what_if,
                                         const ParameterValues& values) {
  return std::make_unique<FlowLinks>(machine, what_if, values.choice("routing"));
}

std::unique_ptr<Network> make_flow_network(const NetworkSetup& setup, const ParameterValues& values) {
  return std::make_unique<FluidNetwork>(setup, values);
}

}  // namespace armilla
