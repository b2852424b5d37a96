#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <ranges>

#include "base/error.h"
#include "network/packet/transport.h"

namespace armilla {
namespace {

constexpr std::uint64_t kExplicitStreams = std::uint64_t{1} << 63;

// ns-3 numbers its random streams as objects are made. Of those made before the first packet, nine
// belong to every node's protocols, two to the network's error model and two to that of each link with a
// loss of its own.
std::uint64_t first_marking_stream(const NetworkGraph& graph) {
  std::uint64_t streams = 9 * graph.is_switch.size() + 2;
  for (const GraphLink& link : graph.links) streams += link.loss > 0 ? 2 : 0;
  return streams;
}

std::vector<std::uint32_t> hosts_of(const NetworkGraph& graph) {
  std::vector<std::uint32_t> hosts;
  for (std::uint32_t node = 0; node < graph.is_switch.size(); ++node) {
    if (!graph.is_switch[node]) hosts.push_back(node);
  }
  return hosts;
}

}  // namespace

PacketSimulation::~PacketSimulation() = default;

std::unique_ptr<PacketSimulation::Transport> PacketSimulation::make_transport(PacketSimulation& simulation) {
  constexpr std::array kMakers = {make_roce, make_tcp, make_ndp,
                                  make_eqds};  // in the order of TransportFamily
  return kMakers[static_cast<std::size_t>(family_of(simulation.settings_.congestion_control))](simulation);
}

PacketSimulation::PacketSimulation(const FlowJob& job)
    : job_(job),
      settings_(job.settings),
      ends_(job.flows_come ? hosts_of(job.graph) : ends_of(job.flows)),
      routes_(job.graph, job.settings.payload, ends_),
      largest_(ends_.empty() ? Routes::Largest{} : routes_.largest()),
      marking_(job.settings.seed, first_marking_stream(job.graph)) {
  if (job.sampled) sampler_.emplace(job.graph);
  build();
}

void PacketSimulation::build() {
  const NetworkGraph& graph = job_.graph;
  transport_ = make_transport(*this);
  const Transport::Traits& traits = transport_->traits;
  discipline_ = traits.discipline;
  has_telemetry_ = traits.telemetry;
  flows_in_line_ = traits.in_line;
  forgets_ = job_.flows_come && transport_->can_forget();
  ack_priority_ = settings_.acks_first ? 0 : 3;
  const std::int64_t frame = settings_.payload + traits.header;
  trim_limit_ = settings_.trim_queue * frame;
  if (settings_.port_queue > 0) {
    port_limit_ = settings_.port_queue * frame;
    port_random_ = std::max<std::int64_t>(0, settings_.port_queue - settings_.port_queue_random) * frame;
  }
  coins_ = settings_.seed;

  ports_.resize(2 * graph.links.size());
  shares_.resize(ports_.size());
  pauses_.resize(ports_.size());
  switches_.resize(graph.is_switch.size());
  std::map<std::int64_t, std::uint32_t> rate_classes;
  losses_.emplace_back(settings_.seed, kExplicitStreams + 50);
  std::vector<std::vector<std::uint32_t>> of_node(graph.is_switch.size());
  for (std::uint32_t link = 0; link < graph.links.size(); ++link) {
    const GraphLink& cable = graph.links[link];
    const GraphLink::Back there = {cable.bits_per_second, cable.delay_ns, cable.loss};
    const GraphLink::Back back = cable.back.value_or(there);
    for (const std::int64_t rate : {there.bits_per_second, back.bits_per_second}) {
      if (!rate_classes.try_emplace(rate, rate_classes.size()).second) continue;
      std::vector<std::int64_t>& table = transmission_.emplace_back();
      const auto largest = static_cast<std::uint32_t>(settings_.payload) + traits.header + 64;
      for (std::uint32_t bytes = 0; bytes <= largest; ++bytes) {
        table.push_back(settings_.whole_ns ? transmission_ns(bytes, rate) * 1000
                                           : std::llround(bytes * 8e12 / static_cast<double>(rate)));
      }
    }
    if (there.loss > 0 || back.loss > 0) losses_.emplace_back(settings_.seed, kExplicitStreams + 50);
    for (const std::uint32_t end : {0U, 1U}) {
      const GraphLink::Back& figures = end == 0 ? there : back;
      Port& port = ports_[2 * link + end];
      port.node = static_cast<std::uint32_t>(end == 0 ? cable.a : cable.b);
      port.at_switch = graph.is_switch[port.node];
      port.rate = figures.bits_per_second;
      port.delay_ns = figures.delay_ns;
      // Losses are drawn where packets arrive: of what comes the other way.
      const double loss = end == 0 ? back.loss : there.loss;
      port.loss = loss > 0 ? loss : settings_.loss;
      if (port.loss > 0) port.loss_stream = loss > 0 ? static_cast<std::uint32_t>(losses_.size() - 1) : 0;
      of_node[port.node].push_back(2 * link + end);
      if (!port.at_switch) {
        port.nic = static_cast<std::uint32_t>(nics_.size());
        nics_.emplace_back();
      }
    }
  }

  for (Port& port : ports_) port.transmission_ps = transmission_[rate_classes.at(port.rate)].data();

  std::int64_t nic_rate = 0;
  for (std::uint32_t node = 0; node < graph.is_switch.size() && nic_rate == 0; ++node) {
    if (!graph.is_switch[node] && !of_node[node].empty()) nic_rate = ports_[of_node[node].front()].rate;
  }
  for (std::uint32_t node = 0; node < graph.is_switch.size(); ++node) {
    first_ports_.push_back(static_cast<std::uint32_t>(node_ports_.size()));
    node_ports_.insert(node_ports_.end(), of_node[node].begin(), of_node[node].end());
    if (!graph.is_switch[node]) continue;
    std::int64_t kept = 0, least_share = 1;
    for (const std::uint32_t index : of_node[node]) {
      Port& port = ports_[index];
      if (const auto found = settings_.ecn_of_rate.find(port.rate); found != settings_.ecn_of_rate.end()) {
        port.ecn = found->second;
      }
      if (discipline_ != SwitchDiscipline::pause) continue;  // without PFC nothing is kept for it
      auto headroom = static_cast<WideProduct>(port.rate) * port.delay_ns / 8 / 1'000'000'000 * 3;
      // The frames that the pause and its answer wait for, however short the link.
      if (settings_.buffer_is_shared)
        headroom = std::max<WideProduct>(headroom, 3 * (settings_.payload + traits.header));
      if (headroom > (settings_.buffer_is_shared ? UINT32_MAX : settings_.buffer)) {
        throw Error(
            job_.where,
            fmt::format("a link of switch {} with {} bit/s and {} ns needs {} bytes of headroom, and its "
                        "buffer has {}",
                        node, port.rate, port.delay_ns, static_cast<std::int64_t>(headroom),
                        settings_.buffer),
            "give the switches a larger BUFFER_SIZE (MB)");
      }
      port.headroom_limit = static_cast<std::uint32_t>(headroom);
      for (std::int64_t rate = port.rate; rate > nic_rate && port.threshold_shift > 0; rate /= 2)
        --port.threshold_shift;
      least_share = std::max(least_share, std::int64_t{1} << port.threshold_shift);
      kept += port.headroom_limit + kReserve;
    }
    if (settings_.buffer_is_shared) kept = 0;
    if (kept >= settings_.buffer) {
      throw Error(
          job_.where,
          fmt::format("switch {} needs {} bytes for the reserve and the headroom of its {} ports, and its "
                      "buffer has {}",
                      node, kept, of_node[node].size(), settings_.buffer),
          "give the switches a larger BUFFER_SIZE (MB)");
    }
    Switch& here = switches_[node];
    here.buffer_left = static_cast<std::uint32_t>(settings_.buffer - kept);
    // If each of n ports holds less than c of a buffer B, the least threshold is at least
    // (B - n c) / least_share, which is c for c = B / (n + least_share). Less two packets: what comes in at
    // one nanosecond.
    const std::int64_t calm =
        here.buffer_left / (static_cast<std::int64_t>(of_node[node].size()) + least_share) - 2 * frame;
    here.calm = static_cast<std::uint32_t>(std::max<std::int64_t>(0, calm));
    here.joins = calm < 0 && discipline_ == SwitchDiscipline::pause;
  }
  first_ports_.push_back(static_cast<std::uint32_t>(node_ports_.size()));

  outcome_.longest_round_trip_ns = largest_.round_trip_ns;
  outcome_.window_bytes = largest_.bandwidth_delay_bytes;
  const std::vector<FlowAddress> addresses = addresses_of(job_.flows);
  flows_.reserve(job_.flows.size());
  outcome_.flows.reserve(job_.flows.size());
  for (std::uint32_t index = 0; index < job_.flows.size(); ++index)
    add_flow(job_.flows[index], addresses[index]);
  sets_ = ConnectionSets(ports_.size());
  // Of messages that are posted stretches are told, too, by what patterns know of a state.
  const bool posted = job_.flows.empty() && !job_.flows_come;
  const bool could_forward =
      transport_->can_shift() && settings_.link_down_ns == 0 && settings_.nic_pauses == 0;
  can_repeat_ = could_forward && posted && transport_->can_repeat();
  if (job_.fast_forward && could_forward && (can_repeat_ || !posted))
    forward_ = std::make_unique<FastForward>(*this);
  if (job_.usual_settings && settings_.ecn) {
    for (std::uint64_t port = 0; port < ports_.size(); ++port) {
      std::uint64_t coins = settings_.seed;
      coins = coin_bits(coins) ^ port;
      marking_coins_.push_back(coin_bits(coins));
    }
  }
  // Times of equal start in the file's order.
  for (std::uint32_t index = 0; index < flows_.size(); ++index)
    schedule(job_.flows[index].start_ns, kDue, index);
  if (settings_.link_down_ns > 0) schedule(settings_.link_down_ns, kLinkDown, 0);
}

void PacketSimulation::add_flow(const TrafficFlow& asked, const FlowAddress& address) {
  flows_.emplace_back();
  outcome_.flows.emplace_back();
  transport_->add_flow(false);
  set_up_flow(static_cast<std::uint32_t>(flows_.size() - 1), asked, address);
}

void PacketSimulation::set_up_flow(std::uint32_t index, const TrafficFlow& asked,
                                   const FlowAddress& address) {
  Flow& flow = flows_[index];
  flow.size = static_cast<std::uint64_t>(asked.bytes);
  flow.address = address;
  flow.priority = static_cast<std::uint8_t>(asked.priority);
  const PairFigures pair = routes_.pair(address.source, address.destination);
  if (pair.hops == 0) {
    throw Error(job_.where,
                fmt::format("no way leads from host {} to host {}", address.source, address.destination),
                "hosts do not forward: every way goes over switches");
  }
  if (has_telemetry_ && pair.hops > kTelemetryHops + 1) {
    throw Error(
        job_.where,
        fmt::format("the way from host {} to host {} passes {} switches, and packets of HPCC have room "
                    "for the figures of {}",
                    address.source, address.destination, pair.hops - 1, kTelemetryHops),
        "choose another congestion control");
  }
  flow.round_trip_ns = settings_.global_window ? largest_.round_trip_ns : pair.round_trip_ns;
  if (transport_->traits.windows)
    flow.window = settings_.global_window ? largest_.bandwidth_delay_bytes : pair.bandwidth_delay_bytes();
  flow.hops = static_cast<std::uint32_t>(pair.hops);
  // As the peers reckon it: the pair's round trip, and every byte at the slowest link's rate, with
  // 48 of headers.
  const std::int64_t count = (asked.bytes - 1) / settings_.payload + 1;
  outcome_.flows[index].alone_ns =
      pair.round_trip_ns + static_cast<std::int64_t>(static_cast<WideProduct>(asked.bytes + count * 48) *
                                                     8'000'000'000 / pair.bits_per_second);
  outcome_.flows[index].least_ns = 0;
}

// Connections have no outcome; a flow that takes another way after a failure began on the first.
void PacketSimulation::note_least(std::uint32_t index, std::span<const std::vector<std::uint32_t>> ways) {
  if (index >= outcome_.flows.size()) return;
  std::int64_t& least = outcome_.flows[index].least_ns;
  const std::int64_t ns = least_ns(flows_[index].size, ways);
  least = least == 0 ? ns : std::min(least, ns);
}

// Of several ways each may be as slow as it likes: the host sends all, and another takes it in.
std::int64_t PacketSimulation::least_ns(std::uint64_t size,
                                        std::span<const std::vector<std::uint32_t>> ways) const {
  const auto bytes = static_cast<std::int64_t>(size);
  const std::int64_t first = std::min(bytes, settings_.payload);
  const std::int64_t packets = (bytes - 1) / settings_.payload + 1;
  // As packets are sent, to whole nanoseconds where those of ns-3 are.
  const auto ps_on = [&](std::int64_t frame, std::uint32_t port) {
    return ports_[port].transmission_ps[frame];
  };
  const std::int64_t header = transport_->traits.header;
  std::int64_t least = INT64_MAX;
  for (const std::vector<std::uint32_t>& way : ways) {
    const auto slower = [&](std::uint32_t a, std::uint32_t b) {
      return ports_[b].rate < ports_[a].rate ? b : a;
    };
    std::uint32_t slowest = slower(way.front(), way.back());
    std::int64_t ns = 0, ps = 0;
    for (const std::uint32_t port : way) {
      ns += ports_[port].delay_ns + ports_[port ^ 1].delay_ns;
      if (ways.size() > 1) continue;
      slowest = slower(slowest, port);
      ps += ps_on(first, port);
    }
    if (ways.size() == 1) ps -= ps_on(first, slowest);
    ps += (packets - 1) * ps_on(settings_.payload + header, slowest) +
          ps_on(bytes - (packets - 1) * settings_.payload + header, slowest);
    least = std::min(least, ns + ps / 1000);
  }
  return least;
}

// The first one is the flow's own, there and back; what leaves by another NIC, or comes back by one, is
// none of its.
void PacketSimulation::add_ways(Flow& flow, std::span<const std::vector<std::uint32_t>> ways) {
  std::vector<std::uint32_t> there, back;
  std::vector<std::uint32_t> turned;
  const auto add_back = [&](const std::vector<std::uint32_t>& way) {
    turned.clear();
    for (const std::uint32_t port : std::views::reverse(way)) turned.push_back(port ^ 1);
    back.push_back(ways_.add(std::span(turned).subspan(1)));
  };
  for (const std::vector<std::uint32_t>& way : ways) {
    if (way.front() != ways.front().front()) continue;
    if (transport_->traits.sprays && way.back() != ways.front().back()) continue;
    if (has_telemetry_ && way.size() > kTelemetryHops + 1) {
      throw Error(job_.where,
                  fmt::format("a way passes {} switches, and packets of HPCC have room for the figures of {}",
                              way.size() - 1, kTelemetryHops),
                  "choose another congestion control");
    }
    there.push_back(ways_.add(std::span(way).subspan(1)));
    if (transport_->traits.sprays || there.size() == 1) add_back(way);
  }
  flow.port = ways.front().front();
  flow.exit = ways.front().back() ^ 1;
  flow.way_there = there.front();
  flow.way_back = back.front();
  flow.ways = static_cast<std::uint32_t>(there.size());
  if (flow.ways == 1) return;
  flow.ways_there = ways_.add_list(there);
  flow.ways_back = ways_.add_list(back);
}

// Round trip and window are those of the longest way alone, as Routes reckon them.
std::uint32_t PacketSimulation::connect(std::span<const std::vector<std::uint32_t>> ways) {
  const auto index = static_cast<std::uint32_t>(flows_.size());
  Flow& flow = flows_.emplace_back();
  mail_.emplace_back();
  add_ways(flow, ways);
  const std::vector<std::uint32_t>& way =
      *std::ranges::max_element(ways, {}, &std::vector<std::uint32_t>::size);
  std::int64_t slowest = INT64_MAX;
  for (const std::uint32_t port : way) {
    slowest = std::min(slowest, ports_[port].rate);
    flow.round_trip_ns += ports_[port].delay_ns + ports_[port ^ 1].delay_ns +
                          ports_[port].transmission_ps[settings_.payload] / 1000;
  }
  flow.hops = static_cast<std::uint32_t>(way.size());
  if (transport_->traits.windows) {
    const PairFigures pair = {flow.round_trip_ns, slowest, static_cast<std::int64_t>(way.size())};
    flow.window = std::max(pair.bandwidth_delay_bytes(), settings_.payload);
  }
  flow.priority = 3;
  flow.finished = true;
  flow.turn = kNone;
  transport_->add_flow(true);
  return index;
}

void PacketSimulation::find_ways(std::uint32_t index) {
  Flow& flow = flows_[index];
  if (job_.ways) {
    const std::span<const std::vector<std::uint32_t>> ways =
        job_.ways(flow.address.source, flow.address.destination);
    add_ways(flow, ways);
    note_least(index, ways);
    return;
  }
  std::vector<std::uint32_t> way;
  if (transport_->traits.sprays) {
    std::vector<std::vector<std::uint32_t>> ways;
    constexpr std::size_t kMostWays = 256;
    find_shortest(flow.address.source, flow.address.destination, kMostWays, way, ways);
    if (ways.empty()) no_way(flow);
    add_ways(flow, ways);
    note_least(index, ways);
    return;
  }
  for (const bool back : {false, true}) {
    const FlowAddress address = back ? flow.address.back() : flow.address;
    way.clear();
    for (std::uint32_t node = address.source; node != address.destination;) {
      const std::uint32_t port = next_port(job_.graph, routes_, node, address);
      if (port == kNoPort) no_way(flow);
      way.push_back(port);
      node = ports_[port ^ 1].node;
    }
    (back ? flow.exit : flow.port) = way.front();
    if (!back) note_least(index, std::span(&way, 1));
    (back ? flow.way_back : flow.way_there) = ways_.add(std::span(way).subspan(1));
  }
}

// All of them, where they are no more than `most`; else some of every turning, other ones for other hosts.
void PacketSimulation::find_shortest(std::uint32_t node, std::uint32_t host, std::size_t most,
                                     std::vector<std::uint32_t>& way,
                                     std::vector<std::vector<std::uint32_t>>& ways) const {
  if (node == host) {
    ways.push_back(way);
    return;
  }
  const auto& ports = routes_.next_ports(node, host);
  const std::size_t turnings = std::min(most, ports.size());
  const std::size_t first = turnings < ports.size() ? host % ports.size() : 0;
  for (std::size_t i = 0; i < turnings; ++i) {
    const std::uint32_t port = ports[(first + i) % ports.size()];
    way.push_back(port);
    find_shortest(ports_[port ^ 1].node, host, most / turnings, way, ways);
    way.pop_back();
  }
}

void PacketSimulation::no_way(const Flow& flow) const {
  throw Error(job_.where,
              fmt::format("no way leads from host {} to host {} after the link between {} and {} failed",
                          flow.address.source, flow.address.destination, settings_.link_down_a,
                          settings_.link_down_b));
}

}  // namespace armilla
