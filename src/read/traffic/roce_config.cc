#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/file_status.h"
#include "base/mapped_file.h"
#include "base/suggest.h"
#include "read/roce.h"
#include "read/traffic/roce_words.h"

namespace armilla {
namespace {

// What of the file is not a setting yet.
struct RoceConfig {
  PacketSettings settings;
  std::string topology, flows;
  std::string topology_where, flows_where;
  std::map<std::int64_t, std::int64_t> ecn_minimum, ecn_maximum;
  std::map<std::int64_t, double> ecn_probability;
  std::string where;
  std::vector<std::string> notes;
};

struct RoceKey {
  std::string_view name;
  void (*read)(RoceWords& words, RoceConfig& config);
};

constexpr std::int64_t kAnyMicroseconds = 1'000'000'000'000;

bool flag(RoceWords& words) {
  return words.whole("a switch", 0, 1'000'000, true) != 0;
}

void thresholds(RoceWords& words, std::map<std::int64_t, std::int64_t>& map) {
  const std::int64_t count = words.whole("the number of rates", 0, 1000, true);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t rate = words.whole("a rate in bits per second", 1, std::int64_t{1} << 50);
    // A thousand bytes here (ns-3's SwitchMmu::ConfigEcn), and a mebibyte for MB in BUFFER_SIZE.
    map[rate] = words.whole("a threshold in KB", 0, 4'000'000) * 1000;
  }
}

std::int64_t microseconds(RoceWords& words, std::string_view what) {
  // ns-3 drops what is less than a microsecond.
  return static_cast<std::int64_t>(words.real(what, 1, static_cast<double>(kAnyMicroseconds), true));
}

CongestionControl congestion_control(RoceWords& words, std::vector<std::string>& notes) {
  const std::string_view text = words.word("CC_MODE", true);
  for (const CongestionControlRow& row : kCongestionControls) {
    if (text == row.name || (text == row.mode && !text.empty())) return row.control;
  }
  if (text == "10")
    words.fail("CC_MODE 10, HPCC-PINT, is not modelled", "CC_MODE 3 is HPCC with whole telemetry");
  // ns-3 has no algorithm for the numbers in between.
  if (!text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    notes.push_back(fmt::format(
        "CC_MODE {} is not a congestion control, as in ns-3: 1 is DCQCN, 3 HPCC, 7 TIMELY, 8 DCTCP", text));
    return CongestionControl::none;
  }
  std::string hint = "1 DCQCN, 3 HPCC, 7 TIMELY, 8 DCTCP, 12 none";
  for (const CongestionControlRow& row : kCongestionControls) {
    if (row.mode.empty()) hint += fmt::format(", {}", row.name);
  }
  words.fail(fmt::format("CC_MODE: '{}' is unknown", text), hint);
}

void ignore(RoceWords&, RoceConfig&) {}

constexpr std::array kRoceKeys = {
    RoceKey{"ENABLE_QCN", [](RoceWords& w, RoceConfig& c) { c.settings.ecn = flag(w); }},
    RoceKey{"PACKET_PAYLOAD_SIZE",
            [](RoceWords& w, RoceConfig& c) { c.settings.payload = w.whole("PACKET_PAYLOAD_SIZE", 1, 65'000, true); }},
    RoceKey{"TOPOLOGY_FILE",
            [](RoceWords& w, RoceConfig& c) {
              c.topology = w.word("TOPOLOGY_FILE", true);
              c.topology_where = w.where();
            }},
    RoceKey{"FLOW_FILE",
            [](RoceWords& w, RoceConfig& c) {
              c.flows = w.word("FLOW_FILE", true);
              c.flows_where = w.where();
            }},
    RoceKey{"SIMULATOR_STOP_TIME",
            [](RoceWords& w, RoceConfig& c) {
              const double seconds = w.real("SIMULATOR_STOP_TIME", 0, 1e300, true);
              c.settings.stop_ns = seconds < 9e9 ? std::llround(seconds * 1e9) : INT64_MAX;
            }},
    RoceKey{"CC_MODE", [](RoceWords& w, RoceConfig& c) { c.settings.congestion_control = congestion_control(w, c.notes); }},
    RoceKey{"ALPHA_RESUME_INTERVAL",
            [](RoceWords& w, RoceConfig& c) {
              c.settings.alpha_interval_us = microseconds(w, "ALPHA_RESUME_INTERVAL");
            }},
    RoceKey{"RATE_DECREASE_INTERVAL",
            [](RoceWords& w, RoceConfig& c) {
              c.settings.decrease_interval_us = microseconds(w, "RATE_DECREASE_INTERVAL");
            }},
    RoceKey{"RP_TIMER",
            [](RoceWords& w, RoceConfig& c) { c.settings.increase_interval_us = microseconds(w, "RP_TIMER"); }},
    RoceKey{"CLAMP_TARGET_RATE", [](RoceWords& w, RoceConfig& c) { c.settings.clamp_target = flag(w); }},
    RoceKey{"EWMA_GAIN", [](RoceWords& w, RoceConfig& c) { c.settings.gain = w.real("EWMA_GAIN", 0, 1, true); }},
    RoceKey{"FAST_RECOVERY_TIMES",
            [](RoceWords& w, RoceConfig& c) {
              c.settings.fast_recoveries = w.whole("FAST_RECOVERY_TIMES", 0, UINT32_MAX, true);
            }},
    RoceKey{"RATE_AI",
            [](RoceWords& w, RoceConfig& c) {
              c.settings.rate_step = static_cast<double>(w.bits_per_second("RATE_AI", true));
            }},
    RoceKey{"RATE_HAI",
            [](RoceWords& w, RoceConfig& c) {
              c.settings.rate_leap = static_cast<double>(w.bits_per_second("RATE_HAI", true));
            }},
    RoceKey{"MIN_RATE",
            [](RoceWords& w, RoceConfig& c) {
              c.settings.min_rate = static_cast<double>(w.bits_per_second("MIN_RATE", true));
              if (c.settings.min_rate < 1) w.fail("MIN_RATE: a flow at rate zero would never send again");
            }},
    RoceKey{"DCTCP_RATE_AI",
            [](RoceWords& w, RoceConfig& c) {
              c.settings.dctcp_step = static_cast<double>(w.bits_per_second("DCTCP_RATE_AI", true));
            }},
    RoceKey{"ERROR_RATE_PER_LINK",
            [](RoceWords& w, RoceConfig& c) { c.settings.loss = w.real("ERROR_RATE_PER_LINK", 0, 0.999999, true); }},
    RoceKey{"L2_CHUNK_SIZE",
            [](RoceWords& w, RoceConfig& c) { c.settings.chunk = w.whole("L2_CHUNK_SIZE", 0, INT32_MAX, true); }},
    RoceKey{"L2_ACK_INTERVAL",
            [](RoceWords& w, RoceConfig& c) {
              c.settings.ack_interval = w.whole("L2_ACK_INTERVAL", 0, INT32_MAX, true);
              if (c.settings.ack_interval == 0) {
                w.fail("L2_ACK_INTERVAL 0 turns acknowledgements off, and no flow would ever finish");
              }
            }},
    RoceKey{"L2_BACK_TO_ZERO",
            [](RoceWords& w, RoceConfig& c) {
              c.settings.recovery = flag(w) ? LossRecovery::go_back_0 : LossRecovery::go_back_n;
            }},
    RoceKey{"HAS_WIN", [](RoceWords& w, RoceConfig& c) { c.settings.window = flag(w); }},
    RoceKey{"GLOBAL_T",
            [](RoceWords& w, RoceConfig& c) { c.settings.global_window = w.whole("GLOBAL_T", 0, 1000, true) == 1; }},
    RoceKey{"VAR_WIN", [](RoceWords& w, RoceConfig& c) { c.settings.window_follows_rate = flag(w); }},
    RoceKey{"FAST_REACT", [](RoceWords& w, RoceConfig& c) { c.settings.fast_react = flag(w); }},
    RoceKey{"U_TARGET",
            [](RoceWords& w, RoceConfig& c) { c.settings.target_utilisation = w.real("U_TARGET", 1e-6, 100, true); }},
    RoceKey{"MI_THRESH",
            [](RoceWords& w, RoceConfig& c) { c.settings.increase_stages = w.whole("MI_THRESH", 0, INT32_MAX, true); }},
    RoceKey{"INT_MULTI",
            [](RoceWords& w, RoceConfig& c) { c.settings.telemetry_unit = w.whole("INT_MULTI", 1, 1'000'000, true); }},
    RoceKey{"MULTI_RATE", [](RoceWords& w, RoceConfig& c) { c.settings.rate_per_hop = flag(w); }},
    RoceKey{"SAMPLE_FEEDBACK", [](RoceWords& w, RoceConfig& c) { c.settings.sample_feedback = flag(w); }},
    RoceKey{"RATE_BOUND", [](RoceWords& w, RoceConfig& c) { c.settings.pace = flag(w); }},
    RoceKey{"ACK_HIGH_PRIO", [](RoceWords& w, RoceConfig& c) { c.settings.acks_first = flag(w); }},
    RoceKey{"NIC_TOTAL_PAUSE_TIME",
            [](RoceWords& w, RoceConfig& c) {
              c.settings.nic_pauses = w.whole("NIC_TOTAL_PAUSE_TIME", 0, INT32_MAX, true);
            }},
    RoceKey{"LINK_DOWN",
            [](RoceWords& w, RoceConfig& c) {
              // ns-3 counts from two seconds on.
              const std::int64_t after = w.whole("the time of LINK_DOWN in us", 0, kAnyMicroseconds, true);
              c.settings.link_down_ns = after == 0 ? 0 : 2'000'000'000 + after * 1000;
              c.settings.link_down_a = w.whole("LINK_DOWN's first node", 0, INT32_MAX, true);
              c.settings.link_down_b = w.whole("LINK_DOWN's second node", 0, INT32_MAX, true);
              if (after > 0) {
                c.notes.push_back(fmt::format("LINK_DOWN {} is {:.6f} s after the start: ns-3 counts from 2 s on",
                                              after, static_cast<double>(c.settings.link_down_ns) * 1e-9));
              }
            }},
    RoceKey{"KMIN_MAP", [](RoceWords& w, RoceConfig& c) { thresholds(w, c.ecn_minimum); }},
    RoceKey{"KMAX_MAP", [](RoceWords& w, RoceConfig& c) { thresholds(w, c.ecn_maximum); }},
    RoceKey{"PMAX_MAP",
            [](RoceWords& w, RoceConfig& c) {
              const std::int64_t count = w.whole("the number of rates", 0, 1000, true);
              for (std::int64_t i = 0; i < count; ++i) {
                const std::int64_t rate = w.whole("a rate in bits per second", 1, std::int64_t{1} << 50);
                c.ecn_probability[rate] = w.real("a probability", 0, 1);
              }
            }},
    RoceKey{"BUFFER_SIZE",
            [](RoceWords& w, RoceConfig& c) {
              c.settings.buffer = w.whole("BUFFER_SIZE (MB of a switch)", 1, 4095, true) << 20;
            }},
    // Armilla's own
    RoceKey{"SEED",
            [](RoceWords& w, RoceConfig& c) {
              c.settings.seed = static_cast<std::uint64_t>(w.whole("SEED", 1, UINT32_MAX, true));
            }},
    RoceKey{"RECOVERY",
            [](RoceWords& w, RoceConfig& c) {
              const std::string_view text = w.word("RECOVERY", true);
              if (text == "go-back-n") c.settings.recovery = LossRecovery::go_back_n;
              else if (text == "go-back-0") c.settings.recovery = LossRecovery::go_back_0;
              else if (text == "selective") c.settings.recovery = LossRecovery::selective;
              else w.fail(fmt::format("RECOVERY: '{}' is unknown", text), "go-back-n, go-back-0 or selective");
            }},
    RoceKey{"RETRANSMIT_TIMEOUT",
            [](RoceWords& w, RoceConfig& c) {
              c.settings.retransmit_timeout_ns = w.whole("RETRANSMIT_TIMEOUT in us", 0, kAnyMicroseconds, true) * 1000;
            }},
    RoceKey{"TIMELY_TIMESTAMPS",
            [](RoceWords& w, RoceConfig& c) { c.settings.timely_without_timestamps = !flag(w); }},
    // ns-3 reads these and does nothing with them, or writes files that Armilla does not.
    RoceKey{"USE_DYNAMIC_PFC_THRESHOLD", ignore},
    RoceKey{"PAUSE_TIME", ignore},
    RoceKey{"DATA_RATE", ignore},
    RoceKey{"LINK_DELAY", ignore},
    RoceKey{"TRACE_FILE", ignore},
    RoceKey{"TRACE_OUTPUT_FILE", ignore},
    RoceKey{"FCT_OUTPUT_FILE", ignore},
    RoceKey{"PFC_OUTPUT_FILE", ignore},
    RoceKey{"ENABLE_TRACE", ignore},
    RoceKey{"QLEN_MON_FILE", ignore},
    RoceKey{"QLEN_MON_START", ignore},
    RoceKey{"QLEN_MON_END", ignore},
    RoceKey{"PINT_LOG_BASE", ignore},
    RoceKey{"PINT_PROB", ignore},
};

std::string beside(const std::string& config, const std::string& named, const std::string& where,
                   std::string_view key) {
  if (named.empty()) throw Error(where, fmt::format("{} is missing", key));
  const std::filesystem::path in_folder = std::filesystem::path(config).parent_path() / named;
  for (const std::filesystem::path& path : {in_folder, std::filesystem::path(named)}) {
    if (is_there(path)) return path.string();
  }
  throw Error(where, fmt::format("{} '{}' does not exist", key, named),
              "it is looked for in the configuration's folder, and then as it is given");
}

std::string_view contents(const MappedFile& file) {
  return {file.bytes().data(), file.bytes().size()};
}

// What every speed of a link at a switch needs.
void set_thresholds(RoceConfig& config, const NetworkGraph& graph) {
  for (const GraphLink& link : graph.links) {
    if (!graph.is_switch[static_cast<std::size_t>(link.a)] &&
        !graph.is_switch[static_cast<std::size_t>(link.b)])
      continue;
    const std::int64_t rate = link.bits_per_second;
    if (!config.settings.ecn || config.settings.ecn_of_rate.contains(rate)) continue;
    for (const auto& [key, there] : {std::pair("KMIN_MAP", config.ecn_minimum.contains(rate)),
                                     std::pair("KMAX_MAP", config.ecn_maximum.contains(rate)),
                                     std::pair("PMAX_MAP", config.ecn_probability.contains(rate))}) {
      if (!there) {
        throw Error(config.where, fmt::format("{} has no entry for links of {} bit/s", key, rate),
                    fmt::format("add one, or turn marking off with ENABLE_QCN 0"));
      }
    }
    const EcnThresholds ecn = {config.ecn_minimum[rate], config.ecn_maximum[rate],
                               config.ecn_probability[rate]};
    if (ecn.minimum > ecn.maximum) {
      throw Error(config.where, fmt::format("for links of {} bit/s KMIN_MAP ({} B) is above KMAX_MAP ({} B)",
                                            rate, ecn.minimum, ecn.maximum));
    }
    config.settings.ecn_of_rate[rate] = ecn;
  }
}

RoceInput read_network(const std::string& path, RoceConfig& config) {
  const MappedFile file(path);
  RoceWords words(contents(file), path);
  RoceInput input;
  config.where = path;
  config.settings.window = true;  // what ns-3 does without the key
  std::vector<std::string> unknown;
  while (const std::optional<std::string_view> name = words.next()) {
    const auto key = std::find_if(kRoceKeys.begin(), kRoceKeys.end(),
                                  [&](const RoceKey& known) { return known.name == *name; });
    if (key != kRoceKeys.end()) {
      key->read(words, config);
    } else if (!name->starts_with('#')) {
      std::vector<std::string_view> names;
      for (const RoceKey& known : kRoceKeys) names.push_back(known.name);
      // ns-3 passes over what it does not know. What looks like one of its keys is more likely a slip.
      const std::string hint = suggest(*name, names);
      if (hint.starts_with("did you mean")) words.fail(fmt::format("unknown key '{}'", *name), hint);
      unknown.emplace_back(*name);
    }
    words.skip_line();
  }
  for (const std::string& name : unknown)
    input.notes.push_back(fmt::format("the key {} is unknown and has no effect", name));
  input.notes.insert(input.notes.end(), config.notes.begin(), config.notes.end());

  input.topology =
      beside(path, config.topology, config.topology.empty() ? path : config.topology_where, "TOPOLOGY_FILE");
  const MappedFile topology_file(input.topology);
  input.job.where = path;
  input.job.graph = parse_roce_topology(contents(topology_file), input.topology, &input.notes);
  set_thresholds(config, input.job.graph);
  input.job.settings = config.settings;
  const PacketSettings& settings = input.job.settings;
  if (settings.recovery == LossRecovery::go_back_0 && settings.chunk == 0) {
    throw Error(path, "going back to the start of a chunk needs an L2_CHUNK_SIZE above 0");
  }
  if (settings.congestion_control == CongestionControl::hpcc && !settings.window) {
    throw Error(path, "HPCC needs a window (HAS_WIN 1): it measures queues in windows");
  }
  if (settings.link_down_ns > 0) {
    const auto joins = [&](const GraphLink& link) {
      return (link.a == settings.link_down_a && link.b == settings.link_down_b) ||
             (link.b == settings.link_down_a && link.a == settings.link_down_b);
    };
    if (std::none_of(input.job.graph.links.begin(), input.job.graph.links.end(), joins)) {
      throw Error(path, fmt::format("LINK_DOWN: there is no link between {} and {}", settings.link_down_a,
                                    settings.link_down_b));
    }
  }
  return input;
}

}  // namespace

RoceInput read_roce_network(const std::string& path) {
  RoceConfig config;
  return read_network(path, config);
}

RoceInput read_roce_config(const std::string& path) {
  RoceConfig config;
  RoceInput input = read_network(path, config);
  const std::string flows =
      beside(path, config.flows, config.flows.empty() ? path : config.flows_where, "FLOW_FILE");
  const MappedFile flows_file(flows);
  std::string surplus;
  input.job.flows = parse_roce_flows(contents(flows_file), flows, input.job.graph, &surplus);
  if (!surplus.empty()) input.notes.push_back(surplus + " are left out, as in ns-3");
  if (input.job.flows.empty()) throw Error(flows, "has no flows");
  const std::int64_t interval = input.job.settings.ack_interval, chunk = input.job.settings.chunk;
  const auto unanswered = std::ranges::count_if(input.job.flows, [&](const TrafficFlow& flow) {
    return flow.bytes < interval && (chunk == 0 || flow.bytes % chunk != 0);
  });
  if (unanswered > 0)
    input.notes.push_back(fmt::format(
        "{} than L2_ACK_INTERVAL {}, and {} never acknowledged, as in ns-3: {} not finish",
        unanswered == 1 ? "a flow has fewer bytes" : fmt::format("{} flows have fewer bytes", unanswered),
        interval, unanswered == 1 ? "is" : "are", unanswered == 1 ? "it does" : "they do"));
  return input;
}

}  // namespace armilla
