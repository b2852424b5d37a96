#include "read/astra.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/error.h"
#include "base/error_testing.h"
#include "base/oracle_testing.h"
#include "base/source_path_testing.h"

namespace armilla {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TextWorkload read_workload(const std::string& text, std::vector<std::string>* warnings = nullptr) {
  return read_astra_text(text, "w.txt", warnings);
}
std::string refused(const std::string& text) {
  return error_of([&] { read_workload(text); });
}
std::vector<std::string> warned(const std::string& text) {
  std::vector<std::string> warnings;
  read_workload(text, &warnings);
  return warnings;
}
std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

constexpr const char* kRow = "a -1 1 NONE 0 2 NONE 0 3 ALLREDUCE 8 4\n";
std::string rows(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += kRow;
  return text;
}

TEST(AstraText, ReadsTwelveColumns) {
  const TextWorkload workload = read_workload(
      "MODEL\t\t\r\n2 \t\r\n\nconv1 -1\t10\tALLGATHER\t20 \t30\tALLREDUCE\t40\t50\tNONE\t0\t60\t\t\r\n"
      "fc 7 1 REDUCESCATTER 2 3 ALLTOALL 4 5 NONE 0 6");
  EXPECT_EQ(workload.policy, TextPolicy::model);
  ASSERT_THAT(workload.layers, SizeIs(2));
  const TextLayer& conv = workload.layers[0];
  EXPECT_EQ(conv.name, "conv1");
  EXPECT_EQ(conv.dependence, -1);
  EXPECT_EQ(conv.forward.cycles, 10);
  EXPECT_EQ(conv.forward.collective, CollectiveKind::all_gather);
  EXPECT_EQ(conv.forward.bytes, Bytes(20));
  EXPECT_EQ(conv.input_gradient.cycles, 30);
  EXPECT_EQ(conv.input_gradient.collective, CollectiveKind::all_reduce);
  EXPECT_EQ(conv.input_gradient.bytes, Bytes(40));
  EXPECT_EQ(conv.weight_gradient.cycles, 50);
  EXPECT_EQ(conv.weight_gradient.collective, std::nullopt);
  EXPECT_EQ(conv.update_cycles, 60);
  EXPECT_EQ(workload.layers[1].dependence, 7);
  EXPECT_EQ(workload.layers[1].input_gradient.collective, CollectiveKind::all_to_all);
}

TEST(AstraText, KeysComeInAnyOrderWithOrWithoutASpace) {
  const TextWorkload workload = read_workload(
      "HYBRID_TRANSFORMER_FWD_IN_BCKWD checkpoint_initiates: 1 2 pp_comm 8388608.0 ep:4 checkpoints:1 0 "
      "model_parallel_NPU_group: 2 all_gpus:32 pp: 2 vpp: 1 ga: 8\n3\n" +
      rows(3));
  EXPECT_EQ(workload.model_parallel_group, 2);
  EXPECT_THAT(workload.checkpoints, ElementsAre(0));
  EXPECT_THAT(workload.checkpoint_initiates, ElementsAre(2));
  EXPECT_EQ(workload.plan, (TextPlan{4, 2, 1, 8, 32, 8388608}));
}

TEST(AstraText, DlrmHasABareNumberOrAKey) {
  const std::string body = "\n3\n" + rows(3);
  EXPECT_EQ(read_workload("HYBRID_DLRM\t1\t\t" + body).last_bottom_layer, 1);
  EXPECT_EQ(read_workload("HYBRID_DLRM_ENHANCED DLRM_LAST_BOTTOM_LAYER: 2" + body).last_bottom_layer, 2);
  EXPECT_EQ(refused("HYBRID_DLRM" + body),
            "w.txt:1:1: HYBRID_DLRM needs the index of the last bottom layer\n"
            "  hint: write it behind the policy: 'HYBRID_DLRM 4'");
  EXPECT_EQ(refused("HYBRID_DLRM 3" + body),
            "w.txt:1:13: layer 3 does not exist\n"
            "  hint: the layers are 0 to 2");
  EXPECT_EQ(refused("HYBRID_DLRM -1" + body),
            "w.txt:1:13: last bottom layer: -1 is out of range\n"
            "  hint: 0 to 2147483647");
}

TEST(AstraText, SimAiGroups) {
  const TextWorkload workload = read_workload(
      "HYBRID_TRANSFORMER model_parallel_NPU_group: 2\n1\na -1 1 ALLTOALL_EP 8 2 BROADCAST 8 3 "
      "REDUCESCATTER_DP_EP 8 4\n");
  EXPECT_EQ(workload.layers[0].forward.group, TextGroup::expert);
  EXPECT_EQ(workload.layers[0].input_gradient.collective, CollectiveKind::broadcast);
  EXPECT_EQ(workload.layers[0].weight_gradient.group, TextGroup::data_expert);
  EXPECT_EQ(workload.layers[0].weight_gradient.collective, CollectiveKind::reduce_scatter);
}

TEST(AstraText, CustomizedLayersHaveAPolicy) {
  const std::string head = "HYBRID_CUSTOMIZED\n1\na -1 1 ALLGATHER 8 2 NONE 0 3 ALLREDUCE 8 4";
  EXPECT_EQ(read_workload(head + " HYBRID_MODEL_DATA").layers[0].policy, TextPolicy::hybrid_model_data);
  EXPECT_EQ(refused(head),
            "w.txt:3:1: layer 'a' has no policy\n"
            "  hint: under HYBRID_CUSTOMIZED the 13th column is one, DATA for instance");
  EXPECT_EQ(refused(head + " HYBRID_MODLE_DATA"),
            "w.txt:3:45: 'HYBRID_MODLE_DATA' is not a policy of text workloads\n"
            "  hint: did you mean 'HYBRID_MODEL_DATA'?");
  EXPECT_EQ(refused(head + " HYBRID_TRANSFORMER"),
            "w.txt:3:45: HYBRID_TRANSFORMER is not a policy of a single layer\n"
            "  hint: DATA, MODEL, HYBRID_DATA_MODEL or HYBRID_MODEL_DATA");
}

TEST(AstraText, RefusesWhatAstraSimWouldMisread) {
  EXPECT_EQ(refused(""),
            "w.txt:1:1: is empty\n"
            "  hint: the first line names the policy");
  EXPECT_EQ(refused("DATTA\n1\n" + rows(1)),
            "w.txt:1:1: 'DATTA' is not a policy of text workloads\n"
            "  hint: did you mean 'DATA'?");
  EXPECT_EQ(refused("DATA\n"),
            "w.txt:2:1: the number of layers is missing\n"
            "  hint: it stands in the second line");
  EXPECT_EQ(refused("DATA\n2 3\n" + rows(2)),
            "w.txt:2:3: '3' follows the number of layers\n"
            "  hint: the second line holds that number alone");
  EXPECT_EQ(refused("DATA\n3\n" + rows(2)),
            "w.txt:2:1: 3 layers are declared, but 2 follow\n"
            "  hint: the file is cut off, or this number should be 2");
  EXPECT_EQ(refused("DATA\n1\n" + rows(2)),
            "w.txt:2:1: 1 layer is declared, but 2 follow\n"
            "  hint: ASTRA-sim would read the first 1 alone");
  EXPECT_EQ(refused("DATA\n0\n"),
            "w.txt:2:1: number of layers: 0 is out of range\n"
            "  hint: 1 to 2147483647");
  const std::string columns =
      "  hint: name, dependence, then cycles, collective and bytes of forward, input gradient and weight "
      "gradient, then the update's cycles";
  EXPECT_EQ(refused("DATA\n1\na -1 1 NONE 0\n"), "w.txt:3:1: layer 'a' has 5 of 12 columns\n" + columns);
  EXPECT_EQ(refused("DATA\n1\na -1 1 NONE 0 2 NONE 0 3 NONE 0 4 DATA 5\n"),
            "w.txt:3:40: layer 'a' has 14 columns\n" + columns);
}

TEST(AstraText, RefusesWordsAndNumbers) {
  EXPECT_EQ(refused("DATA\n1\na -1 1 NONE 0 2 NONE 0 3 ALREDUCE 8 4\n"),
            "w.txt:3:26: 'ALREDUCE' is not a collective\n"
            "  hint: did you mean 'ALLREDUCE'?");
  EXPECT_EQ(refused("DATA\n1\na -1 1 NONE 0 2 NONE 0 3 ALLREDUCEALLTOALL 8 4\n"),
            "w.txt:3:26: ALLREDUCEALLTOALL is a word of ASTRA-sim 1.0 that aborts when it is issued\n"
            "  hint: write ALLREDUCE or ALLTOALL");
  EXPECT_EQ(refused("DATA\n1\na -1 1 NONE 0 2 NONE 0 3 ALLREDUCE 0 4\n"),
            "w.txt:3:36: ALLREDUCE of 0 bytes, which never ends in ASTRA-sim 1.0\n"
            "  hint: write NONE for no collective");
  EXPECT_EQ(refused("DATA\n1\na -1 1.5 NONE 0 2 NONE 0 3 NONE 0 4\n"),
            "w.txt:3:6: forward cycles: '1.5' is not a whole number");
  EXPECT_EQ(refused("DATA\n1\na -1 1 NONE -3 2 NONE 0 3 NONE 0 4\n"),
            "w.txt:3:13: forward bytes: -3 is out of range\n"
            "  hint: 0 to 9223372036854775807");
  EXPECT_EQ(refused("DATA\n1\na -1 1 NONE 0 2 NONE 0 99999999999999999999 NONE 0 4\n"),
            "w.txt:3:24: weight-gradient cycles: 99999999999999999999 is out of range\n"
            "  hint: 0 to 2305843009213692");
}

TEST(AstraText, RefusesKeys) {
  const std::string policy = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 1 ";
  const std::string body = "\n3\n" + rows(3);
  EXPECT_EQ(refused(policy + "checkpoint: 0" + body),
            "w.txt:1:61: 'checkpoint' is not a key of text workloads\n"
            "  hint: did you mean 'checkpoints'?");
  EXPECT_EQ(refused(policy + "ep: 1 ep: 2" + body), "w.txt:1:67: 'ep' is here twice");
  EXPECT_EQ(refused(policy + "ep:" + body), "w.txt:1:61: 'ep' has no value");
  EXPECT_EQ(refused(policy + "checkpoints: 2 1" + body),
            "w.txt:1:74: 'checkpoints' announces 2 layers, but 1 follows\n"
            "  hint: the number of layers comes first, then their indices");
  EXPECT_EQ(refused(policy + "checkpoints: 1 3" + body),
            "w.txt:1:76: layer 3 does not exist\n"
            "  hint: the layers are 0 to 2");
  EXPECT_EQ(refused(policy + "checkpoints: 1 1 checkpoint_initiates: 1 0" + body),
            "w.txt:1:102: no checkpoint lies before layer 0\n"
            "  hint: the layers from the nearest checkpoint up to this one run forward again");
  EXPECT_EQ(refused(policy + "checkpoints: 1 1 checkpoint_initiates: 1 1" + body),
            "w.txt:1:102: layer 1 is a checkpoint itself\n"
            "  hint: the layers from the nearest checkpoint up to this one run forward again");
}

TEST(AstraText, WarnsOfWhatIsNeverUsed) {
  EXPECT_THAT(warned("DATA\n2\n" + rows(2)), IsEmpty());
  EXPECT_THAT(warned("DATA\n2\na -1 1 ALLREDUCE 8 2 NONE 7 3 ALLREDUCE 8 4\na -1 1 ALLREDUCE 8 2 NONE 0 3 "
                     "NONE 9 4 MODEL\n"),
              ElementsAre("w.txt:3:27: the bytes of 2 passes are ignored: their collective is NONE",
                          "w.txt:4:40: the policy column of 1 layer is ignored; under DATA ASTRA-sim 1.0 "
                          "misreads it",
                          "w.txt:3:8: the forward collectives of 2 layers are never issued under DATA"));
  EXPECT_THAT(warned("MODEL\n1\n" + rows(1)),
              ElementsAre("w.txt:3:26: the weight-gradient collectives of 1 layer are never issued under "
                          "MODEL"));
  EXPECT_THAT(warned("MICRO\n3\n" + rows(3)),
              ElementsAre("w.txt:4:26: MICRO runs the first layer alone: 2 more are ignored"));
  EXPECT_THAT(warned("HYBRID_TRANSFORMER\n1\n" + rows(1)),
              ElementsAre("w.txt:1:1: has no 'model_parallel_NPU_group:', which a simulation needs"));
  EXPECT_THAT(warned("DATA ep: 2 checkpoints: 1 9\n1\n" + rows(1)),
              ElementsAre("w.txt:1:12: 'checkpoints' means nothing under DATA",
                          "w.txt:1:6: 'ep' means nothing under DATA"));
  EXPECT_THAT(warned("HYBRID_TRANSFORMER model_parallel_NPU_group: 2\n1\na -1 1 NONE 0 2 NONE 0 3 "
                     "ALLGATHER_DP_EP 0 4\n"),
              ElementsAre("w.txt:3:42: 1 collective of 0 bytes is left out"));
  EXPECT_THAT(warned("HYBRID_TRANSFORMER model_parallel_NPU_group: 2 ep: 1\n1\na -1 1 NONE 0 2 NONE 0 3 "
                     "ALLGATHER 0 4\n"),
              ElementsAre("w.txt:3:36: 1 collective of 0 bytes is left out"));
  EXPECT_THAT(
      warned("HYBRID_CUSTOMIZED\n2\na -1 1 ALLGATHER 8 2 NONE 0 3 ALLREDUCE 8 4 DATA\nb -1 1 ALLGATHER 8 2 "
             "NONE 0 3 ALLREDUCE 8 4 MODEL\n"),
      ElementsAre("w.txt:3:8: the forward collectives of 1 layer are never issued under their policies",
                  "w.txt:4:31: the weight-gradient collectives of 1 layer are never issued under their "
                  "policies"));
}

// Only the embedding's all-to-alls are exchanged, and its gradient only where a layer follows the bottom MLP.
TEST(AstraText, WarnsOfDlrmCollectivesOutsideTheEmbedding) {
  const std::string layers =
      "\n2\na -1 1 ALLTOALL 8 2 ALLTOALL 8 3 NONE 0 4\nb -1 1 ALLTOALL 8 2 NONE 0 3 ALLREDUCE 8 4\n";
  EXPECT_THAT(
      warned("HYBRID_DLRM 0" + layers),
      ElementsAre("w.txt:4:8: the forward collectives of 1 layer are never issued under HYBRID_DLRM"));
  EXPECT_THAT(
      warned("HYBRID_DLRM 1" + layers),
      ElementsAre("w.txt:3:21: the input-gradient collectives of 1 layer are never issued under HYBRID_DLRM",
                  "w.txt:4:8: the forward collectives of 1 layer are never issued under HYBRID_DLRM"));
}

TEST(AstraText, Sniffs) {
  const auto looks = [](const std::string& text) { return looks_like_astra_text(text); };
  EXPECT_TRUE(looks("HYBRID_DLRM\t4"));
  EXPECT_TRUE(looks("\r\nMICRO\n"));
  EXPECT_FALSE(looks("MICROS\n"));
  EXPECT_FALSE(looks("data\n"));
  EXPECT_FALSE(looks(" \n"));
  EXPECT_FALSE(looks(""));
}

// A file that lost its end is refused: the number of layers says so. (The last line can lose blanks alone.)
void expect_cuts_refused(const std::string& text) {
  const std::size_t last = text.find_last_not_of(" \t\r\n");
  for (std::size_t end = text.find('\n'); end < last; end = text.find('\n', end + 1)) {
    EXPECT_NE(refused(text.substr(0, end + 1)), "no error") << "cut at byte " << end;
    EXPECT_NE(refused(text.substr(0, end)), "no error") << "cut at byte " << end;
  }
}

TEST(AstraText, CutAtEveryByteItEndsInAWorkloadOrAnError) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_path("tests/fuzz/astra_text"))) {
    SCOPED_TRACE(entry.path());
    const std::string text = content_of(entry.path());
    EXPECT_EQ(refused(text), "no error");
    expect_cuts_refused(text);
    for (std::size_t end = 0; end < text.size(); ++end) {
      error_of([&] { validate_text_workload(read_workload(text.substr(0, end))); });
      std::string changed = text;
      for (const char c : {'\0', ' ', ':', '9', '\xff', '\n'}) {
        changed[end] = c;
        error_of([&] { validate_text_workload(read_workload(changed)); });
      }
    }
    ++files;
  }
  EXPECT_GE(files, 5);
}

TEST(AstraText, PublishedWorkloadsAreReadOrRefusedWithTheReason) {
  for (const auto& [folder, whole] : oracles("text_workloads")) {
    int files = 0;
    std::vector<std::string> errors;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() != ".txt") continue;
      SCOPED_TRACE(entry.path());
      const std::string text = content_of(entry.path());
      EXPECT_TRUE(looks_like_astra_text(text));
      const std::string error = error_of([&] {
        const TextWorkload workload = read_workload(text);
        validate_text_workload(workload);
        const std::size_t count_line = text.find('\n') + 1;
        EXPECT_EQ(workload.layers.size(), std::stoul(text.substr(count_line)));
      });
      if (error != "no error") {
        errors.push_back(error);
      } else if (text.size() < 20000) {
        expect_cuts_refused(text);
      }
      ++files;
    }
    EXPECT_EQ(files, whole ? 73 : 16);
    EXPECT_THAT(errors, ElementsAre("w.txt:2:1: 839 layers are declared, but 33 follow\n"
                                    "  hint: the file is cut off, or this number should be 33"));
  }
}

}  // namespace
}  // namespace armilla
