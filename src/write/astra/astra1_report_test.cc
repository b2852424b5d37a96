#include "write/astra.h"

#include <gtest/gtest.h>

namespace armilla {
namespace {

std::optional<std::string> none(const std::string&) {
  return std::nullopt;
}

Astra1Report report() {
  Astra1Report made;
  made.run_name = "run";
  made.layers.resize(2);
  made.layers[0].name = "conv,1";  // a comma would be another cell
  made.layers[0].compute = {nanoseconds(1'500), nanoseconds(2'000), nanoseconds(0)};
  made.layers[0].exposed = {nanoseconds(0), nanoseconds(10), nanoseconds(0)};
  made.layers[0].communication = {nanoseconds(0), nanoseconds(9'000), nanoseconds(0)};
  made.layers[1].name = "fc";
  made.finish = nanoseconds(25'003);
  made.total_compute = nanoseconds(3'500);
  made.cost = 250;
  made.payload = {Bytes(3 << 20), Bytes(1 << 19)};
  return made;
}

// Two chunks of one collective in two dimensions; the second chunk waits for the first.
void add_chunks(Astra1Report& made) {
  Graph graph;
  graph.ranks = 1;
  graph.layers = {"conv1", "fc"};
  Program& program = graph.programs.emplace_back();
  program.add(NodeKind::collective, Phase::weight_gradient, graph.names.add("wg"), 1, 0, {});
  Result result;
  RankClass& ranks = result.classes.emplace_back();
  const auto chunk = [](std::int64_t ready, std::int64_t start, std::int64_t end, std::uint32_t number,
                        std::uint32_t phase, std::int64_t message_time, std::int32_t messages) {
    ChunkInterval made_chunk;
    made_chunk.ready = nanoseconds(ready);
    made_chunk.start = nanoseconds(start);
    made_chunk.end = nanoseconds(end);
    made_chunk.chunk = number;
    made_chunk.dimension = made_chunk.phase = phase;
    made_chunk.message_time = nanoseconds(message_time);
    made_chunk.messages = messages;
    return made_chunk;
  };
  ranks.chunks = {chunk(1'000, 1'000, 4'000, 0, 0, 2'800, 2), chunk(1'000, 4'000, 7'000, 1, 0, 3'200, 2),
                  chunk(4'000, 4'000, 12'000, 0, 1, 8'000, 1), chunk(7'000, 12'000, 20'000, 1, 1, 8'000, 1)};
  add_chunk_statistics(made, graph, result, 2);
}

std::string contents(const std::vector<NamedContents>& files, const std::string& path) {
  for (const NamedContents& file : files) {
    if (file.path == path) return file.contents;
  }
  return "no file " + path;
}

std::string line(const std::string& text, std::size_t number) {
  std::size_t begin = 0;
  for (; number > 0; --number) begin = text.find('\n', begin) + 1;
  return text.substr(begin, text.find('\n', begin) - begin);
}

std::string commas(std::size_t count) {
  return std::string(count, ',');
}

TEST(Astra1Report, EndToEndHasThePeersColumns) {
  const std::string text = contents(write_astra1_report(report(), "out", none), "out/EndToEnd.csv");
  EXPECT_EQ(line(text, 0),
            ",,fwd compute,wg compute,ig compute,fwd exposed comm,wg exposed comm,ig exposed comm,fwd total "
            "comm,wg total comm,ig total comm,workload finished at,total comp,total exposed comm" +
                commas(36));
  EXPECT_EQ(line(text, 1),
            "conv 1,run,1.500000,2.000000,0.000000,0.000000,0.010000,0.000000,0.000000,9.000000,0.000000,"
            "25.003000,3.500000,21.503000" +
                commas(36));
  EXPECT_EQ(line(text, 2).substr(0, 6), "fc,run");
  EXPECT_EQ(line(text, 3), commas(49));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2 + 20);
}

TEST(Astra1Report, ChunksBecomeDelaysAndUtilisation) {
  Astra1Report made = report();
  add_chunks(made);
  const auto files = write_astra1_report(made, "out", none);
  const std::string detailed = contents(files, "out/detailed.csv");
  EXPECT_EQ(line(detailed, 0),
            ",,queuing delay phase 0,queuing delay phase 1,queuing delay phase 2,network delay phase "
            "1,network delay phase 2,avg chunk delay dimension 1,avg chunk delay dimension 2" +
                commas(41));
  // The layer without collectives has no delays, and keeps its columns empty.
  EXPECT_EQ(line(detailed, 1), "conv 1,run,,,,,,3.000000,8.000000" + commas(41));
  EXPECT_EQ(line(detailed, 2), "fc,run,0.000000,1.500000,2.500000,1.500000,8.000000" + commas(43));
  EXPECT_EQ(contents(files, "out/run_dimension_utilization.csv"),
            " time (us) ,dim1 util,dim2 util,\n10.000000,60.000000,60.000000,\n"
            "20.000000,0.000000,100.000000,\n");
  EXPECT_EQ(line(contents(files, "out/backend_dim_info.csv"), 2), "run,1,8.000000");
}

TEST(Astra1Report, BackendTable) {
  const std::string text = contents(write_astra1_report(report(), "out", none), "out/backend_end_to_end.csv");
  EXPECT_EQ(text,
            "RunName,CommsTime,ComputeTime,ExposedCommsTime,Cost,TotalPayloadSize,PayloadSize_Dim0,"
            "PayloadSize_Dim1,PayloadSize_Dim2,PayloadSize_Dim3,PayloadSize_Dim4,PayloadSize_Dim5,"
            "PayloadSize_Dim6\n"
            "run,25.003000,3.500000,21.503000,250.000000,3.500000,3.000000,0.500000,-1,-1,-1,-1,-1\n");
}

TEST(Astra1Report, MoreDimensionsGetColumns) {
  Astra1Report made = report();
  made.payload.assign(9, Bytes(1 << 20));
  const std::string text = contents(write_astra1_report(made, "out", none), "out/backend_end_to_end.csv");
  EXPECT_TRUE(line(text, 0).ends_with("PayloadSize_Dim7,PayloadSize_Dim8")) << text;
  EXPECT_TRUE(
      line(text, 1).ends_with("9.000000,1.000000,1.000000,1.000000,1.000000,1.000000,1.000000,1.000000,"
                              "1.000000,1.000000"))
      << text;
}

TEST(Astra1Report, RunsShareTheTables) {
  Astra1Report second = report();
  second.run_name = "second";
  second.total_stat_rows = 2;
  second.stat_row = 1;
  const auto files = write_astra1_report(second, "out", [](const std::string& path) {
    return path == "out/backend_end_to_end.csv" ? std::optional<std::string>("RunName\nfirst,1.0\n")
                                                : std::nullopt;
  });
  const std::string backend = contents(files, "out/backend_end_to_end.csv");
  EXPECT_EQ(line(backend, 1), "first,1.0" + commas(11));
  EXPECT_EQ(line(backend, 2).substr(0, 16), "second,25.003000");
  const std::string end_to_end = contents(files, "out/EndToEnd.csv");
  EXPECT_EQ(line(end_to_end, 1), commas(49));
  EXPECT_EQ(line(end_to_end, 2).substr(0, 16), ",second,1.500000");
  EXPECT_EQ(line(end_to_end, 4).substr(0, 8), ",second,");
}

}  // namespace
}  // namespace armilla
