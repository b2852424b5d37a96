#include "write/report/run_csv.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "write/report/documented_keys_testing.h"
#include "write/report/example_run_testing.h"

namespace armilla {
namespace {

std::map<std::string, std::string> tables(const armilla::Run& run = example_run()) {
  std::map<std::string, std::string> contents;
  for (const NamedContents& file : write_run_csv(run, "out")) contents[file.path] = file.contents;
  return contents;
}

armilla::Run hybrid_run() {
  armilla::Run run = example_run();
  run.roles = {{"stage 0", 0, 4, run.memory, Bytes(64), {}}};
  return run;
}

TEST(RunCsv, Roles) {
  EXPECT_EQ(
      tables()["out/roles.csv"],
      "role,representative_rank,ranks,finish_s,compute_s,communication_s,exposed_communication_s,idle_s\n"
      "data-parallel rank,0,4,0.0000107,0.000007,0.0000059996,0.0000035,0.0000002\n");
}

TEST(RunCsv, Collectives) {
  EXPECT_EQ(
      tables()["out/collectives.csv"],
      "role,name,kind,algorithm,group_size,bytes,issued_s,started_s,finished_s,link_limit_s,"
      "bus_bandwidth_bytes_per_s\n"
      "data-parallel rank,bucket 0,all-reduce,\"reduce-scatter direct, all-reduce ring, all-gather direct\","
      "4,256,0.0000040004,0.0000041,0.000009,0.000001225,78367346.93877551\n"
      "data-parallel rank,bucket 1,all-reduce,\"reduce-scatter direct, all-reduce ring, all-gather direct\","
      "4,576,0.0000065,0.000007,0.00001,0.0000015,288000000\n");
}

TEST(RunCsv, Layers) {
  EXPECT_EQ(tables()["out/layers.csv"],
            "layer,forward_s,input_gradient_s,weight_gradient_s,compute_s,communication_s\n"
            "fc1,0.000002,0,0.0000015,0.0000035,0.0000035\n"
            "fc2,0.000001,0.0000009996,0.0000010004,0.000003,0.0000049996\n");
}

TEST(RunCsv, Links) {
  EXPECT_EQ(tables()["out/links.csv"],
            "link,dimension,links,bytes,busy_s,bandwidth_bytes_per_s,utilization\n"
            "rank 0 -> rank 2 (rail),1,4,832,0.00000428,25000000000,0.4\n"
            "rank 0 -> switch (nvlink),0,8,1664,0.00000107,300000000000,0.1\n");
}

TEST(RunCsv, Timeline) {
  EXPECT_EQ(tables()["out/timeline.csv"],
            "rank,track,name,category,layer,start_s,end_s\n"
            "0,compute,fc1,forward,fc1,0,0.000002\n"
            "0,compute,fc2,forward,fc2,0.000002,0.000003\n"
            "0,compute,fc2 weight gradient,weight gradient,fc2,0.000003,0.0000040004\n"
            "0,compute,fc2 input gradient,input gradient,fc2,0.0000040004,0.000005\n"
            "0,compute,fc1 weight gradient,weight gradient,fc1,0.000005,0.0000065\n"
            "0,compute,optimizer,optimizer,,0.0000102,0.0000107\n"
            "0,collectives,bucket 0,gradient exchange,fc2,0.0000040004,0.000009\n"
            "0,collectives (2),bucket 1,gradient exchange,fc1,0.0000065,0.00001\n"
            "0,chunks on nvlink,bucket 0,chunk,fc2,0.0000041,0.000006\n"
            "0,chunks on nvlink,bucket 1,chunk,fc1,0.000007,0.000008\n"
            "0,chunks on nvlink (2),bucket 0,chunk,fc2,0.000005,0.000007\n"
            "0,chunks on rail,bucket 0,chunk,fc2,0.000006,0.000009\n"
            "0,chunks on rail,bucket 1,chunk,fc1,0.000009,0.00001\n");
}

TEST(RunCsv, EveryRunHasStagesAndMemoryByRole) {
  EXPECT_EQ(tables()["out/stages.csv"],
            "role,ranks,compute_s,exposed,exposed_s,bubble_s,peak_bytes\n"
            "data-parallel rank,4,0.000007,world,0.0000035,0.0000002,3712\n");
  EXPECT_EQ(
      tables()["out/memory.csv"],
      "role,in_flight,weights_bytes,gradients_bytes,optimizer_bytes,activations_bytes,"
      "communication_buffers_bytes,temporary_bytes,fragmentation_bytes,peak_bytes,framework_bytes,host_bytes,"
      "capacity_bytes\n"
      "data-parallel rank,1,832,832,832,448,0,768,0,3712,0,0,1048576\n");
  const std::map<std::string, std::string> contents = tables(hybrid_run());
  EXPECT_EQ(contents.at("out/stages.csv"),
            "role,ranks,compute_s,exposed,exposed_s,bubble_s,peak_bytes\n"
            "data-parallel rank,4,0.000007,world,0.0000035,0.0000002,3712\n");
  EXPECT_EQ(contents.at("out/memory.csv"),
            "role,in_flight,weights_bytes,gradients_bytes,optimizer_bytes,activations_bytes,"
            "communication_buffers_bytes,temporary_bytes,fragmentation_bytes,peak_bytes,"
            "framework_bytes,host_bytes,capacity_bytes\n"
            "stage 0,4,832,832,832,448,0,768,0,3712,0,64,1048576\n");
}

TEST(RunCsv, TheTimelineSaysWhatIf) {
  armilla::Run run = example_run();
  run.study.what_if.jitter = {0.05, 3};
  run.ideal = microseconds(10);
  const std::string text = tables(run)["out/timeline.csv"];
  EXPECT_THAT(text,
              testing::HasSubstr("\n,settings,the time of every computation scatters by 5 % around its mean "
                                 "(seed 3),what if,,0,0.0000107\n"
                                 ",without,10.00 us without,what if,,0,0.00001\n"));
}

TEST(RunCsv, EveryColumnIsDocumented) {
  std::set<std::string> columns;
  for (const auto& [path, contents] : tables(hybrid_run())) {
    const std::string file = path.substr(path.find('/') + 1);
    std::string header = contents.substr(0, contents.find('\n')) + ',';
    for (std::size_t end = 0; (end = header.find(',')) != std::string::npos; header.erase(0, end + 1))
      columns.insert(file + ": " + header.substr(0, end));
  }
  EXPECT_EQ(columns, documented_keys("docs/formats/run_csv.md"));
}

}  // namespace
}  // namespace armilla
