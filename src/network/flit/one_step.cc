// The allocation of virtual channels and the switch in one step, as Garnet's routers do it.
#include <bit>

#include "network/flit/flit_engine.h"

namespace armilla {

void FlitEngine::wait_in_input(std::uint32_t number, bool waits) {
  const std::uint32_t port = port_of_[number], which = number - port * vcs_;
  waiting_vcs_[static_cast<std::size_t>(port) * input_words_ + which / 64] ^= std::uint64_t{1} << which % 64;
  waits ? ++waiting_[network_.router_of_port[port]] : --waiting_[network_.router_of_port[port]];
}

// The lowest that is free of those that its route may use.
std::uint32_t FlitEngine::free_vc(const InputVc& head) const {
  const std::uint32_t first = head.port * vcs_;
  const OutputVc* const vcs = outputs_.data() + first;
  for (std::uint32_t vc = head.vcs.first; vc <= head.vcs.last; ++vc) {
    if (vcs[vc].holder == kNone && vcs[vc].credits > 0) return first + vc;
  }
  return kNone;
}

// The input's next VC in turn whose first flit finds room.
std::uint32_t FlitEngine::next_that_may_go(std::uint32_t input) const {
  const std::uint64_t* const words = waiting_vcs_.data() + static_cast<std::size_t>(input) * input_words_;
  const std::uint32_t turn = switch_offset_[input];
  const auto first_of = [&](std::uint32_t word, std::uint64_t bits) {
    for (; bits != 0; bits &= bits - 1) {
      const std::uint32_t number =
          input * vcs_ + 64 * word + static_cast<std::uint32_t>(std::countr_zero(bits));
      const InputVc& vc = inputs_[number];
      const bool active = vc.state == State::active;
      const std::uint32_t output = active ? port_of_[vc.output_vc] : vc.port;
      if (!takes_flit(output)) continue;
      if (active ? outputs_[vc.output_vc].credits > 0 : free_vc(vc) != kNone) return number;
    }
    return kNone;
  };
  const std::uint64_t before = (std::uint64_t{1} << turn % 64) - 1;
  std::uint32_t found = first_of(turn / 64, words[turn / 64] & ~before);
  for (std::uint32_t word = turn / 64 + 1; word < input_words_ && found == kNone; ++word)
    found = first_of(word, words[word]);
  for (std::uint32_t word = 0; word < turn / 64 && found == kNone; ++word)
    found = first_of(word, words[word]);
  return found != kNone ? found : first_of(turn / 64, words[turn / 64] & before);
}

// Every input puts forward one VC, every output takes one input, both in turn; turns move with what
// is granted.
void FlitEngine::allocate_in_one_step(std::uint32_t router) {
  const std::uint32_t base = network_.first_port[router], ports = network_.first_port[router + 1] - base;
  for (std::uint32_t input = 0; input < ports; ++input) {
    const std::uint32_t number = asking_[input] = next_that_may_go(base + input);
    if (number == kNone) continue;
    const InputVc& vc = inputs_[number];
    const std::uint32_t output = (vc.state == State::active ? port_of_[vc.output_vc] : vc.port) - base;
    const std::uint32_t turn = input_turn_[base + output];
    const auto distance = [&](std::uint32_t one) { return one >= turn ? one - turn : one + ports - turn; };
    if (granted_[output] == kNone || distance(input) < distance(granted_[output])) granted_[output] = input;
  }
  for (std::uint32_t output = 0; output < ports; ++output) {
    const std::uint32_t input = granted_[output];
    if (input == kNone) continue;
    granted_[output] = kNone;
    input_turn_[base + output] = input + 1 == ports ? 0 : input + 1;
    const std::uint32_t number = asking_[input], which = number - (base + input) * vcs_;
    switch_offset_[base + input] = which + 1 == vcs_ ? 0 : which + 1;
    InputVc& vc = inputs_[number];
    if (vc.state != State::active) {
      vc.output_vc = free_vc(vc);
      vc.state = State::active;
      outputs_[vc.output_vc].holder = number;
      outputs_[vc.output_vc].tail_sent = false;
    }
    move_flit(router, number, 0);
  }
}

}  // namespace armilla
