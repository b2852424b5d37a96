// For tests: a machine, a network, messages, and when each arrives.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "event/event_queue.h"
#include "network/network.h"

namespace armilla {

struct Sent {
  Message message;
  Time at;
};

struct Seen {
  std::vector<Time> arrivals;
  std::vector<LinkUse> links;
};

// Sends messages at their times and notes when each arrives.
class NetworkBench : public MessageLabels, public EventHandler {
 public:
  // `shared`: dimensions of several senders (NetworkSetup::shared_dimensions).
  explicit NetworkBench(const Machine& machine, const std::string& network, std::uint32_t shared = 0)
      : target_(queue_.add_handler(*this)) {
    NetworkSetup setup{machine, queue_, *this};
    setup.shared_dimensions = shared;
    network_ = make_network(parse_component(network, "test"), setup);
  }

  Seen play(std::vector<Sent> sent) {
    sent_ = std::move(sent);
    seen_.arrivals.assign(sent_.size(), Time(-1));
    for (std::size_t i = 0; i < sent_.size(); ++i) queue_.schedule(sent_[i].at, target_, i);
    EXPECT_TRUE(queue_.run());
    seen_.links = network_->links();
    return seen_;
  }
  void handle(std::uint64_t argument) override {
    if (argument < sent_.size()) {
      Message message = sent_[argument].message;
      message.target = target_;
      message.argument = sent_.size() + argument;
      network_->send(message);
    } else {
      EXPECT_EQ(seen_.arrivals[argument - sent_.size()], Time(-1)) << "arrived twice";
      seen_.arrivals[argument - sent_.size()] = queue_.now();
    }
  }

 private:
  EventQueue queue_;
  std::uint32_t target_;
  std::unique_ptr<Network> network_;
  std::vector<Sent> sent_;
  Seen seen_;
};

inline Seen play(const Machine& machine, const std::string& network, const std::vector<Sent>& sent,
                 std::uint32_t shared = 0) {
  return NetworkBench(machine, network, shared).play(sent);
}

inline Machine machine_with(DimensionKind kind, std::int64_t size) {
  Machine machine;
  machine.dimensions = {{"net", kind, size, gigabytes_per_second(12.5), nanoseconds(700)}};
  return machine;
}

// The star of packet/packet_testing.h as a machine.
inline Machine star_machine(std::int64_t hosts, double loss = 0) {
  Machine machine;
  machine.dimensions = {
      {"net", DimensionKind::switched, hosts, gigabytes_per_second(12.5), nanoseconds(1000)}};
  machine.graph = links_of(machine);
  machine.graph.devices_forward = false;
  for (Cable& cable : machine.graph.cables) cable.there.loss = cable.back.loss = loss;
  return machine;
}

inline std::int64_t sum_of_bytes(const std::vector<LinkUse>& links) {
  std::int64_t sum = 0;
  for (const LinkUse& link : links) sum += link.bytes.value;
  return sum;
}

}  // namespace armilla
