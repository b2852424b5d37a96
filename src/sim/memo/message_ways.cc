#include "sim/memo/message_ways.h"

#include <bit>
#include <map>
#include <set>
#include <utility>

#include "network/message_links.h"
#include "network/topology.h"
#include "sim/engine/native_run.h"
#include "sim/plan/algorithm_choices.h"
#include "sim/plan/rank_classes.h"

namespace armilla {
namespace {

class WaysOverDimensions final : public MessageWays {
 public:
  explicit WaysOverDimensions(const NativePlay& play) : play_(play), topology_(play.study.machine) {
    for (std::uint32_t d = 0; d < topology_.dimensions(); ++d) {
      first_.push_back(links_);
      links_ += static_cast<std::size_t>(topology_.links_per_rank(d)) * play.classes.real.size();
    }
  }

  std::size_t links() const override { return links_; }

  void add(const Message& message, Links& links) override {
    topology_.for_each_link(message, [&](const LinkId& id, const Position& /*beyond*/) {
      // By the rank that stands for the owner: links of ranks that are folded are one link.
      const auto owner = static_cast<std::size_t>(play_.classes.simulated_rank(id.owner));
      links.push_back(static_cast<std::uint32_t>(
          first_[id.dimension] + owner * static_cast<std::size_t>(topology_.links_per_rank(id.dimension)) +
          static_cast<std::size_t>(id.number)));
    });
  }

  // No link of a lone group's dimensions has a speed of its own (sim/memo/lone_groups.h), so that the group's
  // shape tells all.
  std::vector<std::uint64_t> description(const CollectiveCall& /*call*/,
                                         const GroupMembers& /*group*/) override {
    return {};
  }

  bool tells_who_meets() const override { return !play_.options.every_message && may_fold(play_.study); }

 private:
  NativePlay play_;
  Topology topology_;
  std::vector<std::size_t> first_;  // link of a dimension; those of a simulated rank are neighbours
  std::size_t links_ = 0;
};

class WaysOverGraph final : public MessageWays {
 public:
  WaysOverGraph(const NativePlay& play, std::unique_ptr<MessageLinks> links)
      : play_(play), links_(std::move(links)) {}

  std::size_t links() const override { return links_->links(); }

  void add(const Message& message, Links& links) override {
    const std::vector<std::uint32_t>& stands_for = play_.classes.links.stands_for;
    for (const LinkShare& use : links_->used(message.source, message.destination))
      links.push_back(stands_for.empty() ? use.link : stands_for[use.link]);
  }

  std::vector<std::uint64_t> description(const CollectiveCall& call, const GroupMembers& group) override {
    std::vector<std::uint64_t> description;
    std::map<std::uint32_t, std::uint64_t> numbers;
    std::set<std::pair<std::int32_t, std::int32_t>> known;
    for_each_message(play_.planner, call, group, [&](std::size_t, const Message& message, std::int64_t) {
      // All messages of a pair take the same way.
      if (!known.emplace(message.source, message.destination).second) return;
      for (const LinkShare& use : links_->used(message.source, message.destination)) {
        // Links by the order in which they are first met: groups whose links differ in nothing but their
        // names get one description, and share what was played.
        const auto [link, fresh] = numbers.try_emplace(use.link, numbers.size());
        description.push_back(link->second);
        description.push_back(std::bit_cast<std::uint64_t>(use.share));
        if (!fresh) continue;
        const auto [dimension, bandwidth, latency] = links_->kind(use.link);
        description.push_back(std::bit_cast<std::uint64_t>(bandwidth));
        description.push_back(static_cast<std::uint64_t>(latency));
      }
      description.push_back(UINT64_MAX);
    });
    return description;
  }

  bool tells_who_meets() const override { return true; }

 private:
  NativePlay play_;
  std::unique_ptr<MessageLinks> links_;
};

}  // namespace

std::unique_ptr<MessageWays> message_ways(const NativePlay& play) {
  const Study& study = play.study;
  // Nobody is alone then; and what goes over trees of switches uses other links than messages from end to
  // end.
  const bool all_are_played = play.options.every_message || study.what_if.jitter.deviation > 0;
  if (!all_are_played && !play.planner.choices().climb()) {
    auto links = message_links(study.network, study.machine, study.what_if);
    if (links != nullptr && links->are_fixed())
      return std::make_unique<WaysOverGraph>(play, std::move(links));
  }
  return std::make_unique<WaysOverDimensions>(play);
}

}  // namespace armilla
