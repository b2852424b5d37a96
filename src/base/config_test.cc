#include "base/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error_testing.h"
#include "base/folder_testing.h"

namespace armilla {
namespace {

using testing::ElementsAre;

std::string parse_error(const std::string& text, const std::vector<Override>& overrides = {}) {
  return error_of([&] { Config::parse(text, "f.yaml", overrides); });
}

constexpr const char* kText =
    "name: demo\n"
    "ranks: 8\n"
    "overlap: true\n"
    "share: 90%\n"
    "latency: 500ns\n"
    "bucket: 25MiB\n"
    "link: 400Gbps\n"
    "peak: 312TFLOPS\n"
    "clock: 1.41GHz\n"
    "nothing:\n"
    "dims:\n"
    "  - {kind: Ring, size: 4}\n"
    "  - {kind: Switch, size: 8}\n";

TEST(Config, ReadsTypedValues) {
  const Config config = Config::parse(kText, "f.yaml");
  EXPECT_EQ(config.at("name").text(), "demo");
  EXPECT_EQ(config.at("ranks").count(), 8);
  EXPECT_TRUE(config.at("overlap").boolean());
  EXPECT_DOUBLE_EQ(config.at("share").fraction(), 0.9);
  EXPECT_EQ(config.at("latency").time(), nanoseconds(500));
  EXPECT_EQ(config.at("bucket").bytes(), Bytes(25 << 20));
  EXPECT_DOUBLE_EQ(config.at("link").bandwidth().value, 50e9);
  EXPECT_DOUBLE_EQ(config.at("peak").flop_rate().value, 312e12);
  EXPECT_DOUBLE_EQ(config.at("clock").frequency().value, 1.41e9);
  EXPECT_EQ(config.at("dims").items().at(1).at("kind").choice({"Ring", "Switch"}), 1U);
  EXPECT_FALSE(config.has("absent"));
  EXPECT_FALSE(config.at("nothing").has("x"));
  EXPECT_NO_THROW(config.reject_unknown_keys());
}

TEST(Config, JsonIsYaml) {
  const Config config = Config::parse(R"({"a": {"b": [1, 2, 3]}})", "f.json");
  EXPECT_EQ(config.at("a").at("b").items().at(2).count(), 3);
}

TEST(Config, KeysAndEntriesKeepFileOrder) {
  const Config config = Config::parse("z: 1\na: 2\nm: 3\n", "f.yaml");
  EXPECT_THAT(config.keys(), ElementsAre("z", "a", "m"));
  EXPECT_EQ(config.entries().at(2).second.count(), 3);
  EXPECT_NO_THROW(config.reject_unknown_keys());
}

TEST(Config, ErrorsNameFileLineColumnAndKey) {
  const Config config = Config::parse(kText, "f.yaml");
  EXPECT_EQ(error_of([&] { config.at("name").count(); }), "f.yaml:1:7: name: 'demo' is not a whole number");
  EXPECT_EQ(error_of([&] { config.at("dims").items().at(0).at("size").text(); }), "no error");
  EXPECT_EQ(error_of([&] { config.at("dims").items().at(0).at("size").boolean(); }),
            "f.yaml:12:24: dims.0.size: expected true or false, not '4'");
  EXPECT_EQ(error_of([&] {
              config.at("dims").items().at(1).at("kind").choice({"Ring", "switched"});
            }),
            "f.yaml:13:12: dims.1.kind: unknown value 'Switch'\n  hint: did you mean 'switched'?");
  EXPECT_EQ(error_of([&] { config.at("ranks").count(9); }),
            "f.yaml:2:8: ranks: 8 is too small\n  hint: the lowest value is 9");
  EXPECT_EQ(error_of([&] { config.at("ranks").count(1, 4); }),
            "f.yaml:2:8: ranks: 8 is too large\n  hint: the highest value is 4");
  EXPECT_EQ(error_of([&] { config.at("plan"); }), "f.yaml:1:1: the key 'plan' is missing");
  EXPECT_EQ(error_of([&] { config.at("name").at("x"); }),
            "f.yaml:1:7: name: expected a mapping with the key 'x'");
  EXPECT_EQ(error_of([&] { config.at("name").items(); }), "f.yaml:1:7: name: expected a list");
  EXPECT_EQ(error_of([&] { config.at("name").keys(); }), "f.yaml:1:7: name: expected a mapping");
  EXPECT_EQ(error_of([&] { config.at("dims").text(); }), "f.yaml:12:3: dims: expected a single value");
}

TEST(Config, UnknownKeysAreRefusedWithTheNearestOne) {
  const Config config = Config::parse("plan:\n  batch: 3\n  microbatches: 2\n", "f.yaml");
  const Config plan = config.at("plan");
  plan.has("batch");
  plan.has("micro_batches");
  EXPECT_EQ(
      error_of([&] { plan.reject_unknown_keys(); }),
      "f.yaml:3:3: plan.microbatches: unknown key 'microbatches'\n  hint: did you mean 'micro_batches'?");
}

TEST(Config, DuplicateKeysAreRefused) {
  EXPECT_EQ(parse_error("a: 1\nb:\n  c: 1\n  c: 2\n"), "f.yaml:4:3: key 'c' is given twice");
}

TEST(Config, SyntaxErrorsAreLocated) {
  EXPECT_EQ(parse_error("a: [1, 2\n"),
            "f.yaml:2:1: not valid YAML: a '[' is not closed\n  hint: is a ']' or a comma missing?");
  EXPECT_EQ(parse_error("a: {b: 2\n"),
            "f.yaml:2:1: not valid YAML: a '{' is not closed\n  hint: is a '}' or a comma missing?");
  EXPECT_EQ(parse_error("a: b: c\n"),
            "f.yaml:1:5: not valid YAML: a second ': ' in one line\n  hint: put quotes around a text that "
            "contains ': '");
  EXPECT_EQ(parse_error("a:\n\tb: c\n"),
            "f.yaml:2:3: not valid YAML: the line is indented with a tab\n  hint: indent it with spaces");
  EXPECT_EQ(parse_error("a: {b: 2}\n  c: 3\n"),
            "f.yaml:2:3: not valid YAML: the line does not go with those before it\n  hint: keys of one map "
            "are indented alike");
  EXPECT_EQ(parse_error("a: *nothing\n"), "f.yaml:1:4: not valid YAML: the referenced anchor is not defined");
  EXPECT_EQ(
      parse_error("? [1]\n: 2\n"),
      "f.yaml:1:3: a key must be a plain word\n  hint: a bracket that is never closed reads like one, too");
  EXPECT_EQ(
      parse_error("a: 1\n---\nb: 2\n"),
      "f.yaml: holds more than one document\n  hint: keep one, without '---' between parts in YAML and with "
      "nothing after the last brace in JSON");
  EXPECT_EQ(parse_error(std::string("a: 1\0", 5)), "f.yaml: is a binary file, not YAML");
  const auto json_error = [](const std::string& text) {
    return error_of([&] { Config::parse_json(text, "f.json"); });
  };
  EXPECT_EQ(json_error("a: [1, 2\n"),
            "f.json:2:1: not valid JSON: a '[' is not closed\n  hint: is a ']' or a comma missing?");
  EXPECT_EQ(json_error(std::string("{}\0", 3)), "f.json: is a binary file, not JSON");
}

TEST(Config, OverridesReplaceAndAdd) {
  const Config config = Config::parse(
      kText, "f.yaml",
      {"ranks=16", "dims.1.size=32", "plan.batch=64", "nothing.x=1", "list=[1, 2]", "ranks=64"});
  EXPECT_EQ(config.at("ranks").count(), 64);
  EXPECT_EQ(config.at("dims").items().at(0).at("size").count(), 4);
  EXPECT_EQ(config.at("dims").items().at(1).at("size").count(), 32);
  EXPECT_EQ(config.at("plan").at("batch").count(), 64);
  EXPECT_EQ(config.at("nothing").at("x").count(), 1);
  EXPECT_EQ(config.at("list").items().size(), 2U);
  EXPECT_EQ(Config::parse("", "empty.yaml", {"a.b=1"}).at("a").at("b").count(), 1);
  const Config brackets = Config::parse(kText, "f.yaml", {"dims[1].size=32"});
  EXPECT_EQ(brackets.at("dims").items().at(1).at("size").count(), 32);
  EXPECT_EQ(parse_error(kText, {"dims[2].size=1"}),
            "--set dims[2].size=1: the list has no item 2\n  hint: its items are 0 to 1");
}

// What stands in for a mapping becomes one where a key below it is set.
TEST(Config, ShortFormsBecomeLongOnes) {
  const Expand expand = [](const std::string& path, const std::string&, const std::string&) {
    return path == "model" ? std::optional(NamedText{"", "name"}) : std::nullopt;
  };
  const Config config = Config::parse("model: gpt\nother: x\n", "s/f.yaml", {"model.sequence=256"}, expand);
  EXPECT_EQ(config.at("model").at("sequence").count(), 256);
  EXPECT_EQ(config.at("model").at("name").text(), "gpt");
  EXPECT_EQ(config.at("model").at("name").where(), "s/f.yaml:1:8: model.name");
  EXPECT_EQ(config.at("model").at("name").folder(), "s/");
  const Config given =
      Config::parse("", "s/f.yaml", {{"model=gpt", "--model gpt", "t/g.yaml"}, "model.sequence=256"}, expand);
  EXPECT_EQ(given.at("model").at("name").folder(), "t/");
  EXPECT_EQ(given.at("model").at("name").where(), "--model gpt");
  EXPECT_EQ(error_of([&] { Config::parse("other: x\n", "f.yaml", {"other.y=1"}, expand); }),
            "--set other.y=1: 'other' holds a single value, no keys");
}

TEST(Config, KeysAboveOthersAreSetFirst) {
  std::vector<Override> overrides = {"a.b=1", "c=2", "a={b: 3, d: 4}", "e[0].f=5"};
  sort_upper_first(overrides);
  const Config config = Config::parse("e: [{f: 0}]\n", "f.yaml", overrides);
  EXPECT_EQ(config.at("a").at("b").count(), 1);
  EXPECT_EQ(config.at("a").at("d").count(), 4);
}

TEST(Config, MoreOverridesMakeADocumentOfTheirOwn) {
  const Config config = Config::parse(kText, "f.yaml", {"ranks=16"});
  config.at("name");
  const Config more = config.with({"ranks=32", "dims[1].size=2", "new.key=1"});
  EXPECT_EQ(more.at("ranks").count(), 32);
  EXPECT_EQ(more.at("dims").items()[1].at("size").count(), 2);
  EXPECT_EQ(more.at("new").at("key").count(), 1);
  EXPECT_EQ(more.file(), "f.yaml");
  EXPECT_EQ(more.at("latency").where(), "f.yaml:5:10: latency");
  EXPECT_EQ(config.at("ranks").count(), 16);
  EXPECT_EQ(config.at("dims").items()[1].at("size").count(), 8);
  EXPECT_FALSE(config.has("new"));
  // Of a value inside of the document it is the whole document, too.
  EXPECT_EQ(config.at("dims").with({}).at("ranks").count(), 16);
  // Nothing of the new document has been asked for.
  EXPECT_THAT(error_of([&] { config.with({}).reject_unknown_keys(); }), testing::HasSubstr("name"));
}

TEST(Config, ValuesAsOneLineOfYaml) {
  const std::string text =
      Config::parse("a:\n  b: [1, 'x \"y\\z', ~]\n  c: |\n    two\n    lines\n  d: {}\n", "f.yaml").yaml();
  EXPECT_EQ(text, R"({"a": {"b": ["1", "x \"y\\z", null], "c": "two\nlines\n", "d": {}}})");
  EXPECT_EQ(Config::parse(text, "f.yaml").yaml(), text);
}

TEST(Config, OverriddenValuesAreLocatedAtTheirFlag) {
  const Config config = Config::parse(kText, "f.yaml", {"ranks=many", "plan={batch: no}"});
  EXPECT_EQ(error_of([&] { config.at("ranks").count(); }), "--set ranks=many: 'many' is not a whole number");
  EXPECT_EQ(error_of([&] { config.at("plan").at("batch").count(); }),
            "--set plan={batch: no}: plan.batch: 'no' is not a whole number");
  EXPECT_EQ(error_of([&] { config.at("plan").reject_unknown_keys(); }), "no error");
}

TEST(Config, BadOverridesAreRefused) {
  EXPECT_EQ(parse_error(kText, {"ranks"}),
            "--set ranks: expected key=value\n  hint: for example --set plan.micro_batches=4");
  EXPECT_EQ(parse_error(kText, {"=4"}),
            "--set =4: expected key=value\n  hint: for example --set plan.micro_batches=4");
  EXPECT_EQ(parse_error(kText, {"ranks="}), "--set ranks=: the value is empty");
  EXPECT_EQ(parse_error(kText, {"a..b=1"}), "--set a..b=1: the key path has an empty part");
  EXPECT_EQ(parse_error(kText, {"name.x=1"}), "--set name.x=1: 'name' holds a single value, no keys");
  EXPECT_EQ(parse_error("just text", {"x=1"}), "--set x=1: the file holds a single value, no keys");
  EXPECT_EQ(parse_error(kText, {"dims.2.size=1"}),
            "--set dims.2.size=1: the list has no item 2\n  hint: its items are 0 to 1");
  EXPECT_EQ(parse_error(kText, {"dims.x.size=1"}),
            "--set dims.x.size=1: the list has no item 'x'\n  hint: known: 0, 1");
  EXPECT_EQ(parse_error(kText, {"x=[1"}),
            "--set x=[1: a key must be a plain word\n"
            "  hint: a bracket that is never closed reads like one, too");
}

TEST(Config, AliasesAreCopies) {
  const char* text = "base: &b {size: 4}\nother: *b\n";
  EXPECT_EQ(Config::parse(text, "f.yaml").at("other").at("size").count(), 4);
  const Config config = Config::parse(text, "f.yaml", {"other.size=9"});
  EXPECT_EQ(config.at("base").at("size").count(), 4);
  EXPECT_EQ(config.at("other").at("size").count(), 9);
}

TEST(Config, HostileDocumentsAreBounded) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "- ";
  EXPECT_EQ(parse_error(deep), "f.yaml:1:129: the document is nested deeper than 64 levels");
  EXPECT_EQ(
      parse_error(std::string(100'000, '[')),
      "f.yaml:1:1: a key must be a plain word\n  hint: a bracket that is never closed reads like one, too");
  EXPECT_EQ(parse_error("a: &x [*x]\n"), "f.yaml:1:8: an alias stands inside what it refers to");
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    laughs += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int j = 1; j < 10; ++j) laughs += ", " + before;
    laughs += "]\n";
  }
  EXPECT_THAT(parse_error(laughs), testing::HasSubstr("the document holds more than 100000 values"));
  EXPECT_EQ(parse_error(std::string(2 << 20, ' ')),
            "f.yaml: is too large to be a configuration file\n  hint: the limit is 1 MiB");
}

TEST(Config, FoldersOfFilesAndOverrides) {
  EXPECT_EQ(Config::parse("a: 1", "some/where/f.yaml").at("a").folder(), "some/where/");
  EXPECT_EQ(Config::parse("a: 1", "/f.yaml").at("a").folder(), "/");
  EXPECT_EQ(Config::parse("a: 1", "f.yaml").at("a").folder(), "");
  EXPECT_EQ(Config::parse("a: 1", "some/where/f.yaml", {"a=2"}).at("a").folder(), "");
  EXPECT_EQ(
      Config::parse("a: 1", "f.yaml", {{"a=2", "elsewhere/g.yaml:3:1", "elsewhere/g.yaml"}}).at("a").folder(),
      "elsewhere/");
}

TEST(Config, ReadsFiles) {
  const std::string path = path_for_test("config_test.yaml");
  std::ofstream(path) << "a: 7\n";
  EXPECT_EQ(Config::read(path).at("a").count(), 7);
  EXPECT_EQ(Config::read(path).file(), path);
  EXPECT_EQ(error_of([] { Config::read("/nowhere.yaml"); }),
            "/nowhere.yaml: cannot open the file: No such file or directory");
}

}  // namespace
}  // namespace armilla
