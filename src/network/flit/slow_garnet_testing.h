// For tests: Garnet's routers as docs/models/flit.md describes them, in as few words as possible: counters,
// queues that are searched, every router in every cycle.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <vector>

#include "network/flit/flit_network.h"
#include "network/flit/slow_routers_testing.h"

namespace armilla {

class SlowGarnet {
 public:
  // Routes without chance. The router's latency is routing_delay + 1; whole periods.
  SlowGarnet(const FlitNetwork& network, const FlitRouter& router, std::vector<SlowPacket>& packets)
      : network_(network),
        vcs_(static_cast<int>(router.virtual_channels)),
        latency_(router.routing_delay + 1),
        packets_(packets),
        inputs_(network.ports(), std::vector<Input>(vcs_)),
        outputs_(network.outputs.size(), std::vector<Output>(vcs_, {false, static_cast<int>(router.buffer)})),
        turn_of_vc_(network.ports()),
        turn_of_input_(network.ports()),
        busy_until_(network.ports()),
        queues_(network.nodes),
        sent_(network.nodes),
        node_vc_(network.nodes, -1) {
    for (int packet = 0; packet < static_cast<int>(packets.size()); ++packet)
      queues_[packets[packet].source].push_back(packet);
  }

  bool done() const {
    return std::all_of(packets_.begin(), packets_.end(), [](const SlowPacket& p) { return p.arrived >= 0; });
  }

  void cycle() {
    for (const Flight& flight : flying_[now_]) {
      const FlitChannel& channel = network_.outputs[flight.output];
      if (channel.node == kNoFlitPort) {
        inputs_[channel.input][flight.vc].flits.push_back({flight.flit, now_ + latency_ - 1});
        continue;
      }
      if (flight.flit.tail) packets_[flight.flit.packet].arrived = now_;
      return_credit(flight.output, flight.vc, flight.flit.tail);
    }
    for (const Credit& credit : credits_[now_]) {
      Output& output = outputs_[credit.output][credit.vc];
      ++output.room;
      if (credit.free) output.taken = false;
    }
    for (int node = 0; node < static_cast<int>(network_.nodes); ++node) node_sends(node);
    for (int router = 0; router < static_cast<int>(network_.routers); ++router) router_works(router);
    ++now_;
  }

 private:
  struct Flit {
    int packet = 0;
    bool head = false, tail = false;
  };
  struct Arrived {
    Flit flit;
    long ready = 0;  // when it may ask for the switch
  };
  struct Input {
    std::deque<Arrived> flits;
    int output_vc = -1;  // of the packet that is in it
  };
  struct Output {
    bool taken = false;
    int room = 0;
  };
  struct Flight {
    int output = 0, vc = 0;
    Flit flit;
  };
  struct Credit {
    int output = 0, vc = 0;
    bool free = false;
  };

  // A cycle after the link's own.
  void return_credit(int output, int vc, bool free) {
    credits_[now_ + network_.outputs[output].latency + 1 + 1].push_back({output, vc, free});
  }
  int period(int output) const {
    return static_cast<int>(network_.outputs[output].period / FlitChannel::kCycle);
  }

  void node_sends(int node) {
    std::deque<int>& queue = queues_[node];
    if (queue.empty() || packets_[queue.front()].created > now_) return;
    const int output = static_cast<int>(network_.ports()) + node;
    SlowPacket& packet = packets_[queue.front()];
    if (sent_[node] == 0) {
      int found = -1;
      for (int i = 1; i <= vcs_ && found < 0; ++i) {
        const int vc = (node_vc_[node] + i) % vcs_;
        if (!outputs_[output][vc].taken) found = vc;
      }
      if (found < 0) return;
      node_vc_[node] = found;
      outputs_[output][found].taken = true;
      packet.entered = now_;
    }
    Output& vc = outputs_[output][node_vc_[node]];
    if (vc.room == 0) return;
    --vc.room;
    const Flit flit = {queue.front(), sent_[node] == 0, sent_[node] + 1 == packet.flits};
    flying_[now_ + network_.outputs[output].latency + 1].push_back({output, node_vc_[node], flit});
    ++sent_[node];
    if (!flit.tail) return;
    queue.pop_front();
    sent_[node] = 0;
  }

  // The output of the first flit of an input VC if it may go now, else -1.
  int may_go(int router, int input, int vc) const {
    const Input& buffer = inputs_[input][vc];
    if (buffer.flits.empty() || buffer.flits.front().ready > now_) return -1;
    const auto destination =
        static_cast<std::uint32_t>(packets_[buffer.flits.front().flit.packet].destination);
    const int output = static_cast<int>(network_.first_port[router]) +
                       network_.route(static_cast<std::uint32_t>(router), destination).port;
    if (busy_until_[output] > now_ + 1) return -1;
    if (!buffer.flits.front().flit.head) return outputs_[output][buffer.output_vc].room > 0 ? output : -1;
    return lowest_free(output) >= 0 ? output : -1;
  }
  int lowest_free(int output) const {
    for (int vc = 0; vc < vcs_; ++vc) {
      if (!outputs_[output][vc].taken) return vc;
    }
    return -1;
  }

  void router_works(int router) {
    const int first = static_cast<int>(network_.first_port[router]);
    const int ports = static_cast<int>(network_.first_port[router + 1]) - first;
    std::vector<int> asked(ports, -1), with(ports, -1);  // of an input: the output and the VC
    for (int input = 0; input < ports; ++input) {
      for (int i = 0; i < vcs_ && asked[input] < 0; ++i) {
        with[input] = (turn_of_vc_[first + input] + i) % vcs_;
        asked[input] = may_go(router, first + input, with[input]);
      }
    }
    for (int output = first; output < first + ports; ++output) {
      for (int i = 0; i < ports; ++i) {
        const int input = (turn_of_input_[output] + i) % ports;
        if (asked[input] != output) continue;
        turn_of_input_[output] = (input + 1) % ports;
        turn_of_vc_[first + input] = (with[input] + 1) % vcs_;
        pass(first + input, with[input], output);
        break;
      }
    }
  }

  void pass(int input, int vc, int output) {
    Input& buffer = inputs_[input][vc];
    const Flit flit = buffer.flits.front().flit;
    buffer.flits.pop_front();
    if (flit.head) {
      buffer.output_vc = lowest_free(output);
      outputs_[output][buffer.output_vc].taken = true;
    }
    --outputs_[output][buffer.output_vc].room;
    busy_until_[output] = now_ + 1 + period(output);
    flying_[now_ + network_.outputs[output].latency + 1 + period(output)].push_back(
        {output, buffer.output_vc, flit});
    for (int feeder = 0; feeder < static_cast<int>(network_.outputs.size()); ++feeder) {
      if (network_.outputs[feeder].input == static_cast<std::uint32_t>(input))
        return_credit(feeder, vc, flit.tail);
    }
  }

  const FlitNetwork& network_;
  int vcs_;
  long latency_, now_ = 0;
  std::vector<SlowPacket>& packets_;
  std::vector<std::vector<Input>> inputs_;
  std::vector<std::vector<Output>> outputs_;
  std::vector<int> turn_of_vc_, turn_of_input_;
  std::vector<long> busy_until_;  // of outputs, one flit after another
  std::vector<std::deque<int>> queues_;
  std::vector<int> sent_, node_vc_;
  std::map<long, std::vector<Flight>> flying_;
  std::map<long, std::vector<Credit>> credits_;
};

}  // namespace armilla
