#include "read/file_format.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>
#include <vector>

#include "base/error_testing.h"
#include "read/outline.h"

namespace armilla {
namespace {

std::string name_of_text(const std::string& text) {
  return std::string(file_format(sniff(text)).name);
}

std::string packed(std::string text) {
  std::string out(4096, '\0');
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(text.data());
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

struct Sample {
  const char* name;
  std::string text;
};

void expect_all(const std::vector<Sample>& samples) {
  for (const Sample& sample : samples) EXPECT_EQ(name_of_text(sample.text), sample.name) << sample.text;
}

TEST(FileFormat, TellsModelsApart) {
  expect_all({
      {"onnx", std::string("\x08\x08\x12\x07pytorch", 11)},
      {"description", "family: llama\nlayers: 2\n"},
      {"description", "# by hand\nname: x\nfamily: gpt\n"},
      {"huggingface", R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 8})"},
      {"huggingface", R"({ "hidden_size": 8, "num_hidden_layers": 2 })"},
      {"tokenizer",
       R"({"version": "1.0", "truncation": null, "added_tokens": [], "model": {"type": "BPE"}})"},
      {"huggingface-other",
       R"({"_from_model_config": true, "bos_token_id": 1, "transformers_version": "4.1"})"},
      {"meta-params", R"({"dim": 4096, "n_layers": 32, "n_heads": 32, "vocab_size": -1})"},
      {"safetensors", std::string("\x10\0\0\0\0\0\0\0{\"a\": 1}", 16)},
      {"gguf", std::string("GGUF\3\0\0\0", 8)},
      {"zip", std::string("PK\x03\x04\0", 5)},
  });
}

TEST(FileFormat, TellsWhatWasMeasuredElsewhereApart) {
  const std::string columns =
      "#                                                              out-of-place                       "
      "in-place\n#       size         count      type   redop    root     time   algbw   busbw #wrong\n";
  expect_all({
      {"nccl-tests",
       "# nThread 1 nGpus 8 minBytes 8\n" + columns + "  8  2  float  sum  -1  9.8  0.0  0.0  0\n"},
      {"nccl-tests", "host:1:1 NCCL INFO Bootstrap : Using eth0\n# nThread 1 nGpus 8\n" + columns},
      {"text", "Compare out-of-place busbw with in-place busbw.\n"},
  });
}

TEST(FileFormat, TellsScaleSimsConfigurationsApart) {
  expect_all({
      {"scalesim-config", "[general]\nrun_name = a\n"},
      {"scalesim-config", "# by hand\n; of v2\n\n[architecture_presets]\nArrayHeight: 8\n"},
      {"scalesim-config", "[run_presets]\nInterfaceBandwidth: CALC\n"},
      {"ini", "[core]\nbare = false\n"},
  });
}

TEST(FileFormat, TellsArmillasOwnFilesApart) {
  expect_all({
      {"study", "model: resnet50\nmachine: dgx-a100\n"},
      {"study", "plan:\n  ranks: 8\n"},
      {"study", "jobs:\n- name: a\n"},
      {"study", R"({"machine": "dgx-a100", "model": "resnet50"})"},
      {"machine", "name: x\ndevice: h100-sxm\ndimensions:\n- kind: ring\n"},
      {"device", "memory: 80GB\nmemory_bandwidth: 2TB/s\nvector_rate: 19TFLOP/s\n"},
      {"profile", "event,name,phase,shapes,type,flops,bytes,time_s\n"},
      {"profile", R"({"schema": "armilla.events/1"})"},
      {"result", R"({"schema": "armilla.run/1"})"},
      {"sweep", "study: a.yaml\nvary:\n  plan.tensor: [1, 2]\n"},
      {"sweep", "study:\n  model: gpt2-124m\n"},
      {"sweep", R"({"vary": {"plan.tensor": [1]}})"},
      {"measurements", "id,model,gpu,step_time_s\na,gpt2,H100,1.5\n"},
      {"measurements", "model,gpu,peak_GiB\n"},
      {"measurements", "collective,system,gpus,bytes,time_us\n"},
      {"measurements", "op,gpu,dtype,time_us\n"},
      {"csv", "name,time_us\n"},
      {"yaml", "- 1\n- 2\n"},
      {"yaml", "colour: red\n"},
      {"yaml", "name: build\non:\n  push:\njobs:\n  build:\n"},
      {"json", "[]"},
      {"json", "{}"},
      {"text", "Note to self: buy milk\n"},
      {"empty", " \n# \n"},
  });
}

TEST(FileFormat, TellsAstraSimsFilesApart) {
  expect_all({
      {"astra1-system", "scheduling-policy: LIFO\nendpoint-delay: 10\n"},
      {"astra2-system", R"({"scheduling-policy": "LIFO", "endpoint-delay": 10})"},
      {"astra1-network", R"({"dimensions-count": 1, "topologies-per-dim": ["Ring"], "units-count": [8]})"},
      {"astra2-network", "# 8 NPUs\ntopology: [ Ring ]\nnpus_count: [ 8 ]\n"},
      {"astra2-memory", R"({"memory-type": "NO_MEMORY_EXPANSION"})"},
      {"astra2-memory", R"({"memory-type": "MEMORY_POOL", "local-mem-bw": 4096, "remote-mem-bw": 512})"},
      {"communicators", R"({"1": [0, 1], "2": [2, 3]})"},
      {"custom-table", R"({"12": "ring/ring"})"},
      {"ns3-topology", R"({"logical-dims": ["8"]})"},
      {"astra-text", "DATA\n2\nconv -1 5 NONE 0 5 NONE 0 5 ALLREDUCE 8 5\n"},
      {"astra-text", "DATTA\n2\n"},
      {"astra2-log", "[x] [info] issue,sys->id=0, tick=0, node->id=0, node->name=n\n"},
      {"astra-log", "[2024-11-03 08:05:06.442] [system::topology::RingTopology] [info] ring of node 0\n"},
      {"text", "// Copyright\n  cout << \"ring of node \" << id;\n"},
      {"ini", "[submodule \"extern/x\"]\n\tpath = extern/x\n"},
      {"astra-log", "sys[0] finished, 1000 cycles, exposed communication 3 cycles.\n"},
      {"htsim-topology", "Nodes 8\nTiers 3\nPodsize 4\n"},
      {"htsim-topology", "# ours\n\n# of two tiers\nNodes 8\nTiers 2\nPodsize 8\n"},
  });
}

TEST(FileFormat, TellsTrafficAndItsNetworksApart) {
  expect_all({
      {"hpcc-topology", "5 1 4\n4\n0 4 100Gbps 1000ns 0\n"},
      {"hpcc-topology", "5 1 4\r\n4\r\n0 4 12.5GB/s 1us 0.001\r\n"},
      {"hpcc-topology", "22 8 4 2 24 A100\n16 17 18 19 20 21\n0 16 2400Gbps 0.000025ms 0\n"},
      {"text", "5 1 4\n4\n0 4\n"},
      {"hpcc-flows", "1\n0 1 3 100 200000 2\n"},
      {"hpcc-flows", "2\n0 1 3 -100 200000 2\n1 0 3 100 200000 2\n"},
      {"hpcc-flows", "0\n"},
      {"text", "1\n0 1 3\n"},
      {"text", "1\n"},
      {"htsim-connections", "Nodes 8\nConnections 2\n0->7 id 1 start 0 size 4000\n"},
      {"htsim-connections", "# a remark\n0->7 size 4000\n"},
      {"text", "# cut off\nNodes 4\n"},
      {"text", "Nodes 8\nare here\n"},
      {"text", "a->b size 4000\n"},
  });
}

TEST(FileFormat, TellsTracesAndSchedulesApart) {
  const std::string metadata = std::string("\x07\x12\x05") + "0.0.4";
  expect_all({
      {"chakra", metadata},
      {"chakra", std::string("\x06\x08\x01\x12\x02") + "ab"},
      {"chakra", packed(metadata)},
      {"gzip", packed("hello")},
      {"chakra-json", "{\"version\": \"0.0.4\"}\n{\"id\": \"1\", \"name\": \"a\"}\n"},
      {"chakra-json", R"({"workload_graph": []})"},
      {"kineto", R"({"schemaVersion": 1, "deviceProperties": [], "traceEvents": []})"},
      {"chrome-trace", R"({"traceEvents": []})"},
      {"chrome-trace", R"([{"name": "a", "ph": "X", "ts": 1}])"},
      {"pytorch-et", R"({"schema": "1.0.2-chakra.0.0.4", "pid": 3, "nodes": []})"},
      {"flexflow", "digraph tasks {\n"},
      {"flexflow", "strict digraph { node0 [label=\"{device_id=0|a}\"] }"},
      {"graphviz", "digraph { a [label=\"x\"] }"},
      {"mscclpp", R"({"name": "a", "collective": "allreduce", "protocol": "LL", "gpus": []})"},
  });
}

TEST(FileFormat, FindsTheRootOfXml) {
  const std::string algo = "<algo name=\"x\">";
  expect_all({
      {"msccl", algo},
      {"msccl", "\xEF\xBB\xBF<?xml version=\"1.0\"?>\n<!-- Copyright --> <!-- <system> -->\n" + algo},
      {"msccl", "\n\n<!DOCTYPE algo [ <!ELEMENT algo ANY> ]>" + algo},
      {"msccl", "<!DOCTYPE algo>" + algo},
      {"nccl-topology", "<system version=\"1\">"},
      {"xml", "<!-- <algo> -->\n<other/>"},
      {"xml", "<!-- " + algo},
      {"xml", "<algorithm>"},
  });
}

TEST(FileFormat, TellsScaleSimsFilesApart) {
  expect_all({
      {"scalesim-topology",
       "Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels,\n"},
      {"scalesim-topology", "\xEF\xBB\xBFLayer name,Ifmap height,ifmap width,filter height,\n"},
      {"scalesim-topology", "Layer, IFMAP Width, IFMAP Width, Filter Height, Filter Width, Channels,\n"},
      {"scalesim-topology",
       "Layer name,\xC2\xA0IFMAP Height,\xC2\xA0IFMAP Width,\xC2\xA0"
       "Filter Height,\n"},
      {"scalesim-topology", "Layer,M,N,K,\n"},
      {"scalesim-topology", "\n# net\nLayer Name, M, N, K, Sparsity,\n"},
      {"scalesim-config", "[general]\nrun_name = a\n"},
      {"scalesim-report", "LayerID, Total Cycles, Stall Cycles, Overall Util %,\n"},
      {"scalesim-layout", "Layer name, IFMAP Height Intraline Factor, IFMAP Width Intraline Factor,\n"},
      {"csv", "a,b\n1,2\n"},
      {"text", "# A tool\n\nIt is small, fast and free\nof everything else.\n"},
  });
}

TEST(FileFormat, NeverReadsBeyondDamagedText) {
  const std::string samples[] = {R"({"a": {"b": [1, "x\"y"]}, "c" : 'd' , e: [}})",
                                 "a: [1\nb: {\n- c\n'd': \"\n",
                                 "<!-- <!DOCTYPE [",
                                 "digraph",
                                 "[",
                                 "{",
                                 "\x1f\x8b\x08"};
  for (const std::string& sample : samples) {
    for (std::size_t end = 0; end <= sample.size(); ++end) sniff(std::string_view(sample).substr(0, end));
  }
}

TEST(FileFormat, SaysWhatAFileIsInsteadAndWhoTakesIt) {
  EXPECT_STREQ(wrong_kind("a.json", FileKind::astra2_system, "a model").what(),
               "a.json: is an ASTRA-sim 2 system file, not a model\n"
               "  hint: armilla astra2 --system-configuration takes it");
  const std::string machine = "dimensions:\n- kind: ring\n";
  EXPECT_EQ(error_of([&] { require_kind("m", machine, FileKind::device, "a device"); }),
            "m: is a machine, not a device\n  hint: --machine takes it, and the key 'machine' of a study");
  require_kind("m", machine, FileKind::machine, "a machine");
  require_kind("m", std::string("colour: red\n"), FileKind::machine, "a machine");  // its reader's business
}

TEST(Outline, HasTheKeysOfWhatIsThere) {
  const Outline json = outline_json(R"({"a": {"x": 1}, b: [ 2], "c": "text", "d": tru)");
  ASSERT_EQ(json.keys.size(), 4U);
  EXPECT_EQ(json.keys[0].inside, '"');
  EXPECT_EQ(json.keys[1].inside, '2');
  EXPECT_EQ(json.keys[2].text, "text");
  EXPECT_FALSE(json.complete);
  EXPECT_TRUE(outline_json("{} {}").several);
  const Outline yaml = outline_yaml("# c\na: 1 # one\n'b c':\n  d: 2\n- e\nf: [ 3 ]\n");
  ASSERT_EQ(yaml.keys.size(), 3U);
  EXPECT_EQ(yaml.keys[0].text, "1");
  EXPECT_EQ(yaml.keys[1].name, "b c");
  EXPECT_EQ(yaml.keys[2].inside, '3');
}

}  // namespace
}  // namespace armilla
