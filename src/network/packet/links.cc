#include "network/packet/links.h"

#include <cmath>
#include <map>

namespace armilla::packets {
namespace {

constexpr std::uint64_t kExplicitStreams = std::uint64_t{1} << 63;
// ns-3's scripts give the error model of every link the same stream, so that all lossy links draw one row.
constexpr std::uint64_t kNs3Losses = kExplicitStreams + 50;
// Where nothing is to be as in ns-3: of link 0, far from all others, which are counted.
constexpr std::uint64_t kOwnLosses = kExplicitStreams + (std::uint64_t{1} << 32);

}  // namespace

Links::Links(Core& core) : core_(core) {
  const NetworkGraph& graph = core.job.graph;
  const PacketSettings& settings = core.settings;
  if (core.job.sampled) sampler_.emplace(graph);
  ports_.resize(2 * graph.links.size());
  pauses_.resize(ports_.size());
  std::map<std::int64_t, std::uint32_t> rate_classes;
  // Of links without a loss of their own: what arrives anywhere takes the next draw.
  losses_.emplace_back(settings.seed, kNs3Losses);
  std::vector<std::vector<std::uint32_t>> of_node(graph.is_switch.size());
  for (std::uint32_t link = 0; link < graph.links.size(); ++link) {
    const GraphLink& cable = graph.links[link];
    const GraphLink::Back there = {cable.bits_per_second, cable.delay_ns, cable.loss};
    const GraphLink::Back back = cable.back.value_or(there);
    for (const std::int64_t rate : {there.bits_per_second, back.bits_per_second}) {
      if (!rate_classes.try_emplace(rate, rate_classes.size()).second) continue;
      std::vector<std::int64_t>& table = transmission_.emplace_back();
      // Room for every packet there is, acknowledgements and pauses among them.
      const auto largest = static_cast<std::uint32_t>(settings.payload) + core.traits.header + 64;
      for (std::uint32_t bytes = 0; bytes <= largest; ++bytes) {
        table.push_back(settings.whole_ns ? transmission_ns(bytes, rate) * 1000
                                          : std::llround(bytes * 8e12 / static_cast<double>(rate)));
      }
    }
    if (there.loss > 0 || back.loss > 0)
      losses_.emplace_back(settings.seed, core.job.usual_settings ? kOwnLosses + link : kNs3Losses);
    for (const std::uint32_t end : {0U, 1U}) {
      const GraphLink::Back& figures = end == 0 ? there : back;
      Port& port = ports_[2 * link + end];
      port.node = static_cast<std::uint32_t>(end == 0 ? cable.a : cable.b);
      port.at_switch = graph.is_switch[port.node];
      port.rate = figures.bits_per_second;
      port.delay_ns = figures.delay_ns;
      // Losses are drawn where packets arrive: of what comes the other way.
      const double loss = end == 0 ? back.loss : there.loss;
      port.loss = loss > 0 ? loss : settings.loss;
      if (port.loss > 0) port.loss_stream = loss > 0 ? static_cast<std::uint32_t>(losses_.size() - 1) : 0;
      of_node[port.node].push_back(2 * link + end);
      if (!port.at_switch) port.nic = nics_++;
    }
  }
  for (Port& port : ports_) port.transmission_ps = transmission_[rate_classes.at(port.rate)].data();
  for (const std::vector<std::uint32_t>& ports : of_node) {
    first_ports_.push_back(static_cast<std::uint32_t>(node_ports_.size()));
    node_ports_.insert(node_ports_.end(), ports.begin(), ports.end());
  }
  first_ports_.push_back(static_cast<std::uint32_t>(node_ports_.size()));
}

std::int64_t Links::frames() const {
  std::int64_t frames = 0;
  for (const Port& port : ports_) frames += port.frames;
  return frames;
}

void Links::pause(std::uint32_t index, std::size_t priority) {
  const auto bit = static_cast<std::uint8_t>(1U << priority);
  // A pause that renews one counts, but does not begin again.
  ++core_.outcome.pauses;
  if ((ports_[index].paused & bit) == 0) pauses_[index].since_ns[priority] = core_.events.now();
  ports_[index].paused |= bit;
}

void Links::resume(std::uint32_t index, std::size_t priority) {
  ++core_.outcome.resumes;
  if ((ports_[index].paused >> priority & 1) != 0) end_pause(index, priority, core_.events.now());
}

bool Links::pause_is_over(std::uint32_t index, std::size_t priority) {
  const Port& port = ports_[index];
  // The peer may have let it go on, and paused it again: the later pause has a time of its own.
  if ((port.paused >> priority & 1) == 0 ||
      pauses_[index].since_ns[priority] > core_.events.now() - longest_pause_ns(port.rate))
    return false;
  end_pause(index, priority, core_.events.now());
  return true;
}

void Links::end_pause(std::uint32_t index, std::size_t priority, std::int64_t now_ns) {
  ports_[index].paused &= static_cast<std::uint8_t>(~(1U << priority));
  Pauses& pauses = pauses_[index];
  pauses.sum_ns += now_ns - pauses.since_ns[priority];
  if (sampler_) sampler_->paused(index, pauses.since_ns[priority], now_ns);
}

void Links::sum_pauses(std::int64_t end_ns) {
  PacketOutcome& outcome = core_.outcome;
  for (std::uint32_t index = 0; index < ports_.size(); ++index) {
    const Port& port = ports_[index];
    const std::uint8_t still_paused = port.paused;
    for (std::size_t priority = 0; priority < kPriorities; ++priority) {
      if ((still_paused >> priority & 1) != 0) end_pause(index, priority, end_ns);
    }
    const std::int64_t paused_ns = pauses_[index].sum_ns;
    ports_[index].paused = still_paused;
    outcome.paused_ns += paused_ns;
    const Port& peer = ports_[index ^ 1];
    const PacketOutcome::Pause pause = {paused_ns, port.node, peer.node};
    if (paused_ns > outcome.longest_pause.ns) outcome.longest_pause = pause;
    if (port.at_switch && peer.at_switch && paused_ns > outcome.longest_pause_between_switches.ns) {
      outcome.longest_pause_between_switches = pause;
    }
  }
}

void Links::take_samples(std::int64_t end_ns) {
  if (sampler_) core_.outcome.samples = sampler_->samples(end_ns);
}

}  // namespace armilla::packets
