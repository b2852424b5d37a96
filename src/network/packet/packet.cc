#include "network/packet.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/units_text.h"
#include "network/packet/limits.h"
#include "network/packet/simulation.h"
#include "network/packet/wire.h"

namespace armilla {
namespace {

double packets_of(const FlowJob& job) {
  double packets = 0;
  for (const TrafficFlow& flow : job.flows) {
    packets += std::ceil(static_cast<double>(flow.bytes) / static_cast<double>(job.settings.payload));
  }
  return packets;
}

constexpr double kGigabit = 1e9;

// The names of all rows, in their order.
constexpr bool names_all(std::string_view names) {
  for (const CongestionControlRow& row : kCongestionControls) {
    if (!names.starts_with(row.name)) return false;
    names.remove_prefix(std::min(row.name.size() + 1, names.size()));
  }
  return names.empty();
}
static_assert(names_all(kCongestionControlNames));

std::int64_t bits_back(const GraphLink& link) {
  return link.back ? link.back->bits_per_second : link.bits_per_second;
}

std::string time_text(std::int64_t ns) {
  return to_text(from_seconds(static_cast<double>(ns) * 1e-9));
}

// Why flows have not finished.
void note_unfinished(const FlowJob& job, const PacketOutcome& outcome, std::vector<std::string>& notes) {
  const std::int64_t unfinished = std::ranges::count(outcome.flows, -1, &PacketFlowOutcome::fct_ns);
  const auto of_all = [&](std::int64_t some) {
    return fmt::format("{} of {}", with_separators(some), counted(job.flows.size(), "flow"));
  };
  if (outcome.given_up > 0) {
    notes.push_back(
        fmt::format("{} never finished: senders gave up after {} timeouts in a row; {} {} lost on "
                    "links, {} in full buffers",
                    of_all(outcome.given_up), kRetries, counted(outcome.lost_packets, "packet"),
                    outcome.lost_packets == 1 ? "was" : "were", with_separators(outcome.dropped_packets)));
  }
  const std::int64_t others = unfinished - outcome.given_up;
  if (others <= 0) return;
  if (outcome.stopped) {
    notes.push_back(fmt::format("{} had not finished when the run was stopped, at {} (SIMULATOR_STOP_TIME)",
                                of_all(others), time_text(job.settings.stop_ns)));
  } else {
    notes.push_back(
        fmt::format("{} never finished: what they wait for was lost, or does not come{}", of_all(others),
                    job.settings.retransmit_timeout_ns == 0 ? ", and RETRANSMIT_TIMEOUT is 0" : ""));
  }
}

}  // namespace

bool sprays(const ParameterValues& values) {
  return std::ranges::any_of(kCongestionControls, [&](const CongestionControlRow& row) {
    return is_pulled(row.control) && values.is_set("cc") && values.choice("cc") == row.name;
  });
}

namespace {

void set_pauses(PacketSettings& settings, const ParameterValues& values) {
  for (const char* name : {"xoff", "xon"}) {
    if (values.is_set(name) && family_of(settings.congestion_control) != TransportFamily::roce)
      throw Error(
          values.where(name), "only RoCE's links are paused (PFC)",
          fmt::format("omit it, or choose another cc than {}", row_of(settings.congestion_control).name));
  }
  if (!values.is_set("xoff")) {
    if (values.is_set("xon"))
      throw Error(values.where("xon"), "has a meaning beside xoff only", "add xoff=, or omit xon");
    return;
  }
  // A port has so much for itself, which no pause is for.
  const std::int64_t least = kReserve + kResumeOffset;
  settings.xoff = values.bytes("xoff").value;
  if (settings.xoff < least || settings.xoff > settings.buffer)
    throw Error(values.where("xoff"), fmt::format("{} is out of range", settings.xoff),
                fmt::format("from {} to the buffer's {}", least, settings.buffer));
  settings.xon = values.is_set("xon") ? values.bytes("xon").value : settings.xoff - kResumeOffset;
  if (settings.xon < 1 || settings.xon > settings.xoff)
    throw Error(values.where("xon"), fmt::format("{} is out of range", settings.xon), "from 1 to xoff");
}

}  // namespace

void set_transport(FlowJob& job, const ParameterValues& values) {
  PacketSettings& settings = job.settings;
  job.fast_forward = values.boolean("fast-forward");
  const CongestionControl of_files = settings.congestion_control;
  if (values.is_set("cc")) {
    for (const CongestionControlRow& row : kCongestionControls) {
      if (values.choice("cc") == row.name) settings.congestion_control = row.control;
    }
    if (settings.congestion_control == CongestionControl::hpcc) settings.window = true;
  }
  if (values.is_set("recovery")) {
    const std::string& recovery = values.choice("recovery");
    settings.recovery = recovery == "selective"   ? LossRecovery::selective
                        : recovery == "go-back-0" ? LossRecovery::go_back_0
                                                  : LossRecovery::go_back_n;
  }
  if (family_of(settings.congestion_control) == TransportFamily::tcp) {
    if (values.is_set("recovery"))
      throw Error(values.where("recovery"), "TCP has a recovery of its own", "omit recovery");
    // The least of Linux, unless files say what this TCP does.
    if (!job.flows_come || settings.congestion_control != of_files)
      settings.retransmit_timeout_ns = 200'000'000;
  } else if (is_pulled(settings.congestion_control)) {
    if (values.is_set("recovery"))
      throw Error(values.where("recovery"),
                  fmt::format("{} has a recovery of its own", row_of(settings.congestion_control).title),
                  "omit recovery");
    settings.retransmit_timeout_ns = 1'000'000;
  } else if (job.choice != WayChoice::first) {
    if (values.is_set("recovery") && settings.recovery != LossRecovery::selective)
      throw Error(values.where("recovery"),
                  fmt::format("'{}' repeats what comes in another order, as packets on several ways do",
                              values.choice("recovery")),
                  "selective, or a routing with one way");
    settings.recovery = LossRecovery::selective;
  }
  struct Count {
    std::string_view name;
    std::int64_t least, most, PacketSettings::*setting;
  };
  for (const Count& count : {Count{"paths", 1, 4096, &PacketSettings::paths},
                             Count{"window", 1, 1'000'000, &PacketSettings::pull_window},
                             Count{"trim-queue", 1, 1'000'000, &PacketSettings::trim_queue}}) {
    if (!values.is_set(count.name)) continue;
    if (!is_pulled(settings.congestion_control))
      throw Error(values.where(count.name), "has a meaning with ndp and eqds only",
                  fmt::format("omit it, or choose one of them as cc instead of {}",
                              row_of(settings.congestion_control).name));
    const std::int64_t value = values.count(count.name);
    if (value < count.least || value > count.most)
      throw Error(values.where(count.name), fmt::format("{} is out of range", value),
                  fmt::format("from {} to {}", count.least, count.most));
    settings.*count.setting = value;
  }
  if (values.is_set("timeout")) settings.retransmit_timeout_ns = values.time("timeout").value / 1000;
  for (const auto& [name, control] : {std::pair("timely-timestamps", CongestionControl::timely),
                                      std::pair("hpcc", CongestionControl::hpcc)}) {
    if (values.is_set(name) && settings.congestion_control != control)
      throw Error(values.where(name), fmt::format("has a meaning with {} only", row_of(control).name),
                  fmt::format("omit it, or choose cc={} instead of {}", row_of(control).name,
                              row_of(settings.congestion_control).name));
  }
  if (values.is_set("timely-timestamps"))
    settings.timely_without_timestamps = !values.boolean("timely-timestamps");
  if (values.is_set("hpcc")) settings.hpcc_as_htsim = values.choice("hpcc") == "htsim";
  if (job.usual_settings) use_usual_settings(settings, job.graph);
  struct Size {
    std::string_view name;
    std::int64_t least, most, PacketSettings::*setting;
  };
  for (const Size& size : {Size{"payload", 64, 65'000, &PacketSettings::payload},
                           Size{"buffer", 1 << 14, std::int64_t{4000} << 20, &PacketSettings::buffer}}) {
    if (!values.is_set(size.name)) continue;
    const std::int64_t value = values.bytes(size.name).value;
    if (value < size.least || value > size.most)
      throw Error(values.where(size.name), fmt::format("{} is out of range", value),
                  fmt::format("from {} to {}", size.least, size.most));
    settings.*size.setting = value;
  }
  set_pauses(settings, values);
}

void use_usual_settings(PacketSettings& settings, const NetworkGraph& graph) {
  const CongestionControl control = settings.congestion_control;
  double slowest = 1e300;
  for (const GraphLink& link : graph.links) {
    if (graph.is_switch[static_cast<std::size_t>(link.a)] &&
        graph.is_switch[static_cast<std::size_t>(link.b)])
      continue;
    slowest =
        std::min({slowest, static_cast<double>(link.bits_per_second), static_cast<double>(bits_back(link))});
  }
  const double speed = slowest / kGigabit;
  settings.window = settings.window_follows_rate =
      control == CongestionControl::hpcc || control == CongestionControl::dctcp;
  settings.global_window = false;
  settings.increase_interval_us = 300;
  settings.alpha_interval_us = 1;
  const bool of_dctcp = control == CongestionControl::dctcp || control == CongestionControl::tcp_dctcp;
  settings.gain = of_dctcp ? 1.0 / 16 : 1.0 / 256;
  const bool tcp = family_of(control) == TransportFamily::tcp;
  settings.ecn = family_of(control) == TransportFamily::roce || of_dctcp;
  settings.dctcp_step = 615e6;
  settings.increase_stages = 0;
  settings.telemetry_unit = std::max<std::int64_t>(1, std::llround(speed / 25));
  switch (control) {
    case CongestionControl::hpcc:
      settings.rate_step = 0.4e6 * speed;
      break;
    case CongestionControl::timely:
    case CongestionControl::swift:
      settings.rate_step = 1e6 * speed;
      settings.rate_leap = 5e6 * speed;
      break;
    default:
      settings.rate_step = 0.2e6 * speed;
      settings.rate_leap = 2e6 * speed;
  }
  settings.payload = tcp ? 1448 : 4096;
  settings.buffer = 32 << 20;
  settings.buffer_is_shared = true;
  settings.whole_ns = false;
  for (const GraphLink& link : graph.links) {
    for (const std::int64_t rate : {link.bits_per_second, bits_back(link)}) {
      const auto kilobytes = static_cast<std::int64_t>(static_cast<double>(rate) / kGigabit * 1000);
      settings.ecn_of_rate[rate] = of_dctcp ? EcnThresholds{3 * kilobytes, 3 * kilobytes, 1}
                                            : EcnThresholds{4 * kilobytes, 16 * kilobytes, 0.2};
    }
  }
}

PacketOutcome simulate_packets(const FlowJob& job) {
  check_packets(job.where, "flows", job.usual_settings ? "payload" : "PACKET_PAYLOAD_SIZE", packets_of(job),
                job.settings.congestion_control);
  return packets::Simulation(job).run();
}

TrafficResult packet_traffic(const FlowJob& job) {
  const PacketOutcome outcome = simulate_packets(job);
  TrafficResult result;
  const std::int64_t switches = std::count(job.graph.is_switch.begin(), job.graph.is_switch.end(), true);
  const CongestionControlRow& control = row_of(job.settings.congestion_control);
  constexpr std::array kMedia = {"RoCE", "TCP", "Ethernet", "Ethernet"};  // by TransportFamily
  result.title = fmt::format("{} over {} with {}: {}, {}, {}", counted(job.flows.size(), "flow"),
                             kMedia[static_cast<std::size_t>(control.family)], control.title,
                             counted(job.graph.nodes() - switches, "host"), counted(switches, "switch"),
                             counted(job.graph.links.size(), "link"));
  FlowsResult flows;
  for (std::size_t i = 0; i < job.flows.size(); ++i) {
    const TrafficFlow& asked = job.flows[i];
    const PacketFlowOutcome& flow = outcome.flows[i];
    flows.flows.push_back({asked.source, asked.destination, asked.bytes,
                           static_cast<double>(asked.start_ns) / 1e9, static_cast<double>(flow.fct_ns) / 1e9,
                           flow.fct_ns >= 0, static_cast<double>(flow.least_ns) / 1e9});
  }
  flows.has_pfc = family_of(job.settings.congestion_control) == TransportFamily::roce;
  flows.pfc_pauses = outcome.pauses;
  flows.pfc_resumes = outcome.resumes;
  flows.packets = outcome.frames;
  flows.events = outcome.events;
  flows.samples = outcome.samples;
  if (job.fast_forward) {
    const PacketForward forwarded = outcome.forwarded.value_or(PacketForward{});
    flows.fast_forward = {forwarded.stretches, forwarded.frames, kForwardBound,
                          outcome.forwarded ? "" : why_all_is_played(job.settings)};
  }
  result.outcome = std::move(flows);

  result.facts.emplace_back("idle network", fmt::format("longest round trip {}, {} in its window",
                                                        time_text(outcome.longest_round_trip_ns),
                                                        counted(outcome.window_bytes, "byte")));
  result.facts.emplace_back(
      "data", fmt::format("{} sent by hosts, {} of them again, {} marked by ECN",
                          counted(outcome.data_packets, "packet"), with_separators(outcome.repeated_packets),
                          with_separators(outcome.marked_packets)));
  result.facts.emplace_back(
      "lost", fmt::format("{} on links, {} in full buffers, {}", with_separators(outcome.lost_packets),
                          with_separators(outcome.dropped_packets), counted(outcome.timeouts, "timeout")));
  if (is_pulled(job.settings.congestion_control))
    result.facts.emplace_back(
        "trimmed", fmt::format("{} cut to {} by full queues", counted(outcome.trimmed_packets, "packet"),
                               outcome.trimmed_packets == 1 ? "its header" : "their headers"));
  result.facts.emplace_back("longest queue", counted(outcome.longest_queue, "byte") + " at one port");
  if (outcome.longest_pause.ns > 0) {
    const PacketOutcome::Pause& pause = outcome.longest_pause;
    result.facts.emplace_back(
        "longest paused", fmt::format("{} on its link to {}, {} in all", job.graph.called(pause.from, "node"),
                                      job.graph.called(pause.to, "node"), time_text(pause.ns)));
  }
  note_unfinished(job, outcome, result.notes);
  // Pauses between switches hold up flows that have no part in the congestion.
  const PacketOutcome::Pause& spread = outcome.longest_pause_between_switches;
  if (is_storm(outcome)) {
    result.notes.push_back(fmt::format(
        "PFC storm: {} had to be silent on its link to {} for {:.0f} % of the time, and flows that do not "
        "cause the congestion wait with the others",
        job.graph.called(spread.from, "switch"), job.graph.called(spread.to, "switch"),
        100 * static_cast<double>(spread.ns) / static_cast<double>(outcome.end_ns)));
  }
  return result;
}

}  // namespace armilla
