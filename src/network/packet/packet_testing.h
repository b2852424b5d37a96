// For tests: small jobs of flows, and those of the rows of ns-3's answers.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "base/oracle_testing.h"
#include "ir/flow_traffic.h"
#include "network/packet.h"

namespace armilla {

// `hosts` hosts, then one switch that all are linked to.
inline NetworkGraph star_graph(std::int64_t hosts, std::int64_t bits_per_second = 100'000'000'000,
                               std::int64_t delay_ns = 1000, double loss = 0) {
  NetworkGraph graph;
  graph.is_switch.assign(static_cast<std::size_t>(hosts), false);
  graph.is_switch.push_back(true);
  for (std::int64_t host = 0; host < hosts; ++host)
    graph.links.push_back({host, hosts, bits_per_second, delay_ns, loss});
  return graph;
}

inline FlowJob star_job(std::int64_t hosts) {
  FlowJob job;
  job.where = "test";
  job.graph = star_graph(hosts);
  job.settings.buffer = 32 << 20;
  job.settings.ecn_of_rate[100'000'000'000] = {400'000, 1'600'000, 0.2};
  return job;
}

inline std::vector<std::int64_t> completions_ns(FlowJob job, std::uint64_t seed) {
  job.settings.seed = seed;
  std::vector<std::int64_t> all;
  for (const PacketFlowOutcome& flow : simulate_packets(job).flows) all.push_back(flow.fct_ns);
  return all;
}

// What a row of ns3.csv was run with: shared/specs/network_models.md, section 3.
inline NetworkGraph ns3_graph(const OracleRow& row) {
  const std::string& name = row.at("topology");
  const std::int64_t rate = std::stoll(row.at("link_gbps")) * 1'000'000'000,
                     delay = std::stoll(row.at("link_delay_ns"));
  const double loss = std::stod(row.at("loss_rate"));
  if (name.starts_with("star")) return star_graph(std::stoll(name.substr(4)), rate, delay, loss);
  NetworkGraph graph;
  const auto nodes = [&](std::int64_t hosts, std::int64_t switches) {
    graph.is_switch.assign(static_cast<std::size_t>(hosts), false);
    graph.is_switch.resize(static_cast<std::size_t>(hosts + switches), true);
  };
  const auto join = [&](std::int64_t a, std::int64_t b) { graph.links.push_back({a, b, rate, delay, loss}); };
  if (name.starts_with("dumbbell")) {
    const std::int64_t pairs = std::stoll(name.substr(8));
    nodes(2 * pairs, 2);
    for (std::int64_t host = 0; host < 2 * pairs; ++host) join(host, 2 * pairs + host / pairs);
    join(2 * pairs, 2 * pairs + 1);
  } else if (name == "fattree_k4") {  // 8 edge switches, 8 aggregation switches, 4 core switches
    nodes(16, 20);
    for (std::int64_t host = 0; host < 16; ++host) join(host, 16 + host / 2);
    for (std::int64_t edge = 0; edge < 8; ++edge) {
      for (std::int64_t up = 0; up < 2; ++up) join(16 + edge, 24 + edge / 2 * 2 + up);
    }
    for (std::int64_t middle = 0; middle < 8; ++middle) {
      for (std::int64_t up = 0; up < 2; ++up) join(24 + middle, 32 + middle % 2 * 2 + up);
    }
  } else if (name.starts_with("leafspine_4leaf_4host_2spine")) {
    nodes(16, 6);
    for (std::int64_t host = 0; host < 16; ++host) join(host, 16 + host / 4);
    for (std::int64_t leaf = 0; leaf < 4; ++leaf) {
      for (std::int64_t spine = 0; spine < 2; ++spine) join(16 + leaf, 20 + spine);
    }
  } else {
    throw std::runtime_error("a topology that the tests do not know: " + name);
  }
  return graph;
}

inline FlowJob ns3_job(const OracleRow& row) {
  FlowJob job;
  job.where = row.at("case");
  job.graph = ns3_graph(row);
  const std::int64_t bytes = std::stoll(row.at("flow_bytes")), count = std::stoll(row.at("n_flows"));
  const std::string& name = row.at("case");
  std::int64_t hosts = 0;
  for (const bool is_switch : job.graph.is_switch) hosts += is_switch ? 0 : 1;
  const auto flow = [&](std::int64_t from, std::int64_t to, std::int64_t start_ns = 0) {
    job.flows.push_back({from, to, bytes, start_ns});
  };
  if (name.starts_with("incast")) {
    for (std::int64_t i = 1; i <= count; ++i) flow(i, 0);
  } else if (name.starts_with("fair4")) {
    for (std::int64_t i = 0; i < 4; ++i) flow(i, 4 + i, name.starts_with("fair4_stagger") ? i * 500'000 : 0);
  } else if (name.find("ring_step") != name.npos) {
    for (std::int64_t i = 0; i < hosts; ++i) flow(i, (i + 1) % hosts);
  } else if (name.find("a2a") != name.npos) {
    for (std::int64_t i = 0; i < hosts; ++i) {
      for (std::int64_t j = 0; j < hosts; ++j) {
        if (i != j) flow(i, j);
      }
    }
  } else if (name.find("perm") != name.npos) {
    std::map<std::int64_t, std::int64_t> to;
    for (const std::string& one : split(row.at("fcts_ns"), ';')) {
      to[std::stoll(one)] = std::stoll(one.substr(one.find('>') + 1));
    }
    for (const auto& [source, destination] : to) flow(source, destination);
  } else {
    flow(0, 1);
  }

  const auto number = [&](const char* column) { return std::stod(row.at(column)); };
  const auto whole = [&](const char* column) { return std::stoll(row.at(column)); };
  const auto rate = [&](const char* column) { return std::stod(row.at(column)) * 1e6; };  // "20Mb/s"
  PacketSettings& settings = job.settings;
  switch (whole("CC_MODE")) {
    case 1:
      settings.congestion_control = CongestionControl::dcqcn;
      break;
    case 3:
      settings.congestion_control = CongestionControl::hpcc;
      break;
    case 7:
      settings.congestion_control = CongestionControl::timely;
      break;
    case 8:
      settings.congestion_control = CongestionControl::dctcp;
      break;
    default:
      settings.congestion_control = CongestionControl::none;
  }
  settings.timely_without_timestamps = row.at("cc") == "timely" || row.at("cc") == "timely_vwin";
  settings.payload = whole("PACKET_PAYLOAD_SIZE");
  settings.buffer = whole("BUFFER_SIZE") << 20;
  settings.ecn_of_rate[whole("link_gbps") * 1'000'000'000] = {whole("kmin") * 1000, whole("kmax") * 1000,
                                                              number("pmax")};
  settings.window = whole("HAS_WIN") != 0;
  settings.window_follows_rate = whole("VAR_WIN") != 0;
  settings.fast_react = whole("FAST_REACT") != 0;
  settings.rate_step = rate("RATE_AI");
  settings.rate_leap = rate("RATE_HAI");
  settings.min_rate = rate("MIN_RATE");
  settings.dctcp_step = rate("DCTCP_RATE_AI");
  settings.alpha_interval_us = whole("ALPHA_RESUME_INTERVAL");
  settings.decrease_interval_us = whole("RATE_DECREASE_INTERVAL");
  settings.increase_interval_us = whole("RP_TIMER");
  settings.gain = number("EWMA_GAIN");
  settings.fast_recoveries = whole("FAST_RECOVERY_TIMES");
  settings.clamp_target = whole("CLAMP_TARGET_RATE") != 0;
  settings.target_utilisation = number("U_TARGET");
  settings.increase_stages = whole("MI_THRESH");
  settings.telemetry_unit = whole("INT_MULTI");
  settings.rate_per_hop = whole("MULTI_RATE") != 0;
  settings.global_window = whole("GLOBAL_T") != 0;
  settings.pace = whole("RATE_BOUND") != 0;
  settings.acks_first = whole("ACK_HIGH_PRIO") != 0;
  settings.chunk = whole("L2_CHUNK_SIZE");
  settings.ack_interval = whole("L2_ACK_INTERVAL");
  settings.recovery = whole("L2_BACK_TO_ZERO") != 0 ? LossRecovery::go_back_0 : LossRecovery::go_back_n;
  return job;
}

}  // namespace armilla
