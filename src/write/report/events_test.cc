#include "write/report.h"

#include <gtest/gtest.h>

#include <sstream>

#include "write/format/json_text.h"
#include "write/report/documented_keys_testing.h"

namespace armilla {
namespace {

EventTable small_table() {
  EventTable table;
  JobEvent product;
  product.name = "attention.qkv";
  product.phase = Phase::forward;
  product.work = {
      WorkKind::matrix, DType::bf16, Flops(48), Bytes(2048), {{2, 3, 4, 1, true}, {2, 3, 4, 5, true}}};
  product.count = 1000;
  product.time = microseconds(3);
  product.source = TimeSource::modelled;
  table.computations = {product};
  JobEvent reduce;
  reduce.kind = NodeKind::collective;
  reduce.name = "all-reduce";
  reduce.bytes = Bytes(4096);
  reduce.group_size = 16;
  reduce.spans = "nvlink+rail";
  reduce.inter_node = true;
  reduce.count = 200;
  reduce.time = microseconds(7);
  table.communications = {reduce};
  table.device = "a100";
  return table;
}

TEST(Events, TextHasARowPerEventAndTheRedundancy) {
  EXPECT_EQ(write_events_text(small_table(), false),
            "  computation    phase    m x n x k or moved  type  count      time      %\n"
            "  attention.qkv  forward  2x3x4, +1           bf16  1,000  3.000 us  100.0\n"
            "\n"
            "  communication      bytes  ranks  node   over         count      time      %\n"
            "  all-reduce     4.000 KiB     16  inter  nvlink+rail    200  7.000 us  100.0\n"
            "\n"
            "1 distinct computation and 1 distinct communication stand for 1,200: redundancy 600.0\n");
  EXPECT_EQ(write_events_text({}, false),
            "\n0 distinct computations and 0 distinct communications stand for 0: redundancy unknown\n");
}

TEST(Events, TextFitsTheLine) {
  for (const std::size_t width : {60U, 80U}) {
    std::istringstream lines(write_events_text(small_table(), TextStyle(false, width)));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), width) << line;
  }
}

TEST(Events, TextSaysHowManyTimesAreMeasured) {
  EventTable table = small_table();
  table.computations.resize(3, table.computations.front());
  table.computations[1].source = TimeSource::measured;
  const std::string text = write_events_text(table, false);
  EXPECT_NE(text.find("\n1 of the computations has a measured time\n"), std::string::npos) << text;
}

TEST(Events, CsvHasARecordPerEvent) {
  EXPECT_EQ(write_events_csv(small_table()),
            "event,name,phase,shapes,type,flops,bytes,ranks,inter_node,dimensions,count,device,kernel,"
            "time_s,source\n"
            "computation,attention.qkv,forward,\"2x3x4, 5 x "
            "2x3x4\",bf16,48,2048,1,false,,1000,a100,any,0.000003,modelled\n"
            "communication,all-reduce,,,,0,4096,16,true,nvlink+rail,200,a100,,0.000007,simulated\n");
}

TEST(Events, JsonHasTheDocumentedKeys) {
  const Json document = Json::parse(write_events_json(small_table()));
  EXPECT_EQ(document["schema"], "armilla.events/1");
  EXPECT_EQ(document["occurrences"], 1200);
  EXPECT_EQ(document["redundancy"], 600.0);
  EXPECT_EQ(document["computations"][0]["products"][1]["count"], 5);
  EXPECT_EQ(document["communications"][0]["time_s"], 7e-6);
  EXPECT_EQ(keys_of(document), documented_keys("docs/formats/events.md"));
}

}  // namespace
}  // namespace armilla
