#include "cli/run_main.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/source_path_testing.h"
#include "cli/cli_testing.h"

namespace armilla {
namespace {

class Cli : public InEmptyFolder {
 protected:
  static void write(const std::string& path, std::string_view text) { std::ofstream(path) << text; }
  static std::vector<std::string> files() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator("."))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
};

TEST_F(Cli, VersionAndHelp) {
  EXPECT_EQ(run({"--version"}).out.substr(0, 8), "armilla ");
  EXPECT_EQ(run({"--version"}).code, 0);
  const Outcome help = run({"--help"});
  for (const CommandInfo& info : commands())
    EXPECT_NE(help.out.find(info.help), std::string::npos) << info.name;
}

TEST_F(Cli, NothingAndHelpPrintWhatHelpFlagsPrint) {
  const Outcome help = run({"--help"});
  for (const std::string line : {"", "help"}) {
    EXPECT_EQ(run(words(line)).out, help.out) << line;
    EXPECT_EQ(run(words(line)).code, 0) << line;
  }
  EXPECT_EQ(run(words("help run")).out, run(words("run --help")).out);
  EXPECT_EQ(run(words("help zoo fetch")).out, run(words("zoo fetch --help")).out);
  EXPECT_EQ(run(words("help runn")).code, 2);
  EXPECT_EQ(run(words("help runn")).err,
            "armilla: error: armilla help: unknown command 'runn'\n  hint: did you mean 'run'?\n");
}

TEST_F(Cli, CheckTellsOfFlagsThatSayNothing) {
  EXPECT_EQ(run(words("check dgx-h100 --dim batch=3 --comm-group groups.json --npus 4")).out,
            "dgx-h100: machine 'dgx-h100' of 64 devices\n"
            "note: --dim has no effect: no model is checked\n"
            "note: --comm-group has no effect: no job of traces is checked\n"
            "note: --npus has no effect: no job of traces is checked\n");
  EXPECT_EQ(run(words("check dgx-h100 resnet50 --dim batch=3")).out.find("note"), std::string::npos);
}

// Other tools' names find ours; flags are named in what was typed, keys in files.
TEST_F(Cli, ErrorsSpeakOfWhatWasTyped) {
  const auto hint = [](const std::string& option) {
    const std::string error = run(words("run gpt2-345m --machine dgx-a100 " + option + " 8")).err;
    return error.substr(error.find("hint: ") + 6);
  };
  EXPECT_EQ(hint("--gpus"), "did you mean '--ranks'?\n");
  EXPECT_EQ(hint("--tensor-parallel"), "did you mean '--tp'?\n");
  EXPECT_EQ(hint("--tensor-model-parallel-size"), "did you mean '--tp'?\n");
  EXPECT_EQ(hint("--micro-batch-size"), "did you mean '--micro-batch'?\n");
  EXPECT_EQ(hint("--zero-stage"), "did you mean '--zero'?\n");
  EXPECT_EQ(hint("--seq-length"), "did you mean '--seq'?\n");
  const std::string flags = "run gpt2-345m --machine dgx-a100 --ranks 64 --pp 48";
  EXPECT_EQ(run(words(flags)).err,
            "armilla: error: --pp 48 does not divide 64 ranks\n"
            "  hint: --ranks could be 48 or 96, or --pp 32 or 64\n");
  write("study.yaml", "model: gpt2-345m\nmachine: dgx-a100\nplan: {ranks: 64, pipeline: 48}\n");
  EXPECT_EQ(run(words("run study.yaml")).err,
            "armilla: error: study.yaml:3:15: plan.ranks: plan.pipeline 48 does not divide 64 ranks\n"
            "  hint: plan.ranks could be 48 or 96, or plan.pipeline 32 or 64\n");
  EXPECT_EQ(run(words("run study.yaml --pp 3")).err,
            "armilla: error: study.yaml:3:15: plan.ranks: --pp 3 does not divide 64 ranks\n"
            "  hint: plan.ranks could be 48 or 72, or --pp 2 or 4\n");
}

TEST_F(Cli, HintsCanBeFollowed) {
  const auto error = [](const std::string& line) {
    const Outcome outcome = run(words(line));
    EXPECT_EQ(outcome.code, 2) << line;
    return outcome.err;
  };
  const std::string start = "run llama3-8b --machine dgx-h100 --ranks 64 ";
  EXPECT_EQ(error(start + "--set machine"),
            "armilla: error: --set machine: expected key=value\n  hint: for example --set "
            "plan.micro_batches=4\n");
  EXPECT_EQ(error(start + "--recompute block"),
            "armilla: error: --recompute block: which blocks to recompute is missing\n"
            "  hint: give --recompute-blocks, how many of every model chunk, or block:N\n");
  EXPECT_EQ(run({"run", "llama3-8b", "--machine", "dgx-h100", "--ranks", "64", "--pp", "2", "--stage-blocks",
                 "[17, 17]", "--quiet"})
                .err,
            "");
  EXPECT_EQ(error(start + "--pp 2 --schedule dualpipe --global-batch 64"),
            "armilla: error: --global-batch 64: --schedule dualpipe with --micro-batches 2 and --pp 2\n"
            "  hint: it needs an even number, at least 4: --global-batch could be 128\n");
  EXPECT_EQ(error(start + "--precision float32"),
            "armilla: error: --precision float32: unknown value 'float32'\n  hint: did you mean 'fp32'?\n");
  EXPECT_EQ(error("run llama3-8b --machine dgx-h100 --ranks 1000000000"),
            "armilla: error: --ranks 1000000000\n  hint: a job can have at most 16777216\n");
  EXPECT_EQ(error("run gpt3 --machine dgx-h100"),
            "armilla: error: gpt3: is neither a file nor a model of the zoo\n"
            "  hint: did you mean 'gpt3-175b'?\n");
  EXPECT_EQ(error(start + "--pipeline 2"),
            "armilla: error: armilla run: unknown option '--pipeline'\n  hint: did you mean '--pp'?\n");
  EXPECT_EQ(error("run resnet18 --tp 2 --tp 4"),
            "armilla: error: armilla run: --tp is given twice\n  hint: see 'armilla run --help'\n");
  EXPECT_EQ(error("check"),
            "armilla: error: armilla check: NAME|FILE|PREFIX is required\n"
            "  hint: see 'armilla check --help'\n");
  EXPECT_EQ(error("zoo"),
            "armilla: error: armilla zoo: a command is required\n  hint: known: list, show, fetch\n");
  // What is no model at all is said before what else is missing.
  std::filesystem::create_directory("empty");
  EXPECT_EQ(error("run empty").find("--machine"), std::string::npos);
  EXPECT_EQ(run(words("check h100")).code, 0);
}

// The root is done early: what the table says is of all ranks.
TEST_F(Cli, ABroadcastByTreesLoadsTheRootsLinks) {
  const Outcome outcome = run(
      words("collective broadcast --machine dgx-a100 --ranks 64 --bytes 1GiB --algorithm double-binary-tree "
            "--csv tables"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<std::string> row = words(outcome.out.substr(outcome.out.find(" 1GiB ")));
  // bytes, time, bandwidth, bus bandwidth (with units), of limit, busiest link
  const double busiest = std::stod(row.at(9));
  EXPECT_EQ(row.at(10), "%") << outcome.out;
  std::ifstream file("tables/links.csv");
  std::string line;
  std::getline(file, line);
  std::getline(file, line);
  EXPECT_NEAR(busiest / 100, std::stod(line.substr(line.rfind(',') + 1)), 0.001) << line;
}

TEST_F(Cli, CollectivesFitTheTerminal) {
  const auto lines_of = [](const std::string& line, std::size_t width) {
    std::ostringstream out, err;
    EXPECT_EQ(run_main(words(line), {out, err, false, false, width}), 0) << line << err.str();
    std::istringstream stream(out.str());
    std::vector<std::string> lines;
    for (std::string text; std::getline(stream, text);) lines.push_back(text);
    return lines;
  };
  const std::vector<std::string> reports = {
      "collective all-reduce --machine dgx-a100 --ranks 64 --bytes 1MiB,1GiB --algorithm ring,direct",
      "collective all-to-all --machine gb200-nvl72 --bytes 64MB",
      "list algorithms",
      "list formats",
      "show ring",
      "show dgx-h100",
      "zoo list"};
  for (const std::size_t width : {std::size_t{60}, std::size_t{80}}) {
    for (const std::string& report : reports) {
      for (const std::string& line : lines_of(report, width)) {
        const bool word = line.find_last_of(' ') == line.find_first_not_of(' ') - 1;  // cannot be broken
        EXPECT_TRUE(line.size() <= width || word) << report << ", " << width << ": " << line;
      }
    }
  }
}

TEST_F(Cli, ACollectiveSaysWhatItIs) {
  const auto report = [](const std::string& line) { return run(words("collective " + line)); };
  const Outcome barrier = report("barrier --machine dgx-a100");
  EXPECT_EQ(barrier.out.find("bytes"), std::string::npos) << barrier.out;
  EXPECT_EQ(barrier.out.find("GB "), std::string::npos) << barrier.out;
  EXPECT_EQ(report("barrier --machine dgx-a100 --bytes 1MiB").err,
            "armilla: error: --bytes 1MiB: a barrier moves no bytes\n  hint: leave it out\n");
  EXPECT_EQ(report("all-reduce --machine dgx-a100 --ranks 1").out.find("algorithm"), std::string::npos);
  EXPECT_EQ(report("all-reduce --machine dgx-a100 --bytes 1MiB,,2MiB").err,
            "armilla: error: --bytes 1MiB,,2MiB: a size is missing between the commas\n");
  EXPECT_EQ(report("all-reduce --machine dgx-a100 --bytes 1MiB..").err,
            "armilla: error: --bytes 1MiB..: '1MiB..' is not a range of sizes\n"
            "  hint: a range has both its ends, such as 1MiB..1GiB\n");
  const std::string slow = run({"collective", "all-reduce", "--machine", "dgx-h100", "--ranks", "64", "--set",
                                "what_if.links=[{dimension: rail, ranks: 3, bandwidth: 0.1}]"})
                               .out;
  EXPECT_NE(slow.find("of dgx-h100, what if\n"), std::string::npos) << slow;
  EXPECT_NE(slow.find("what if  links of rank 3 in rail have 0.1 times the bandwidth\n"), std::string::npos)
      << slow;
  const auto damaged = [](const std::string& link) {
    return run({"collective", "all-reduce", "--machine", "dgx-h100", "--ranks", "8", "--network", "flow",
                "--fail-link", link});
  };
  const std::string half = damaged("rank 0-switch 0=0.5").out;
  EXPECT_NE(half.find("what if  the link rank 0-switch 0 has 50 % of its bandwidth"), std::string::npos)
      << half;
  EXPECT_EQ(damaged("rank 0-rank 9").err.find("armilla: error: --fail-link rank 0-rank 9: "), 0U);
}

TEST_F(Cli, NotesKeepTheirWords) {
  const std::string text = run(words("run vit_b_16 --machine dgx-h100 --ranks 2")).out;
  const std::string note = "operators that only compute shapes or prepare weights";
  EXPECT_NE(text.find(note), std::string::npos) << text;
  EXPECT_EQ(text.find("only --compute"), std::string::npos) << "a word of the note is no key";
  EXPECT_EQ(text.find(note, text.find(note) + 1), std::string::npos) << "said twice";
}

TEST_F(Cli, WrongCommandLinesAreExplained) {
  const auto error = [](const std::string& line) {
    const Outcome outcome = run(words(line));
    EXPECT_EQ(outcome.code, 2) << line;
    EXPECT_EQ(outcome.out, "") << line;
    return outcome.err;
  };
  EXPECT_EQ(error("runn resnet50"),
            "armilla: error: armilla: unknown command 'runn'\n  hint: did you mean 'run'?\n");
  EXPECT_EQ(error("run resnet50 --machine dgx-a100 --rank 8"),
            "armilla: error: armilla run: unknown option '--rank'\n  hint: did you mean '--ranks'?\n");
  EXPECT_EQ(error("run resnet5 --machine dgx-a100"),
            "armilla: error: resnet5: is neither a file nor a model of the zoo\n  hint: did you mean "
            "'resnet50'?\n");
  EXPECT_EQ(error("run resnet50"),
            "armilla: error: armilla run: --machine is missing\n"
            "  hint: name one, such as dgx-a100 ('armilla list machines'), or give a study file\n");
  EXPECT_EQ(error("run resnet50 --machine dgx-a100 --ranks 12"),
            "armilla: error: --ranks 12: 12 ranks do not fill whole groups of 8 on machine "
            "'dgx-a100'\n"
            "  hint: the nearest counts that do are 8 and 16, or take 6 of each group: "
            "machine.dimensions.0.size=6\n");
  EXPECT_NE(error("run resnet50 --machine dgx-a100 --bucket 25").find("'25' has no unit"), std::string::npos);
  EXPECT_NE(error("run resnet50 --machine dgx-a100 --set plan.rank=8")
                .find("unknown key 'rank'\n  hint: did you mean 'ranks'?"),
            std::string::npos);
  EXPECT_NE(error("layers resnet50 --compute sistolic")
                .find("unknown compute model 'sistolic'\n  hint: did you mean 'systolic'?"),
            std::string::npos);
  EXPECT_NE(error("show dgx-a10").find("did you mean 'dgx-a100'?"), std::string::npos);
  EXPECT_NE(error("list machine").find("did you mean 'machines'?"), std::string::npos);
}

// Those of a hierarchy are worked out where they are few, and not where there are none.
TEST_F(Cli, ShowsTheLinksOfMachines) {
  const auto shown = [](const std::string& kind, int size) {
    write("m.yaml", "device: h100-sxm\ndimensions: [{name: a, kind: " + kind +
                        ", size: " + std::to_string(size) + ", bandwidth: 1GB/s, latency: 1us}]\n");
    const Outcome outcome = run(words("show m.yaml"));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const std::size_t at = outcome.out.find("  links ");
    return at == std::string::npos ? "" : outcome.out.substr(at, outcome.out.find('\n', at) - at);
  };
  EXPECT_EQ(shown("FullyConnected", 91), "  links                4,095 between 91 devices, 0 switches");
  const std::string left_out = ", whose diameter and bisection are not worked out";
  EXPECT_EQ(shown("FullyConnected", 92), "  links                4,186" + left_out);
  EXPECT_EQ(shown("Ring", 4096), "  links                4,096 between 4,096 devices, 0 switches");
  EXPECT_EQ(shown("Switch", 4097), "  links                4,097" + left_out);
  EXPECT_EQ(shown("Switch", 1), "");
}

TEST_F(Cli, ValuesThatMakeNoSenseAreRefused) {
  const std::string run_it = "run resnet18 --machine dgx-a100 --ranks 8 ";
  for (const std::string flags : {"--batch 0",
                                  "--batch -1",
                                  "--batch 1.5",
                                  "--batch 99999999999999999999",
                                  "--batch 9e9",
                                  "--batch 0x10",
                                  "--batch 32 --micro-batches 5",
                                  "--global-batch 7",
                                  "--ranks 0",
                                  "--ranks 16777217",
                                  "--chunks 0",
                                  "--chunks 1000000",
                                  "--active-chunks 0",
                                  "--precision int8",
                                  "--optimizer lamb",
                                  "--chunk-order random",
                                  "--decomposition tree",
                                  "--algorithm rnig",
                                  "--algorithm ring direct",
                                  "--network garnet",
                                  "--compute roofline:peek=1",
                                  "--dim batch",
                                  "--dim batch=0",
                                  "--dim sequence=4",
                                  "--dim batch=4 --dim batch=5",
                                  "--set plan",
                                  "--set =1",
                                  "--bucket 0MiB",
                                  "--bucket -1MiB",
                                  "--bucket 0.5B",
                                  "--max-messages -1",
                                  "--timeline-ranks 0",
                                  "--timeline-window 1ms..2ms",
                                  "--timeline-window 1ms..1ms --trace run.json",
                                  "--timeline-window 9s..10s --trace run.json",
                                  "--max-messages 10 --no-fold",
                                  "--json run.json --trace ./run.json"}) {
    const Outcome outcome = run(words(run_it + flags));
    EXPECT_EQ(outcome.code, 2) << flags;
    EXPECT_EQ(outcome.out, "") << flags;
    EXPECT_EQ(outcome.err.substr(0, 16), "armilla: error: ") << flags;
  }
  for (const std::string flag :
       {"--ranks", "--batch", "--json", "--csv", "--trace", "--compute", "--machine", "--set"}) {
    EXPECT_EQ(run({"run", "resnet18", "--machine", "dgx-a100", flag, ""}).code, 2) << flag;
  }
  EXPECT_EQ(files(), (std::vector<std::string>{}));
}

TEST_F(Cli, AKeyHasOneValue) {
  const auto refusal = [](const std::string& second, const std::string& first, const std::string& key) {
    return "armilla: error: " + second + ": is given beside " + first + ", and both set " + key +
           "\n  hint: give one of them\n";
  };
  const std::string job = "run alexnet --machine dgx-a100 --ranks 2 --quiet";
  EXPECT_EQ(run(words(job + " --set plan.ranks=4")).err,
            refusal("--set plan.ranks=4", "--ranks 2", "plan.ranks"));
  EXPECT_EQ(run(words(job + " --set plan.batch=4 --set plan.batch=8")).err,
            refusal("--set plan.batch=8", "--set plan.batch=4", "plan.batch"));
  EXPECT_EQ(run(words(job + " --set machine=dgx-h100")).err,
            refusal("--set machine=dgx-h100", "--machine dgx-a100", "machine"));
  EXPECT_EQ(run(words(job + " --no-overlap --set plan.overlap=true")).err,
            refusal("--set plan.overlap=true", "--no-overlap", "plan.overlap"));
  EXPECT_EQ(run(words(job + " --fsdp --set plan.zero=1")).err,
            refusal("--set plan.zero=1", "--fsdp", "plan.zero"));
  EXPECT_EQ(run(words(job + " --set model.name=vgg16")).err,
            "armilla: error: --set model.name=vgg16: is given beside the model alexnet\n  hint: give one of "
            "them\n");
  EXPECT_EQ(run(words("collective all-reduce --machine dgx-a100 --ranks 2 --set plan.ranks=4")).err,
            refusal("--set plan.ranks=4", "--ranks 2", "plan.ranks"));
  EXPECT_EQ(run(words(job + " --set plan={ranks:4}")).code, 2) << "an unknown key";
  EXPECT_EQ(
      run({"run", "alexnet", "--machine", "dgx-a100", "--ranks", "2", "--set", "plan={ranks: 4, batch: 8}"})
          .err,
      refusal("--set plan={ranks: 4, batch: 8}", "--ranks 2", "plan.ranks"));
  EXPECT_EQ(run(words(job + " --batch 4 --set plan.batch='4'")).code, 0);
  // The same twice is one value, and a key of what a flag names is another key.
  EXPECT_EQ(run(words(job + " --set plan.ranks=2 --set machine.device.launch_overhead=1us")).code, 0);
}

// Of every command that has it; astra1 and astra2 still print ASTRA-sim's own lines.
TEST_F(Cli, QuietIsNothingButErrors) {
  const std::string job = " alexnet --machine dgx-a100 --ranks 2";
  std::ofstream("s.yaml") << "study: {model: alexnet, machine: dgx-a100}\nvary: {plan.ranks: [1, 2]}\n";
  for (const std::string& command :
       {"run" + job, "events" + job, "search" + job + " --tp 1 --micro-batch 32",
        std::string("layers alexnet"), std::string("collective barrier --machine dgx-a100"),
        std::string("sweep s.yaml"), std::string("net fat-tree:k=4 --traffic shift:bytes=1KB"),
        std::string("translate alexnet -o w.txt"), "validate " + source_path("examples/measurements.csv")}) {
    const Outcome outcome = run(words(command + " --quiet"));
    EXPECT_EQ(outcome.code, 0) << command;
    EXPECT_EQ(outcome.out + outcome.err, "") << command;
  }
}

TEST_F(Cli, AMessageBudgetIsSaidBeforehand) {
  const Outcome outcome =
      run(words("run resnet18 --machine dgx-a100 --ranks 100000 --decomposition flat --no-fold"));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("messages, the limit is 2,000,000,000"), std::string::npos) << outcome.err;
}

TEST_F(Cli, UtilizationIsMeasuredAgainstTheComputeModel) {
  ASSERT_EQ(run(words("run vgg16 --machine dgx-a100 --ranks 8 --compute systolic:rows=4096,columns=4096 "
                      "--json run.json"))
                .code,
            0);
  EXPECT_LT(json_of("run.json").at("metrics").at("mfu").get<double>(), 1);
}

TEST_F(Cli, CheckGoesOnAfterABadInput) {
  write("bad.yaml", "model: resnet18\n");
  const Outcome outcome = run(words("check bad.yaml resnet18 dgx-a100 h100-sxm"));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.out.find("machine 'dgx-a100'"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("device 'h100-sxm'"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.err.find("1 of 4 inputs is not valid"), std::string::npos) << outcome.err;
}

TEST_F(Cli, ARunsJsonHasItsFixedNames) {
  ASSERT_EQ(run(words("run resnet50 --machine dgx-a100 --ranks 16 --batch 32 --json run.json")).code, 0);
  const nlohmann::json report = json_of("run.json");
  EXPECT_GT(report.at("iteration_time_s").get<double>(), 0.001);
  EXPECT_EQ(report.at("ranks"), 16);
  EXPECT_GT(report.at("memory").at("peak_bytes").get<double>(), 25'557'032 * 4 * 3);
  const double mfu = report.at("metrics").at("mfu");
  EXPECT_GT(mfu, 0.01);
  EXPECT_LT(mfu, 1);
  double bytes = 0;
  EXPECT_FALSE(report.at("collectives").empty());
  for (const auto& collective : report.at("collectives")) bytes += collective.at("bytes").get<double>();
  EXPECT_EQ(bytes, 25'557'032 * 4.0);
}

TEST_F(Cli, FoldingChangesNothing) {
  ASSERT_EQ(run(words("run resnet18 --machine dgx-a100 --ranks 32 --batch 8 --json one.json")).code, 0);
  ASSERT_EQ(run(words("run resnet18 --machine dgx-a100 --ranks 32 --batch 8 --json all.json --no-fold")).code,
            0);
  EXPECT_EQ(json_of("one.json").at("iteration_time_s"), json_of("all.json").at("iteration_time_s"));
}

TEST_F(Cli, AStudyFileIsTheSameRun) {
  write("study.yaml",
        "model: resnet18\n"
        "machine: dgx-a100\n"
        "plan:\n"
        "  ranks: 16\n"
        "  batch: 8\n");
  ASSERT_EQ(run(words("run study.yaml --json study.json")).code, 0);
  ASSERT_EQ(run(words("run resnet18 --machine dgx-a100 --ranks 16 --batch 8 --json flags.json")).code, 0);
  EXPECT_EQ(json_of("study.json").at("iteration_time_s"), json_of("flags.json").at("iteration_time_s"));
  ASSERT_EQ(run(words("run study.yaml --set plan.batch=16 --json set.json")).code, 0);
  EXPECT_GT(json_of("set.json").at("iteration_time_s"), json_of("study.json").at("iteration_time_s"));
  EXPECT_EQ(run(words("check study.yaml")).code, 0);
}

TEST_F(Cli, GlobalAndLocalBatchesAgree) {
  ASSERT_EQ(run(words("run resnet18 --machine dgx-a100 --ranks 16 --batch 8 --json local.json")).code, 0);
  ASSERT_EQ(
      run(words("run resnet18 --machine dgx-a100 --ranks 16 --global-batch 128 --json global.json")).code, 0);
  EXPECT_EQ(json_of("local.json").at("iteration_time_s"), json_of("global.json").at("iteration_time_s"));
  EXPECT_EQ(run(words("run resnet18 --machine dgx-a100 --ranks 16 --global-batch 100")).code, 2);
}

TEST_F(Cli, LayersJsonHasItsFixedNames) {
  ASSERT_EQ(run(words("layers vgg16 --json layers.json --csv layers.csv")).code, 0);
  const nlohmann::json table = json_of("layers.json");
  EXPECT_EQ(table.at("totals").at("parameters"), 138'357'544);
  EXPECT_EQ(table.at("totals").at("forward_macs"), 15'470'264'320);
  EXPECT_GT(table.at("totals").at("forward_flops").get<std::int64_t>(), 2 * 15'470'264'320);
  EXPECT_EQ(table.at("layers").size(), 16U);
}

TEST_F(Cli, TranslateWritesTheWeightsOfEveryLayer) {
  ASSERT_EQ(run(words("translate vgg16 -o vgg.txt --npus 8 --batch 64")).code, 0);
  std::ifstream file("vgg.txt");
  std::string policy;
  int layers = 0;
  file >> policy >> layers;
  EXPECT_EQ(policy, "DATA");
  EXPECT_EQ(layers, 16);
  std::string line;
  std::getline(file, line);
  std::getline(file, line);
  EXPECT_NE(line.find("ALLREDUCE\t6912\t"), std::string::npos) << line;
}

TEST_F(Cli, FailuresLeaveNothingBehind) {
  EXPECT_EQ(run(words("run resnet18 --machine dgx-a100 --json missing/run.json --trace run.pftrace")).code,
            2);
  EXPECT_EQ(run(words("run resnet18 --machine dgx-a100 --trace run.xyz --json run.json")).code, 2);
  EXPECT_EQ(run(words("layers resnet18 --json /dev/full")).code, 2);
  EXPECT_EQ(run(words("translate resnet18 -o x.bin")).code, 2);
  EXPECT_EQ(files(), (std::vector<std::string>{}));
}

// By their keys, not by their suffixes.
TEST_F(Cli, DescriptionsAndStudiesAreToldApart) {
  write("small.yaml",
        "family: gpt\nlayers: 2\nhidden: 64\nheads: 4\nvocabulary: 100\nsequence: 32\nmax_positions: 32\n");
  write("study.yaml", "model: ./small.yaml\nmachine: dgx-a100\nplan: {ranks: 8}\n");
  write("study.json", R"({"model": "./small.yaml", "machine": "dgx-a100", "plan": {"ranks": 8}})");
  for (const std::string input : {"./small.yaml --machine dgx-a100 --ranks 8", "study.yaml", "study.json"}) {
    const Outcome outcome =
        run(words("run " + input + " --json " + input.substr(2, 3) + ".out.json --quiet"));
    EXPECT_EQ(outcome.code, 0) << input << outcome.err;
  }
  // Notes name flags where flags were typed and keys where a file was written.
  nlohmann::json by_flags = json_of("sma.out.json"), by_file = json_of("udy.out.json");
  by_flags.erase("notes");
  by_file.erase("notes");
  EXPECT_EQ(by_flags, by_file);
  EXPECT_EQ(run(words("check ./small.yaml")).out.substr(0, 23), "./small.yaml: model of ");
  EXPECT_EQ(run(words("check study.json")).out, "study.json: study of small on 8 ranks of dgx-a100\n");
  write("lists.yaml",
        "model: small.yaml\nmachine: dgx-a100\nplan: {ranks: [8, 16], tensor: [1, 2], global_batch: 32, "
        "zero: 0, "
        "recompute: none, virtual_stages: 1, micro_batch: 1, pipeline: 1, sequence_parallel: false}\n");
  EXPECT_EQ(run(words("check lists.yaml")).out,
            "lists.yaml: study for armilla search: 4 plans of small.yaml on dgx-a100\n");
  for (const std::string command :
       {"run lists.yaml", "events lists.yaml", "calibrate lists.yaml --measured 1s -o m"}) {
    const std::string said = run(words(command)).err;
    EXPECT_NE(said.find("lists.yaml:3:15: plan.ranks: is more than one value, and "), std::string::npos)
        << said;
    EXPECT_NE(said.find("\n  hint: 'armilla search' compares plans with lists"), std::string::npos) << said;
  }
  EXPECT_EQ(
      run(words("run study.yaml --set plan.recompute_modules=core_attn,mlp")).err,
      "armilla: error: --set plan.recompute_modules=core_attn,mlp: is more than one value, and a run takes "
      "one\n  hint: together they stand in brackets, '[core_attn, mlp]'; 'armilla search' compares plans "
      "with lists, ranges and 'any'\n");
  EXPECT_EQ(run(words("search study.yaml --tp ANY")).err,
            "armilla: error: --tp ANY: unknown value 'ANY'\n  hint: did you mean 'any'?\n");
  EXPECT_NE(
      run(words("search study.yaml --machine dgx-a100,torus:x=4,y=4,dgx-h100")).err.find("'torus:x=4,y=4'"),
      std::string::npos);
  // What all events have times of, a database of them, and what the profiler of PyTorch writes.
  ASSERT_EQ(run(words("events study.yaml --csv events.csv --quiet")).code, 0);
  std::stringstream events;
  events << std::ifstream("events.csv").rdbuf();
  std::string measured = events.str();
  for (const std::string source : {",modelled\n", ",simulated\n"}) {
    for (std::size_t at; (at = measured.find(source)) != std::string::npos;)
      measured.replace(at, source.size(), ",measured\n");
  }
  write("measured.csv", measured);
  ASSERT_EQ(run(words("profile import one.db measured.csv")).code, 0);
  EXPECT_NE(run(words("profile import two.db one.db")).out.find(" 0 replaced, 0 as before)"),
            std::string::npos);
  EXPECT_EQ(run(words("events study.yaml --profile two.db --missing")).out,
            "nothing is missing: every event has a measured time\n");
  write("torch.json",
        R"({"schemaVersion": 1, "deviceProperties": [], "traceEvents": [{"ph": "X", "cat": "cpu_op", )"
        R"("name": "aten::mm", "ts": 1, "dur": 20, "pid": 1, "tid": 1, "args": {"External id": 1, )"
        R"("Input Dims": [[4, 8], [8, 2]], "Input type": ["float", "float"]}}]})");
  EXPECT_EQ(run(words("check torch.json")).out.substr(0, 44), "torch.json: trace of PyTorch's profiler with");
  // Times behind one --measured.
  EXPECT_EQ(run(words("calibrate study.json study.json --measured 1s 2s 3s -o machine.yaml")).err,
            "armilla: error: --measured: 3 times for 2 studies\n  hint: give one for each study, in the same "
            "order\n");
  write("config.json", R"({"model_type": "gpt2", "n_layer": 2})");
  EXPECT_EQ(run(words("run config.json")).err.substr(0, 47),
            "armilla: error: armilla run: --machine is missi");
  write("broken.yaml", "model: [\n");
  EXPECT_NE(run(words("run broken.yaml")).err.find("broken.yaml:2:1: not valid YAML"), std::string::npos);
  write("both.yaml", "model: resnet18\nmachine: dgx-a100\njobs: [{name: a, model: resnet18}]\n");
  EXPECT_NE(run(words("check both.yaml")).err.find("both.yaml:1:8: model: one model beside several jobs"),
            std::string::npos)
      << run(words("check both.yaml")).err;
  write("lists.yaml",
        "model: resnet18\nmachine: dgx-a100\nplan: {ranks: 8}\ncollectives: {algorithms: [ring, ring]}\n");
  for (const std::string verb : {"check", "run"}) {
    EXPECT_NE(run({verb, "lists.yaml"}).err.find("lists.yaml:4:27: collectives.algorithms: names 2"),
              std::string::npos)
        << run({verb, "lists.yaml"}).err;
  }
  EXPECT_NE(run(words("run absent.yaml")).err.find("absent.yaml"), std::string::npos);
}

TEST_F(Cli, UnreadableModelsAreRefusedByName) {
  write("empty.onnx", "");
  write("text.onnx", "policy DATA\n");
  std::filesystem::create_directory("folder.onnx");
  for (const std::string name : {"empty.onnx", "text.onnx", "folder.onnx", "absent.onnx"}) {
    for (const std::string verb : {"layers", "check"}) {
      const Outcome outcome = run({verb, name});
      EXPECT_EQ(outcome.code, 2) << name;
      EXPECT_EQ(outcome.err.find("armilla: error: " + name), 0U) << outcome.err;
    }
  }
}

}  // namespace
}  // namespace armilla
