// The allocation of virtual channels and the switch in one step, as Garnet's routers do it: every input puts
// forward one VC, every output takes one input, both in turn; turns move with what is granted.
//
// What an input's VCs wait for is kept in lanes: of those that are on their way and have room, one for each
// output; of heads, one for each output and range of VCs that they may take. So an input is asked by the word
// of 64 VCs, not by the VC, and one of which none may go sleeps until a credit or a flit comes.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "network/flit/flit_network.h"

namespace armilla {

// VCs of inputs are numbered in one row, `vcs` of each port, and those of outputs likewise.
class OneStepSwitch {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  OneStepSwitch(const FlitNetwork& network, std::uint32_t vcs)
      : network_(network),
        vcs_(vcs),
        words_((vcs + 63) / 64),
        free_(static_cast<std::size_t>(network.ports()) * words_),
        lanes_(network.ports()),
        lane_of_(static_cast<std::size_t>(network.ports()) * vcs, kNone),
        waiting_(network.ports()),
        awake_(network.ports()),
        awake_inputs_(network.routers),
        next_vc_(network.ports()),
        next_input_(network.ports()),
        asking_(network.ports()),
        granted_(network.ports(), kNone) {
    for (std::uint32_t output = 0; output < network.ports(); ++output)
      for (std::uint32_t vc = 0; vc < vcs; ++vc) set_free(output, output * vcs + vc, true);
  }

  // Whether some input VC of the router may be able to go.
  bool works(std::uint32_t router) const { return awake_inputs_[router] > 0; }

  // The input VC's first flit goes to the output by a VC that it has and that has room.
  void goes(std::uint32_t input, std::uint32_t number, std::uint32_t output) {
    wait_in(input, number, output, kOnItsWay);
  }
  // It is a head, which takes one of these VCs of the output.
  void wants(std::uint32_t input, std::uint32_t number, std::uint32_t output, VcRange vcs) {
    wait_in(input, number, output, vcs);
  }
  // It waits for neither any more.
  void leaves(std::uint32_t input, std::uint32_t number) {
    Lane& lane = lanes_[input][lane_of_[number]];
    lane_of_[number] = kNone;
    const std::uint32_t which = number - input * vcs_;
    lane.vcs[which / 64] &= ~(std::uint64_t{1} << which % 64);
    --lane.count;
    --waiting_[input];
  }

  // Whether a packet may take the VC of the output.
  void set_free(std::uint32_t output, std::uint32_t number, bool free) {
    const std::uint32_t which = number - output * vcs_;
    std::uint64_t& word = free_[static_cast<std::size_t>(output) * words_ + which / 64];
    const std::uint64_t bit = std::uint64_t{1} << which % 64;
    if (!free) {
      word &= ~bit;
      return;
    }
    word |= bit;
    const std::uint32_t router = network_.router_of_port[output];
    for (std::uint32_t input = network_.first_port[router]; input < network_.first_port[router + 1]; ++input)
      if (waiting_[input] > 0) wake(input);
  }
  // The lowest that is free of these, kNone: there is none.
  std::uint32_t lowest_free(std::uint32_t output, VcRange vcs) const {
    const std::uint64_t* const words = free_.data() + static_cast<std::size_t>(output) * words_;
    for (std::uint32_t word = vcs.first / 64u; word <= vcs.last / 64u; ++word) {
      std::uint64_t bits = words[word];
      if (word == vcs.first / 64u) bits &= ~std::uint64_t{0} << vcs.first % 64;
      if (word == vcs.last / 64u) bits &= ~std::uint64_t{0} >> (63 - vcs.last % 64);
      if (bits != 0) return output * vcs_ + 64 * word + static_cast<std::uint32_t>(std::countr_zero(bits));
    }
    return kNone;
  }

  // `takes_flit(output)`: whether its channel takes one now. `grant(input, VC)` is told who goes, by rising
  // output; it must take the VC out of its lane.
  template <class TakesFlit, class Grant>
  void allocate(std::uint32_t router, const TakesFlit& takes_flit, const Grant& grant) {
    const std::uint32_t base = network_.first_port[router], end = network_.first_port[router + 1];
    for (std::uint32_t input = base; input < end; ++input) {
      if (!awake_[input]) continue;
      const Asked asked = asking_[input] = next_that_may_go(input, takes_flit);
      if (asked.vc == kNone) continue;
      const std::uint32_t turn = next_input_[asked.output];
      const auto distance = [&](std::uint32_t one) {
        return one >= turn ? one - turn : one + end - base - turn;
      };
      std::uint32_t& granted = granted_[asked.output];
      if (granted == kNone || distance(input - base) < distance(granted - base)) granted = input;
    }
    for (std::uint32_t output = base; output < end; ++output) {
      const std::uint32_t input = granted_[output];
      if (input == kNone) continue;
      granted_[output] = kNone;
      next_input_[output] = input + 1 == end ? 0 : input + 1 - base;
      const std::uint32_t number = asking_[input].vc, which = number - input * vcs_;
      next_vc_[input] = which + 1 == vcs_ ? 0 : which + 1;
      grant(input, number);
    }
  }

 private:
  // Of heads that may take any of these: first > last says that they are no heads.
  static constexpr VcRange kOnItsWay = {1, 0};
  struct Asked {
    std::uint32_t vc = kNone, output = kNone;
  };
  struct Lane {
    std::uint32_t output = 0, count = 0;
    VcRange range;
    std::vector<std::uint64_t> vcs;  // of the input, a bit each
  };

  void wake(std::uint32_t input) {
    if (awake_[input]) return;
    awake_[input] = true;
    ++awake_inputs_[network_.router_of_port[input]];
  }
  void wait_in(std::uint32_t input, std::uint32_t number, std::uint32_t output, VcRange range) {
    std::vector<Lane>& lanes = lanes_[input];
    const auto found = std::ranges::find_if(
        lanes, [&](const Lane& lane) { return lane.output == output && lane.range == range; });
    lane_of_[number] = static_cast<std::uint32_t>(found - lanes.begin());
    Lane& lane = found != lanes.end()
                     ? *found
                     : lanes.emplace_back(Lane{output, 0, range, std::vector<std::uint64_t>(words_)});
    const std::uint32_t which = number - input * vcs_;
    lane.vcs[which / 64] |= std::uint64_t{1} << which % 64;
    ++lane.count;
    ++waiting_[input];
    wake(input);
  }

  // The input's next VC in turn whose first flit may go.
  template <class TakesFlit>
  Asked next_that_may_go(std::uint32_t input, const TakesFlit& takes_flit) {
    bool paced = false;
    open_.clear();
    for (const Lane& lane : lanes_[input]) {
      if (lane.count == 0) continue;
      if (lane.range != kOnItsWay && lowest_free(lane.output, lane.range) == kNone) continue;
      if (takes_flit(lane.output))
        open_.push_back(lane.vcs.data());
      else
        paced = true;
    }
    if (open_.empty()) {
      awake_[input] = paced;
      if (!paced) --awake_inputs_[network_.router_of_port[input]];
      return {};
    }
    const std::uint32_t turn = next_vc_[input];
    const std::uint64_t before = (std::uint64_t{1} << turn % 64) - 1;
    for (std::uint32_t step = 0, word = turn / 64; step <= words_; ++step) {
      std::uint64_t bits = 0;
      for (const std::uint64_t* const vcs : open_) bits |= vcs[word];
      if (step == 0) bits &= ~before;
      if (bits != 0) {
        const std::uint32_t number =
            input * vcs_ + 64 * word + static_cast<std::uint32_t>(std::countr_zero(bits));
        return {number, lanes_[input][lane_of_[number]].output};
      }
      word = word + 1 == words_ ? 0 : word + 1;
    }
    return {};
  }

  const FlitNetwork& network_;
  const std::uint32_t vcs_, words_;                  // words: of a port's bits
  std::vector<std::uint64_t> free_;                  // VCs of outputs, a bit each, [port * words_]
  std::vector<std::vector<Lane>> lanes_;             // of inputs
  std::vector<std::uint32_t> lane_of_;               // of an input VC, kNone: it does not wait
  std::vector<std::uint32_t> waiting_;               // of an input, in all lanes
  std::vector<std::uint8_t> awake_;                  // inputs
  std::vector<std::uint32_t> awake_inputs_;          // how many of a router
  std::vector<std::uint32_t> next_vc_, next_input_;  // the turns of inputs and of outputs, from 0 in each
  std::vector<Asked> asking_;                        // per port: of the allocation under way
  std::vector<std::uint32_t> granted_;               // likewise, kNone in between
  std::vector<const std::uint64_t*> open_;           // lanes, of the input that is asked
};

}  // namespace armilla
