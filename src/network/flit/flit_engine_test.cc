#include "network/flit/flit_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/cases_testing.h"
#include "base/error_testing.h"
#include "base/progress_testing.h"
#include "network/flit.h"
#include "network/flit/slow_garnet_testing.h"
#include "network/flit/slow_routers_testing.h"

namespace armilla {
namespace {

// Routers with links in both directions, the given nodes at each, and the shortest ways.
struct LinkBetween {
  std::uint32_t from, to, latency;
};
FlitNetwork network_of(std::uint32_t routers, const std::vector<std::uint32_t>& node_routers,
                       const std::vector<LinkBetween>& links) {
  FlitNetwork network;
  network.nodes = static_cast<std::uint32_t>(node_routers.size());
  network.routers = routers;
  std::vector<std::uint32_t> ports(routers);
  for (const std::uint32_t router : node_routers) ++ports[router];
  for (const LinkBetween& link : links) {
    ++ports[link.from];
    ++ports[link.to];
  }
  network.first_port = {0};
  for (const std::uint32_t count : ports) network.first_port.push_back(network.first_port.back() + count);
  network.number_ports();
  network.outputs.resize(network.ports() + network.nodes);
  network.routes.resize(static_cast<std::size_t>(routers) * network.nodes);
  std::vector<std::uint32_t> used(routers);
  std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> ways(routers);  // port and neighbour
  for (const LinkBetween& link : links) {
    const std::uint32_t a = used[link.from]++, b = used[link.to]++;
    network.outputs[network.first_port[link.from] + a] = {network.first_port[link.to] + b, kNoFlitPort,
                                                          link.latency};
    network.outputs[network.first_port[link.to] + b] = {network.first_port[link.from] + a, kNoFlitPort,
                                                        link.latency};
    ways[link.from].emplace_back(a, link.to);
    ways[link.to].emplace_back(b, link.from);
  }
  for (std::uint32_t node = 0; node < network.nodes; ++node) {
    const std::uint32_t router = node_routers[node], port = used[router]++;
    network.outputs[network.first_port[router] + port] = {kNoFlitPort, node, 1};
    network.outputs[network.ports() + node] = {network.first_port[router] + port, kNoFlitPort, 1};
    const auto row = [&](std::uint32_t at) -> RouteEntry& {
      return network.routes[static_cast<std::size_t>(at) * network.nodes + node];
    };
    std::vector<std::uint32_t> reached = {router};
    std::vector<bool> seen(routers);
    seen[router] = true;
    row(router) = {static_cast<std::uint16_t>(port), 0, 0, true};
    for (std::size_t i = 0; i < reached.size(); ++i) {
      for (std::uint32_t other = 0; other < routers; ++other) {
        for (const auto& [way, to] : ways[other]) {
          if (to != reached[i] || seen[other]) continue;
          seen[other] = true;
          row(other) = {static_cast<std::uint16_t>(way), 0, 0, false};
          reached.push_back(other);
        }
      }
    }
  }
  return network;
}

// When each packet entered the network and arrived.
struct Played {
  std::vector<std::pair<long, long>> times;
  bool at_rest = false;
  std::int64_t flit_hops = 0;
};
Played play(const FlitNetwork& network, const FlitRouter& router, const std::vector<SlowPacket>& packets) {
  LaggedRandom random(LaggedRandom::Kind::integers, 1);
  FlitEngine engine(network, router, random);
  std::vector<std::deque<std::size_t>> queues(network.nodes);
  for (std::size_t i = 0; i < packets.size(); ++i) queues[packets[i].source].push_back(i);
  Played played;
  played.times.resize(packets.size());
  std::vector<std::size_t> name;  // of the engine's packets
  std::size_t left = packets.size();
  std::map<std::uint32_t, std::size_t> at_node;
  while (left > 0 || engine.credits_under_way() > 0) {
    for (const FlitEngine::Arrival& arrival : engine.receive()) {
      if (!arrival.tail) continue;
      const FlitPacket& packet = engine.packet(arrival.packet);
      EXPECT_EQ(packet.destination, arrival.node);
      const auto which = static_cast<std::size_t>(packet.created);  // a label here
      played.times[which] = {packet.entered, engine.now()};
      engine.forget(arrival.packet);
      --left;
    }
    for (std::uint32_t node = 0; node < network.nodes; ++node) {
      if (!engine.idle(node) || queues[node].empty() || packets[queues[node].front()].created > engine.now())
        continue;
      const std::size_t which = queues[node].front();
      queues[node].pop_front();
      FlitPacket packet;
      packet.source = node;
      packet.destination = static_cast<std::uint32_t>(packets[which].destination);
      packet.flits = static_cast<std::uint32_t>(packets[which].flits);
      packet.created = static_cast<std::int64_t>(which);
      engine.send(node, packet);
    }
    engine.step();
    if (engine.now() > 100000) break;
  }
  played.at_rest = engine.at_rest();
  played.flit_hops = engine.flit_hops();
  return played;
}

class RandomCase {
 public:
  explicit RandomCase(unsigned seed) : random_(seed) {
    do {
      make_network();
      router.virtual_channels = from(1, 3);
    } while (!possible_deadlock(network, router.virtual_channels).empty());
    router.buffer = from(1, 5);
    router.routing_delay = from(0, 2);
    router.vc_allocation_delay = from(1, 3) / 2 + 1;
    router.switch_allocation_delay = from(1, 3) / 2 + 1;
    router.traversal_delay = from(1, 3) / 2 + 1;
    router.credit_delay = from(0, 2);
    router.speedup = from(1, 4) == 1 ? 2 : 1;
    router.speculative = from(0, 1) == 1;
    router.atomic_vcs = from(0, 1) == 1;
    // Slow links, where each flit that is granted the switch is sent in the next cycle.
    if (router.speedup == 1 && router.traversal_delay == 1 && from(0, 1) == 1) {
      for (std::uint32_t output = 0; output < network.ports(); ++output)
        network.outputs[output].period = static_cast<std::uint32_t>(from(4, 14)) * FlitChannel::kCycle / 4;
    }
    long time = 0;
    for (int i = 0; i < 60; ++i) {
      time += from(0, 3);
      packets.push_back({from(0, static_cast<int>(network.nodes) - 1),
                         from(0, static_cast<int>(network.nodes) - 1), from(1, 6), time});
    }
  }

  // Atomic virtual channels, both allocations in one step; a link of l cycles is a channel of l - 1. Packets
  // of as many flits as a buffer holds and more.
  void become_garnet() {
    FlitRouter garnet;
    garnet.one_step = garnet.atomic_vcs = true;
    garnet.credit_delay = 1;
    garnet.routing_delay = from(0, 2);
    garnet.virtual_channels = router.virtual_channels * (from(0, 9) == 0 ? 30 : 1);
    garnet.buffer = router.buffer;
    router = garnet;
    for (FlitChannel& channel : network.outputs) {
      channel.latency = static_cast<std::uint32_t>(channel.latency - (from(0, 1) == 0 ? 0 : 1));
      channel.period = channel.whole_period() * FlitChannel::kCycle;
    }
  }

  FlitNetwork network;
  FlitRouter router;
  std::vector<SlowPacket> packets;

 private:
  int from(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  void make_network() {
    const auto routers = static_cast<std::uint32_t>(from(1, 6));
    std::vector<std::uint32_t> nodes;
    for (std::uint32_t router_number = 0; router_number < routers; ++router_number)
      nodes.insert(nodes.end(), static_cast<std::size_t>(from(1, 2)), router_number);
    std::vector<LinkBetween> links;
    const auto link = [&](int a, int b) {
      links.push_back({static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b),
                       static_cast<std::uint32_t>(from(1, 3))});
    };
    for (int i = 1; i < static_cast<int>(routers); ++i) link(from(0, i - 1), i);
    for (int i = from(0, 2); i > 0 && routers > 2; --i) {
      const int a = from(0, static_cast<int>(routers) - 1);
      link(a, (a + from(1, static_cast<int>(routers) - 1)) % static_cast<int>(routers));
    }
    network = network_of(routers, nodes, links);
  }

  std::mt19937 random_;
};

TEST(FlitEngine, PlaysAsTheSlowRoutersDo) {
  for (unsigned seed = 0; seed < 300; seed += kCaseStep) {
    SCOPED_TRACE(seed);
    RandomCase one(seed);
    const Played played = play(one.network, one.router, one.packets);
    SlowRouters slow(one.network, one.router, one.packets);
    for (int i = 0; i < 20000; ++i) {
      slow.cycle();
      if (std::all_of(one.packets.begin(), one.packets.end(),
                      [](const SlowPacket& p) { return p.arrived >= 0; }))
        break;
    }
    std::vector<std::pair<long, long>> expected;
    for (const SlowPacket& packet : one.packets) expected.emplace_back(packet.entered, packet.arrived);
    ASSERT_EQ(played.times, expected)
        << "VCs " << one.router.virtual_channels << " buffer " << one.router.buffer << " rd "
        << one.router.routing_delay << " va " << one.router.vc_allocation_delay << " sa "
        << one.router.switch_allocation_delay << " st " << one.router.traversal_delay << " cd "
        << one.router.credit_delay << " speedup " << one.router.speedup << " spec " << one.router.speculative
        << " atomic " << one.router.atomic_vcs;
    EXPECT_TRUE(played.at_rest);
  }
}

TEST(FlitEngine, PlaysAsSlowGarnetDoes) {
  for (unsigned seed = 0; seed < 300; seed += kCaseStep) {
    SCOPED_TRACE(seed);
    RandomCase one(seed);
    one.become_garnet();
    const Played played = play(one.network, one.router, one.packets);
    SlowGarnet slow(one.network, one.router, one.packets);
    for (int i = 0; i < 40000 && !slow.done(); ++i) slow.cycle();
    std::vector<std::pair<long, long>> expected;
    for (const SlowPacket& packet : one.packets) expected.emplace_back(packet.entered, packet.arrived);
    ASSERT_EQ(played.times, expected) << "VCs " << one.router.virtual_channels << " buffer "
                                      << one.router.buffer << " router " << one.router.routing_delay + 1;
    EXPECT_TRUE(played.at_rest);
  }
}

TEST(FlitEngine, GivesBackEveryCreditAndDeliversEveryFlit) {
  for (const FlitAllocator allocator :
       {FlitAllocator::islip, FlitAllocator::separable_input_first, FlitAllocator::separable_output_first,
        FlitAllocator::wavefront, FlitAllocator::pim}) {
    for (const bool hold : {false, true}) {
      for (unsigned seed = 1000; seed < 1020; ++seed) {
        RandomCase one(seed);
        one.router.vc_allocator = one.router.switch_allocator = allocator;
        one.router.hold_switch = hold;
        const Played played = play(one.network, one.router, one.packets);
        EXPECT_TRUE(played.at_rest) << seed;
        for (std::size_t i = 0; i < one.packets.size(); ++i) {
          EXPECT_GE(played.times[i].first, one.packets[i].created);
          EXPECT_GE(played.times[i].second, played.times[i].first + 4 + one.packets[i].flits - 1);
        }
      }
    }
  }
}

// A ring of four in which all packets go the same way, two routers far: each buffer waits for the next.
FlitNetwork one_way_ring() {
  FlitNetwork network = network_of(4, {0, 1, 2, 3}, {{0, 1, 1}, {1, 2, 1}, {2, 3, 1}, {3, 0, 1}});
  for (std::uint32_t router = 0; router < 4; ++router) {
    for (std::uint32_t node = 0; node < 4; ++node) {
      if (router == node) continue;
      for (std::uint16_t port = 0; port < 3; ++port) {
        const FlitChannel& channel = network.outputs[network.first_port[router] + port];
        if (channel.input != kNoFlitPort && network.router_of_port[channel.input] == (router + 1) % 4)
          network.routes[router * 4 + node] = {port, 0, 0, false};
      }
    }
  }
  return network;
}

TEST(FlitEngine, ExplainsADeadlock) {
  const FlitNetwork network = one_way_ring();
  EXPECT_EQ(possible_deadlock(network, 1),
            "router 1 from router 0, router 2 from router 1, router 3 from router 2, router 0 from router 3, "
            "and router 1 "
            "from router 0 again");
  FlitRouter router;
  router.virtual_channels = 1;
  router.buffer = 2;
  std::vector<SlowPacket> packets;
  for (int node = 0; node < 4; ++node) packets.push_back({node, (node + 3) % 4, 20, 0});
  const std::string error = error_of([&] { play(network, router, packets); });
  EXPECT_THAT(error, testing::HasSubstr("packets wait for each other for ever (deadlock) since cycle"));
  for (const char* const buffer :
       {"router 0 from router 3 (VC 0, a packet from 3 to 2)", "router 1 from router 0 (VC 0",
        "router 2 from router 1 (VC 0", "router 3 from router 2 (VC 0", " again"})
    EXPECT_THAT(error, testing::HasSubstr(buffer));
}

TEST(FlitEngine, IsFreeOfDeadlockWithTheVirtualChannelsThatRoutesNeed) {
  FlitStudy study;
  study.k = 4;
  EXPECT_THAT(possible_deadlock(make_flit_network(study), 1), testing::HasSubstr("again"));
  EXPECT_EQ(possible_deadlock(make_flit_network(study), 2), "");
  EXPECT_EQ(possible_deadlock(make_flit_network(study), 4), "");
  study.topology = FlitTopology::mesh;
  EXPECT_EQ(possible_deadlock(make_flit_network(study), 1), "");
  study.topology = FlitTopology::fat_tree;
  study.n = 3;
  EXPECT_EQ(possible_deadlock(make_flit_network(study), 1), "");
  study.topology = FlitTopology::dragonfly;
  study.k = 2;
  study.n = 1;
  EXPECT_EQ(possible_deadlock(make_flit_network(study), 2), "");
}

// Every packet alone, from everywhere to everywhere.
TEST(FlitEngine, TakesExactlyTheTimeOfTheLawWhereNothingIsInTheWay) {
  int number = 0;
  for (const FlitTopology topology : {FlitTopology::mesh, FlitTopology::torus, FlitTopology::fat_tree}) {
    for (std::int64_t n = 1; n <= 3; ++n) {
      for (int variant = 0; variant < 12; ++variant) {
        if (number++ % kCaseStep != 0) continue;
        FlitStudy study;
        study.topology = topology;
        study.k = n == 3 ? 2 : 4;
        study.n = n;
        study.long_links = variant % 2 == 0;
        study.router.virtual_channels = 4;
        study.router.buffer = 16;
        study.router.routing_delay = variant % 3;
        study.router.speculative = variant / 3 % 2 == 1;
        study.router.atomic_vcs = variant / 6 == 1;
        study.router.speedup = variant == 6 || variant == 9 ? 2 : 1;
        study.router.vc_allocation_delay = variant == 4 ? 2 : 1;
        study.traffic.packet_flits = variant % 4 + 1;
        if (variant == 8) {  // whose batches space the flits of a packet
          study.traffic.packet_flits = 1;
          study.router.switch_allocation_delay = 2;
          study.router.traversal_delay = 3;
        }
        const FlitNetwork network = make_flit_network(study);
        for (std::uint32_t from = 0; from < network.nodes; ++from) {
          for (std::uint32_t to = 0; to < network.nodes; ++to) {
            const auto flits = static_cast<int>(study.traffic.packet_flits);
            const Played played =
                play(network, study.router, {{static_cast<int>(from), static_cast<int>(to), flits, 0}});
            const double hops = static_cast<double>(played.flit_hops) / flits;
            EXPECT_EQ(static_cast<double>(played.times.front().second), *zero_load_latency(study, hops))
                << from << " to " << to << ", variant " << variant;
          }
        }
      }
    }
  }
}

// Between groups: local link, global link, local link at most.
TEST(FlitEngine, CrossesADragonflyInThreeLinks) {
  FlitStudy study;
  study.topology = FlitTopology::dragonfly;
  study.k = 1;
  study.n = 1;
  const FlitNetwork network = make_flit_network(study);
  ASSERT_EQ(network.nodes, 6u);
  FlitRouter router;
  router.routing_delay = 0;
  router.virtual_channels = 2;
  std::map<std::int64_t, std::int64_t> counts;  // of each latency
  for (int to = 0; to < 6; ++to) ++counts[play(network, router, {{0, to, 1, 0}}).times.front().second];
  // Itself: 4 + 2; the other of the group: one link of 10 more, 11 and a router; others: 101 and a router,
  // with locals.
  const std::map<std::int64_t, std::int64_t> expected = {{6, 1}, {19, 1}, {109, 1}, {122, 2}, {135, 1}};
  EXPECT_EQ(counts, expected);
}

// What BookSim (28f4329) prints of the same. Measured for throughput, packets that are still under way count
// once they have arrived; its allocators take more than one iteration as islip(2) and pim(2).
TEST(SimulateFlits, AnswersAsBooksimForThroughputAndIterations) {
  FlitStudy study;
  study.topology = FlitTopology::mesh;
  study.k = 4;
  study.n = 2;
  study.router.virtual_channels = 2;
  study.router.buffer = 4;
  study.router.routing_delay = 0;
  study.router.credit_delay = 1;
  study.traffic.packet_flits = 5;
  study.traffic.packets_per_node_cycle = 0.3 / 5;
  study.measuring.sample_cycles = 500;
  study.measuring.warm_up_samples = 2;
  study.measuring.most_samples = 6;
  study.measuring.latency = false;
  study.seed = 3;
  const RateResult throughput = simulate_flits(study);
  EXPECT_NEAR(throughput.packet_latency_avg_cycles, 25.8153, 5e-5);
  EXPECT_NEAR(throughput.network_latency_avg_cycles, 24.1427, 5e-5);
  EXPECT_NEAR(throughput.accepted_flits_per_node_cycle, 0.303083, 5e-7);
  EXPECT_NEAR(throughput.hops_avg, 3.5224, 5e-5);
  EXPECT_EQ(throughput.cycles, 2530);

  study.traffic.packets_per_node_cycle = 0.35 / 5;
  study.measuring.latency = true;
  study.router.vc_allocator = FlitAllocator::pim;
  study.router.vc_allocator_iterations = study.router.switch_allocator_iterations = 2;
  const RateResult iterations = simulate_flits(study);
  EXPECT_NEAR(iterations.packet_latency_avg_cycles, 26.4639, 5e-5);
  EXPECT_NEAR(iterations.accepted_flits_per_node_cycle, 0.348333, 5e-7);
  EXPECT_EQ(iterations.cycles, 2565);
}

// At most as far as it is, and sample after sample.
TEST(SimulateFlits, TellsHowFarItIs) {
  ToldProgress told;
  FlitStudy study;
  study.topology = FlitTopology::mesh;
  study.k = 4;
  study.traffic.packets_per_node_cycle = 0.1;
  study.measuring.sample_cycles = 2048;
  study.measuring.latency_change = study.measuring.throughput_change = 0;  // all samples are taken
  const std::int64_t cycles = simulate_flits(study, told).cycles;
  EXPECT_EQ(told.steps, "simulating flits");
  EXPECT_EQ(told.last, "sample 10 of at most 10");
  ASSERT_EQ(told.shares.size(), 20U);
  for (std::size_t i = 0; i < told.shares.size(); ++i)
    EXPECT_DOUBLE_EQ(told.shares[i], static_cast<double>(i) / 20);
  EXPECT_GE(cycles, 10 * 2048);
}

TEST(SimulateFlits, SaysWhatIsOutOfRange) {
  const auto error = [](const std::function<void(FlitStudy&)>& change) {
    FlitStudy study;
    study.k = 4;
    study.traffic.packets_per_node_cycle = 0.1;
    change(study);
    return error_of([&] { simulate_flits(study); });
  };
  EXPECT_EQ(error([](FlitStudy& s) { s.k = 1; }),
            "k = 1: is too small for this topology\n  hint: at least 2");
  EXPECT_EQ(error([](FlitStudy& s) { s.n = 9; }),
            "k = 4, n = 9: is a network of too many nodes\n  hint: at most 131072");
  EXPECT_EQ(error([](FlitStudy& s) { s.k = 128; }),
            "a network of 16384 routers and 16384 nodes is too large\n  hint: at most 67108864 pairs of a "
            "router and a node");
  EXPECT_EQ(error([](FlitStudy& s) {
              s.topology = FlitTopology::fat_tree;
              s.k = 1000;
              s.n = 1;
            }),
            "a router of 2000 ports is too large\n  hint: at most 1024 ports");
  EXPECT_EQ(error([](FlitStudy& s) { s.router.buffer = 0; }),
            "buffer of a virtual channel = 0: is out of range\n  hint: 1 to 32768 flits");
  EXPECT_EQ(error([](FlitStudy& s) {
              s.n = 6;
              s.router.buffer = 32768;
              s.router.virtual_channels = 256;
            }),
            "the buffers of the network hold 4.47e+11 flits together\n  hint: at most 2.68e+08");
  constexpr auto kHint =
      "\n  hint: fewer or shorter samples: averages stand after some thousand packets per node";
  EXPECT_EQ(
      error([](FlitStudy& s) { s.measuring.most_samples = 1'000'000; }),
      std::string("up to 1.6e+09 packets would be simulated in up to 1e+09 cycles of 16 nodes, about 18 "
                  "min") +
          kHint);
  // Few packets, but of many flits, or in many cycles.
  EXPECT_EQ(error([](FlitStudy& s) {
              s.measuring.most_samples = 100'000;
              s.traffic.packet_flits = 100;
            }),
            std::string("up to 1.6e+08 packets would be simulated in up to 1e+08 cycles of 16 nodes, about 3 "
                        "h") +
                kHint);
  EXPECT_EQ(
      error([](FlitStudy& s) {
        s.measuring.sample_cycles = 1'000'000'000;
        s.measuring.most_samples = 100;
        s.traffic.packets_per_node_cycle = 1e-6;
      }),
      std::string("up to 1.6e+06 packets would be simulated in up to 1e+11 cycles of 16 nodes, about 107 "
                  "min") +
          kHint);
  EXPECT_THAT(error([](FlitStudy& s) { s.router.virtual_channels = 1; }),
              testing::AllOf(testing::HasSubstr(
                                 "virtual channels = 1: packets can wait for each other for ever (deadlock)"),
                             testing::HasSubstr("router 0 from router 3, and")));
  EXPECT_EQ(error([](FlitStudy& s) {
              s.topology = FlitTopology::mesh;
              s.k = 3;
              s.traffic.pattern = FlitPattern::transpose;
            }),
            "traffic = transpose: needs an even power of two as number of nodes; the network has 9");
}

}  // namespace
}  // namespace armilla
