#include "network/packet/flows.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"

namespace armilla::packets {

Flows::Flows(Core& core, const Links& links, WayFinder& ways)
    : core_(core), links_(links), ways_(ways), forgets_(core.job.flows_come && core.traits.forgets) {
  core.outcome.longest_round_trip_ns = ways.largest().round_trip_ns;
  core.outcome.window_bytes = ways.largest().bandwidth_delay_bytes;
  flows_.reserve(core.job.flows.size());
  core.outcome.flows.reserve(core.job.flows.size());
}

void Flows::add(const TrafficFlow& asked, const FlowAddress& address) {
  flows_.emplace_back();
  core_.outcome.flows.emplace_back();
  set_up(size() - 1, asked, address);
}

Flows::Coming Flows::come(TrafficFlow flow) {
  flow.bytes = std::max<std::int64_t>(flow.bytes, 1);  // what takes no bytes is told of, too
  const auto source = static_cast<std::uint32_t>(flow.source),
             destination = static_cast<std::uint32_t>(flow.destination);
  std::uint16_t& port =
      next_source_port_.try_emplace(std::uint64_t{source} << 32 | destination, kFirstSourcePort)
          .first->second;
  const FlowAddress address = {source, destination, port++, static_cast<std::uint16_t>(flow.port)};
  // Numbers are used again, or a long job's flows would take a gigabyte for every two million messages.
  if (free_.empty()) {
    add(flow, address);
    return {size() - 1, true};
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  // Timers of the one that was forgotten are out of date.
  const Flow& before = flows_[index];
  Flow fresh;
  fresh.life = before.life + 1;
  fresh.increase_stamp = before.increase_stamp + 1;
  flows_[index] = fresh;
  core_.outcome.flows[index] = {};
  set_up(index, flow, address);
  return {index, false};
}

void Flows::set_up(std::uint32_t index, const TrafficFlow& asked, const FlowAddress& address) {
  Flow& flow = flows_[index];
  flow.size = static_cast<std::uint64_t>(asked.bytes);
  flow.address = address;
  flow.priority = static_cast<std::uint8_t>(asked.priority);
  const PairFigures pair = ways_.pair(address.source, address.destination);
  if (pair.hops == 0) {
    throw Error(core_.job.where,
                fmt::format("no way leads from {} to {}", core_.job.graph.called(address.source, "host"),
                            core_.job.graph.called(address.destination, "host")),
                "hosts do not forward: every way goes over switches");
  }
  if (core_.traits.telemetry && pair.hops > kTelemetryHops + 1) {
    throw Error(
        core_.job.where,
        fmt::format("the way from {} to {} passes {} switches, and packets of HPCC have room for the figures "
                    "of {}",
                    core_.job.graph.called(address.source, "host"),
                    core_.job.graph.called(address.destination, "host"), pair.hops - 1, kTelemetryHops),
        "choose another congestion control");
  }
  flow.round_trip_ns = core_.settings.global_window ? ways_.largest().round_trip_ns : pair.round_trip_ns;
  if (core_.traits.windows)
    flow.window =
        core_.settings.global_window ? ways_.largest().bandwidth_delay_bytes : pair.bandwidth_delay_bytes();
  flow.hops = static_cast<std::uint32_t>(pair.hops);
  // As the peers reckon it: the pair's round trip, and every byte at the slowest link's rate, with
  // 48 of headers.
  const std::int64_t count = (asked.bytes - 1) / core_.settings.payload + 1;
  core_.outcome.flows[index].alone_ns =
      pair.round_trip_ns + static_cast<std::int64_t>(static_cast<WideProduct>(asked.bytes + count * 48) *
                                                     8'000'000'000 / pair.bits_per_second);
  core_.outcome.flows[index].least_ns = 0;
}

// Round trip and window are those of the longest way alone, as Routes reckon them.
std::uint32_t Flows::connect(std::span<const std::vector<std::uint32_t>> ways) {
  const auto index = static_cast<std::uint32_t>(flows_.size());
  Flow& flow = flows_.emplace_back();
  ways_.add(flow, ways);
  const std::vector<std::uint32_t>& way =
      *std::ranges::max_element(ways, {}, &std::vector<std::uint32_t>::size);
  std::int64_t slowest = INT64_MAX;
  for (const std::uint32_t port : way) {
    slowest = std::min(slowest, links_[port].rate);
    flow.round_trip_ns += links_[port].delay_ns + links_[port ^ 1].delay_ns +
                          links_[port].transmission_ps[core_.settings.payload] / 1000;
  }
  flow.hops = static_cast<std::uint32_t>(way.size());
  if (core_.traits.windows) {
    const PairFigures pair = {flow.round_trip_ns, slowest, static_cast<std::int64_t>(way.size())};
    flow.window = std::max(pair.bandwidth_delay_bytes(), core_.settings.payload);
  }
  flow.priority = 3;
  flow.finished = true;
  flow.turn = kNone;
  return index;
}

void Flows::find_ways(std::uint32_t index) {
  const std::int64_t ns = ways_.find(flows_[index]);
  std::int64_t& least = core_.outcome.flows[index].least_ns;
  // A flow that takes another way after a failure began on the first.
  least = least == 0 ? ns : std::min(least, ns);
}

}  // namespace armilla::packets
