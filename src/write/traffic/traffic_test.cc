#include "write/traffic.h"

#include <gtest/gtest.h>

#include "write/report/documented_keys_testing.h"

namespace armilla {
namespace {

TrafficResult by_rate() {
  RateResult rate;
  rate.packet_latency_avg_cycles = 36.6905;
  rate.network_latency_avg_cycles = 36.1894;
  rate.accepted_flits_per_node_cycle = 0.199172;
  rate.hops_avg = 6.25;
  rate.flit_hops = 488000;
  rate.cycles = 6127;
  TrafficResult result;
  result.title = "8x8 mesh";
  result.facts = {{"zero load", "31.00 cycles"}};
  result.notes = {"without effect here: x"};
  result.outcome = rate;
  return result;
}

TrafficResult of_flows() {
  FlowsResult flows;
  flows.flows = {{0, 1, 1000, 0, 2e-6, true, 2e-6},
                 {1, 2, 1000, 1e-6, 4e-6, true, 1.6e-6},
                 {2, 3, 1000, 0, 0, false, 2e-6}};
  flows.has_pfc = true;
  flows.pfc_pauses = 3;
  flows.pfc_resumes = 2;
  flows.packets = 1234;
  flows.events = 56789;
  TrafficResult result;
  result.title = "2 hosts";
  result.outcome = flows;
  return result;
}

TrafficResult over_time() {
  TrafficResult result = of_flows();
  std::get<FlowsResult>(result.outcome).samples = {
      1e-6,
      {{"leaf0", "gpu<1>", {0.5, 1}, {0, 2048}, {0, 0}}, {"gpu0", "leaf0", {0.25, 0}, {0, 0}, {0, 0.5}}}};
  return result;
}

TEST(TrafficReport, ShowsTrafficByRate) {
  EXPECT_EQ(write_traffic_text(by_rate(), {}),
            "8x8 mesh\n"
            "  packet latency   36.69 cycles on average\n"
            "  network latency  36.19 cycles on average, without the wait at the source\n"
            "  accepted         0.19917 flits per node and cycle\n"
            "  hops             6.250 routers on average\n"
            "  saturated        no\n"
            "  simulated        6,127 cycles, 488,000 flit-hops\n"
            "  zero load        31.00 cycles\n"
            "note: without effect here: x\n");
}

TEST(TrafficReport, ShowsFastForward) {
  TrafficResult result = of_flows();
  FlowsResult& flows = std::get<FlowsResult>(result.outcome);
  flows.fast_forward = {1, 617, 0.01};
  EXPECT_NE(
      write_traffic_text(result, {})
          .find("fast-forward  50.0 % of the packets counted, not played, in 1 stretch; completion times"),
      std::string::npos)
      << write_traffic_text(result, {});
  EXPECT_NE(write_traffic_json(result).find("\"fast_forward\""), std::string::npos);
  flows.fast_forward = {0, 0, 0.01};
  EXPECT_NE(write_traffic_text(result, {}).find("nothing: no flows went on alike"), std::string::npos);
  flows.fast_forward->unknown = "NDP is played packet by packet";
  EXPECT_NE(write_traffic_text(result, {}).find("nothing: NDP is played packet by packet"),
            std::string::npos);
  EXPECT_NE(write_traffic_json(result).find("\"nothing_as\": \"NDP is"), std::string::npos);
  EXPECT_EQ(write_traffic_json(of_flows()).find("fast_forward"), std::string::npos);
}

TEST(TrafficReport, ShowsFlows) {
  EXPECT_EQ(
      write_traffic_text(of_flows(), {}),
      "2 hosts\n"
      "  flows       3, 2 of them finished\n"
      "  completion  shortest 2.000 us, median 2.000 us, 99 % 4.000 us, longest 4.000 us\n"
      "  PFC         3 pauses, 2 resumes\n"
      "  simulated   1,234 packets, 56,789 events\n"
      "  slow-down   smallest 1.000, median 1.000, 99 % 2.500, largest 2.500, of the time that a flow takes\n"
      "              alone; only of the 2 that finished\n");
}

TEST(TrafficReport, ShowsLinksOverTime) {
  const std::string text = write_traffic_text(over_time(), {});
  EXPECT_EQ(text.substr(text.find("  busiest")),
            "  busiest links    utilisation  at most  longest queue  paused\n"
            "  leaf0 -> gpu<1>       75.0 %  100.0 %      2.000 KiB   0.0 %\n"
            "  gpu0 -> leaf0         12.5 %   25.0 %            0 B  25.0 %\n");
}

TEST(TrafficReport, WritesTables) {
  EXPECT_EQ(write_flows_csv(std::get<FlowsResult>(of_flows().outcome)),
            "source,destination,bytes,start_s,fct_s,slow_down\n0,1,1000,0,2e-06,1\n1,2,1000,1e-06,4e-06,2.5\n"
            "2,3,1000,0,,\n");
  EXPECT_EQ(write_link_samples_csv(std::get<FlowsResult>(over_time().outcome).samples),
            "time_s,from,to,utilisation,queue_bytes,paused_share\n"
            "0,leaf0,gpu<1>,0.5,0,0\n1e-06,leaf0,gpu<1>,1,2048,0\n"
            "0,gpu0,leaf0,0.25,0,0\n1e-06,gpu0,leaf0,0,0,0.5\n");
}

TEST(TrafficReport, DrawsLinksOverTime) {
  const TrafficSamples samples = std::get<FlowsResult>(over_time().outcome).samples;
  const std::string svg = write_link_samples_svg(samples, "a & b");
  EXPECT_NE(svg.find("a &amp; b"), svg.npos);
  EXPECT_NE(svg.find(">leaf0 - gpu&lt;1&gt;<"), svg.npos);
  std::size_t cells = 0;
  for (std::size_t at = svg.find("fill=\"#"); at != svg.npos; at = svg.find("fill=\"#", at + 1)) ++cells;
  EXPECT_EQ(cells, 5U);  // three full intervals, one queue, one pause
  EXPECT_EQ(write_link_samples_svg({}, "nothing").find("<g"), svg.npos);
}

TEST(TrafficReport, CountsLinksOverTimeForPerfetto) {
  const std::string trace = write_link_samples_perfetto(std::get<FlowsResult>(over_time().outcome).samples);
  for (const std::string name : {"leaf0 - gpu<1>", "utilisation, %", "queue", "paused by PFC, %"})
    EXPECT_NE(trace.find(name), trace.npos) << name;
}

TEST(TrafficReport, DocumentsEveryKey) {
  std::set<std::string> keys = keys_of(Json::parse(write_traffic_json(by_rate())));
  TrafficResult flows = over_time();
  std::get<FlowsResult>(flows.outcome).fast_forward = FastForwarded{0, 0, 0, "why"};
  for (const std::string& key : keys_of(Json::parse(write_traffic_json(flows)))) keys.insert(key);
  EXPECT_EQ(keys, documented_keys("docs/formats/traffic_json.md"));
}

TEST(TrafficReport, HasNoTimeOfWhatIsUnfinished) {
  const Json json = Json::parse(write_traffic_json(of_flows()));
  EXPECT_EQ(json["flows"][1]["fct_s"], 4e-6);
  EXPECT_TRUE(json["flows"][2]["fct_s"].is_null());
  EXPECT_TRUE(json["flows"][2]["slow_down"].is_null());
  EXPECT_EQ(json["flows"][1]["slow_down"], 2.5);
  EXPECT_EQ(json["fct_s"]["p99"], 4e-6);
  EXPECT_EQ(json["slow_down"]["least"], 1);
}

}  // namespace
}  // namespace armilla
