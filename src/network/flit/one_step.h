// The allocation of virtual channels and the switch in one step, as Garnet's routers do it: every input puts
// forward one VC, every output takes one input, both in turn; turns move with what is granted.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "network/flit/flit_network.h"

namespace armilla {

// Input VCs are numbered in one row, `vcs` of each port.
class OneStepSwitch {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  OneStepSwitch(const FlitNetwork& network, std::uint32_t vcs)
      : network_(network),
        vcs_(vcs),
        words_((vcs + 63) / 64),
        waiting_vcs_(static_cast<std::size_t>(network.ports()) * words_),
        waiting_(network.routers),
        next_vc_(network.ports()),
        next_input_(network.ports()),
        asking_(network.ports()),
        granted_(network.ports(), kNone) {}

  // Whether any input VC of the router has flits.
  bool works(std::uint32_t router) const { return waiting_[router] > 0; }

  // An input VC of the port has its first flit, or none any more.
  void change(std::uint32_t port, std::uint32_t number, bool has_flits) {
    const std::uint32_t which = number - port * vcs_;
    waiting_vcs_[static_cast<std::size_t>(port) * words_ + which / 64] ^= std::uint64_t{1} << which % 64;
    has_flits ? ++waiting_[network_.router_of_port[port]] : --waiting_[network_.router_of_port[port]];
  }

  // `output_of(VC)`: the port, of all, that its first flit can go to now, kNone: to none. `grant(VC)` is told
  // who goes, by rising output.
  template <class OutputOf, class Grant>
  void allocate(std::uint32_t router, const OutputOf& output_of, const Grant& grant) {
    const std::uint32_t base = network_.first_port[router], end = network_.first_port[router + 1];
    for (std::uint32_t input = base; input < end; ++input) {
      const Asked asked = asking_[input] = next_that_may_go(input, output_of);
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
      grant(number);
    }
  }

 private:
  struct Asked {
    std::uint32_t vc = kNone, output = kNone;
  };

  // The input's next VC in turn whose first flit finds room.
  template <class OutputOf>
  Asked next_that_may_go(std::uint32_t input, const OutputOf& output_of) const {
    const std::uint64_t* const words = waiting_vcs_.data() + static_cast<std::size_t>(input) * words_;
    const std::uint32_t turn = next_vc_[input];
    const auto first_of = [&](std::uint32_t word, std::uint64_t bits) {
      for (; bits != 0; bits &= bits - 1) {
        const std::uint32_t number =
            input * vcs_ + 64 * word + static_cast<std::uint32_t>(std::countr_zero(bits));
        const std::uint32_t output = output_of(number);
        if (output != kNone) return Asked{number, output};
      }
      return Asked{};
    };
    const std::uint64_t before = (std::uint64_t{1} << turn % 64) - 1;
    Asked found = first_of(turn / 64, words[turn / 64] & ~before);
    for (std::uint32_t word = turn / 64 + 1; word < words_ && found.vc == kNone; ++word)
      found = first_of(word, words[word]);
    for (std::uint32_t word = 0; word < turn / 64 && found.vc == kNone; ++word)
      found = first_of(word, words[word]);
    return found.vc != kNone ? found : first_of(turn / 64, words[turn / 64] & before);
  }

  const FlitNetwork& network_;
  const std::uint32_t vcs_, words_;                  // words: of an input's bits
  std::vector<std::uint64_t> waiting_vcs_;           // with flits, a bit each, [port * words_]
  std::vector<std::uint32_t> waiting_;               // how many of a router
  std::vector<std::uint32_t> next_vc_, next_input_;  // the turns of inputs and of outputs, from 0 in each
  std::vector<Asked> asking_;                        // per port: of the allocation under way
  std::vector<std::uint32_t> granted_;               // likewise, kNone in between
};

}  // namespace armilla
