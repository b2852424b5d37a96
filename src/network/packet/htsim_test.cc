#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <random>

#include "network/packet.h"
#include "network/packet/packet_testing.h"

namespace armilla {
namespace {

// k pods of k/2 edge and k/2 aggregation switches; (k/2)^2 core switches.
NetworkGraph htsim_fat_tree(std::int64_t k, std::int64_t rate, std::int64_t delay_ns) {
  const std::int64_t half = k / 2, hosts = k * half * half, edges = k * half;
  NetworkGraph graph;
  graph.is_switch.assign(static_cast<std::size_t>(hosts), false);
  graph.is_switch.resize(static_cast<std::size_t>(hosts + 2 * edges + half * half), true);
  const auto join = [&](std::int64_t a, std::int64_t b) { graph.links.push_back({a, b, rate, delay_ns, 0}); };
  for (std::int64_t host = 0; host < hosts; ++host) join(host, hosts + host / half);
  for (std::int64_t edge = 0; edge < edges; ++edge) {
    for (std::int64_t up = 0; up < half; ++up) join(hosts + edge, hosts + edges + edge / half * half + up);
  }
  for (std::int64_t middle = 0; middle < edges; ++middle) {
    for (std::int64_t up = 0; up < half; ++up)
      join(hosts + edges + middle, hosts + 2 * edges + middle % half * half + up);
  }
  return graph;
}

std::vector<std::pair<std::int64_t, std::int64_t>> htsim_pairs(const OracleRow& row) {
  const std::string& name = row.at("case");
  const std::int64_t nodes = std::stoll(row.at("nodes")), count = std::stoll(row.at("n_flows"));
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
  if (name.starts_with("single")) {
    pairs = {{0, 13}};
  } else if (name.starts_with("incast")) {
    for (std::int64_t i = 0; i < count; ++i) pairs.emplace_back(i + (count == 2 ? 1 : 0), nodes - 1);
  } else if (name.starts_with("shift8")) {
    for (std::int64_t i = 0; i < count; ++i) pairs.emplace_back(i, (i + 8) % nodes);
  } else if (name.starts_with("a2a")) {
    for (std::int64_t i = 0; i * i < count; ++i) {
      for (std::int64_t j = 0; j * j < count; ++j) {
        if (i != j) pairs.emplace_back(i, j);
      }
    }
  } else {  // "ndp_9_8:169.631": from host 9 to host 8
    for (const std::string& flow : split(row.at("per_flow_finish_us"), ';')) {
      const std::vector<std::string> parts = split(flow.substr(0, flow.find(':')), '_');
      pairs.emplace_back(std::stoll(parts[1]), std::stoll(parts[2]));
    }
    if (pairs.empty()) {
      std::vector<std::int64_t> to(static_cast<std::size_t>(nodes));
      for (std::int64_t i = 0; i < nodes; ++i) to[static_cast<std::size_t>(i)] = i;
      std::mt19937 random(3);
      std::shuffle(to.begin(), to.end(), random);
      for (std::int64_t i = 0; i < nodes; ++i)
        if (to[static_cast<std::size_t>(i)] != i) pairs.emplace_back(i, to[static_cast<std::size_t>(i)]);
    }
    std::ranges::sort(pairs);
  }
  return pairs;
}

FlowJob htsim_job(const OracleRow& row) {
  constexpr std::int64_t kHeader = 64;
  FlowJob job;
  job.where = row.at("case");
  const std::int64_t rate = std::stoll(row.at("link_gbps")) * 1'000'000'000, mtu = std::stoll(row.at("mtu"));
  const std::string& topology = row.at("topology");
  job.graph = htsim_fat_tree(std::stoll(topology.substr(topology.find("k=") + 2)), rate,
                             std::stoll(row.at("hop_latency_us")) * 1000);
  for (const auto& [from, to] : htsim_pairs(row))
    job.flows.push_back({from, to, std::stoll(row.at("flow_bytes"))});
  PacketSettings& settings = job.settings;
  settings.ecn = false;
  settings.whole_ns = false;
  settings.global_window = false;
  settings.paths = 128;
  settings.buffer = 32 << 20;
  const std::int64_t queue = std::stoll(row.at("queue_pkts")) * mtu;
  if (row.at("protocol") == "ndp") {
    settings.congestion_control = CongestionControl::ndp;
    settings.payload = mtu;  // and headers beyond
    settings.pull_window = 40;
  } else if (row.at("protocol").starts_with("roce")) {
    settings.payload = mtu;
  } else if (row.at("protocol") == "hpcc") {
    settings.payload = mtu;
    settings.congestion_control = CongestionControl::hpcc;
    settings.window = settings.window_follows_rate = true;
    settings.increase_stages = 5;
    settings.telemetry_unit = 1;
    settings.rate_per_hop = false;
    settings.rate_step = static_cast<double>(mtu) * 8 / 12e-6;
  } else {
    settings.congestion_control = CongestionControl::eqds;
    settings.payload = mtu - kHeader;
    settings.pull_window = 50;
  }
  settings.trim_queue = queue / (settings.payload + kHeader);
  return job;
}

TEST(Htsim, Prints) {
  for (const Oracle& oracle : oracles("network/htsim.csv")) {
    if (!oracle.whole) continue;
    for (const OracleRow& row : read_oracle(oracle.path)) {
      const std::string& protocol = row.at("protocol");
      if (protocol=="swift") continue;
      for (std::uint64_t seed = 1; seed <= 1; ++seed) {
        FlowJob job = htsim_job(row);
        job.settings.seed = seed;
        const PacketOutcome outcome = simulate_packets(job);
        double last = 0, first = 1e300, sum = 0;
        for (const PacketFlowOutcome& flow : outcome.flows) {
          const double us = static_cast<double>(flow.fct_ns) / 1000;
          last = std::max(last, us);
          first = std::min(first, us);
          sum += us;
        }
        const double mean = sum / static_cast<double>(outcome.flows.size());
        std::printf(
            "%-16s %s min %8.2f/%8.2f mean %8.2f/%8.2f %+.2f%% max %8.2f/%8.2f %+.2f%% trimmed %ld again %ld "
            "(%s) events %ld\n",
            row.at("case").c_str(), protocol.c_str(), first, std::stod(row.at("finish_min_us")), mean,
            std::stod(row.at("finish_mean_us")), 100 * (mean / std::stod(row.at("finish_mean_us")) - 1), last,
            std::stod(row.at("finish_max_us")), 100 * (last / std::stod(row.at("finish_max_us")) - 1),
            outcome.trimmed_packets, outcome.repeated_packets, row.at("rtx").c_str(), outcome.events);
      }
    }
  }
}

}  // namespace
}  // namespace armilla
