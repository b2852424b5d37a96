#include "network/packet/forward/patterns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <random>
#include <tuple>
#include <vector>

#include "base/cases_testing.h"
#include "network/packet/packet_testing.h"
#include "network/packet/simulation.h"

namespace armilla {
namespace {

// Hosts in clusters, each around a switch of its own, which send messages around rings and, some,
// across them. Switches of clusters are leaves below spines, if there are any.
struct RingJob {
  FlowJob network;
  std::int64_t clusters = 1, hosts = 2;  // of each
  std::int64_t spines = 0;
  std::vector<std::int64_t> next;  // by host: whom it sends to, most often around its ring
  bool alone = false;  // hosts do not wait for those before them, but for their own message to arrive
  int steps = 1;
  std::vector<std::int64_t> bytes;      // by step
  std::vector<std::int64_t> delays_ns;  // by host: between an arrival and what it lets go
  struct Extra {
    std::int64_t ns = 0, from = 0, to = 0, bytes = 0;
  };
  std::vector<Extra> extras;

  // The ports that packets leave by; over spines by what a hash of the two hosts could be.
  std::vector<std::uint32_t> way(std::int64_t from, std::int64_t to) const {
    const auto port = [](std::int64_t link, bool backwards) {
      return static_cast<std::uint32_t>(2 * link + (backwards ? 1 : 0));
    };
    std::vector<std::uint32_t> ports = {port(from, false)};
    if (from / hosts != to / hosts) {
      const std::int64_t spine = (from * 7 + to * 3) % spines, first = clusters * hosts + spine;
      ports.push_back(port(first + from / hosts * spines, false));
      ports.push_back(port(first + to / hosts * spines, true));
    }
    ports.push_back(port(to, true));
    return ports;
  }
};

struct RingOutcome {
  std::map<std::uint64_t, std::int64_t> arrived_ns;  // by message
  std::vector<std::int64_t> bytes, busy_ps;          // by port
  std::int64_t frames = 0, counted = 0, stretches = 0, pauses = 0, marked = 0;
};

RingOutcome outcome_of(RingJob job, bool fast_forward) {
  job.network.fast_forward = fast_forward;
  packets::Simulation simulation(job.network);
  RingOutcome outcome;
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> connections;
  const auto connection_of = [&](std::int64_t from, std::int64_t to) {
    const auto [found, fresh] = connections.try_emplace({from, to});
    const std::vector<std::uint32_t> way = job.way(from, to);
    if (fresh) found->second = simulation.connect({&way, 1});
    return found->second;
  };
  struct Post {
    std::int64_t from, to, bytes;
    std::uint64_t message;
  };
  std::multimap<std::int64_t, Post> posts;
  const std::int64_t hosts = job.clusters * job.hosts;
  const auto next_of = [&](std::int64_t host) { return job.next[static_cast<std::size_t>(host)]; };
  const auto post_step = [&](std::int64_t ns, std::int64_t host, int step) {
    posts.emplace(ns, Post{host, next_of(host), job.bytes[static_cast<std::size_t>(step)],
                           static_cast<std::uint64_t>(step * hosts + host)});
  };
  for (std::int64_t host = 0; host < hosts; ++host) post_step(0, host, 0);
  const auto ring_messages = static_cast<std::uint64_t>(job.steps * hosts);
  for (std::size_t i = 0; i < job.extras.size(); ++i) {
    const RingJob::Extra& extra = job.extras[i];
    posts.emplace(extra.ns, Post{extra.from, extra.to, extra.bytes, ring_messages + i});
  }
  for (;;) {
    if (!posts.empty() && posts.begin()->first <= simulation.now_ns()) {
      const Post post = posts.begin()->second;
      posts.erase(posts.begin());
      simulation.post(connection_of(post.from, post.to), post.bytes, post.message, simulation.now_ns());
      continue;
    }
    const std::int64_t until = posts.empty() ? INT64_MAX - 1 : posts.begin()->first;
    if (!simulation.play_until(until - 1)) {
      if (posts.empty()) {
        // Those who stand still have acknowledgements under way.
        simulation.bring_up();
        if (simulation.next_ns() == INT64_MAX) break;
        continue;
      }
      // Nothing happens before: posted ahead, as jobs do.
      const Post post = posts.begin()->second;
      posts.erase(posts.begin());
      simulation.post(connection_of(post.from, post.to), post.bytes, post.message, until);
      continue;
    }
    for (const std::uint64_t message : simulation.take_arrived()) {
      outcome.arrived_ns[message] = simulation.now_ns();
      if (message >= ring_messages) continue;
      const auto step = static_cast<int>(message / static_cast<std::uint64_t>(hosts));
      const auto sender = static_cast<std::int64_t>(message % static_cast<std::uint64_t>(hosts)),
                 goes_on = job.alone ? sender : next_of(sender);
      if (step + 1 < job.steps)
        post_step(simulation.now_ns() + job.delays_ns[static_cast<std::size_t>(goes_on)], goes_on, step + 1);
    }
  }
  for (std::uint32_t port = 0; port < 2 * job.network.graph.links.size(); ++port) {
    outcome.bytes.push_back(simulation.carried(port).bytes);
    outcome.busy_ps.push_back(simulation.carried(port).busy_ps);
  }
  outcome.frames = simulation.frames();
  outcome.pauses = simulation.pauses();
  outcome.marked = simulation.marked_packets();
  if (fast_forward) {
    outcome.counted = simulation.forwarded()->frames;
    outcome.stretches = simulation.forwarded()->stretches;
  }
  return outcome;
}

NetworkGraph clusters_of(std::int64_t clusters, std::int64_t hosts, std::int64_t rate, std::int64_t delay_ns,
                         std::int64_t spines = 0) {
  NetworkGraph graph;
  const std::int64_t ends = clusters * hosts;
  graph.is_switch.assign(static_cast<std::size_t>(ends), false);
  graph.is_switch.resize(static_cast<std::size_t>(ends + clusters + spines), true);
  for (std::int64_t host = 0; host < ends; ++host)
    graph.links.push_back({host, ends + host / hosts, rate, delay_ns, 0});
  for (std::int64_t leaf = 0; leaf < clusters; ++leaf) {
    for (std::int64_t spine = 0; spine < spines; ++spine)
      graph.links.push_back({ends + leaf, ends + clusters + spine, rate, delay_ns, 0});
  }
  return graph;
}

RingJob ring_job(CongestionControl control, std::int64_t clusters, std::int64_t hosts, int steps,
                 std::int64_t bytes, std::int64_t rate = 100'000'000'000, std::int64_t delay_ns = 700,
                 std::int64_t spines = 0) {
  RingJob job;
  job.network.where = "test";
  job.network.usual_settings = true;
  job.network.graph = clusters_of(clusters, hosts, rate, delay_ns, spines);
  job.network.settings.congestion_control = control;
  use_usual_settings(job.network.settings, job.network.graph);
  job.clusters = clusters;
  job.hosts = hosts;
  job.spines = spines;
  for (std::int64_t host = 0; host < clusters * hosts; ++host)
    job.next.push_back(host / hosts * hosts + (host + 1) % hosts);
  job.steps = steps;
  job.bytes.assign(static_cast<std::size_t>(steps), bytes);
  job.delays_ns.assign(static_cast<std::size_t>(clusters * hosts), 0);
  return job;
}

void expect_equal(const RingOutcome& played, const RingOutcome& told) {
  EXPECT_EQ(told.arrived_ns, played.arrived_ns);
  EXPECT_EQ(told.bytes, played.bytes);
  EXPECT_EQ(told.busy_ps, played.busy_ps);
  EXPECT_EQ(told.frames, played.frames);
}

// A ring's steps are alike, and so are rings: those of one are played until a step comes again to the
// picosecond. (A packet takes 330.56 ns here, so that there are 25 kinds of steps.)
TEST(Patterns, StepsThatComeAgainAreNotPlayed) {
  for (const CongestionControl control :
       {CongestionControl::none, CongestionControl::dcqcn, CongestionControl::timely}) {
    SCOPED_TRACE(row_of(control).name);
    const RingJob job = ring_job(control, 4, 5, 300, 200'000);
    const RingOutcome played = outcome_of(job, false), told = outcome_of(job, true);
    expect_equal(played, told);
    EXPECT_GT(told.counted, told.frames * 95 / 100);
  }
}

// Rings that are no longer alike, since something else is sent in one of them, or later: these are played
// from where they stood.
TEST(Patterns, GoesOnFromWhereItStood) {
  RingJob job = ring_job(CongestionControl::dcqcn, 3, 4, 30, 150'000);
  // In the midst of a step; while all of the cluster stands still; and across, from a host that has sent
  // nothing there.
  job.extras = {{100'123, 5, 6, 70'000}, {200'001, 8, 10, 3'000}, {200'001, 9, 10, 30'000}};
  const RingOutcome played = outcome_of(job, false), told = outcome_of(job, true);
  expect_equal(played, told);
  EXPECT_GT(told.counted, told.frames / 6);
}

// Both ways over random jobs: sizes, speeds, hosts that take a while between two steps, messages across that
// collide, marks and pauses. Marks are for certain above a length of queues, so that nothing is left to
// chance: every message arrives at the same nanosecond, and every link carries the same.
TEST(Patterns, TellsWhatWouldHaveBeenPlayed) {
  std::mt19937 random(11);
  const auto between = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  constexpr std::array kKnown = {CongestionControl::none, CongestionControl::dcqcn,
                                 CongestionControl::timely};
  std::int64_t counted = 0, frames = 0;
  for (int round = 0; round < 300; round += kCaseStep) {
    SCOPED_TRACE(testing::Message() << "round " << round);
    const std::int64_t payload = between(1000, 4096),
                       rate = std::array{25, 100, 400}[random() % 3] * 1'000'000'000LL;
    RingJob job =
        ring_job(kKnown[random() % kKnown.size()], between(1, 4), between(2, 6),
                 static_cast<int>(between(3, 25)), between(1, 100 * payload), rate, between(100, 3000));
    job.network.settings.payload = payload;
    if (random() % 3 == 0) job.network.settings.buffer = between(100'000, 1'000'000);
    const std::int64_t mark = between(3, 60) * payload;
    job.network.settings.ecn_of_rate[rate] = {mark, mark, 1};
    if (random() % 2 == 0) {
      for (std::int64_t& bytes : job.bytes) bytes = random() % 2 == 0 ? bytes : between(1, 100 * payload);
    }
    if (random() % 2 == 0) {
      for (std::int64_t& delay_ns : job.delays_ns) delay_ns = between(0, 3) * 500;
    }
    const std::int64_t ends = job.clusters * job.hosts;
    for (std::int64_t extras = random() % 2 == 0 ? between(1, 10) : 0; extras > 0; --extras) {
      const std::int64_t from = between(0, ends - 1), first = from / job.hosts * job.hosts,
                         to = first + (from - first + between(1, job.hosts - 1)) % job.hosts;
      job.extras.push_back({between(0, 300'000), from, to, between(1, 100 * payload)});
    }
    const RingOutcome played = outcome_of(job, false), told = outcome_of(job, true);
    expect_equal(played, told);
    if (HasFailure()) break;
    counted += told.counted;
    frames += told.frames;
  }
  EXPECT_GT(counted, frames / 6);
}

// A random job over leaves and spines: rings across them whose ways share links, most in step, so that much
// happens at the same nanosecond.
// `scale`: how much longer messages are.
RingJob random_spine_job(std::mt19937& random, std::int64_t scale = 1) {
  const auto between = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  constexpr std::array kKnown = {CongestionControl::none, CongestionControl::dcqcn,
                                 CongestionControl::timely};
  const std::int64_t bytes_per_ns = std::array{5, 20, 50}[random() % 3], rate = bytes_per_ns * 8'000'000'000;
  const CongestionControl control = kKnown[random() % kKnown.size()];
  // With its headers a packet takes a whole number of nanoseconds, and links and hosts multiples of that.
  const std::int64_t header = control == CongestionControl::timely ? 44 : 36,
                     packet_ns = between(1100, 4000) / bytes_per_ns,
                     payload = packet_ns * bytes_per_ns - header;
  RingJob job = ring_job(control, between(2, 4), between(1, 5), static_cast<int>(between(3, 40)),
                         between(1, 40) * scale * payload - (random() % 2 == 0 ? between(0, payload - 1) : 0),
                         rate, between(1, 12) * packet_ns, between(1, 3));
  job.network.settings.payload = payload;
  if (random() % 2 == 0) job.network.settings.buffer = between(100'000, 1'000'000);
  const std::int64_t mark = between(3, 60) * payload;
  job.network.settings.ecn_of_rate[rate] = {mark, mark, 1};
  const std::int64_t ends = job.clusters * job.hosts;
  std::vector<std::int64_t> order(static_cast<std::size_t>(ends));
  std::iota(order.begin(), order.end(), 0);
  if (random() % 2 == 0) std::ranges::shuffle(order, random);
  const std::int64_t size = between(2, ends);
  for (std::int64_t first = 0, end = 0; first < ends; first = end) {
    end = first + size + 1 < ends ? first + size : ends;
    for (std::int64_t i = first; i < end; ++i)
      job.next[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] =
          order[static_cast<std::size_t>(i + 1 < end ? i + 1 : first)];
  }
  if (random() % 4 == 0) {
    for (std::int64_t& bytes : job.bytes)
      bytes = random() % 2 == 0 ? bytes : between(1, 60 * scale * payload);
  }
  if (random() % 2 == 0) {
    for (std::int64_t& delay_ns : job.delays_ns) delay_ns = between(0, 3) * packet_ns;
  }
  for (std::int64_t extras = random() % 2 == 0 ? between(1, 10) : 0; extras > 0; --extras) {
    const std::int64_t from = between(0, ends - 1), to = (from + between(1, ends - 1)) % ends;
    job.extras.push_back({between(0, 3000) * scale * packet_ns, from, to, between(1, 60 * scale * payload)});
  }
  return job;
}

// The same over several switches, where packets of a set meet at one nanosecond.
TEST(Patterns, TellsOverSpinesWhatWouldHaveBeenPlayed) {
  std::int64_t counted = 0, frames = 0;
  for (int round = 0; round < 400; round += kCaseStep) {
    SCOPED_TRACE(testing::Message() << "round " << round);
    std::mt19937 random(static_cast<unsigned>(round));
    const RingJob job = random_spine_job(random);
    const RingOutcome played = outcome_of(job, false), told = outcome_of(job, true);
    expect_equal(played, told);
    if (HasFailure()) break;
    counted += told.counted;
    frames += told.frames;
  }
  EXPECT_GT(counted, frames / 100);
}

// Groups around switches, most of them alike, each with hosts that all send to one: several at a switch share
// nothing but its buffer.
RingJob random_incast_job(std::mt19937& random) {
  const auto between = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  constexpr std::array kKnown = {CongestionControl::none, CongestionControl::dcqcn,
                                 CongestionControl::timely};
  const std::int64_t payload = between(1000, 4096),
                     rate = std::array{25, 100, 400}[random() % 3] * 1'000'000'000LL,
                     delay_ns = between(100, 3000), under_way = rate / 8'000'000 * 4 * delay_ns / 1000,
                     group = between(2, 4), groups = between(2, 4), clusters = between(1, 3);
  RingJob job = ring_job(kKnown[random() % kKnown.size()], clusters, group * groups,
                         static_cast<int>(between(4, 30)), between(1, 60) * payload, rate, delay_ns);
  job.alone = true;
  PacketSettings& settings = job.network.settings;
  settings.payload = payload;
  // Beside reserves and headroom, so that some come near to pausing and some pause.
  settings.buffer_is_shared = false;
  settings.buffer = group * groups * (4096 + 3 * under_way / 4) + between(20'000, 50'000 + 20 * under_way);
  const std::int64_t mark = between(3, 40) * payload;
  settings.ecn_of_rate[rate] = {mark, mark * between(1, 10), random() % 2 == 0 ? 0.2 : 1};
  const std::int64_t ends = clusters * group * groups;
  for (std::int64_t host = 0; host < ends; ++host) {
    const std::int64_t first = host / group * group;
    job.next[static_cast<std::size_t>(host)] = host == first ? first + group - 1 : first;
  }
  if (random() % 2 == 0) {
    for (std::int64_t& bytes : job.bytes) bytes = random() % 2 == 0 ? bytes : between(1, 60 * payload);
  }
  if (random() % 2 == 0) {
    std::vector<std::int64_t> delays_ns;
    for (std::int64_t i = 0; i < group; ++i) delays_ns.push_back(between(0, 5) * 300);
    for (std::int64_t host = 0; host < ends; ++host)
      job.delays_ns[static_cast<std::size_t>(host)] = delays_ns[static_cast<std::size_t>(host % group)];
  }
  for (std::int64_t extras = random() % 2 == 0 ? between(1, 5) : 0; extras > 0; --extras) {
    const std::int64_t from = between(0, ends - 1), first = from / job.hosts * job.hosts,
                       to = first + (from - first + between(1, job.hosts - 1)) % job.hosts;
    job.extras.push_back({between(0, 300'000), from, to, between(1, 60 * payload)});
  }
  return job;
}

// Where packets are marked by chance, and switches pause what shares nothing but their buffer with others:
// each port draws for itself, and what shares a buffer that fills is one set.
TEST(Patterns, TellsWhatChanceMarksAndSwitchesPause) {
  std::int64_t counted = 0, frames = 0, paused = 0, marked = 0, partly = 0;
  for (int round = 0; round < 400; round += kCaseStep) {
    SCOPED_TRACE(testing::Message() << "round " << round);
    std::mt19937 random(static_cast<unsigned>(round));
    const RingJob job = random_incast_job(random);
    const RingOutcome played = outcome_of(job, false), told = outcome_of(job, true);
    expect_equal(played, told);
    EXPECT_EQ(told.pauses, played.pauses);
    if (HasFailure()) break;
    counted += told.counted;
    frames += told.frames;
    paused += played.pauses > 0 ? 1 : 0;
    marked += played.marked > 0 ? 1 : 0;
    partly += (played.pauses > 0 || played.marked > 0) && told.counted > 0 ? 1 : 0;
  }
  EXPECT_GT(counted, frames / 100);
  for (const std::int64_t some : {paused, marked, partly}) EXPECT_GT(some, 20 / kCaseStep);
}

// Long messages of a job stand still in whole periods, after which a set is where it was: exactly.
TEST(Patterns, LongMessagesStandStillInWholePeriods) {
  constexpr std::int64_t kMostPackets = 40'000;
  std::int64_t counted = 0, frames = 0, stretches = 0;
  for (int round = 0; round < 120; round += kCaseStep) {
    SCOPED_TRACE(testing::Message() << "round " << round);
    std::mt19937 random(static_cast<unsigned>(round));
    RingJob job = random_spine_job(random, 50);
    // Of long messages, few: the longest jobs would take most of the time.
    const std::int64_t packets = *std::ranges::max_element(job.bytes) / job.network.settings.payload;
    job.steps = static_cast<int>(
        std::clamp<std::int64_t>(kMostPackets / (packets * std::ssize(job.next)), 2, std::min(job.steps, 6)));
    const RingOutcome played = outcome_of(job, false), told = outcome_of(job, true);
    expect_equal(played, told);
    if (HasFailure()) break;
    counted += told.counted;
    frames += told.frames;
    stretches += told.stretches;
  }
  EXPECT_GT(stretches, 100 / kCaseStep);
  EXPECT_GT(counted, frames / 20);
}

}  // namespace
}  // namespace armilla
