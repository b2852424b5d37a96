#include "network/flit/flit_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace armilla {
namespace {

std::vector<std::uint32_t> router_sides(const FlitNetwork& network, std::int64_t times) {
  std::vector<std::uint32_t> sides;
  for (std::uint32_t router = 0; router < network.routers; ++router)
    sides.push_back((network.first_port[router + 1] - network.first_port[router]) *
                    static_cast<std::uint32_t>(times));
  return sides;
}

std::uint32_t most_ports(const FlitNetwork& network) {
  std::uint32_t most = 0;
  for (std::uint32_t router = 0; router < network.routers; ++router)
    most = std::max(most, network.first_port[router + 1] - network.first_port[router]);
  return most;
}

}  // namespace

FlitEngine::FlitEngine(const FlitNetwork& network, const FlitRouter& router, LaggedRandom& random)
    : network_(network),
      router_(router),
      random_(random),
      vcs_(static_cast<std::uint32_t>(router.virtual_channels)),
      buffer_(static_cast<std::uint16_t>(router.buffer)),
      simple_traversal_(router.traversal_delay == 1 && router.speedup == 1),
      by_ready_(router.switch_allocator == FlitAllocator::islip && router.switch_allocator_iterations == 1 &&
                most_ports(network) <= 64 && router.virtual_channels <= 64 && !router.speculative &&
                !router.hold_switch && router.switch_allocation_delay == 1 && !router.one_step),
      chance_(std::any_of(network.routes.begin(), network.routes.end(),
                          [](const RouteEntry& entry) { return entry.choices > 0; })),
      paced_(std::any_of(network.outputs.begin(), network.outputs.begin() + network.ports(),
                         [](const FlitChannel& channel) { return channel.period != FlitChannel::kCycle; })),
      rechecked_(router.speculative || router.switch_allocation_delay > 1),
      vc_allocator_(router.vc_allocator, router.vc_allocator_iterations,
                    router_sides(network, router.virtual_channels), random),
      switch_allocator_(router.switch_allocator, router.switch_allocator_iterations, router_sides(network, 1),
                        random),
      one_step_(network, vcs_) {
  const std::uint32_t ports = network.ports(), senders = ports + network.nodes;
  inputs_.resize(static_cast<std::size_t>(ports) * vcs_);
  flits_.resize(inputs_.size() * buffer_);
  outputs_.resize(static_cast<std::size_t>(senders) * vcs_);
  // All buffers are empty, and all of them are of one size.
  for (OutputVc& vc : outputs_) vc.credits = buffer_;
  port_of_.resize(outputs_.size());
  for (std::size_t vc = 0; vc < port_of_.size(); ++vc) port_of_[vc] = static_cast<std::uint32_t>(vc / vcs_);
  credit_ways_.resize(ports);
  flit_ways_.resize(senders);
  std::uint32_t longest = 1;
  for (std::uint32_t output = 0; output < senders; ++output) {
    const FlitChannel& channel = network.outputs[output];
    if (channel.input != kNoFlitPort) {
      const std::int64_t delay = output < ports || router.one_step ? router.credit_delay : 0;
      credit_ways_[channel.input] = {output * vcs_, channel.latency + 1 + static_cast<std::uint32_t>(delay)};
    }
    const bool waits = router.one_step && channel.input != kNoFlitPort;
    const std::uint32_t cycles = channel.latency + channel.whole_period() +
                                 (waits ? static_cast<std::uint32_t>(router.routing_delay) : 0);
    flit_ways_[output] = {channel.input == kNoFlitPort ? kToNode | output * vcs_ : channel.input * vcs_,
                          cycles};
    longest = std::max(longest, cycles);
  }
  if (paced_) channel_free_.resize(ports);
  output_free_.resize(ports);
  credit_free_.resize(ports);
  switch_offset_.resize(ports);
  held_by_input_.assign(ports, kNone);
  held_by_output_.assign(ports, kNone);
  held_vc_.assign(ports, kNone);
  routers_.resize(network.routers);
  nodes_.resize(network.nodes);
  // A stage lists an input VC once, and once more while its batch is taken apart.
  for (std::uint32_t number = 0; number < network.routers; ++number)
    list_first_.push_back(2 * static_cast<std::size_t>(first_vc(number)));
  for (std::vector<std::uint32_t>* list :
       {&routing_list_, &vc_list_, &hold_list_, &switch_list_, &vc_result_, &hold_result_, &switch_result_})
    list->resize(2 * inputs_.size());
  arrivals_.resize(ports);
  if (by_ready_) {
    std::size_t cells = 0;
    for (const std::uint32_t side : router_sides(network, 1)) {
      matrix_first_.push_back(cells);
      cells += static_cast<std::size_t>(side) * side;
    }
    ready_vcs_.resize(cells);
    wanting_inputs_.resize(ports);
    wanted_outputs_.resize(network.routers);
    grants_.reserve(64);
  }
  busy_.resize((network.routers + 63) / 64);
  sending_.resize((network.nodes + 63) / 64);
  const std::uint32_t most = most_ports(network);
  match_.assign(static_cast<std::size_t>(most) * vcs_, kNone);
  switch_match_.assign(most, kNone);
  asked_.resize(static_cast<std::size_t>(most) * most);
  vc_granted_.assign(static_cast<std::size_t>(most) * vcs_, kNone);
  requests_.reserve(static_cast<std::size_t>(most) * vcs_ * vcs_);
  // A port that can be given more than one flit in a cycle queues what its buffers hold at most.
  const std::size_t backlog = simple_traversal_ ? 0 : static_cast<std::size_t>(vcs_) * buffer_;
  const std::size_t horizon =
      longest + static_cast<std::size_t>(2 * router.traversal_delay + router.credit_delay) + backlog + 4;
  flit_wheel_.resize(std::bit_ceil(horizon));
  credit_wheel_.resize(flit_wheel_.size());
  wheel_mask_ = flit_wheel_.size() - 1;
  // From one flit that moves to the next no delay takes longer than `patience_`, with 1000 cycles to spare.
  std::uint32_t slowest = 1;
  for (const FlitChannel& channel : network.outputs) slowest = std::max(slowest, channel.whole_period());
  patience_ = static_cast<std::int64_t>(horizon) + 1000 + slowest +
              4 * (router.routing_delay + router.vc_allocation_delay + router.switch_allocation_delay);
}

const std::vector<FlitEngine::Arrival>& FlitEngine::receive() {
  arrived_.clear();
  std::vector<Flying>& flying = flit_wheel_[static_cast<std::size_t>(now_) & wheel_mask_];
  for (const Flying& one : flying) {
    if ((one.target & kToNode) != 0) {
      const std::uint32_t vc = one.target & ~kToNode, port = port_of_[vc];
      const FlitChannel& channel = network_.outputs[port];
      // The node takes a flit the moment it comes, so its room is free at once: only the way back of the
      // credit counts.
      arrived_.push_back({channel.node, one.flit >> 2, (one.flit & kTail) != 0});
      --flits_inside_;
      credit_wheel_[static_cast<std::size_t>(now_ + channel.latency + 1 + router_.credit_delay) & wheel_mask_]
          .push_back(vc);
      ++credits_under_way_;
      continue;
    }
    const std::uint32_t router = network_.router_of_port[port_of_[one.target]];
    arrivals_[network_.first_port[router] + routers_[router].arrivals++] = one;
    busy_[router / 64] |= std::uint64_t{1} << router % 64;
  }
  flying.clear();
  std::vector<std::uint32_t>& credits = credit_wheel_[static_cast<std::size_t>(now_) & wheel_mask_];
  for (const std::uint32_t vc : credits) credit_arrives(vc);
  credits_under_way_ -= static_cast<std::int64_t>(credits.size());
  credits.clear();
  return arrived_;
}

void FlitEngine::credit_arrives(std::uint32_t output_vc) {
  OutputVc& vc = outputs_[output_vc];
  ++vc.credits;
  // An atomic VC is the next packet's only once the buffer behind it is empty: every credit is back, the
  // tail's too.
  if (router_.atomic_vcs && vc.tail_sent && vc.credits == buffer_) vc.holder = kNone;
  const std::uint32_t port = port_of_[output_vc];
  if (port >= network_.ports()) {
    const std::uint32_t number = port - network_.ports();
    const Node& node = nodes_[number];
    if (node.packet != kNone && (vc.holder == kNone || node.vc == output_vc - port * vcs_))
      sending_[number / 64] |= std::uint64_t{1} << number % 64;
    return;
  }
  if (!by_ready_ && !router_.one_step) return;
  const std::uint32_t router = network_.router_of_port[port];
  // A router whose flits are all blocked is woken here, and need not be asked in between.
  const auto wake = [&] { busy_[router / 64] |= std::uint64_t{1} << router % 64; };
  if (router_.one_step && vc.holder == kNone) {
    one_step_.set_free(port, output_vc, true);
    if (one_step_.works(router)) wake();
    return;
  }
  // With more than one credit it was ready already.
  if (vc.credits > 1 || vc.holder == kNone || vc.tail_sent || inputs_[vc.holder].count == 0) return;
  if (by_ready_)
    set_ready(vc.holder, true);
  else
    one_step_.goes(port_of_[vc.holder], vc.holder, port);
  wake();
}

void FlitEngine::send(std::uint32_t node, const FlitPacket& packet) {
  nodes_[node].packet = packets_.add(packet);
  nodes_[node].sent = 0;
  nodes_[node].vc = kNone;
  sending_[node / 64] |= std::uint64_t{1} << node % 64;
}

void FlitEngine::step() {
  // Nodes before routers: heads that leave a node may draw their way, from the same row of random numbers.
  for (std::size_t word = 0; word < sending_.size(); ++word) {
    for (std::uint64_t left = sending_[word]; left != 0; left &= left - 1)
      node_sends(static_cast<std::uint32_t>(64 * word) + static_cast<std::uint32_t>(std::countr_zero(left)));
  }
  for (std::size_t word = 0; word < busy_.size(); ++word) {
    for (std::uint64_t left = busy_[word]; left != 0; left &= left - 1) {
      const auto router =
          static_cast<std::uint32_t>(64 * word) + static_cast<std::uint32_t>(std::countr_zero(left));
      for (std::int64_t step = 0; step < router_.speedup; ++step) router_step(router, step);
      if (!works(router)) busy_[word] &= ~(std::uint64_t{1} << router % 64);
    }
  }
  if (now_ - last_move_ > patience_) watch_for_deadlock();
  ++now_;
}

bool FlitEngine::works(std::uint32_t router) const {
  if (router_.one_step) return one_step_.works(router);
  const Router& r = routers_[router];
  return r.routing.count + r.vc_allocation.count + r.hold.count + r.switch_allocation.count > 0 ||
         (by_ready_ && wanted_outputs_[router] != 0);
}

bool FlitEngine::any_busy() const {
  const auto any = [](std::uint64_t word) { return word != 0; };
  return std::any_of(busy_.begin(), busy_.end(), any) || std::any_of(sending_.begin(), sending_.end(), any);
}

void FlitEngine::skip_until(std::int64_t end) {
  if (now_ >= end || any_busy()) return;
  const std::int64_t begin = now_;
  const auto nothing = [&] {
    // What is sent comes due within one turn of the wheel. So a whole turn without anything says that nothing
    // is under way, and what is inside waits for ever.
    const std::size_t slot = static_cast<std::size_t>(now_) & wheel_mask_;
    return flit_wheel_[slot].empty() && credit_wheel_[slot].empty();
  };
  while (now_ < end && now_ - begin <= static_cast<std::int64_t>(wheel_mask_) && nothing()) ++now_;
  if (now_ - begin <= static_cast<std::int64_t>(wheel_mask_)) return;
  watch_for_deadlock();
  now_ = end;
}

// One flit per cycle. The head takes the next free virtual channel that has room, in turn.
void FlitEngine::node_sends(std::uint32_t number) {
  Node& node = nodes_[number];
  const std::uint32_t output = network_.ports() + number, first = output * vcs_;
  FlitPacket& packet = packets_[node.packet];
  const bool head = node.sent == 0;
  // Until a credit changes that, nothing can be sent.
  const auto sleep = [&] { sending_[number / 64] &= ~(std::uint64_t{1} << number % 64); };
  if (head) {
    // Of a dragonfly, one by chance, anew in each cycle.
    const bool chance = network_.rule == RouteRule::global_hops;
    const std::uint32_t begin = chance ? random_.below(vcs_) : 0, count = chance ? 1 : vcs_;
    const bool inside = node.last_vc >= begin && node.last_vc < begin + count;
    for (std::uint32_t i = 1; i <= count; ++i) {
      const std::uint32_t vc = inside ? begin + (node.last_vc - begin + i) % count : begin;
      if (outputs_[first + vc].holder != kNone || outputs_[first + vc].credits == 0) continue;
      node.vc = vc;
      break;
    }
    if (node.vc == kNone) {
      if (!chance) sleep();
      return;
    }
  }
  OutputVc& vc = outputs_[first + node.vc];
  if (vc.credits == 0) {
    sleep();
    return;
  }
  const FlitChannel& channel = network_.outputs[output];
  if (head) {
    // The route at the first router is found here, as at every hop with look-ahead routing: no router spends
    // a cycle on it.
    if (router_.routing_delay == 0 || router_.one_step)
      route(network_.router_of_port[channel.input], channel.input, packet);
    vc.holder = number;
    vc.tail_sent = false;
    node.last_vc = node.vc;
    packet.entered = now_;
  }
  const bool tail = ++node.sent == packet.flits;
  --vc.credits;
  const FlitWay way = flit_ways_[output];
  flit_wheel_[static_cast<std::size_t>(now_ + way.cycles) & wheel_mask_].push_back(
      {way.first_target + node.vc, flit(node.packet, head, tail)});
  ++flits_inside_;
  last_move_ = now_;
  if (tail) {
    vc.tail_sent = true;
    if (!router_.atomic_vcs) vc.holder = kNone;
    node.packet = kNone;
    sleep();
  }
}

void FlitEngine::router_step(std::uint32_t router, std::int64_t step) {
  Router& r = routers_[router];
  if (r.arrivals > 0) accept_arrivals(router);
  if (router_.one_step) {
    allocate_in_one_step(router);
    return;
  }
  if (r.routing.batch == 0 && r.routing.count > 0) {
    r.routing.batch = r.routing.count;
    r.routing.due = now_ + router_.routing_delay - 1;
  }
  // All decide on the state as the cycle began, before any moves: the order of stages and of routers then
  // decides nothing.
  if (r.vc_allocation.count > 0) evaluate_vcs(router);
  if (r.hold.count > 0) evaluate_hold(router);
  const bool granted = by_ready_ && wanted_outputs_[router] != 0;
  if (granted) grant_ready(router);
  if (r.switch_allocation.count > 0) evaluate_switch(router);
  if (r.routing.batch > 0 && now_ >= r.routing.due) update_routing(router);
  if (r.vc_allocation.batch > 0 && now_ >= r.vc_allocation.due) update_vcs(router, step);
  if (r.hold.batch > 0) update_hold(router, step);
  if (r.switch_allocation.batch > 0 && now_ >= r.switch_allocation.due) update_switch(router, step);
  if (granted) move_granted(router, step);
}

void FlitEngine::allocate_in_one_step(std::uint32_t router) {
  const auto takes = [&](std::uint32_t output) { return takes_flit(output); };
  one_step_.allocate(router, takes, [&](std::uint32_t input, std::uint32_t number) {
    InputVc& vc = inputs_[number];
    one_step_.leaves(input, number);
    if (vc.state != State::active) {
      vc.output_vc = one_step_.lowest_free(vc.port, vc.vcs);
      vc.state = State::active;
      outputs_[vc.output_vc].holder = number;
      outputs_[vc.output_vc].tail_sent = false;
      one_step_.set_free(vc.port, vc.output_vc, false);
    }
    move_flit(router, number, 0);
  });
}

void FlitEngine::accept_arrivals(std::uint32_t router) {
  Router& r = routers_[router];
  Flying* const begin = arrivals_.data() + network_.first_port[router];
  // The wheel has them in the order in which they were sent, over links of any latency. Who queues first must
  // not hang on that, so they come by input VC.
  for (std::uint32_t i = 1; i < r.arrivals; ++i) {
    const Flying one = begin[i];
    std::uint32_t place = i;
    for (; place > 0 && begin[place - 1].target > one.target; --place) begin[place] = begin[place - 1];
    begin[place] = one;
  }
  for (std::uint32_t i = 0; i < r.arrivals; ++i) {
    const std::uint32_t number = begin[i].target;
    InputVc& vc = inputs_[number];
    std::uint32_t place = vc.first + vc.count++;
    if (place >= buffer_) place -= buffer_;
    flits_[static_cast<std::size_t>(number) * buffer_ + place] = begin[i].flit;
    if (vc.state == State::idle) {
      begin_packet(router, number);
    } else if (vc.state == State::active && vc.count == 1) {
      if (router_.one_step) {
        if (outputs_[vc.output_vc].credits > 0)
          one_step_.goes(port_of_[number], number, port_of_[vc.output_vc]);
      } else if (by_ready_) {
        vc.order = order(i, 0, true);
        if (outputs_[vc.output_vc].credits > 0) set_ready(number, true);
      } else {
        push(r.switch_allocation, switch_list_, router, number);
      }
    }
  }
  r.arrivals = 0;
}

// The head of a packet has come to the front of the buffer.
void FlitEngine::begin_packet(std::uint32_t router, std::uint32_t number) {
  Router& r = routers_[router];
  InputVc& vc = inputs_[number];
  if (router_.routing_delay > 0 && !router_.one_step) {
    vc.state = State::routing;
    push(r.routing, routing_list_, router, number);
    return;
  }
  const FlitPacket& packet = packets_[flits_[static_cast<std::size_t>(number) * buffer_ + vc.first] >> 2];
  vc.port = packet.port;
  vc.vcs = packet.vcs;
  vc.state = State::vc_allocation;
  if (router_.one_step) {
    one_step_.wants(port_of_[number], number, vc.port, vc.vcs);
    return;
  }
  if (router_.speculative) push(r.switch_allocation, switch_list_, router, number);
  push(r.vc_allocation, vc_list_, router, number);
}

void FlitEngine::evaluate_vcs(std::uint32_t router) {
  Stage& stage = routers_[router].vc_allocation;
  const std::uint32_t* const list = vc_list_.data() + list_first_[router];
  std::uint32_t* const result = vc_result_.data() + list_first_[router];
  const std::uint32_t base = first_vc(router);
  requests_.clear();
  if (stage.batch == 0) {
    stage.batch = stage.count;
    stage.due = now_ + router_.vc_allocation_delay - 1;
    for (std::uint32_t i = 0; i < stage.batch; ++i) {
      const InputVc& vc = inputs_[list[i]];
      const std::uint32_t first = vc.port * vcs_;
      for (std::uint32_t output = first + vc.vcs.first; output <= first + vc.vcs.last; ++output) {
        if (outputs_[output].holder == kNone) requests_.push_back({list[i] - base, output - base});
      }
    }
    // Some allocators draw though nobody asks, as BookSim's do: all later draws hang on how many came before.
    if (!requests_.empty() || vc_allocator_.draws_without_requests())
      vc_allocator_.allocate(router, requests_, match_.data());
    for (std::uint32_t i = 0; i < stage.batch; ++i) {
      std::uint32_t& match = match_[list[i] - base];
      result[i] = match == kNone ? kNone : match + base;
      match = kNone;
    }
  } else if (vc_allocator_.draws_without_requests()) {
    vc_allocator_.allocate(router, requests_, match_.data());
  }
  if (!router_.speculative || now_ < stage.due) return;
  for (std::uint32_t i = 0; i < stage.batch; ++i) vc_granted_[list[i] - base] = result[i];
}

void FlitEngine::evaluate_hold(std::uint32_t router) {
  Stage& stage = routers_[router].hold;
  stage.batch = stage.count;
  const std::size_t first = list_first_[router];
  for (std::uint32_t i = 0; i < stage.batch; ++i) {
    const InputVc& vc = inputs_[hold_list_[first + i]];
    hold_result_[first + i] = outputs_[vc.output_vc].credits == 0 ? kNone : port_of_[vc.output_vc];
  }
}

void FlitEngine::set_ready(std::uint32_t number, bool ready) {
  const std::uint32_t port = port_of_[number], router = network_.router_of_port[port];
  const std::uint32_t base = network_.first_port[router], ports = network_.first_port[router + 1] - base;
  const std::uint32_t input = port - base, output = port_of_[inputs_[number].output_vc] - base;
  std::uint64_t& vcs = ready_vcs_[matrix_first_[router] + input * ports + output];
  const std::uint64_t bit = std::uint64_t{1} << (number - port * vcs_);
  if (ready) {
    vcs |= bit;
    wanting_inputs_[base + output] |= std::uint64_t{1} << input;
    wanted_outputs_[router] |= std::uint64_t{1} << output;
    return;
  }
  vcs &= ~bit;
  if (vcs != 0) return;
  std::uint64_t& inputs = wanting_inputs_[base + output];
  inputs &= ~(std::uint64_t{1} << input);
  if (inputs == 0) wanted_outputs_[router] &= ~(std::uint64_t{1} << output);
}

// One request for each pair of ports: the VCs of an input take turns.
void FlitEngine::grant_ready(std::uint32_t router) {
  const std::uint32_t base = network_.first_port[router], ports = network_.first_port[router + 1] - base;
  grants_.clear();
  std::uint64_t wanted = wanted_outputs_[router];
  for (std::uint64_t left = paced_ ? wanted : 0; left != 0; left &= left - 1) {
    const auto output = static_cast<std::uint32_t>(std::countr_zero(left));
    if (!takes_flit(base + output)) wanted &= ~(std::uint64_t{1} << output);
  }
  if (wanted == 0) return;
  std::uint64_t matched =
      switch_allocator_.match_words(router, wanted, wanting_inputs_.data() + base, switch_match_.data());
  for (; matched != 0; matched &= matched - 1) {
    const auto input = static_cast<std::uint32_t>(std::countr_zero(matched));
    const std::uint64_t vcs = ready_vcs_[matrix_first_[router] + input * ports + switch_match_[input]];
    std::uint32_t& offset = switch_offset_[base + input];
    const std::uint64_t later = vcs >> offset << offset;
    const auto which = static_cast<std::uint32_t>(std::countr_zero(later != 0 ? later : vcs));
    offset = which + 1 == vcs_ ? 0 : which + 1;
    const std::uint32_t number = (base + input) * vcs_ + which;
    grants_.push_back({inputs_[number].order, number});
  }
}

void FlitEngine::move_granted(std::uint32_t router, std::int64_t step) {
  // Heads draw their ways as they leave, so where ways are chosen by chance moves keep the order of the queue
  // that `by_ready_` does without. Elsewhere the order of moves cannot be seen.
  if (chance_)
    std::sort(grants_.begin(), grants_.end(),
              [](const Grant& a, const Grant& b) { return a.order < b.order; });
  for (const Grant& grant : grants_) move_flit(router, grant.vc, step);
}

void FlitEngine::evaluate_switch(std::uint32_t router) {
  Stage& stage = routers_[router].switch_allocation;
  const std::uint32_t base = network_.first_port[router], ports = network_.first_port[router + 1] - base;
  const std::uint32_t* const list = switch_list_.data() + list_first_[router];
  std::uint32_t* const result = switch_result_.data() + list_first_[router];
  requests_.clear();
  if (stage.batch > 0) {
    if (switch_allocator_.draws_without_requests())
      switch_allocator_.allocate(router, requests_, switch_match_.data());
  } else {
    stage.batch = stage.count;
    stage.due = now_ + router_.switch_allocation_delay - 1;
    for (std::uint32_t i = 0; i < stage.batch; ++i) {
      const std::uint32_t number = list[i];
      const InputVc& vc = inputs_[number];
      const bool urgent = vc.state == State::active;
      std::uint32_t output = vc.port;
      if (urgent) {
        if (outputs_[vc.output_vc].credits == 0) continue;
        output = port_of_[vc.output_vc];
      } else {
        // A head that speculates asks where some virtual channel is free and has room.
        bool hope = false;
        for (std::uint32_t candidate = output * vcs_ + vc.vcs.first; candidate <= output * vcs_ + vc.vcs.last;
             ++candidate)
          hope = hope || (outputs_[candidate].holder == kNone && outputs_[candidate].credits > 0);
        if (!hope) continue;
      }
      if (!takes_flit(output)) continue;
      // A held connection is not up for allocation: its flits go on in the stage of their own.
      const std::uint32_t input = port_of_[number];
      if (held_by_input_[input] != kNone || held_by_output_[output] != kNone) continue;
      // One request for each pair of ports: the VCs of an input take turns.
      const std::uint32_t which = number - input * vcs_, offset = switch_offset_[input];
      SwitchRequest& asked = asked_[(input - base) * ports + output - base];
      if (!asked.asked) {
        asked = {which, urgent, true};
        requests_.push_back({input - base, output - base, urgent});
      } else if (urgent != asked.urgent
                     ? urgent
                     : which + (which < offset ? vcs_ : 0) < asked.vc + (asked.vc < offset ? vcs_ : 0)) {
        // One that does not speculate goes before one that does; among equals the input's turn decides.
        asked.vc = which;
        asked.urgent = urgent;
      }
    }
    for (FlitAllocators::Request& request : requests_)
      if (router_.speculative) request.urgent = asked_[request.input * ports + request.output].urgent;
    if (!requests_.empty() || switch_allocator_.draws_without_requests())
      switch_allocator_.allocate(router, requests_, switch_match_.data());
    for (std::uint32_t i = 0; i < stage.batch; ++i) {
      const std::uint32_t input = port_of_[list[i]], match = switch_match_[input - base];
      const std::uint32_t which = list[i] - input * vcs_;
      result[i] = kNone;
      if (match == kNone || asked_[(input - base) * ports + match].vc != which) continue;
      switch_offset_[input] = which + 1 == vcs_ ? 0 : which + 1;
      result[i] = base + match;
    }
    for (const FlitAllocators::Request& request : requests_) {
      asked_[request.input * ports + request.output].asked = false;
      switch_match_[request.input] = kNone;
    }
  }
  // The grant was given cycles ago, or on the hope of a VC: meanwhile the room may be gone, the switch held,
  // or the VC another's.
  if (!rechecked_ || now_ < stage.due) return;
  const std::uint32_t vc_base = first_vc(router);
  for (std::uint32_t i = 0; i < stage.batch; ++i) {
    if (result[i] == kNone) continue;
    const InputVc& vc = inputs_[list[i]];
    bool fails = held_by_input_[port_of_[list[i]]] != kNone || held_by_output_[result[i]] != kNone;
    if (vc.state == State::vc_allocation) {
      const std::uint32_t granted = vc_granted_[list[i] - vc_base];
      fails = fails || granted == kNone || port_of_[granted] != result[i] || outputs_[granted].credits == 0;
    } else {
      fails = fails || outputs_[vc.output_vc].credits == 0;
    }
    if (fails) result[i] = kNone;
  }
}

void FlitEngine::drop_batch(Stage& stage, std::vector<std::uint32_t>& list, std::uint32_t router) {
  std::uint32_t* const begin = list.data() + list_first_[router];
  for (std::uint32_t i = stage.batch; i < stage.count; ++i) begin[i - stage.batch] = begin[i];
  stage.count -= stage.batch;
  stage.batch = 0;
}

void FlitEngine::update_routing(std::uint32_t router) {
  Router& r = routers_[router];
  for (std::uint32_t i = 0; i < r.routing.batch; ++i) {
    const std::uint32_t number = routing_list_[list_first_[router] + i];
    InputVc& vc = inputs_[number];
    FlitPacket& packet = packets_[flits_[static_cast<std::size_t>(number) * buffer_ + vc.first] >> 2];
    route(router, port_of_[number], packet);
    vc.port = packet.port;
    vc.vcs = packet.vcs;
    vc.state = State::vc_allocation;
    if (router_.speculative) push(r.switch_allocation, switch_list_, router, number);
    push(r.vc_allocation, vc_list_, router, number);
  }
  drop_batch(r.routing, routing_list_, router);
}

void FlitEngine::update_vcs(std::uint32_t router, std::int64_t step) {
  Router& r = routers_[router];
  const std::size_t first = list_first_[router];
  for (std::uint32_t i = 0; i < r.vc_allocation.batch; ++i) {
    const std::uint32_t number = vc_list_[first + i], output = vc_result_[first + i];
    if (router_.speculative) vc_granted_[number - first_vc(router)] = kNone;
    if (output == kNone) {
      push(r.vc_allocation, vc_list_, router, number);
      continue;
    }
    InputVc& vc = inputs_[number];
    outputs_[output].holder = number;
    outputs_[output].tail_sent = false;
    vc.output_vc = output;
    vc.state = State::active;
    if (by_ready_) {
      // In front of all that wait. Where there is a list it is so by itself: they join behind the batch, and
      // those of the batch that fail go behind them.
      vc.order = order(i, step, false);
      if (outputs_[output].credits > 0) set_ready(number, true);
    } else if (!router_.speculative) {
      push(r.switch_allocation, switch_list_, router, number);
    }
  }
  drop_batch(r.vc_allocation, vc_list_, router);
}

void FlitEngine::release_hold(std::uint32_t input_port) {
  held_by_output_[held_by_input_[input_port]] = kNone;
  held_by_input_[input_port] = kNone;
  held_vc_[input_port] = kNone;
}

void FlitEngine::update_hold(std::uint32_t router, std::int64_t step) {
  Router& r = routers_[router];
  for (std::uint32_t i = 0; i < r.hold.batch; ++i) {
    const std::uint32_t number = hold_list_[list_first_[router] + i];
    if (hold_result_[list_first_[router] + i] == kNone) {
      // No credit: the switch is let go rather than blocked for others, and must be asked for again.
      release_hold(port_of_[number]);
      push(r.switch_allocation, switch_list_, router, number);
    } else {
      move_flit(router, number, step);
    }
  }
  drop_batch(r.hold, hold_list_, router);
}

void FlitEngine::update_switch(std::uint32_t router, std::int64_t step) {
  Router& r = routers_[router];
  const std::size_t first = list_first_[router];
  for (std::uint32_t i = 0; i < r.switch_allocation.batch; ++i) {
    const std::uint32_t number = switch_list_[first + i];
    if (switch_result_[first + i] == kNone)
      push(r.switch_allocation, switch_list_, router, number);
    else
      move_flit(router, number, step);
  }
  drop_batch(r.switch_allocation, switch_list_, router);
}

// The cycle in which a flit that is granted the switch now is sent. The switch works on batches: what is
// granted while it is at one waits for its end.
std::int64_t FlitEngine::leaving(Router& r, std::int64_t step) const {
  const std::int64_t position = now_ * router_.speedup + step;
  if (position >= r.traversal_end)
    r.traversal_begin = position + 1;
  else if (position >= r.traversal_begin)
    r.traversal_begin = r.traversal_end + 1;
  const std::int64_t begin = r.traversal_begin / router_.speedup;
  r.traversal_end = router_.traversal_delay == 1 ? r.traversal_begin
                                                 : (begin + router_.traversal_delay - 1) * router_.speedup;
  return r.traversal_end / router_.speedup;
}

void FlitEngine::return_credit(std::uint32_t input_port, std::uint32_t vc) {
  std::int64_t sent = now_;
  if (!simple_traversal_) {
    sent = std::max(now_, credit_free_[input_port]);
    credit_free_[input_port] = sent + 1;
  }
  const CreditWay way = credit_ways_[input_port];
  credit_wheel_[static_cast<std::size_t>(sent + way.cycles) & wheel_mask_].push_back(way.first_vc + vc);
  ++credits_under_way_;
}

void FlitEngine::move_flit(std::uint32_t router, std::uint32_t number, std::int64_t step) {
  InputVc& vc = inputs_[number];
  const std::uint32_t moved = flits_[static_cast<std::size_t>(number) * buffer_ + vc.first];
  if (++vc.first == buffer_) vc.first = 0;
  --vc.count;
  const std::uint32_t output_vc = vc.output_vc, output = port_of_[output_vc], input = port_of_[number];
  const bool tail = (moved & kTail) != 0;
  if (tail) ++packets_[moved >> 2].hops;
  ++flit_hops_;
  last_move_ = now_;
  if ((moved & kHead) != 0 && (router_.routing_delay == 0 || router_.one_step)) {
    const FlitChannel& channel = network_.outputs[output];
    if (channel.input != kNoFlitPort)
      route(network_.router_of_port[channel.input], channel.input, packets_[moved >> 2]);
  }

  OutputVc& target = outputs_[output_vc];
  --target.credits;
  if (tail) {
    target.tail_sent = true;
    if (!router_.atomic_vcs) target.holder = kNone;
  }
  std::int64_t sent = now_ + 1;
  if (!simple_traversal_) {
    sent = std::max(leaving(routers_[router], step), output_free_[output]);
    output_free_[output] = sent + 1;
  }
  // Counted in fractions of a cycle, not rounded per flit: a link that is slower than a flit per cycle is
  // right on the average.
  if (paced_)
    channel_free_[output] =
        std::max(channel_free_[output], sent * FlitChannel::kCycle) + network_.outputs[output].period;
  const FlitWay way = flit_ways_[output];
  flit_wheel_[static_cast<std::size_t>(sent + way.cycles) & wheel_mask_].push_back(
      {way.first_target + (output_vc - output * vcs_), moved});
  return_credit(input, number - input * vcs_);
  if (router_.one_step) {
    if (!tail) {
      if (vc.count > 0 && target.credits > 0) one_step_.goes(input, number, output);
      return;
    }
    vc.state = State::idle;
    if (vc.count > 0) begin_packet(router, number);
    return;
  }
  if (by_ready_) {
    if (tail || vc.count == 0 || target.credits == 0) set_ready(number, false);
    if (!tail) return;
    vc.state = State::idle;
    if (vc.count > 0) begin_packet(router, number);
    return;
  }
  after_move(router, number, tail, held_vc_[input] == number - input * vcs_);
}

// What the input VC does next.
void FlitEngine::after_move(std::uint32_t router, std::uint32_t number, bool tail, bool from_hold) {
  Router& r = routers_[router];
  InputVc& vc = inputs_[number];
  const std::uint32_t input = port_of_[number];
  if (from_hold && (tail || vc.count == 0)) release_hold(input);
  if (tail) {
    vc.state = State::idle;
    if (vc.count > 0) begin_packet(router, number);
  } else if (vc.count > 0) {
    if (!router_.hold_switch) {
      push(r.switch_allocation, switch_list_, router, number);
      return;
    }
    const std::uint32_t output = port_of_[vc.output_vc];
    held_vc_[input] = number - input * vcs_;
    held_by_input_[input] = output;
    held_by_output_[output] = input;
    push(r.hold, hold_list_, router, number);
  }
}

bool FlitEngine::at_rest() const {
  const auto idle_input = [](const InputVc& vc) { return vc.state == State::idle && vc.count == 0; };
  const auto full_output = [&](const OutputVc& vc) { return vc.holder == kNone && vc.credits == buffer_; };
  return flits_inside_ == 0 && credits_under_way_ == 0 &&
         std::all_of(inputs_.begin(), inputs_.end(), idle_input) &&
         std::all_of(outputs_.begin(), outputs_.end(), full_output) &&
         std::all_of(nodes_.begin(), nodes_.end(), [](const Node& node) { return node.packet == kNone; });
}

// From a buffer whose first flit cannot move to one that it waits for: the one behind its output, or behind a
// virtual channel that another packet holds. Where nothing moves, all of those wait, too, so the way comes
// back to itself.
std::string FlitEngine::cycle_of_waiting() const {
  std::uint32_t at = kNone;
  for (std::uint32_t number = 0; number < inputs_.size() && at == kNone; ++number) {
    if (inputs_[number].count > 0) at = number;
  }
  std::vector<std::uint32_t> way;
  while (at != kNone && std::find(way.begin(), way.end(), at) == way.end()) {
    way.push_back(at);
    const InputVc& vc = inputs_[at];
    const std::uint32_t output =
        vc.state == State::active ? vc.output_vc : vc.port * vcs_ + static_cast<std::uint32_t>(vc.vcs.first);
    const FlitChannel& channel = network_.outputs[port_of_[output]];
    if (vc.state == State::idle || vc.state == State::routing || channel.input == kNoFlitPort) return {};
    at = channel.input * vcs_ + output % vcs_;
  }
  if (at == kNone) return {};
  std::string text;
  const auto end_name = [&](std::uint32_t node) {
    return network_.node_names.empty() ? std::to_string(node) : network_.node_names[node];
  };
  const auto begin = std::find(way.begin(), way.end(), at);
  for (auto one = begin; one != way.end(); ++one) {
    const InputVc& vc = inputs_[*one];
    text += fmt::format("{} (VC {}", network_.input_name(port_of_[*one]), *one % vcs_);
    if (vc.count > 0) {
      const FlitPacket& packet = packets_[flits_[static_cast<std::size_t>(*one) * buffer_ + vc.first] >> 2];
      text += fmt::format(", a packet from {} to {}", end_name(packet.source), end_name(packet.destination));
    }
    text += "), ";
  }
  return text + "and " + network_.input_name(port_of_[*begin]) + " again";
}

void FlitEngine::watch_for_deadlock() {
  if (flits_inside_ == 0) return;
  throw Error("",
              fmt::format("packets wait for each other for ever (deadlock) since cycle {}: {}", last_move_,
                          cycle_of_waiting()),
              "more virtual channels, or a routing function that keeps to an order of buffers");
}

}  // namespace armilla
