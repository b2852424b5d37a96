// Weighted max-min fair shares of links, kept up to date while flows come and go.
//
// Rates are max-min fair (Bertsekas and Gallager, Data Networks, 6.5.2): no rate can grow without another
// that is not larger, by weight, getting smaller. They are unique, and found by filling up: the link with the
// least capacity left per weight of its flows fixes their rates, then the next one.
//
// When flows come or go, what follows is worked out where it follows: a link that changed changes the flows
// whose rates it fixes, and these change the other links they cross (the bottleneck structure of Ros-Giralt
// et al., SIGMETRICS 2020). Other flows of a link keep their rates as long as it has more to give than they
// take, which is looked at afterwards: where it has not, they are worked out, too; where that goes on for
// long, all that is connected with them. Rates of flows that weigh alike are those of
// working out everything, to the last bit.
//
// Cost of one solve: the links of the flows that are worked out, not the other flows of those links. These
// are looked at only where a link that is full gives its flows less than before, or hardly more.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "network/message_links.h"

namespace armilla {

class MaxMin {
 public:
  // A flow takes `share` of its rate on the link: 1 of its way, less for acknowledgements on the way back;
  // and so do all its copies.
  using Use = LinkShare;

  explicit MaxMin(std::span<const double> capacities);
  // Nor links: these are added, none with more capacity than `largest`.
  explicit MaxMin(double largest);
  std::uint32_t add_link(double capacity);

  // One more flow, which is not there yet: its number, that of a closed one or a new one. It uses a link
  // twice only with different shares; weights are above 0.
  std::uint32_t open(std::span<const Use> uses, double weight = 1);
  // Other links for a flow that is not there.
  void change(std::uint32_t flow, std::span<const Use> uses);
  // Forgets a flow that is not there (any more).
  void close(std::uint32_t flow);

  void add(std::uint32_t flow);
  void remove(std::uint32_t flow);
  // One that is not there takes the place of another, and its rate, where it would use the same links alike
  // and that one's rate is known: nobody's rate changes. Else nothing happens, and the answer is false.
  // O(links of the flow).
  bool replace(std::uint32_t from, std::uint32_t to);

  // Brings rates up to date and returns the flows that are there and whose rate may have changed, each once.
  std::span<const std::uint32_t> solve();

  double rate(std::uint32_t flow) const { return flows_[flow].rate; }
  std::span<const Use> uses(std::uint32_t flow) const {
    return std::span(uses_).subspan(flows_[flow].begin, flows_[flow].end - flows_[flow].begin);
  }
  std::size_t flows_on(std::uint32_t link) const { return links_[link].members.size(); }
  double capacity(std::uint32_t link) const { return links_[link].capacity; }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  struct Member {
    std::uint32_t flow = 0, use = 0;
  };
  struct Link {
    double capacity = 0;
    double taken = 0;              // by all members that have a rate
    double weights = 0;            // of all members
    double level = 0, filled = 0;  // at which it was full in this round, if it was; what weight it fixed then
    double top = 0;                // no member's level is higher
    double kept = 0;               // the highest of those not worked out, where `top` does not decide
    double weight = 0;             // of its open members: those without a rate yet
    std::uint32_t open = 0;        // how many
    std::uint32_t part = 0;        // members that are worked out in this round
    std::uint32_t first = kNone;   // of these, among opened_
    std::uint32_t own = 0;         // the first so many members are those whose rates it fixes
    std::uint32_t uneven = 0;      // members with a share or a weight that is not 1
    std::uint32_t seen = 0;
    bool changed = false;
    std::vector<Member> members;
  };
  struct Flow {
    double rate = 0, weight = 1;
    double level = 0;                  // its rate by its weight
    std::uint32_t bottleneck = kNone;  // the link that fixed it
    std::uint32_t begin = 0, end = 0;
    std::uint32_t seen = 0;
    bool there = false, fixed = false;
  };
  struct Opened {
    std::uint32_t flow = 0;
    std::uint32_t next = 0;  // of the same link
  };
  struct Level {
    double level = 0;
    std::uint32_t link = 0;
  };

  void set_quantum(double largest);
  void set_capacity(Link& link, double capacity) const;
  void touch(std::uint32_t flow);
  void take_in(std::uint32_t flow);
  void take_in_others(const Link& link);
  void gather();
  void follow(std::size_t first, bool all);
  void swap_members(Link& link, std::uint32_t a, std::uint32_t b);
  void set_bottleneck(Flow& flow, std::uint32_t link);
  void open_part();
  void share_out();
  bool keeps_others(Link& link) const;
  static bool is_uneven(const Use& use, const Flow& flow) { return use.share != 1 || flow.weight != 1; }
  static double weight_of(const Use& use, const Flow& flow) { return use.copies * use.share * flow.weight; }
  double rounded_down(double rate) const;
  double level_of(const Link& link) const;
  double taken(const Use& use, double rate) const;
  void fill(std::uint32_t index, double level);
  static bool higher(const Level& a, const Level& b) {
    return a.level != b.level ? a.level > b.level : a.link > b.link;
  }

  std::vector<Link> links_;
  std::vector<Flow> flows_;
  std::vector<Use> uses_;
  std::vector<std::uint32_t> place_;                // per use, in its link's members
  std::vector<std::vector<std::uint32_t>> closed_;  // flows, by how many links they use
  std::vector<std::uint32_t> changed_;              // links
  std::vector<std::uint32_t> added_;                // flows
  std::vector<std::uint32_t> part_links_, part_flows_;
  std::vector<Opened> opened_;
  std::vector<Level> levels_;
  std::vector<std::uint32_t> full_;       // links, at one level
  double quantum_ = 1, per_quantum_ = 1;  // powers of two
  std::uint32_t round_ = 0;
  std::size_t there_ = 0;  // flows
};

}  // namespace armilla
