#include <gtest/gtest.h>

#include "base/error_testing.h"
#include "read/file_format.h"
#include "read/traffic.h"

namespace armilla {
namespace {

constexpr const char* kLeast = "topology = mesh; routing_function = dor;\n";

std::string error_in(const std::string& text) {
  return error_of([&] { parse_booksim(kLeast + text, "net.cfg"); });
}

TEST(Booksim, HasItsDefaults) {
  const FlitStudy study = parse_booksim(kLeast, "net.cfg").study;
  EXPECT_EQ(study.topology, FlitTopology::mesh);
  EXPECT_EQ(study.k, 8);
  EXPECT_EQ(study.n, 2);
  EXPECT_EQ(study.router.virtual_channels, 16);
  EXPECT_EQ(study.router.buffer, 8);
  EXPECT_EQ(study.router.routing_delay, 1);
  EXPECT_EQ(study.router.traversal_delay, 1);
  EXPECT_EQ(study.router.credit_delay, 0);
  EXPECT_EQ(study.router.vc_allocator, FlitAllocator::islip);
  EXPECT_EQ(study.traffic.pattern, FlitPattern::uniform);
  EXPECT_EQ(study.traffic.packet_flits, 1);
  EXPECT_DOUBLE_EQ(study.traffic.packets_per_node_cycle, 0.1);
  EXPECT_EQ(study.measuring.sample_cycles, 1000);
  EXPECT_EQ(study.measuring.most_samples, 10);
  EXPECT_DOUBLE_EQ(study.measuring.saturated_latency, 500);
  EXPECT_EQ(study.seed, 0);
}

TEST(Booksim, ReadsEveryKey) {
  const BooksimConfig config = parse_booksim(
      "// a remark; with = signs\n"
      "topology=fattree;k = 4;n = 3; // two on a line\n"
      "routing_function = nca; use_noc_latency = 0;\n"
      "num_vcs = 2; vc_buf_size = 5; routing_delay = 0; vc_alloc_delay = 2; sw_alloc_delay = 3;\n"
      "st_prepare_delay = 1; st_final_delay = 2; credit_delay = 4; internal_speedup = 2.0; alloc_iters = 3;\n"
      "speculative = 1; wait_for_tail_credit = 1; hold_switch_for_packet = 1;\n"
      "vc_allocator = wavefront; sw_allocator = pim(2);\n"
      "traffic = tornado; packet_size = {5}; injection_rate = 0.25; injection_rate_uses_flits = 1;\n"
      "sample_period = 2000; warmup_periods = 2; max_samples = 7; latency_thres = 300.5; sim_type = "
      "throughput;\n"
      "warmup_thres = 0.1; acc_warmup_thres = 0.2; stopping_thres = 0.3; acc_stopping_thres = -1.0;\n"
      "seed = 7; seed = 8; router = iq; input_speedup = 1; x = 3; print_activity = 0;\n",
      "net.cfg");
  const FlitStudy& study = config.study;
  EXPECT_EQ(study.topology, FlitTopology::fat_tree);
  EXPECT_EQ(study.routing, FlitRouting::nearest_common_ancestor);
  EXPECT_EQ(study.k, 4);
  EXPECT_EQ(study.n, 3);
  EXPECT_FALSE(study.long_links);
  EXPECT_EQ(study.router.virtual_channels, 2);
  EXPECT_EQ(study.router.buffer, 5);
  EXPECT_EQ(study.router.routing_delay, 0);
  EXPECT_EQ(study.router.vc_allocation_delay, 2);
  EXPECT_EQ(study.router.switch_allocation_delay, 3);
  EXPECT_EQ(study.router.traversal_delay, 3);
  EXPECT_EQ(study.router.credit_delay, 4);
  EXPECT_EQ(study.router.speedup, 2);
  EXPECT_EQ(study.router.vc_allocator_iterations, 1);
  EXPECT_EQ(study.router.switch_allocator_iterations, 2);
  EXPECT_TRUE(study.router.speculative && study.router.atomic_vcs && study.router.hold_switch);
  EXPECT_EQ(study.router.vc_allocator, FlitAllocator::wavefront);
  EXPECT_EQ(study.router.switch_allocator, FlitAllocator::pim);
  EXPECT_EQ(study.traffic.pattern, FlitPattern::tornado);
  EXPECT_EQ(study.traffic.packet_flits, 5);
  EXPECT_DOUBLE_EQ(study.traffic.packets_per_node_cycle, 0.05);
  EXPECT_EQ(study.measuring.sample_cycles, 2000);
  EXPECT_EQ(study.measuring.warm_up_samples, 2);
  EXPECT_EQ(study.measuring.most_samples, 7);
  EXPECT_DOUBLE_EQ(study.measuring.saturated_latency, 300.5);
  EXPECT_FALSE(study.measuring.latency);
  EXPECT_DOUBLE_EQ(study.measuring.warm_up_latency_change, 0.1);
  EXPECT_DOUBLE_EQ(study.measuring.warm_up_throughput_change, 0.2);
  EXPECT_DOUBLE_EQ(study.measuring.latency_change, 0.3);
  EXPECT_DOUBLE_EQ(study.measuring.throughput_change, -1);
  EXPECT_EQ(study.seed, 8);
  EXPECT_EQ(config.notes, (std::vector<std::string>{
                              "alloc_iters = 3 has no effect, as in BookSim: vc_allocator = islip(3); and "
                              "sw_allocator = islip(3); have",
                              "without effect here: print_activity, x"}));
}

TEST(Booksim, SaysWhereSomethingIsWrong) {
  EXPECT_EQ(error_in("\nnum_vc = 4;"),
            "net.cfg:3: num_vc: is not a key of BookSim\n  hint: did you mean 'num_vcs'?");
  EXPECT_EQ(error_in("colour_of_links = red;"),
            "net.cfg:2: colour_of_links: is not a key of BookSim\n  hint: docs/net.md has the keys");
  EXPECT_EQ(error_in("vc_allocator = islip(0);"),
            "net.cfg:2: vc_allocator: 'islip(0)' does not give a number of iterations\n  hint: vc_allocator "
            "= islip(2);");
  EXPECT_EQ(error_in("sw_allocator = wavefront(2);"),
            "net.cfg:2: sw_allocator: 'wavefront(2)' is not modelled\n  hint: sw_allocator = wavefront;");
  EXPECT_EQ(error_in("traffic = unifrom;"),
            "net.cfg:2: traffic: no traffic 'unifrom' is modelled\n  hint: did you mean 'uniform'?");
  EXPECT_EQ(error_in("routing_function = dim_ordre;"),
            "net.cfg:2: routing_function: no routing 'dim_ordre' of a mesh is modelled\n  hint: did you mean "
            "'dim_order'?");
  // BookSim's own, if near to one of these.
  EXPECT_EQ(error_in("topology = fattree; routing_function = anca;"),
            "net.cfg:2: routing_function: no routing 'anca' of a fattree is modelled\n  hint: known: nca");
  EXPECT_EQ(error_in("topology = cmesh;"),
            "net.cfg:2: topology: no topology 'cmesh' is modelled\n"
            "  hint: known: mesh, torus, fattree, dragonflynew");
  EXPECT_EQ(
      error_of([] { parse_booksim("topology = torus;", "net.cfg"); }),
      "net.cfg: routing_function: is missing\n  hint: with topology torus: routing_function = dim_order;");
  EXPECT_EQ(error_in("router = chaos;"), "net.cfg:2: router: 'chaos' is not modelled\n  hint: router = iq;");
  EXPECT_EQ(error_in("packet_size = {1,5};").substr(0, 24), "net.cfg:2: packet_size: ");
  EXPECT_EQ(error_in("num_vcs = 0;"), "net.cfg:2: num_vcs: '0' is out of range\n  hint: 1 to 256");
  EXPECT_EQ(error_in("num_vcs = 2.5;"), "net.cfg:2: num_vcs: '2.5' is not a whole number");
  EXPECT_EQ(
      error_in("internal_speedup = 1.5;"),
      "net.cfg:2: internal_speedup: a fraction of a step is not modelled\n  hint: a whole number, 1 to 16");
  EXPECT_EQ(error_in("st_final_delay = 0;").substr(0, 27), "net.cfg:2: st_final_delay: ");
  EXPECT_EQ(error_in("injection_rate = 0;"), "net.cfg:2: injection_rate: offers no traffic\n  hint: above 0");
  EXPECT_EQ(error_in("injection_rate = 1.5;"),
            "net.cfg:2: injection_rate: is 1.5 packets per node and cycle\n  hint: at most 1");
  EXPECT_EQ(error_in("max_samples = 3;"),
            "net.cfg:2: max_samples: 3 samples at most, of which the warm-up takes 3: none is measured\n"
            "  hint: raise max_samples");
  EXPECT_EQ(error_in("seed = time;").substr(0, 17), "net.cfg:2: seed: ");
  EXPECT_EQ(error_in("k 8;"), "net.cfg:2: k: expected '=', found '8'\n  hint: statements are: key = value;");
  EXPECT_EQ(error_in("k = 8"),
            "net.cfg:2: k: expected ';', the file ends\n  hint: statements are: key = value;");
  EXPECT_EQ(error_in("k = ;"), "net.cfg:2: k: has no value\n  hint: statements are: key = value;");
  EXPECT_EQ(error_in("packet_size = {5;"),
            "net.cfg:2: a list has no end\n  hint: statements are: key = value;");
  EXPECT_EQ(error_in("= 3;"), "net.cfg:2: expected a key, found '='\n  hint: statements are: key = value;");
}

TEST(Booksim, IsKnownByItsStatements) {
  for (const char* const text :
       {kLeast, "// $Id: x $\n\n//Topology\ntopology = torus;\nk  = 8;\n", "num_vcs=2;"})
    EXPECT_EQ(sniff({text, std::string_view(text).size()}), FileKind::booksim_config) << text;
  for (const char* const text :
       {"// a program\nint main() { topology = 3; }", "topology: mesh\n", "a = 1;\nb = 2;\n"})
    EXPECT_NE(sniff({text, std::string_view(text).size()}), FileKind::booksim_config) << text;
}

}  // namespace
}  // namespace armilla
