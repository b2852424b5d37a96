#include "read/trace.h"

#include <gtest/gtest.h>

#include "base/error_testing.h"

namespace armilla {
namespace {

std::string refusal(std::string_view text) {
  return error_of([&] { parse_communicators(text, "g.json", 4); });
}

constexpr std::string_view kGroupsHint =
    "\n  hint: expected a JSON object such as {\"1\": [0, 1], \"2\": [2, 3]}";

TEST(Communicators, GroupsKeepTheirOrderAndPlace) {
  const Communicators groups = parse_communicators("{\"0\": [3, 1],\n \"data\": [0,1,2,3]}", "g.json", 4);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups.at("0").ranks, (std::vector<std::int32_t>{3, 1}));
  EXPECT_EQ(groups.at("0").where, "g.json:1: group '0'");
  EXPECT_EQ(groups.at("data").ranks, (std::vector<std::int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(groups.at("data").where, "g.json:2: group 'data'");
  EXPECT_TRUE(parse_communicators("{}", "g.json", 4).empty());
}

TEST(Communicators, WrongGroupsAreRefused) {
  EXPECT_EQ(refusal(R"({"1": [0, 1, 1]})"), "g.json:1: group '1': rank 1 is listed twice");
  EXPECT_EQ(refusal(R"({"1": []})"), "g.json:1: group '1': the group has no members");
  EXPECT_EQ(refusal("{\"1\": [0],\n\"1\": [1]}"), "g.json:2: group '1': the group is given twice");
  EXPECT_EQ(refusal(R"({"1": [0, 4]})"),
            "g.json:1: group '1': rank 4 is not in the network\n  hint: its ranks are 0 to 3");
  EXPECT_EQ(refusal(R"({"1": [-1]})"),
            "g.json:1: group '1': rank -1 is negative\n  hint: its ranks are 0 to 3");
  EXPECT_EQ(refusal(R"({"1": [18446744073709551615]})"),
            "g.json:1: group '1': rank 18446744073709551615 is not in the network\n  hint: its ranks are 0 "
            "to 3");
}

TEST(Communicators, WrongShapesAreRefused) {
  const auto with_hint = [](std::string_view text) { return std::string(text) + std::string(kGroupsHint); };
  EXPECT_EQ(refusal("[0, 1]"), with_hint("g.json: holds a list"));
  EXPECT_EQ(refusal("7"), with_hint("g.json: holds a number"));
  EXPECT_EQ(refusal(R"({"1": 7})"),
            with_hint("g.json:1: group '1': a number where a list of ranks should be"));
  EXPECT_EQ(refusal(R"({"1": [[0]]})"), with_hint("g.json:1: group '1': a list where a rank should be"));
  EXPECT_EQ(refusal(R"({"1": {"2": [0]}})"),
            with_hint("g.json:1: group '1': an object where a list of ranks should be"));
  EXPECT_EQ(refusal(R"({"1": [0.5]})"), with_hint("g.json:1: group '1': 0.5 where a rank should be"));
  EXPECT_EQ(refusal(R"({"1": ["0"]})"), with_hint("g.json:1: group '1': '0' where a rank should be"));
  EXPECT_EQ(refusal(R"({"1": [null]})"), with_hint("g.json:1: group '1': null where a rank should be"));
  EXPECT_EQ(refusal(R"({"1": [true]})"),
            with_hint("g.json:1: group '1': a truth value where a rank should be"));
}

TEST(Communicators, BrokenJsonSaysWhere) {
  EXPECT_EQ(
      refusal(""),
      "g.json:1:1: not valid JSON: syntax error while parsing value - unexpected end of input; expected "
      "'[', '{', or a literal" +
          std::string(kGroupsHint));
  EXPECT_EQ(
      refusal("{\"1\": [0,\n 1"),
      "g.json:2:3: not valid JSON: syntax error while parsing array - unexpected end of input; expected "
      "']'" +
          std::string(kGroupsHint));
}

// Cut or changed at any byte, the text is read or refused, nothing else.
TEST(Communicators, SurvivesDamage) {
  const std::string text = "{\"1\": [0, 1],\n \"tp\\u00e9\": [2, 3]}\n";
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const char with : {'\0', '{', ']', '"', '9', '\xff'}) {
      std::string damaged = text;
      damaged[at] = with;
      const std::string said = refusal(damaged);
      EXPECT_TRUE(said == "no error" || said.starts_with("g.json")) << said;
    }
    const bool whole = at + 1 == text.size();  // only the line end is missing
    EXPECT_EQ(refusal(text.substr(0, at)) == "no error", whole) << at;
  }
}

}  // namespace
}  // namespace armilla
