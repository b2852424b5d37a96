#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/output_file.h"
#include "base/suggest.h"
#include "base/units_text.h"
#include "cli/command.h"
#include "cli/flags/model_flags.h"
#include "cli/flags/output_flags.h"
#include "cli/flags/translate_flags.h"
#include "ir/derived/layer_table.h"
#include "read/astra.h"
#include "read/scalesim.h"
#include "read/study.h"
#include "read/trace.h"
#include "study/run.h"
#include "study/trace_formats.h"
#include "study/translate.h"
#include "trace/synthetic.h"
#include "write/trace.h"
#include "write/write.h"

namespace armilla {
namespace {

template <class Format>
bool is_named(std::span<const Format> formats, const std::string& name) {
  return std::any_of(formats.begin(), formats.end(),
                     [&](const Format& format) { return format.name == name; });
}

class TranslateCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app_ = &app;
    app.add_option("input", input_,
                   "a model (zoo name or ONNX file), a text workload, Chakra traces (file or PREFIX of "
                   "PREFIX.<rank>.et), a FlexFlow task graph, an MSCCL algorithm or an ASTRA-sim 2 log")
        ->type_name("INPUT");
    outputs_
        .add(app, "-o,--output", output_,
             "the file to write, - for standard output, or the prefix of one file per rank",
             OutputKind::by_command)
        ->required();
    app.add_option(
           "--to", format_,
           "format of a workload or of traces, whatever the suffix (armilla list formats); chrome of a log")
        ->type_name("FORMAT");
    app.add_option(
           "--synthetic", synthetic_,
           "instead of an input, traces of a pattern ('armilla list synthetic'): ring:npus=8,bytes=1MiB")
        ->type_name("NAME:KEY=VALUE,..");
    traces_.declare(app);
    model_.declare_options(app);
    app.add_option("--policy", policy_, "DATA, MODEL, HYBRID_DATA_MODEL or HYBRID_MODEL_DATA")
        ->type_name("POLICY")
        ->capture_default_str();
    app.add_option("--npus", npus_, "devices the job runs on; --batch is for all of them")
        ->type_name("N")
        ->capture_default_str();
    app.add_option("--packages", packages_, "packages of npus/packages devices, for the hybrid policies")
        ->type_name("N")
        ->capture_default_str();
    app.add_option("--dtype", dtype_, "element type of everything communicated (default: the model's own)")
        ->type_name("TYPE");
    app.add_option("--gradients", gradients_,
                   "weights: of the weight matrices alone, as ModTrans and ASTRA-sim's own files; all: of "
                   "biases and norms too")
        ->type_name("weights|all")
        ->capture_default_str();
    app.add_option("--update-cycles", update_cycles_, "delay after every finished collective")
        ->type_name("N")
        ->capture_default_str();
    app.add_option("--compute", compute_,
                   "compute model for the cycles; without its own cycles, 1 cycle is 1 ns")
        ->type_name("MODEL")
        ->capture_default_str();
    app.add_option("--device", device_, "the device the compute model runs on")
        ->type_name("NAME|FILE")
        ->capture_default_str();
    app.add_flag("--quiet", quiet_, "print nothing but errors");
  }

  void execute(const Session& whole) override {
    const Session session = for_people(whole, {output_});
    options_.npus = parse_flag(npus_, "--npus", 1, INT32_MAX);
    if (!synthetic_.empty()) return write_synthetic(session);
    if (input_.empty())
      throw Error("INPUT", "nothing to translate",
                  "give a model, a file or a prefix of traces, or --synthetic");
    // What the input holds decides: a log becomes a timeline, what no reader of traces takes is a model, a
    // text workload stays one unless the output is to be traces, and all else becomes traces.
    const TraceReader* const reader = find_trace_reader(input_);
    if (reader == nullptr) return is_issue_log(input_) ? write_timeline(session) : translate_model(session);
    if (reader->kind == FileKind::astra_text && wants_workload()) return rewrite_workload(session);
    const ConvertOptions options = traces_.options(options_.npus);
    ConvertInput input = reader->read(input_, options);
    traces_.change(input, options);
    write_traces(session, input);
    if (!quiet_) tell_idle_of_models(session);
  }

 private:
  void write_output(const Session& session, std::string contents) const {
    write_into_folders(session, {{output_, std::move(contents)}}, {});
  }

  // A text workload goes to a trace only when the output says so.
  bool wants_workload() const {
    if (!format_.empty()) return is_named(text_workload_formats(), format_);
    return output_ == "-" || output_.ends_with(".txt") || output_.ends_with(".csv") ||
           output_.ends_with(".json");
  }
  bool wants_traces() const {
    if (!format_.empty()) return is_named(trace_formats(), format_);
    // ".json" alone means a text workload: traces as JSON need --to.
    return std::any_of(trace_formats().begin(), trace_formats().end(), [&](const TraceFormat& format) {
      return format.suffix != ".json" && output_.ends_with(format.suffix);
    });
  }

  void write_synthetic(const Session& session) {
    if (!input_.empty()) throw Error("--synthetic", "stands instead of an input", "leave out " + input_);
    const ConvertOptions options = traces_.options(options_.npus);
    ConvertInput input;
    input.job.ranks = synthesize(parse_component(synthetic_, "--synthetic"), traces_.as_chakra);
    traces_.change(input, options);
    write_traces(session, input);
    if (!quiet_) tell_idle_of_models(session);
  }

  void write_traces(const Session& session, const ConvertInput& input) const {
    const TraceFormat& format = find_trace_format(format_, output_);
    refuse_further_ranks(input.job, format, output_);
    // All are composed before the first is written: an error leaves no half of a set.
    const std::vector<NamedContents> files = trace_files(input.job, format, output_, traces_.gzip);
    write_into_folders(session, files, {});
    if (quiet_) return;
    std::int64_t nodes = 0;
    for (const ChakraTrace& trace : input.job.ranks) nodes += static_cast<std::int64_t>(trace.size());
    session.out << fmt::format("wrote {}{}: traces of {}, {}\n", files.front().path,
                               files.size() > 1 ? " to " + files[input.job.ranks.size() - 1].path : "",
                               counted(input.job.ranks.size(), "rank"), counted(nodes, "node"));
    if (!input.job.communicators.empty())
      session.out << fmt::format("wrote {}: {}\n", files.back().path,
                                 counted(input.job.communicators.size(), "communicator"));
    for (const std::string& note : input.notes) session.out << fmt::format("note: {}\n", note);
  }

  void write_timeline(const Session& session) const {
    if (!format_.empty() && format_ != "chrome")
      throw Error("--to " + format_, "a log becomes a timeline only", "omit --to, or say --to chrome");
    const MappedFile file(input_);
    const IssueLog log = parse_issue_log({file.bytes().data(), file.bytes().size()}, input_);
    const ConvertOptions options = traces_.options(options_.npus);
    // Chakra's tool is told the number of ranks; 1 is the flag's default and says nothing.
    const std::int32_t ranks = options_.npus > 1 ? static_cast<std::int32_t>(options_.npus) : 0;
    write_output(session, write_issue_chrome(log, {options.frequency / 1e6, traces_.as_chakra, ranks}));
    if (quiet_) return;
    session.out << fmt::format("wrote {}: a timeline of {} on {}\n", output_,
                               counted(log.nodes.size(), "node"), counted(log.ranks, "rank"));
    if (!log.unfinished.empty())
      session.out << fmt::format(
          "note: {}, first node {} '{}' of rank {}\n",
          log.unfinished.size() == 1
              ? "1 node never finishes and is left out"
              : fmt::format("{} nodes never finish and are left out", log.unfinished.size()),
          log.unfinished[0].id, log.unfinished[0].name, log.unfinished[0].rank);
  }

  void rewrite_workload(const Session& session) const {
    const TextWorkloadFormat& format = text_workload_format(format_, output_);
    std::vector<std::string> warnings;
    const MappedFile file(input_);
    const TextWorkload workload = read_astra_text(file.bytes(), input_, &warnings);
    write_output(session, format.write(workload));
    if (quiet_) return;
    session.out << fmt::format("wrote {}: {}, policy {}\n", output_, counted(workload.layers.size(), "layer"),
                               name_of(workload.policy));
    for (const std::string& warning : warnings) session.out << fmt::format("note: {}\n", warning);
    tell_idle_of_models(session);
    tell_idle_of_traces(session);
  }

  void translate_model(const Session& session) {
    const bool to_traces = wants_traces();
    const TextWorkloadFormat* format = to_traces ? nullptr : &text_workload_format(format_, output_);
    options_.policy = text_policy(policy_, "--policy");
    options_.packages = parse_flag(packages_, "--packages", 1, INT32_MAX);
    options_.update_cycles = parse_flag(update_cycles_, "--update-cycles", 0, INT64_MAX);
    constexpr std::string_view kGradients[] = {"weights", "all"};
    options_.all_parameters = parse_choice(gradients_, kGradients, "--gradients") == 1;
    if (!dtype_.empty()) {
      const auto dtype = dtype_from_name(dtype_);
      if (!dtype)
        throw Error("--dtype", fmt::format("unknown type '{:.60}'", dtype_),
                    suggest(dtype_, std::span<const std::string_view>(dtype_names())));
      options_.dtype = *dtype;
    }
    const Device device = load_device(device_, "--device " + device_);
    const std::unique_ptr<CostModel> cost =
        make_cost_model(read_compute_choice(compute_, "--compute"), device);
    model_.model = input_;
    const Model model = model_.read();
    check_precision(model, *cost, device.name, "--device " + device_);
    require_work(model);
    const TextWorkload workload = translate(model, options_, *cost);
    if (to_traces) {
      const ConvertOptions convert = traces_.options(options_.npus);
      ConvertInput input = traces_of(workload, convert);
      traces_.change(input, convert);
      write_traces(session, input);
    } else {
      write_output(session, format->write(workload));
    }
    if (quiet_) return;
    if (!to_traces)
      session.out << fmt::format("wrote {}: {}, policy {}, batch {} on {}, cycles of {}\n", output_,
                                 counted(workload.layers.size(), "layer"), name_of(options_.policy),
                                 model.batch, counted(options_.npus, "NPU"), compute_);
    for (const std::string& note : model.notes) session.out << fmt::format("note: {}\n", note);
    if (model.batch % data_parts() != 0) {
      session.out << fmt::format(
          "note: a batch of {} does not divide by {} data-parallel parts: shares are rounded down, as "
          "ASTRA-sim's generator does\n",
          model.batch, data_parts());
    }
    report_left_out(session, model);
    if (!to_traces) tell_idle_of_traces(session);
  }

  // By how many the batch is divided. The first word of a hybrid policy is for the packages, the second for
  // the devices inside of one.
  std::int64_t data_parts() const {
    switch (options_.policy) {
      case TextPolicy::data:
        return options_.npus;
      case TextPolicy::model:
        return 1;
      case TextPolicy::hybrid_data_model:
        return options_.packages;
      case TextPolicy::hybrid_model_data:
        return options_.npus / options_.packages;
      default:
        break;
    }
    return 1;
  }

  // ModTrans counts weight matrices only, so there are fewer bytes of gradients than of parameters.
  void report_left_out(const Session& session, const Model& model) const {
    if (options_.all_parameters) return;
    std::int64_t weights = 0;
    for (const LayerRow& row : layer_rows(model)) {
      for (const std::uint32_t p : row.matrices) weights += model.parameters[p].elements;
    }
    const std::int64_t left_out = totals(model).parameters - weights;
    if (left_out > 0) {
      session.out << fmt::format(
          "note: gradients of {} are left out; --gradients all includes them\n",
          left_out == 1 ? "1 bias or norm parameter" : fmt::format("{} bias and norm parameters", left_out));
    }
  }

  // Which flags say nothing: those of models where none is read, those of traces where none are written.
  void tell_idle(const Session& session, std::span<const char* const> flags, std::string_view reason) const {
    for (const char* const flag : flags) {
      if (app_->get_option(flag)->count() > 0)
        session.out << fmt::format("note: {} has no effect: {}\n", flag, reason);
    }
  }
  void tell_idle_of_models(const Session& session) const {
    constexpr std::array kFlags = {"--batch", "--seq",       "--dim",           "--policy",  "--packages",
                                   "--dtype", "--gradients", "--update-cycles", "--compute", "--device"};
    tell_idle(session, kFlags, "no model is translated");
  }
  void tell_idle_of_traces(const Session& session) const {
    constexpr std::array kFlags = {
        "--dimensions",    "--passes",         "--frequency",       "--bytes",
        "--communicators", "--process-groups", "--keep-iterations", "--iteration-marker",
        "--merge",         "--scale-ranks",    "--replica-size",    "--rank",
        "--gzip",          "--as-chakra"};
    tell_idle(session, kFlags, "no traces are written");
  }

  const CLI::App* app_ = nullptr;
  ModelFlags model_;
  TranslateFlags traces_;
  TextWorkloadOptions options_;
  std::string input_, output_, format_, dtype_, synthetic_;
  std::string policy_ = "DATA", gradients_ = "weights", compute_ = "systolic", device_ = "a100-80gb-sxm";
  std::string npus_ = "1", packages_ = "1", update_cycles_ = "100";
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Command> make_translate_command() {
  return std::make_unique<TranslateCommand>();
}

}  // namespace armilla
