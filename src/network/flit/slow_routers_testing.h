// For tests: routers as docs/models/flit.md describes them, in as few words as possible and without a thought
// of speed: matrices of requests, queues that are searched, every router in every cycle.
#pragma once

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "network/flit/flit_network.h"

namespace armilla {

struct SlowPacket {
  int source = 0, destination = 0, flits = 1;
  long created = 0;
  long entered = -1, arrived = -1;  // what happens to it
};

class SlowRouters {
 public:
  // Routes without chance.
  SlowRouters(const FlitNetwork& network, const FlitRouter& router, std::vector<SlowPacket>& packets)
      : network_(network),
        options_(router),
        packets_(packets),
        vcs_(static_cast<int>(router.virtual_channels)) {
    for (std::uint32_t i = 0; i < network.routers; ++i) {
      const int ports = static_cast<int>(network.first_port[i + 1] - network.first_port[i]);
      routers_.emplace_back(ports, vcs_);
      for (auto& port : routers_.back().free) port.assign(vcs_, static_cast<int>(router.buffer));
    }
    nodes_.resize(network.nodes);
    for (SlowNode& node : nodes_) {
      node.free.assign(vcs_, static_cast<int>(router.buffer));
      node.taken.assign(vcs_, false);
      node.tail_sent.assign(vcs_, false);
    }
    for (std::size_t i = 0; i < packets.size(); ++i)
      nodes_[packets[i].source].queue.push_back(static_cast<int>(i));
  }

  void cycle() {
    deliver();
    for (std::size_t i = 0; i < nodes_.size(); ++i) node_sends(static_cast<int>(i));
    for (std::size_t i = 0; i < routers_.size(); ++i) {
      for (step_ = 0; step_ < options_.speedup; ++step_) router_works(static_cast<int>(i));
    }
    ++now_;
  }

 private:
  struct Flit {
    int packet = 0;
    bool head = false, tail = false;
  };
  enum class Stage { nothing, routing, vc, active };
  struct Vc {
    std::deque<Flit> flits;
    Stage stage = Stage::nothing;
    int output = -1, output_vc = -1;
  };
  using Name = std::pair<int, int>;  // port and VC
  // Names wait, then all that wait begin together, and are done together.
  struct Batches {
    std::vector<Name> waiting, inside;
    long done = 0;
  };
  struct Router {
    Router(int ports, int vcs)
        : inputs(ports, std::vector<Vc>(vcs)),
          taken(ports, std::vector<bool>(vcs)),
          tail_sent(ports, std::vector<bool>(vcs)),
          free(ports),
          turn_of_vc(ports),
          vc_grant(ports * vcs),
          vc_accept(ports * vcs),
          grant(ports),
          accept(ports),
          out_queue(ports),
          credit_queue(ports) {}
    std::vector<std::vector<Vc>> inputs;
    std::vector<std::vector<bool>> taken, tail_sent;  // of outputs
    std::vector<std::vector<int>> free;               // room behind outputs
    Batches routing, vc, sw;
    std::map<Name, Name> vc_result;
    std::map<Name, int> sw_result;
    std::vector<int> turn_of_vc, vc_grant, vc_accept, grant, accept;
    std::deque<std::pair<int, std::pair<int, Flit>>> crossing, waiting_to_cross;  // output, output VC, flit
    long crossed = 0;
    std::vector<std::deque<std::pair<int, Flit>>> out_queue;
    std::vector<std::deque<int>> credit_queue;
  };
  struct SlowNode {
    std::deque<int> queue;
    int sent = 0, vc = -1, last_vc = -1;
    std::vector<int> free;
    std::vector<bool> taken, tail_sent;
  };

  int router_of(int port) const { return static_cast<int>(network_.router_of_port[port]); }
  int local(int port) const { return port - static_cast<int>(network_.first_port[router_of(port)]); }
  int global(int router, int port) const { return static_cast<int>(network_.first_port[router]) + port; }
  double period(int output) const {
    return static_cast<double>(network_.outputs[output].period) / FlitChannel::kCycle;
  }
  int senders() const { return static_cast<int>(network_.outputs.size()); }

  void deliver() {
    for (const auto& [where, what] : flying_[now_]) {
      const FlitChannel& channel = network_.outputs[where];
      if (channel.node != kNoFlitPort) {
        if (what.second.tail) packets_[what.second.packet].arrived = now_;
        credits_[now_ + channel.latency + 1 + options_.credit_delay].push_back({where, what.first});
        continue;
      }
      const int input = static_cast<int>(channel.input);
      arrivals_[router_of(input)][local(input)] = what;
    }
    for (const auto& [output, vc] : credits_[now_]) {
      const bool node = output >= static_cast<int>(network_.ports());
      SlowNode* const sender = node ? &nodes_[output - network_.ports()] : nullptr;
      Router* const router = node ? nullptr : &routers_[router_of(output)];
      int& room = node ? sender->free[vc] : router->free[local(output)][vc];
      ++room;
      const bool last = node ? sender->tail_sent[vc] : router->tail_sent[local(output)][vc];
      if (!options_.atomic_vcs || !last || room < options_.buffer) continue;
      if (node)
        sender->taken[vc] = false;
      else
        router->taken[local(output)][vc] = false;
    }
  }

  void node_sends(int number) {
    SlowNode& node = nodes_[number];
    if (node.queue.empty() || packets_[node.queue.front()].created > now_) return;
    SlowPacket& packet = packets_[node.queue.front()];
    if (node.sent == 0) {
      for (int i = 1; i <= vcs_ && node.vc < 0; ++i) {
        const int vc = node.last_vc < 0 ? 0 : (node.last_vc + i) % vcs_;
        if (!node.taken[vc] && node.free[vc] > 0) node.vc = vc;
      }
      if (node.vc < 0) return;
    }
    if (node.free[node.vc] == 0) return;
    const Flit flit = {node.queue.front(), node.sent == 0, node.sent + 1 == packet.flits};
    if (flit.head) {
      packet.entered = now_;
      node.last_vc = node.vc;
    }
    --node.free[node.vc];
    node.taken[node.vc] = !flit.tail || options_.atomic_vcs;
    node.tail_sent[node.vc] = flit.tail;
    const int output = static_cast<int>(network_.ports()) + number;
    flying_[now_ + network_.outputs[output].latency + 1].push_back({output, {node.vc, flit}});
    ++node.sent;
    if (!flit.tail) return;
    node.queue.pop_front();
    node.sent = 0;
    node.vc = -1;
  }

  void begin_packet(Router& router, Name name) {
    router.inputs[name.first][name.second].stage = options_.routing_delay > 0 ? Stage::routing : Stage::vc;
    (options_.routing_delay > 0 ? router.routing : router.vc).waiting.push_back(name);
    if (options_.routing_delay == 0 && options_.speculative) router.sw.waiting.push_back(name);
  }

  // Begins a batch where none is inside; true: one has just begun.
  bool begin(Batches& batches, long delay) const {
    if (!batches.inside.empty() || batches.waiting.empty()) return false;
    batches.inside.swap(batches.waiting);
    batches.done = now_ + delay - 1;
    return true;
  }
  bool done(const Batches& batches) const { return !batches.inside.empty() && batches.done <= now_; }

  // One iteration of islip on a matrix: the output of each input, or -1.
  static std::vector<int> islip(const std::vector<std::vector<bool>>& asks, std::vector<int>& grant,
                                std::vector<int>& accept) {
    const int side = static_cast<int>(asks.size());
    std::vector<int> granted(side, -1), result(side, -1);
    for (int output = 0; output < side; ++output) {
      for (int i = 0; i < side && granted[output] < 0; ++i) {
        const int input = (grant[output] + i) % side;
        if (asks[input][output]) granted[output] = input;
      }
    }
    for (int input = 0; input < side; ++input) {
      for (int i = 0; i < side && result[input] < 0; ++i) {
        const int output = (accept[input] + i) % side;
        if (granted[output] == input) result[input] = output;
      }
      if (result[input] < 0) continue;
      grant[result[input]] = (input + 1) % side;
      accept[input] = (result[input] + 1) % side;
    }
    return result;
  }

  int route(int number, const Vc& vc) const {
    return network_
        .route(static_cast<std::uint32_t>(number),
               static_cast<std::uint32_t>(packets_[vc.flits.front().packet].destination))
        .port;
  }

  void router_works(int number) {
    Router& router = routers_[number];
    const int ports = static_cast<int>(router.inputs.size());
    for (const auto& [port, what] : arrivals_[number]) {
      Vc& vc = router.inputs[port][what.first];
      vc.flits.push_back(what.second);
      if (vc.stage == Stage::nothing)
        begin_packet(router, {port, what.first});
      else if (vc.stage == Stage::active && vc.flits.size() == 1)
        router.sw.waiting.push_back({port, what.first});
    }
    arrivals_[number].clear();

    // Decide.
    begin(router.routing, options_.routing_delay);
    if (begin(router.vc, options_.vc_allocation_delay)) {
      std::vector<std::vector<bool>> asks(ports * vcs_, std::vector<bool>(ports * vcs_));
      for (const auto& [port, vc] : router.vc.inside) {
        const int output = route(number, router.inputs[port][vc]);
        for (int candidate = 0; candidate < vcs_; ++candidate)
          asks[port * vcs_ + vc][output * vcs_ + candidate] = !router.taken[output][candidate];
      }
      const std::vector<int> match = islip(asks, router.vc_grant, router.vc_accept);
      router.vc_result.clear();
      for (const Name& name : router.vc.inside) {
        const int output = match[name.first * vcs_ + name.second];
        if (output >= 0) router.vc_result[name] = {output / vcs_, output % vcs_};
      }
    }
    if (begin(router.sw, options_.switch_allocation_delay)) choose_for_switch(number);
    if (done(router.sw)) drop_void_grants(router);

    // Move.
    if (done(router.routing)) {
      for (const Name& name : router.routing.inside) {
        router.inputs[name.first][name.second].stage = Stage::vc;
        router.vc.waiting.push_back(name);
        if (options_.speculative) router.sw.waiting.push_back(name);
      }
      router.routing.inside.clear();
    }
    if (done(router.vc)) {
      for (const Name& name : router.vc.inside) {
        const auto found = router.vc_result.find(name);
        if (found == router.vc_result.end()) {
          router.vc.waiting.push_back(name);
          continue;
        }
        Vc& vc = router.inputs[name.first][name.second];
        vc.stage = Stage::active;
        vc.output = found->second.first;
        vc.output_vc = found->second.second;
        router.taken[vc.output][vc.output_vc] = true;
        router.tail_sent[vc.output][vc.output_vc] = false;
        if (!options_.speculative) router.sw.waiting.push_back(name);
      }
      router.vc.inside.clear();
    }
    const std::size_t in_crossing = router.crossing.size();
    if (in_crossing == 0 && !router.waiting_to_cross.empty()) {
      router.crossing.swap(router.waiting_to_cross);
      router.crossed = now_ + options_.traversal_delay - 1;
    }
    if (done(router.sw)) {
      const std::vector<Name> inside = std::exchange(router.sw.inside, {});
      for (const Name& name : inside) {
        if (router.sw_result.count(name) > 0)
          grant_switch(router, number, name);
        else
          router.sw.waiting.push_back(name);
      }
    }
    if (!router.crossing.empty() && router.crossed <= now_) {
      for (const auto& [output, what] : router.crossing) router.out_queue[output].push_back(what);
      router.crossing.clear();
    }
    if (step_ + 1 == options_.speedup) write_channels(number);
  }

  void choose_for_switch(int number) {
    Router& router = routers_[number];
    const int ports = static_cast<int>(router.inputs.size());
    std::vector<std::vector<bool>> asks(ports, std::vector<bool>(ports));
    std::map<Name, Name> best;  // of input and output: VC, and whether it speculates
    for (const auto& [port, number_of_vc] : router.sw.inside) {
      const Vc& vc = router.inputs[port][number_of_vc];
      int output = vc.output;
      bool may = false;
      const bool speculates = vc.stage != Stage::active;
      if (speculates) {
        output = route(number, vc);
        for (int candidate = 0; candidate < vcs_; ++candidate)
          may = may || (!router.taken[output][candidate] && router.free[output][candidate] > 0);
      } else {
        may = router.free[output][vc.output_vc] > 0;
      }
      if (!may || static_cast<long>(channel_free_[global(number, output)]) > now_ + 1) continue;
      asks[port][output] = true;
      const auto distance = [&](int candidate) {
        return (candidate + vcs_ - router.turn_of_vc[port]) % vcs_;
      };
      const auto found = best.find({port, output});
      if (found == best.end() || (found->second.second == 1 && !speculates) ||
          ((found->second.second == 1) == speculates &&
           distance(number_of_vc) < distance(found->second.first)))
        best[{port, output}] = {number_of_vc, speculates ? 1 : 0};
    }
    const std::vector<int> match = islip(asks, router.grant, router.accept);
    router.sw_result.clear();
    for (int port = 0; port < ports; ++port) {
      if (match[port] < 0) continue;
      const int vc = best.at({port, match[port]}).first;
      router.turn_of_vc[port] = (vc + 1) % vcs_;
      router.sw_result[{port, vc}] = match[port];
    }
  }

  // Of speculation that failed, and of room that has gone.
  void drop_void_grants(Router& router) const {
    for (auto grant = router.sw_result.begin(); grant != router.sw_result.end();) {
      const auto& [name, output] = *grant;
      const Vc& vc = router.inputs[name.first][name.second];
      bool holds = false;
      if (vc.stage == Stage::active) {
        holds = router.free[output][vc.output_vc] > 0;
      } else {
        const auto found = done(router.vc) ? router.vc_result.find(name) : router.vc_result.end();
        holds = found != router.vc_result.end() && found->second.first == output &&
                router.free[output][found->second.second] > 0;
      }
      grant = holds ? std::next(grant) : router.sw_result.erase(grant);
    }
  }

  void grant_switch(Router& router, int number, Name name) {
    Vc& vc = router.inputs[name.first][name.second];
    const Flit flit = vc.flits.front();
    vc.flits.pop_front();
    --router.free[vc.output][vc.output_vc];
    if (flit.tail) {
      router.tail_sent[vc.output][vc.output_vc] = true;
      router.taken[vc.output][vc.output_vc] = options_.atomic_vcs;
    }
    router.waiting_to_cross.push_back({vc.output, {vc.output_vc, flit}});
    router.credit_queue[name.first].push_back(name.second);
    // With more steps than one in a cycle, flits queue at channels of one cycle.
    double& free = channel_free_[global(number, vc.output)];
    if (options_.speedup == 1)
      free = std::max(free, static_cast<double>(now_ + 1)) + period(global(number, vc.output));
    if (flit.tail) {
      vc.stage = Stage::nothing;
      if (!vc.flits.empty()) begin_packet(router, name);
    } else if (!vc.flits.empty()) {
      router.sw.waiting.push_back(name);
    }
  }

  void write_channels(int number) {
    Router& router = routers_[number];
    for (std::size_t port = 0; port < router.inputs.size(); ++port) {
      if (!router.out_queue[port].empty()) {
        const int output = global(number, static_cast<int>(port));
        flying_[now_ + network_.outputs[output].latency + std::lround(std::ceil(period(output)))].push_back(
            {output, router.out_queue[port].front()});
        router.out_queue[port].pop_front();
      }
      if (router.credit_queue[port].empty()) continue;
      for (int output = 0; output < senders(); ++output) {
        if (network_.outputs[output].input !=
            static_cast<std::uint32_t>(global(number, static_cast<int>(port))))
          continue;
        const long delay = output < static_cast<int>(network_.ports()) ? options_.credit_delay : 0;
        credits_[now_ + network_.outputs[output].latency + 1 + delay].push_back(
            {output, router.credit_queue[port].front()});
      }
      router.credit_queue[port].pop_front();
    }
  }

  const FlitNetwork& network_;
  const FlitRouter& options_;
  std::vector<SlowPacket>& packets_;
  int vcs_;
  long now_ = 0;
  std::int64_t step_ = 0;
  std::vector<Router> routers_;
  std::vector<SlowNode> nodes_;
  std::map<long, std::vector<std::pair<int, std::pair<int, Flit>>>> flying_;  // by cycle: output, VC, flit
  std::map<long, std::vector<Name>> credits_;                                 // output and VC
  std::map<int, std::map<int, std::pair<int, Flit>>> arrivals_;               // by router and port
  std::map<int, double> channel_free_;                                        // by output
};

}  // namespace armilla
