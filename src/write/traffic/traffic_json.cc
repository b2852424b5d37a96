#include "write/traffic.h"

#include "ir/derived/traffic_figures.h"
#include "write/format/json_text.h"

namespace armilla {
namespace {

void add_outcome(Json& json, const RateResult& rate) {
  json["packet_latency_avg_cycles"] = finite(rate.packet_latency_avg_cycles);
  json["network_latency_avg_cycles"] = finite(rate.network_latency_avg_cycles);
  json["accepted_flits_per_node_cycle"] = finite(rate.accepted_flits_per_node_cycle);
  json["hops_avg"] = finite(rate.hops_avg);
  json["saturated"] = rate.saturated;
  json["flit_hops"] = rate.flit_hops;
  json["cycles"] = rate.cycles;
}

void add_outcome(Json& json, const FlowsResult& traffic) {
  Json flows = Json::array();
  for (const FlowResult& flow : traffic.flows)
    flows.push_back({{"source", flow.source},
                     {"destination", flow.destination},
                     {"bytes", flow.bytes},
                     {"start_s", flow.start_s},
                     {"fct_s", flow.finished ? finite(flow.fct_s) : Json(nullptr)},
                     {"finished", flow.finished},
                     {"slow_down", slow_down(flow) > 0 ? finite(slow_down(flow)) : Json(nullptr)}});
  json["flows"] = std::move(flows);
  const auto quantiles = [&](const char* name, const std::optional<FlowQuantiles>& of) {
    if (of)
      json[name] = {{"least", finite(of->least)},
                    {"median", finite(of->median)},
                    {"p99", finite(of->p99)},
                    {"most", finite(of->most)}};
  };
  quantiles("fct_s", completion_times(traffic));
  quantiles("slow_down", slow_downs(traffic));
  json["pfc"] = {{"pauses", traffic.pfc_pauses}, {"resumes", traffic.pfc_resumes}};
  json["packets"] = traffic.packets;
  json["events"] = traffic.events;
  if (traffic.fast_forward) {
    json["fast_forward"] = {{"stretches", traffic.fast_forward->stretches},
                            {"packets", traffic.fast_forward->packets},
                            {"error_bound", traffic.fast_forward->bound}};
    if (!traffic.fast_forward->unknown.empty())
      json["fast_forward"]["nothing_as"] = traffic.fast_forward->unknown;
  }
  if (traffic.samples.links.empty()) return;
  Json links = Json::array();
  for (const LinkSamples& link : traffic.samples.links)
    links.push_back({{"from", link.from},
                     {"to", link.to},
                     {"utilisation", link.utilisation},
                     {"queue_bytes", link.queue_bytes},
                     {"paused_share", link.paused_share}});
  json["samples"] = {{"interval_s", traffic.samples.interval_s}, {"links", std::move(links)}};
}

}  // namespace

std::string write_traffic_json(const TrafficResult& result) {
  Json json = {{"schema", "armilla.traffic/1"}, {"title", result.title}};
  std::visit([&](const auto& outcome) { add_outcome(json, outcome); }, result.outcome);
  json["notes"] = result.notes;
  return to_text(json);
}

}  // namespace armilla
