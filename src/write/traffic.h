// Results of traffic (ir/traffic.h) as text for the terminal and as JSON with schema armilla.traffic/1
// (docs/formats/traffic_json.md); of flows also as tables, and what links do over time as heat maps and as
// counters.
#pragma once

#include <string>

#include "ir/traffic.h"
#include "write/text_table.h"

namespace armilla {

std::string write_traffic_text(const TrafficResult& result, const TextStyle& style);
std::string write_traffic_json(const TrafficResult& result);

// One record per flow: source, destination, bytes, start_s, fct_s and slow_down (empty where it has not
// finished, or where the network does not know what it would take alone).
std::string write_flows_csv(const FlowsResult& flows);
// One record per interval and link: time_s, from, to, utilisation, queue_bytes, paused_share.
std::string write_link_samples_csv(const TrafficSamples& samples);
// Links over time, the busiest first, at most 40: how full they are, what waits for them, when they pause;
// the last two only where any do.
std::string write_link_samples_svg(const TrafficSamples& samples, const std::string& title);
// The same as counters for ui.perfetto.dev, of at most 200 links.
std::string write_link_samples_perfetto(const TrafficSamples& samples);

}  // namespace armilla
