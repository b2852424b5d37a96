// A text workload and the traces translated from it are the same job: equal times under the engine, with the
// rules of ASTRA-sim 1.0 and with chunks that wait for each other.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/mapped_file.h"
#include "base/source_path_testing.h"
#include "read/astra.h"
#include "sim/simulate.h"
#include "trace/graph.h"
#include "trace/text.h"

namespace armilla {
namespace {

SystemLayer torus() {
  SystemLayer system;
  system.semantics = Semantics::astra1;
  for (int d = 0; d < 2; ++d) {
    StreamDimension& dimension = system.dimensions.emplace_back();
    dimension.kind = DimensionKind::ring;
    dimension.size = 4;
    dimension.bandwidth = 50;
    dimension.latency_ns = 500;
    dimension.links = 2;
  }
  for (const CollectiveKind kind : kCollectiveKinds) system.algorithms[kind] = {{}, {}};
  system.splits = 4;
  return system;
}

Graph graph_of(const TextChakra& chakra) {
  TraceGraphOptions options;
  options.dimension_sizes = {4, 4};
  options.communicators = chakra.communicators;
  TraceGraphBuilder builder(options);
  for (std::int32_t rank = 0; const ChakraTrace& trace : chakra.ranks) {
    builder.add_ranks(std::span(&rank, 1), trace);
    ++rank;
  }
  return builder.finish();
}

TEST(TextTraces, TakeAsLongAsTheTextRun) {
  const std::filesystem::path folder = source_path("tests/fuzz/astra_text");
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path());
    const MappedFile file(entry.path().string());
    const TextWorkload workload = read_astra_text(file.bytes(), "w.txt", nullptr);
    TextChakraOptions options;
    options.graph.dimensions = {4, 4};
    options.graph.passes = 2;
    const TextGraph text = text_graph(workload, options.graph);
    // A communicator that is no set of dimensions runs on a ring of its own: another job.
    if (text.split_dimension >= 0) continue;
    const Time expected = simulate(text.graph, torus()).iteration;
    EXPECT_GT(expected, Time(0));
    EXPECT_EQ(simulate(graph_of(text_chakra(workload, options)), torus()).iteration, expected);
    ++files;
  }
  EXPECT_GE(files, 4);
}

}  // namespace
}  // namespace armilla
