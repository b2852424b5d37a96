// The routers of a network, cycle by cycle (docs/models/flit.md).
//
// Every cycle has two phases for each router. First it looks at its state as the cycle began and decides:
// virtual channels for heads, the switch for flits. Then it moves what was decided. Routers touch each other
// only through channels, which take two cycles at least, so that their order never matters; they are asked in
// rising order, because ways that are chosen by chance draw from one row of random numbers. Routers without
// flits are not asked at all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/slots.h"
#include "ir/flit.h"
#include "network/flit/flit_allocator.h"
#include "network/flit/flit_network.h"
#include "network/flit/flit_route.h"
#include "network/flit/one_step.h"

namespace armilla {

class FlitEngine {
 public:
  struct Arrival {
    std::uint32_t node, packet;
    bool tail;
  };

  // Both must outlive the engine.
  FlitEngine(const FlitNetwork& network, const FlitRouter& router, LaggedRandom& random);

  // A node sends one packet after another; false: it is still at one.
  bool idle(std::uint32_t node) const { return nodes_[node].packet == kNone; }
  std::int64_t now() const { return now_; }
  // Flits and credits that arrive in this cycle. To be called once per cycle, and first.
  const std::vector<Arrival>& receive();
  // Only where the node is idle.
  void send(std::uint32_t node, const FlitPacket& packet);
  FlitPacket& packet(std::uint32_t number) { return packets_[number]; }
  // Gives up a packet whose tail has arrived.
  void forget(std::uint32_t number) { packets_.release(number); }
  // The rest of the cycle: nodes send, routers work. Throws Error when packets wait for each other in a
  // cycle.
  void step();
  // In front of `receive`: goes on to the next cycle in which anything can happen unless a node sends, `end`
  // at most.
  void skip_until(std::int64_t end);

  std::int64_t flit_hops() const { return flit_hops_; }
  std::int64_t credits_under_way() const { return credits_under_way_; }  // back to who sends
  // Every buffer empty, every credit where it began, no virtual channel taken: what must hold when all has
  // arrived.
  bool at_rest() const;
  // In words, "" if there is none.
  std::string cycle_of_waiting() const;

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  enum class State : std::uint8_t { idle, routing, vc_allocation, active };

  // A flit is its packet with two bits.
  static constexpr std::uint32_t kHead = 1, kTail = 2;
  static std::uint32_t flit(std::uint32_t packet, bool head, bool tail) {
    return packet << 2 | (tail ? kTail : 0) | (head ? kHead : 0);
  }

  struct InputVc {
    std::uint32_t output_vc = 0;  // while active
    std::uint32_t port = 0;       // output
    VcRange vcs;
    std::uint16_t first = 0, count = 0;  // of the ring of flits
    State state = State::idle;
    std::int64_t order = 0;  // where by_ready_: among those that want the switch
  };
  struct OutputVc {
    std::uint32_t holder = kNone;  // the input VC, or the node, whose packet it carries
    std::uint16_t credits = 0;
    bool tail_sent = false;
  };
  struct Node {
    std::uint32_t packet = kNone;
    std::uint32_t sent = 0;  // flits
    std::uint32_t vc = kNone, last_vc = kNone;
  };
  // Input VCs of a router in one stage of its pipeline. The first `batch` are in it until the cycle `due`;
  // others wait for those to leave it.
  struct Stage {
    std::uint32_t count = 0, batch = 0;
    std::int64_t due = 0;
  };
  struct Router {
    Stage routing, vc_allocation, hold, switch_allocation;
    // The last two batches of the switch, as positions: cycle * speedup + step.
    std::int64_t traversal_begin = -1, traversal_end = -1;
    std::uint32_t arrivals = 0;
  };
  struct Flying {
    std::uint32_t target;  // input VC; kToNode and the output VC
    std::uint32_t flit;
  };
  static constexpr std::uint32_t kToNode = std::uint32_t{1} << 31;
  struct SwitchRequest {
    std::uint32_t vc = 0;
    bool urgent = false, asked = false;
  };

  void node_sends(std::uint32_t number);
  void route(std::uint32_t router, std::uint32_t input_port, FlitPacket& packet) {
    set_route(network_, vcs_, router, input_port, random_, packet);
  }
  void router_step(std::uint32_t router, std::int64_t step);
  void accept_arrivals(std::uint32_t router);
  void begin_packet(std::uint32_t router, std::uint32_t vc);
  void evaluate_vcs(std::uint32_t router);
  void evaluate_hold(std::uint32_t router);
  void evaluate_switch(std::uint32_t router);
  void allocate_in_one_step(std::uint32_t router);
  void grant_ready(std::uint32_t router);
  void move_granted(std::uint32_t router, std::int64_t step);
  void set_ready(std::uint32_t number, bool ready);
  // In the queue for the switch, behind or before all others.
  std::int64_t order(std::uint32_t place, std::int64_t step, bool behind) const {
    const std::int64_t turn = (now_ * router_.speedup + step + 1) << 24;
    return (behind ? turn : -turn) + place;
  }
  void update_routing(std::uint32_t router);
  void update_vcs(std::uint32_t router, std::int64_t step);
  void update_hold(std::uint32_t router, std::int64_t step);
  void update_switch(std::uint32_t router, std::int64_t step);
  void move_flit(std::uint32_t router, std::uint32_t vc, std::int64_t step);
  void after_move(std::uint32_t router, std::uint32_t vc, bool tail, bool from_hold);
  void release_hold(std::uint32_t input_port);
  std::int64_t leaving(Router& router, std::int64_t step) const;
  void return_credit(std::uint32_t input_port, std::uint32_t vc);
  // Whether the channel takes a flit that is granted the switch now.
  bool takes_flit(std::uint32_t output) const {
    return !paced_ || channel_free_[output] / FlitChannel::kCycle <= now_ + 1;
  }
  bool works(std::uint32_t router) const;
  bool any_busy() const;
  void credit_arrives(std::uint32_t output_vc);
  void push(Stage& stage, std::vector<std::uint32_t>& list, std::uint32_t router, std::uint32_t vc) {
    list[list_first_[router] + stage.count++] = vc;
  }
  void drop_batch(Stage& stage, std::vector<std::uint32_t>& list, std::uint32_t router);
  std::uint32_t first_vc(std::uint32_t router) const { return network_.first_port[router] * vcs_; }
  void watch_for_deadlock();

  const FlitNetwork& network_;
  const FlitRouter& router_;
  LaggedRandom& random_;
  std::uint32_t vcs_;
  std::uint16_t buffer_;
  bool simple_traversal_;  // a flit that is granted leaves with the next cycle
  bool by_ready_;   // the switch looks at who is ready alone: nothing speculates, is held or takes long
  bool chance_;     // some way is chosen by chance
  bool paced_;      // some channel takes longer than a cycle for a flit
  bool rechecked_;  // a grant of the switch may be void by the time it is used
  FlitAllocators vc_allocator_, switch_allocator_;

  std::vector<InputVc> inputs_;         // of all ports, vcs_ each
  std::vector<std::uint32_t> flits_;    // buffer_ of each
  std::vector<OutputVc> outputs_;       // of all ports and nodes
  std::vector<std::uint32_t> port_of_;  // of an input or output VC
  // Of an input port: the first VC of the output that feeds it, and the cycles that a credit takes to count
  // there.
  struct CreditWay {
    std::uint32_t first_vc = 0, cycles = 0;
  };
  std::vector<CreditWay> credit_ways_;
  // Of an output: where its first VC leads to, and the cycles that a flit takes.
  struct FlitWay {
    std::uint32_t first_target = 0, cycles = 0;
  };
  std::vector<FlitWay> flit_ways_;
  std::vector<std::int64_t> output_free_, credit_free_;  // the next cycle in which a port can send one
  std::vector<std::int64_t>
      channel_free_;  // where paced_: when it can be given the next flit, in 1/65536 cycles
  std::vector<std::uint32_t> switch_offset_;  // of an input port: the VC that is preferred
  std::vector<std::uint32_t> held_by_input_, held_by_output_, held_vc_;  // of ports, where the switch is held
  std::vector<Router> routers_;
  std::vector<Node> nodes_;
  Slots<FlitPacket> packets_;

  std::vector<std::size_t> list_first_;  // of a router's part of the lists
  std::vector<std::uint32_t> routing_list_, vc_list_, hold_list_, switch_list_;
  std::vector<std::uint32_t> vc_result_, hold_result_, switch_result_;  // output VC; output port; kNone: none
  std::vector<Flying> arrivals_;                                        // one place for each port

  std::vector<std::uint64_t> busy_;     // routers, one bit each
  std::vector<std::uint64_t> sending_;  // nodes with a packet
  std::size_t wheel_mask_ = 0;
  std::vector<std::vector<Flying>> flit_wheel_;
  std::vector<std::vector<std::uint32_t>> credit_wheel_;  // output VCs
  std::vector<Arrival> arrived_;

  OneStepSwitch one_step_;  // of routers that are so

  // Of one allocation.
  std::vector<FlitAllocators::Request> requests_;
  std::vector<std::uint32_t> match_, switch_match_;
  // Where by_ready_: input VCs whose first flit could take the switch. Of a router, its outputs that are
  // wanted; of an output, the inputs that want it; of both, the VCs, [matrix_first_[router] + input * ports +
  // output].
  std::vector<std::uint64_t> wanted_outputs_, wanting_inputs_, ready_vcs_;
  std::vector<std::size_t> matrix_first_;
  struct Grant {
    std::int64_t order = 0;
    std::uint32_t vc = 0;
  };
  std::vector<Grant> grants_;
  std::vector<SwitchRequest> asked_;       // [input * ports + output]
  std::vector<std::uint32_t> vc_granted_;  // of the router's input VCs, where heads speculate

  std::int64_t now_ = 0, last_move_ = 0, patience_ = 0;
  std::int64_t flit_hops_ = 0, flits_inside_ = 0, credits_under_way_ = 0;
};

}  // namespace armilla
