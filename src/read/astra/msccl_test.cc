#include "read/astra.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error_testing.h"

namespace armilla {
namespace {

MscclAlgorithm parse_algorithm(const std::string& text) {
  return parse_msccl(text, "a.xml");
}

// A whole algorithm of two GPUs, in which `step` is the only step of GPU 0's second threadblock.
std::string with_step(const std::string& step) {
  return "<algo name=\"x\" coll=\"allreduce\" nchunksperloop=\"2\" ngpus=\"2\" inplace=\"1\" proto=\"LL\">\n"
         "  <gpu id=\"0\" i_chunks=\"2\" o_chunks=\"0\" s_chunks=\"4\">\n"
         "    <tb id=\"7\" send=\"1\" recv=\"-1\" chan=\"3\">\n"
         "      <step s=\"0\" type=\"s\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"s\" dstoff=\"0\" cnt=\"2\" "
         "depid=\"-1\" deps=\"-1\" hasdep=\"1\"/>\n"
         "    </tb>\n"
         "    <tb id=\"4\" send=\"-1\" recv=\"1\" chan=\"0\">\n"
         "      " +
         step +
         "\n"
         "    </tb>\n"
         "  </gpu>\n"
         "  <gpu id=\"1\"/>\n"
         "</algo>\n";
}

TEST(MscclTest, ReadsWhatTheInterpreterNeeds) {
  const MscclAlgorithm algorithm = parse_algorithm(
      with_step("<step s=\"0\" type=\"rrc\" srcbuf=\"i\" srcoff=\"1\" dstbuf=\"o\" dstoff=\"0\" cnt=\"1\" "
                "depid=\"7\" deps=\"0\" hasdep=\"0\"/>"));
  EXPECT_EQ(algorithm.name, "x");
  EXPECT_EQ(algorithm.kind, CollectiveKind::all_reduce);
  EXPECT_TRUE(algorithm.in_place);
  EXPECT_EQ(algorithm.chunks_per_loop, 2);
  ASSERT_EQ(algorithm.gpus.size(), 2U);
  EXPECT_EQ(algorithm.gpus[0].scratch_chunks, 4);
  ASSERT_EQ(algorithm.gpus[0].blocks.size(), 2U);
  const MscclBlock& first = algorithm.gpus[0].blocks[0];
  EXPECT_EQ(first.id, 7);
  EXPECT_EQ(first.send_peer, 1);
  EXPECT_EQ(first.channel, 3);
  EXPECT_EQ(first.steps[0].operation, MscclOperation::send);
  EXPECT_EQ(first.steps[0].count, 2);
  EXPECT_EQ(first.steps[0].awaited_block, -1);
  const MscclStep& step = algorithm.gpus[0].blocks[1].steps[0];
  EXPECT_EQ(step.operation, MscclOperation::receive_reduce_copy);
  EXPECT_EQ(step.source.buffer, MscclBuffer::input);
  EXPECT_EQ(step.source.offset, 1);
  EXPECT_EQ(step.destination.buffer, MscclBuffer::output);
  EXPECT_EQ(step.awaited_block, 0);
  EXPECT_EQ(step.awaited_step, 0);
}

// msccl-tools writes -1 and a count of 0 there.
TEST(MscclTest, DoesNotLookAtPlacesThatAnOperationDoesNotUse) {
  const MscclAlgorithm algorithm = parse_algorithm(
      with_step("<step s=\"0\" type=\"nop\" srcbuf=\"i\" srcoff=\"-1\" dstbuf=\"o\" dstoff=\"-1\" cnt=\"0\" "
                "depid=\"7\" deps=\"0\" hasdep=\"0\"/>"));
  EXPECT_EQ(algorithm.gpus[0].blocks[1].steps[0].awaited_block, 0);
}

TEST(MscclTest, KnowsTheCollectivesByAnySpelling) {
  const auto kind = [](const std::string& word) {
    return parse_algorithm("<algo coll=\"" + word + "\" nchunksperloop=\"1\"><gpu id=\"0\"/></algo>").kind;
  };
  EXPECT_EQ(kind("reduce_scatter"), CollectiveKind::reduce_scatter);
  EXPECT_EQ(kind("reducescatter"), CollectiveKind::reduce_scatter);
  EXPECT_EQ(kind("AllToAll"), CollectiveKind::all_to_all);
  EXPECT_EQ(kind("broadcast"), CollectiveKind::broadcast);
  EXPECT_EQ(kind("alltonext"), std::nullopt);
}

std::string refusal_of_step(const std::string& step) {
  return error_of([&] { parse_algorithm(with_step(step)); });
}

TEST(MscclTest, RefusesStepsThatNoGpuCouldRun) {
  EXPECT_EQ(refusal_of_step("<step s=\"0\" type=\"rrcd\" cnt=\"1\"/>"),
            "a.xml:7:8: unknown type of step 'rrcd'\n  hint: did you mean 'rrc'?");
  EXPECT_EQ(refusal_of_step("<step s=\"1\" type=\"nop\"/>"),
            "a.xml:7:8: step 1 follows step -1\n  hint: the steps of a threadblock are numbered 0, 1, 2 ...");
  EXPECT_EQ(refusal_of_step("<step s=\"0\" type=\"s\" srcbuf=\"i\" srcoff=\"0\" cnt=\"1\"/>"),
            "a.xml:7:8: a step that sends, but its threadblock has no peer to send to");
  EXPECT_EQ(refusal_of_step("<step s=\"0\" type=\"r\" dstbuf=\"i\" dstoff=\"0\" cnt=\"0\"/>"),
            "a.xml:7:8: cnt=\"0\" of <step> is not a whole number from 1 to 1048576");
  EXPECT_EQ(refusal_of_step("<step s=\"0\" type=\"r\" dstbuf=\"i\" cnt=\"1\"/>"),
            "a.xml:7:8: <step> has no attribute 'dstoff'");
  EXPECT_EQ(refusal_of_step("<step s=\"0\" type=\"nop\" depid=\"5\" deps=\"0\"/>"),
            "a.xml:7:8: waits for threadblock 5, which this GPU has not");
  EXPECT_EQ(refusal_of_step("<step s=\"0\" type=\"nop\" depid=\"7\" deps=\"1\"/>"),
            "a.xml:7:8: waits for step 1 of threadblock 7, which has 1 step");
  EXPECT_EQ(refusal_of_step("<step s=\"0\" type=\"nop\" dep_id=\"7\" deps=\"0\"/>"),
            "a.xml:7:8: <step> has an unknown attribute 'dep_id'\n  hint: did you mean 'depid'?");
}

// A flag is raised at steps with hasdep only; a later one does for an earlier one.
TEST(MscclTest, RefusesToWaitForAStepThatTellsNobody) {
  const auto with_flag = [](const std::string& before, const std::string& flag) {
    std::string text = with_step("<step s=\"0\" type=\"nop\" depid=\"7\" deps=\"0\"/>");
    return text.replace(text.find(before), before.size(), flag);
  };
  EXPECT_EQ(error_of([&] { parse_algorithm(with_flag("hasdep=\"1\"/>", "hasdep=\"0\"/>")); }),
            "a.xml:7:8: waits for step 0 of threadblock 7, which tells nobody that it is done\n"
            "  hint: give the step hasdep=\"1\"");
  EXPECT_EQ(error_of([&] {
              parse_algorithm(
                  with_flag("hasdep=\"1\"/>", "hasdep=\"0\"/><step s=\"1\" type=\"nop\" hasdep=\"1\"/>"));
            }),
            "no error");
}

std::string refusal_of_algorithm(const std::string& text) {
  return error_of([&] { parse_algorithm(text); });
}

TEST(MscclTest, PassesOverElementsThatTheRuntimePassesOver) {
  EXPECT_EQ(refusal_of_algorithm("<algo coll=\"allgather\" nchunksperloop=\"1\"><note/><gpu id=\"0\"><copy "
                                 "i_off=\"0\"/></gpu></algo>"),
            "no error");
  EXPECT_EQ(
      refusal_of_algorithm("<algo coll=\"allgather\" nchunksperloop=\"1\"><gpu id=\"0\"/><gpus/></algo>"),
      "a.xml:1:57: <gpus> is not known inside <algo>\n  hint: expected <gpu>");
}

TEST(MscclTest, RefusesBuffersThatDoNotMakeUpTheCall) {
  const auto with = [](const std::string& kind, const std::string& chunks) {
    return refusal_of_algorithm("<algo coll=\"" + kind + "\" nchunksperloop=\"4\"><gpu id=\"0\" " + chunks +
                                "/><gpu id=\"1\"/></algo>");
  };
  EXPECT_EQ(with("allgather", "i_chunks=\"2\" o_chunks=\"4\""), "no error");
  EXPECT_EQ(with("reduce_scatter", "i_chunks=\"4\" o_chunks=\"2\""), "no error");
  EXPECT_EQ(with("allreduce", "i_chunks=\"4\" o_chunks=\"0\""), "no error");
  EXPECT_EQ(with("custom", "i_chunks=\"4\" o_chunks=\"1\""), "no error");
  EXPECT_EQ(with("allgather", "o_chunks=\"2\""),
            "a.xml:1:44: o_chunks=\"2\" does not fit 4 chunks per loop on 2 GPUs");
}

TEST(MscclTest, RefusesOtherFiles) {
  EXPECT_EQ(refusal_of_algorithm("<algo>\n  <gpu id=\"0\">\n</algo>"),
            "a.xml:3:3: is not XML: start-end tags mismatch");
  EXPECT_EQ(refusal_of_algorithm(""), "a.xml:1:1: is not XML: no document element found");
  EXPECT_EQ(refusal_of_algorithm("<svg/>"), "a.xml:1:2: holds <svg>, not the <algo> of an MSCCL algorithm");
  EXPECT_EQ(refusal_of_algorithm("<algo coll=\"allreduce\" nchunksperloop=\"1\"><tb/></algo>"),
            "a.xml:1:44: <tb> is not known inside <algo>\n  hint: expected <gpu>");
  EXPECT_EQ(refusal_of_algorithm(
                "<algo coll=\"allreduce\" nchunksperloop=\"1\" ngpus=\"2\"><gpu id=\"0\"/></algo>"),
            "a.xml:1:2: is for 2 GPUs, but describes 1");
  EXPECT_EQ(refusal_of_algorithm(
                "<algo coll=\"allreduce\" nchunksperloop=\"1\"><gpu id=\"0\"/><gpu id=\"0\"/></algo>"),
            "a.xml:1:57: GPU 0 is there twice");
  EXPECT_EQ(refusal_of_algorithm(
                "<algo coll=\"allreduce\" nchunksperloop=\"1\"><gpu id=\"0\"><tb id=\"0\" send=\"0\" "
                "recv=\"-1\"/></gpu></algo>"),
            "a.xml:1:44: threadblock 0 of GPU 0 has that GPU as its peer");
}

// Every prefix and every changed byte is an algorithm or an Error.
TEST(MscclTest, SurvivesDamage) {
  const std::string whole =
      with_step("<step s=\"0\" type=\"r\" dstbuf=\"o\" dstoff=\"0\" cnt=\"1\" depid=\"7\" deps=\"0\"/>");
  int refused = 0, read = 0;
  const auto attempt = [&](const std::string& text) {
    ++(refusal_of_algorithm(text) == "no error" ? read : refused);
  };
  for (std::size_t i = 0; i < whole.size(); ++i) {
    attempt(whole.substr(0, i));
    for (const char c : {'\0', '<', '"', '9', '-'}) {
      std::string changed = whole;
      changed[i] = c;
      attempt(changed);
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(read, 10);
}

}  // namespace
}  // namespace armilla
