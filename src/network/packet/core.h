// What all parts of a packet simulation use: the job, the clock, the packets, and what is counted.
#pragma once

#include <cstdint>

#include "network/packet.h"
#include "network/packet/events.h"
#include "network/packet/marking.h"
#include "network/packet/packet_pool.h"
#include "network/packet/transport/traits.h"
#include "network/packet/watcher.h"

namespace armilla::packets {

struct Core {
  Core(const FlowJob& its_job, Watcher& its_watcher)
      : job(its_job),
        traits(traits_of(its_job.settings)),
        watcher(its_watcher),
        repeats(could_forward() && posts() && traits.repeats),
        forwards(job.fast_forward && could_forward() && (repeats || !posts())),
        packets(traits.telemetry),
        marking(its_job) {}

  // Where a packet's bytes are counted; nullptr: nowhere.
  PacketBytes* account_of(const Packet& packet) {
    if (packet.kind == PacketKind::data) return &outcome.data;
    return packet.kind < PacketKind::pause ? &outcome.acknowledgements : nullptr;
  }

  const FlowJob& job;
  const PacketSettings& settings = job.settings;
  const Traits traits;
  Watcher& watcher;
  // Sets of connections come into the same state again, as far as is known: fast-forward could skip some. And
  // whether it does, of connections or of flows.
  const bool repeats, forwards;

  Events events;
  PacketPool packets;
  Marking marking;
  PacketOutcome outcome;
  std::int64_t look_at = INT64_MAX;  // events handled, after which fast-forward looks for what goes on alike

 private:
  // Messages are posted to connections; of those stretches are told, too, by what patterns know of a state.
  bool posts() const { return job.flows.empty() && !job.flows_come; }
  bool could_forward() const {
    return traits.shifts && settings.link_down_ns == 0 && settings.nic_pauses == 0;
  }
};

}  // namespace armilla::packets
