#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <stdexcept>

#include "base/error.h"
#include "base/units_text.h"
#include "network/flit.h"
#include "network/flit/flit_engine.h"
#include "network/rough_time.h"

namespace armilla {
namespace {

// Where packets go.
class FlitDestinations {
 public:
  FlitDestinations(const FlitStudy& study, std::uint32_t nodes, LaggedRandom& random)
      : pattern_(study.traffic.pattern), nodes_(nodes), random_(random) {
    const auto bits = static_cast<std::uint32_t>(std::bit_width(nodes) - 1);
    const auto require = [&](bool holds, std::string_view pattern, std::string_view what) {
      if (!holds)
        throw Error("traffic = " + std::string(pattern),
                    fmt::format("needs {}; the network has {}", what, nodes));
    };
    const auto whole = [&](std::string_view pattern) {
      require(std::has_single_bit(nodes), pattern, "a number of nodes that is a power of two");
    };
    const auto k = static_cast<std::uint32_t>(study.k);
    // Each digit of the node's number moves on by `shift`.
    const auto digits = [&](std::uint32_t node, std::uint32_t shift) {
      std::uint32_t result = 0, place = 1;
      for (std::int64_t i = 0; i < study.n; ++i, place *= k)
        result += place * ((node / place % k + shift) % k);
      return result;
    };
    if (pattern_ == FlitPattern::transpose)
      require(std::has_single_bit(nodes) && bits % 2 == 0, "transpose",
              "an even power of two as number of nodes");
    if (pattern_ == FlitPattern::bit_complement) whole("bitcomp");
    if (pattern_ == FlitPattern::bit_reverse) whole("bitrev");
    if (pattern_ == FlitPattern::shuffle) whole("shuffle");
    for (std::uint32_t node = 0; node < nodes && pattern_ != FlitPattern::uniform; ++node) {
      std::uint32_t to = 0;
      switch (pattern_) {
        case FlitPattern::uniform:
          break;
        case FlitPattern::transpose:
          to = node >> bits / 2 | (node << bits / 2 & (nodes - 1));
          break;
        case FlitPattern::tornado:
          to = digits(node, (k + 1) / 2 - 1);
          break;
        case FlitPattern::bit_complement:
          to = ~node & (nodes - 1);
          break;
        case FlitPattern::bit_reverse:
          for (std::uint32_t bit = 0; bit < bits; ++bit) to = to << 1 | (node >> bit & 1);
          break;
        case FlitPattern::shuffle:
          to = (node << 1 & (nodes - 1)) | node >> (bits - 1);
          break;
        case FlitPattern::neighbor:
          to = digits(node, 1);
          break;
      }
      fixed_.push_back(to);
    }
  }
  std::uint32_t of(std::uint32_t source) {
    return pattern_ == FlitPattern::uniform ? random_.below(nodes_) : fixed_[source];
  }

 private:
  FlitPattern pattern_;
  std::uint32_t nodes_;
  LaggedRandom& random_;
  std::vector<std::uint32_t> fixed_;
};

struct Mean {
  std::int64_t sum = 0, count = 0;
  void add(std::int64_t value) {
    sum += value;
    ++count;
  }
  // Not a number where nothing was added; no comparison with it holds.
  double value() const { return static_cast<double>(sum) / static_cast<double>(count); }
};

double change(double before, double now) {
  return std::fabs((now - before) / now);
}
// Of a limit below 0, nothing is too much.
bool exceeds(double value, double limit) {
  return limit >= 0 && value > limit;
}

class RateTraffic {
 public:
  RateTraffic(const FlitStudy& study, const FlitNetwork& network, Progress& progress)
      : study_(study),
        network_(network),
        progress_(progress),
        random_(LaggedRandom::Kind::integers, study.seed),
        coins_(LaggedRandom::Kind::fractions, study.seed),
        destinations_(study, network.nodes, random_),
        engine_(network, study.router, random_),
        creates_(LaggedRandom::threshold(study.traffic.packets_per_node_cycle)),
        waiting_since_(network.nodes, 0),
        drained_(network.nodes, false) {}

  RateResult run() {
    const bool stands = sample() && (!study_.measuring.latency || drain());
    // Of what is measured for throughput some is still under way, and counts once it has arrived.
    if (stands) empty();
    RateResult result;
    result.saturated = !stands;
    result.packet_latency_avg_cycles = packet_latency_.value();
    result.network_latency_avg_cycles = network_latency_.value();
    result.hops_avg = hops_.value();
    result.accepted_flits_per_node_cycle = static_cast<double>(accepted_) /
                                           static_cast<double>(drain_time_ - reset_time_) /
                                           static_cast<double>(network_.nodes);
    if (packet_latency_.count == 0)
      throw Error("", fmt::format("no packet was measured in {} cycles", engine_.now()),
                  "a higher rate of injection, or longer samples");
    result.flit_hops = engine_.flit_hops();
    result.cycles = engine_.now();
    return result;
  }

 private:
  enum class Phase { warming_up, measuring, draining, emptying };

  // Up to the last sample; false: saturated.
  bool sample() {
    const FlitMeasuring& measuring = study_.measuring;
    double latency = 0, throughput = 0;
    int steady = 0;
    // What was seen while warming up is thrown away in every second sample, and once more when it is over.
    bool fresh = false;
    for (std::int64_t samples = 0;
         samples < measuring.most_samples && (phase_ != Phase::measuring || steady < 3); ++samples) {
      if (fresh || (phase_ == Phase::warming_up && samples % 2 == 0)) clear();
      fresh = false;
      progress_.remark(fmt::format("sample {} of at most {}", samples + 1, measuring.most_samples));
      for (std::int64_t cycle = 0; cycle < measuring.sample_cycles; ++cycle) {
        if (cycle % 1024 == 0) tell_progress();
        step();
      }
      const double new_latency = packet_latency_.value(), new_throughput = accepted_rate();
      const double latency_change = change(latency, new_latency);
      const double throughput_change = change(throughput, new_throughput);
      latency = new_latency;
      throughput = new_throughput;
      if (measuring.latency && too_late()) {
        drain_time_ = engine_.now();
        return false;
      }
      const auto steady_within = [&](double latency_limit, double throughput_limit) {
        return !(measuring.latency && exceeds(latency_change, latency_limit)) &&
               !exceeds(throughput_change, throughput_limit);
      };
      if (phase_ == Phase::warming_up) {
        if (measuring.warm_up_samples > 0
                ? samples + 1 >= measuring.warm_up_samples
                : steady_within(measuring.warm_up_latency_change, measuring.warm_up_throughput_change)) {
          phase_ = Phase::measuring;
          fresh = true;
        }
      } else {
        // Three samples in a row, as one may agree with the one before by chance.
        steady = steady_within(measuring.latency_change, measuring.throughput_change) ? steady + 1 : 0;
      }
    }
    drain_time_ = engine_.now();
    if (phase_ != Phase::measuring)
      throw Error("", "no sample was measured: the warm-up took all of them", "raise max_samples");
    return true;
  }

  // As if all samples were taken: three that agree end the run before.
  void tell_progress() {
    const FlitMeasuring& measuring = study_.measuring;
    progress_.update(static_cast<double>(engine_.now()) / static_cast<double>(measuring.sample_cycles) /
                     static_cast<double>(measuring.most_samples));
  }

  // Until the packets that are measured have arrived; false: that takes too long.
  bool drain() {
    phase_ = Phase::draining;
    for (std::int64_t cycles = 1; measured_inside_ > 0 || drained_nodes_ < network_.nodes; ++cycles) {
      step();
      if (cycles % 1000 == 0 && too_late()) return false;
    }
    return true;
  }

  // Until nothing is under way.
  void empty() {
    phase_ = Phase::emptying;
    while (inside_ > 0) step();
    // They come back later than the last flit arrives. A network that is not at rest then has lost some of
    // either.
    while (engine_.credits_under_way() > 0) step();
    if (!engine_.at_rest()) throw std::logic_error("flits: the network is not empty at the end");
  }

  void clear() {
    packet_latency_ = network_latency_ = hops_ = {};
    accepted_ = 0;
    reset_time_ = engine_.now();
  }

  double accepted_rate() const {
    return static_cast<double>(accepted_) / static_cast<double>(engine_.now() - reset_time_) /
           static_cast<double>(network_.nodes);
  }

  // The mean latency, with what is under way as if it arrived now; flits count there, packets here.
  bool too_late() const {
    const double waited = static_cast<double>(engine_.now() * inside_ - created_inside_);
    const double mean = (static_cast<double>(packet_latency_.sum) + waited) /
                        (static_cast<double>(packet_latency_.count) + static_cast<double>(inside_));
    return exceeds(mean, study_.measuring.saturated_latency);
  }

  void step() {
    const std::vector<FlitEngine::Arrival>& arrivals = engine_.receive();
    if (phase_ == Phase::warming_up || phase_ == Phase::measuring)
      accepted_ += static_cast<std::int64_t>(arrivals.size());
    if (phase_ != Phase::emptying) create();
    for (const FlitEngine::Arrival& arrival : arrivals) arrive(arrival);
    engine_.step();
  }

  // A node that waits for its packet to leave decides about the cycles between afterwards, one after another.
  void create() {
    const std::int64_t now = engine_.now();
    for (std::uint32_t node = 0; node < network_.nodes; ++node) {
      if (!engine_.idle(node)) continue;
      std::int64_t& time = waiting_since_[node];
      while (time <= now) {
        const std::int64_t created = time++;
        if (coins_.next() >= creates_) continue;
        create(node, created);
        // It is in the way now: the cycles from here on are decided about once it has left.
        break;
      }
      if (phase_ == Phase::draining && time > drain_time_ && !drained_[node]) {
        drained_[node] = true;
        ++drained_nodes_;
      }
    }
  }

  void create(std::uint32_t node, std::int64_t time) {
    FlitPacket packet;
    packet.source = node;
    packet.destination = destinations_.of(node);
    random_.next();  // BookSim draws one of its networks, of which there is one
    packet.flits = static_cast<std::uint32_t>(study_.traffic.packet_flits);
    packet.created = time;
    packet.measured = phase_ == Phase::measuring || (phase_ == Phase::draining && time < drain_time_);
    inside_ += packet.flits;
    created_inside_ += packet.flits * time;
    if (packet.measured) measured_inside_ += packet.flits;
    engine_.send(node, packet);
  }

  void arrive(const FlitEngine::Arrival& arrival) {
    const FlitPacket& packet = engine_.packet(arrival.packet);
    --inside_;
    created_inside_ -= packet.created;
    if (packet.measured) --measured_inside_;
    if (packet.destination != arrival.node)
      throw std::logic_error("flits: a packet has come to the wrong node");
    if (!arrival.tail) return;
    if (phase_ == Phase::warming_up || packet.measured) {
      packet_latency_.add(engine_.now() - packet.created);
      network_latency_.add(engine_.now() - packet.entered);
      hops_.add(packet.hops);
    }
    engine_.forget(arrival.packet);
  }

  const FlitStudy& study_;
  const FlitNetwork& network_;
  Progress& progress_;
  LaggedRandom random_, coins_;
  FlitDestinations destinations_;
  FlitEngine engine_;
  std::uint64_t creates_;
  std::vector<std::int64_t> waiting_since_;  // of each node: the first cycle that it has not decided about
  std::vector<bool> drained_;
  std::uint32_t drained_nodes_ = 0;
  Phase phase_ = Phase::warming_up;
  Mean packet_latency_, network_latency_, hops_;
  std::int64_t accepted_ = 0, reset_time_ = 0, drain_time_ = 0;
  // Flits that were created and have not arrived, and the sum of the cycles in which they were created.
  std::int64_t inside_ = 0, created_inside_ = 0, measured_inside_ = 0;
};

constexpr double kMostBuffers = 1 << 28, kMostPackets = 1e9, kLongestSeconds = 3600;
constexpr double kHopsGuess = 5, kHopsPerSecond = 8e6;
// Nodes toss their coins in every cycle, whatever comes of it.
constexpr double kCoinsPerSecond = 2.5e8;

// What no configuration may ask for, in the words of the study.
void check(const FlitStudy& study, const FlitNetwork& network) {
  const FlitRouter& router = study.router;
  const auto require = [](bool holds, const char* what, std::int64_t value, std::string_view hint) {
    if (!holds) throw Error(fmt::format("{} = {}", what, value), "is out of range", std::string(hint));
  };
  require(router.virtual_channels >= 1 && router.virtual_channels <= 256, "virtual channels",
          router.virtual_channels, "1 to 256");
  require(router.buffer >= 1 && router.buffer <= 32768, "buffer of a virtual channel", router.buffer,
          "1 to 32768 flits");
  const double buffers = static_cast<double>(network.ports()) * static_cast<double>(router.virtual_channels) *
                         static_cast<double>(router.buffer);
  if (buffers > kMostBuffers)
    throw Error("", fmt::format("the buffers of the network hold {:.3g} flits together", buffers),
                fmt::format("at most {:.3g}", kMostBuffers));
  const double coins = static_cast<double>(network.nodes) *
                       static_cast<double>(study.measuring.sample_cycles) *
                       static_cast<double>(study.measuring.most_samples);
  const double packets = coins * study.traffic.packets_per_node_cycle;
  const double seconds =
      packets * static_cast<double>(study.traffic.packet_flits) * kHopsGuess / kHopsPerSecond +
      coins / kCoinsPerSecond;
  if (packets >= kMostPackets || seconds > kLongestSeconds)
    throw Error(
        "",
        fmt::format("up to {:.3g} packets would be simulated in up to {:.3g} cycles of {} nodes, "
                    "about {}",
                    packets, coins / static_cast<double>(network.nodes), network.nodes, rough_time(seconds)),
        "fewer or shorter samples: averages stand after some thousand packets per node");
  if (network.rule == RouteRule::global_hops && router.virtual_channels < 2)
    throw Error("virtual channels = 1",
                "packets of a dragonfly would wait for each other for ever (deadlock)",
                "at least 2: one before, one behind the link between groups");
  if (const std::string cycle = possible_deadlock(network, router.virtual_channels); !cycle.empty())
    throw Error(fmt::format("virtual channels = {}", router.virtual_channels),
                "packets can wait for each other for ever (deadlock): each of these buffers may be full of "
                "packets for "
                "the next: " +
                    cycle,
                "at least 2 virtual channels (num_vcs), so that a ring has a dateline");
}

}  // namespace

RateResult simulate_flits(const FlitStudy& study, Progress& progress) {
  progress.begin("simulating flits");
  const FlitNetwork network = make_flit_network(study);
  check(study, network);
  return RateTraffic(study, network, progress).run();
}

std::string describe(const FlitStudy& study) {
  constexpr std::array<std::string_view, 4> kTopologies = {"mesh", "torus", "fat tree", "dragonfly"};
  constexpr std::array<std::string_view, 3> kRoutingWords = {"dimension order", "nearest common ancestor",
                                                             "minimal routing"};
  constexpr std::array<std::string_view, 7> kPatterns = {
      "uniform", "transpose", "tornado", "bit-complement", "bit-reverse", "shuffle", "neighbour"};
  const std::string_view topology = kTopologies[static_cast<std::size_t>(study.topology)];
  std::string size;
  if (study.topology == FlitTopology::fat_tree) {
    size = fmt::format("{}-ary {}-level ", study.k, study.n);
  } else if (study.topology == FlitTopology::dragonfly) {
    size = fmt::format("{}-node-per-router ", study.k);
  } else {
    for (std::int64_t i = 0; i < study.n; ++i) size += fmt::format("{}{}", i > 0 ? "x" : "", study.k);
    size += ' ';
  }
  const FlitTraffic& traffic = study.traffic;
  return fmt::format(
      "{}{}, {}; {} of {}; {} traffic, {:.4g} flits per node and cycle in packets of {}", size, topology,
      kRoutingWords[static_cast<std::size_t>(study.routing)],
      typed_count(study.router.virtual_channels, "VC"), typed_count(study.router.buffer, "flit"),
      kPatterns[static_cast<std::size_t>(traffic.pattern)],
      traffic.packets_per_node_cycle * static_cast<double>(traffic.packet_flits), traffic.packet_flits);
}

std::optional<double> zero_load_latency(const FlitStudy& study, double hops) {
  if (study.topology == FlitTopology::dragonfly) return std::nullopt;
  const FlitRouter& router = study.router;
  const std::int64_t allocation = router.speculative
                                      ? std::max(router.vc_allocation_delay, router.switch_allocation_delay)
                                      : router.vc_allocation_delay + router.switch_allocation_delay;
  const auto pipeline = static_cast<double>(router.routing_delay + allocation + router.traversal_delay - 1);
  const int link = study.topology == FlitTopology::torus && study.long_links ? 2 : 1;
  return hops * std::floor(pipeline / static_cast<double>(router.speedup)) + (hops - 1) * (link + 1) + 4 +
         static_cast<double>(study.traffic.packet_flits - 1);
}

}  // namespace armilla
