#include "cli/command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>

namespace armilla {

extern const char* const kSourceDigest;  // cmake/ArmillaDigest.cmake

namespace {

constexpr std::array kRunExamples = {
    Example{"run resnet50 --machine dgx-a100 --ranks 64 --batch 256",
            "one data-parallel iteration on eight DGX A100"},
    Example{"run bert-large --machine dgx-h100 --ranks 16 --batch 8 --precision bf16 --optimizer adam "
            "--trace bert.pftrace",
            "and a timeline for ui.perfetto.dev"},
    Example{"run vgg16 --machine ethernet-rack --ranks 16 --batch 32 --micro-batches 2 --json vgg16.json "
            "--csv vgg16",
            "with all figures in files"},
    Example{"run llama3-8b --machine dgx-h100 --ranks 64 --tp 4 --pp 2 --micro-batch 1 --global-batch 64 "
            "--seq 8192 --schedule 1f1b --zero 1 --recompute selective --sequence-parallel",
            "hybrid-parallel training of a language model"},
};
constexpr std::array kSearchExamples = {
    Example{"search llama3-8b --machine dgx-h100 --ranks 16 --global-batch 32 --seq 4096 --tp 2,4,8 "
            "--recompute none,selective --zero 1",
            "the best plan, with a ranking of the ten best"},
    Example{
        "search bert-large --machine dgx-a100 --ranks 8 --global-batch 64 --precision bf16 --explain --svg "
        "plans.svg",
        "what each knob is worth, and a plot"},
};
constexpr std::array kSweepExamples = {
    Example{"sweep examples/sweeps/llama3-network.yaml --save sweep.db --csv sweep.csv",
            "a grid of studies, into a database and a table"},
    Example{"sweep examples/sweeps/llama3-network.yaml --svg sweep.svg --plot tokens_per_s --over "
            "machine.dimensions[1].bandwidth",
            "and a line for every combination of the other keys"},
};
constexpr std::array kScaleExamples = {
    Example{"scale bert-large --machine dgx-a100 --ranks 8..32 --global-batch 256 --precision bf16 "
            "--recompute none",
            "what more GPUs are worth, with the best plan for each number"},
};
constexpr std::array kAstra1Examples = {
    Example{"astra1 --workload-configuration examples/astra1/mlp.txt --system-configuration "
            "examples/astra1/system.txt --network-configuration examples/astra1/ring8.json --num-passes 2",
            "a text workload under ASTRA-sim 1.0's rules"},
};
constexpr std::array kAstra2Examples = {
    Example{"astra2 --workload-configuration examples/astra2/allreduce --system-configuration "
            "examples/astra2/system.json --network-configuration examples/astra2/ring4.yml "
            "--remote-memory-configuration examples/astra2/no_memory.json",
            "Chakra traces under ASTRA-sim 2's rules"},
    Example{"astra2 --workload-configuration examples/astra2/allreduce --system-configuration "
            "examples/astra2/system.json --network-configuration examples/astra2/ring4.yml "
            "--remote-memory-configuration examples/astra2/no_memory.json --profile native --trace "
            "allreduce.pftrace",
            "the same under Armilla's own, with a timeline"},
};
constexpr std::array kScaleSimExamples = {
    Example{"scalesim -c examples/scalesim/edge.cfg -t examples/scalesim/lenet.csv -p reports",
            "cycles, stalls and traffic of convolutions, with SCALE-Sim's reports"},
    Example{"scalesim -c examples/scalesim/edge.cfg -t examples/scalesim/attention.csv -i gemm",
            "of matrix products"},
};
constexpr std::array kCollectiveExamples = {
    Example{"collective all-reduce --machine dgx-a100 --ranks 64 --bytes 1MiB,32MiB,1GiB",
            "time and bus bandwidth, as nccl-tests prints them"},
    Example{"collective all-to-all --machine dgx-h100 --ranks 32 --bytes 64MB --trace all-to-all.pftrace",
            "with a timeline"},
};
constexpr std::array kNetExamples = {
    Example{"net examples/net/mesh88.booksim", "latency and throughput of a BookSim configuration"},
};
constexpr std::array kEventsExamples = {
    Example{"events resnet50 --machine dgx-a100 --ranks 16 --batch 64",
            "what has to be profiled once to know all of a job"},
    Example{"events gpt2-345m --machine dgx-a100 --ranks 16 --tp 2 --pp 4 --micro-batch 4 --micro-batches 8 "
            "--json events.json",
            "of a hybrid-parallel one"},
};
constexpr std::array kLayersExamples = {
    Example{"layers resnet50", "parameters, arithmetic and memory traffic per layer"},
    Example{"layers vgg16 --compute systolic:rows=128,columns=128,dataflow=os --json vgg16.json",
            "with cycles on a systolic array"},
    Example{"layers bert-large --batch 8 --compute roofline --device h100-sxm", "with times on a device"},
};
constexpr std::array kTranslateExamples = {
    Example{"translate resnet50 -o resnet50.txt --policy DATA --npus 16 --batch 512",
            "an ASTRA-sim text workload"},
    Example{"translate vgg16 -o vgg16.csv --policy HYBRID_DATA_MODEL --npus 64 --packages 8",
            "the same as a table"},
    Example{"translate --synthetic 1f1b:stages=4,micro-batches=8 -o pipeline", "Chakra traces of a pipeline"},
    Example{"translate alexnet -o alexnet.et --npus 4 --rank 0",
            "a model as Chakra traces, one rank of them"},
};
constexpr std::array kZooExamples = {
    Example{"zoo list", "models that work with no file and no network"},
    Example{"zoo show resnet50", "one of them"},
};
constexpr std::array kValidateExamples = {
    Example{"validate examples/measurements.csv", "predict measured steps, and say how far off"},
    Example{"validate examples/measurements.csv --csv errors.csv --svg errors.svg", "row by row, and a plot"},
};
constexpr std::array kCalibrateExamples = {
    Example{"calibrate examples/llama3-70b-fsdp.yaml --measured 4.5s -o my-cluster.yaml",
            "a machine on which the step takes as long as yours"},
};
constexpr std::array kProfileExamples = {
    Example{"profile import times.db examples/nccl-tests.txt --device h100-sxm",
            "measured times of collectives into a database"},
};
constexpr std::array kListExamples = {
    Example{"list", "everything that can be named"},
    Example{"list machines", "one family"},
};
constexpr std::array kShowExamples = {
    Example{"show dgx-a100", "a machine, with sources and unverified figures"},
    Example{"show h100-sxm", "a device"},
    Example{"show systolic", "a compute model and its parameters"},
};
constexpr std::array kCheckExamples = {
    Example{"check resnet50", "a model, by name or file"},
};
constexpr std::array kCompletionExamples = {
    Example{"completion bash", "for ~/.bashrc: source <(armilla completion bash)"},
    Example{"completion zsh", "for ~/.zshrc: source <(armilla completion zsh)"},
};

// In the order in which a user comes to need them.
constexpr std::array kCommands = {
    CommandInfo{"run", "simulate one training iteration of a model, or a study file", kRunExamples,
                make_run_command},
    CommandInfo{"search", "find the best of all plans that a job could run under", kSearchExamples,
                make_search_command},
    CommandInfo{"sweep", "simulate a grid or a list of studies into one database", kSweepExamples,
                make_sweep_command},
    CommandInfo{"scale", "find the best plan at every size of a machine, and what more devices are worth",
                kScaleExamples, make_scale_command},
    CommandInfo{"layers", "show a model layer by layer, with its costs on a compute model", kLayersExamples,
                make_layers_command},
    CommandInfo{"collective", "time collectives on a machine, over sizes and algorithms", kCollectiveExamples,
                make_collective_command},
    CommandInfo{"net", "run traffic alone on a network", kNetExamples, make_net_command},
    CommandInfo{"list", "list machines, devices, models, algorithms and whatever else has a name",
                kListExamples, make_list_command},
    CommandInfo{"show", "describe one thing that has a name", kShowExamples, make_show_command},
    CommandInfo{"check", "say what files are and whether they are valid", kCheckExamples, make_check_command},
    CommandInfo{"translate", "turn models, workloads, traces and logs into other tools' files",
                kTranslateExamples, make_translate_command},
    CommandInfo{"zoo", "list, show and fetch models", kZooExamples, make_zoo_command},
    CommandInfo{"events", "list every distinct computation and communication of a job, with its count",
                kEventsExamples, make_events_command},
    CommandInfo{"profile", "keep measured times of events in a database", kProfileExamples,
                make_profile_command},
    CommandInfo{"calibrate", "scale a machine's factors to measured steps of your own", kCalibrateExamples,
                make_calibrate_command},
    CommandInfo{"validate", "predict tables of measurements and say how far off", kValidateExamples,
                make_validate_command},
    CommandInfo{"astra2", "run Chakra traces with the files and flags of ASTRA-sim 2.x", kAstra2Examples,
                make_astra2_command},
    CommandInfo{"astra1", "run a text workload with the files and flags of ASTRA-sim 1.0", kAstra1Examples,
                make_astra1_command},
    CommandInfo{"scalesim", "run a topology with the files and flags of SCALE-Sim", kScaleSimExamples,
                make_scalesim_command},
    CommandInfo{"completion", "print the completion script of a shell", kCompletionExamples,
                make_completion_command},
};

// An empty value is a shell variable that was not set, never a wish.
void refuse_empty_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 0) continue;  // a flag
    option->check(
        [](const std::string& value) { return value.empty() ? std::string(kEmptyValue) : std::string(); }, "",
        "");
  }
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    refuse_empty_values(*command);
}

std::string footer(std::span<const Example> examples) {
  std::string text = "Examples:\n";
  for (const Example& example : examples)
    text += fmt::format("  armilla {}\n      {}\n", example.arguments, example.help);
  return text;
}

}  // namespace

std::span<const CommandInfo> commands() {
  return kCommands;
}

namespace {

constexpr char kBetweenJoined = '\x1f';  // a unit separator, which no path has

}  // namespace

std::vector<std::string> with_rest_joined(const std::vector<std::string>& arguments) {
  const auto flag = std::ranges::find(arguments, kRestOfLine);
  if (arguments.empty() || arguments.front() != "astra2" || flag == arguments.end()) return arguments;
  std::vector<std::string> joined(arguments.begin(), flag);
  // Begun with the mark, since CLI11 takes no empty value.
  joined.push_back(std::string(kRestOfLine) + "=" + kBetweenJoined);
  for (auto word = flag + 1; word != arguments.end(); ++word) joined.back() += *word + kBetweenJoined;
  return joined;
}

std::vector<std::string> rest_of_line(std::string_view joined) {
  std::vector<std::string> words;
  while (!joined.empty()) {
    const std::size_t end = std::min(joined.find(kBetweenJoined), joined.size());
    if (end > 0) words.emplace_back(joined.substr(0, end));
    joined.remove_prefix(std::min(end + 1, joined.size()));
  }
  return words;
}

std::string build_version() {
  return fmt::format("{}-{}", ARMILLA_VERSION, kSourceDigest);
}

// Where a file goes to standard output, what people read goes to standard error.
Session for_people(const Session& session, std::initializer_list<std::string_view> outputs) {
  if (std::find(outputs.begin(), outputs.end(), "-") == outputs.end()) return session;
  return {session.err, session.err, false, session.progress, kReportWidth, session.meter};
}

CLI::Option* OutputOptions::add(CLI::App& app, const std::string& flags, std::string& value,
                                const std::string& help, OutputKind kind) {
  const bool is_folder = kind == OutputKind::folder || kind == OutputKind::folder_of_tables;
  CLI::Option* const option = app.add_option(flags, value, help)->type_name(is_folder ? "DIR" : "FILE");
  options_.emplace_back(option, kind);
  return option;
}

std::optional<OutputKind> OutputOptions::kind_of(const CLI::Option& option) const {
  const auto found = std::ranges::find(options_, &option, &std::pair<const CLI::Option*, OutputKind>::first);
  return found == options_.end() ? std::nullopt : std::optional(found->second);
}

std::unique_ptr<CLI::App> make_parser(std::vector<std::unique_ptr<Command>>& instances) {
  auto app = std::make_unique<CLI::App>("Armilla: a simulator of distributed DNN training", "armilla");
  app->set_version_flag("--version", "armilla " + build_version(), "print the version and exit");
  app->set_help_flag("-h,--help", "print this help and exit");
  app->require_subcommand(1);
  app->get_formatter()->column_width(32);
  app->footer("'armilla help COMMAND' explains a command and gives examples.");
  for (const CommandInfo& info : commands()) {
    instances.push_back(info.make());
    CLI::App* command = app->add_subcommand(std::string(info.name), std::string(info.help));
    instances.back()->declare(*command);
    command->footer(footer(info.examples));
  }
  refuse_empty_values(*app);
  return app;
}

}  // namespace armilla
