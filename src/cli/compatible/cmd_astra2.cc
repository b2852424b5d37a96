#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "cli/command.h"
#include "cli/flags/fast_forward.h"
#include "cli/flags/model_flags.h"
#include "cli/flags/output_flags.h"
#include "study/astra.h"
#include "write/report.h"

namespace armilla {
namespace {

constexpr std::string_view kBackends[] = {"unaware", "aware"};
constexpr std::string_view kAstra2Profiles[] = {"astra", "native"};

class Astra2Command final : public Command {
 public:
  // ASTRA-sim's own flags keep its names, so that its scripts run as they are; ours are in no group of their
  // own.
  void declare(CLI::App& app) override {
    const auto file = [&](const char* flag, std::string& value, const char* help) {
      return app.add_option(flag, value, help)->type_name("FILE")->group("ASTRA-sim");
    };
    const auto number = [&](const char* flag, std::string& value, const char* help) {
      app.add_option(flag, value, help)->type_name("N")->capture_default_str()->group("ASTRA-sim");
    };
    app.add_option("--workload-configuration", request_.workload, "traces: PREFIX.0.et, PREFIX.1.et ...")
        ->type_name("PREFIX")
        ->required()
        ->group("ASTRA-sim");
    file("--system-configuration", request_.settings.system, "system layer, JSON")->required();
    file("--network-configuration", request_.settings.network,
         "network: YAML of the analytical backend and of htsim's, or config.txt of ns-3's")
        ->required();
    file("--logical-topology-configuration", request_.settings.logical_topology,
         "with config.txt: ranks by dimension, JSON");
    app.add_option("--htsim-proto", request_.settings.htsim.protocol, "htsim's transport: tcp")
        ->type_name("NAME")
        ->group("ASTRA-sim");
    app.add_option(std::string(kRestOfLine), htsim_options_,
                   "htsim's own options, to the end of the line: -topo FILE, -nodes N, -sub 1, -o FILE, "
                   "UNCOUPLED ...")
        ->type_name("...")
        ->group("ASTRA-sim");
    file("--remote-memory-configuration", request_.settings.remote_memory, "remote memory, JSON")->required();
    file("--comm-group-configuration", request_.groups, "communicator groups, JSON")->capture_default_str();
    file("--logging-configuration", logging_configuration_, "ignored, with a warning");
    outputs_
        .add(app, "--logging-folder", logging_folder_,
             "write log.log there; made if missing (default: log, with trace-enabled only)",
             OutputKind::folder)
        ->group("ASTRA-sim");
    number("--num-queues-per-dim", queues_, "logical queues per dimension of the network");
    number("--injection-scale", injection_scale_, "multiplies the endpoint delay");
    number("--compute-scale", compute_scale_, "without effect, as in ASTRA-sim 2");
    number("--comm-scale", comm_scale_, "without effect, as in ASTRA-sim 2");
    app.add_option("--rendezvous-protocol", rendezvous_, "a handshake before each message")
        ->type_name("[BOOL]")
        ->expected(0, 1)
        ->default_str("true")
        ->group("ASTRA-sim");
    CLI::Option* backend =
        app.add_option("--backend", backend_, "analytical network: congestion-unaware or -aware")
            ->type_name("unaware|aware")
            ->default_str("unaware");
    app.add_option("--profile", profile_, "whose rules: ASTRA-sim's, or Armilla's own for the same inputs")
        ->type_name("astra|native")
        ->capture_default_str();
    app.add_option("--network", network_,
                   "a network of Armilla's (armilla list networks) instead of ASTRA-sim's")
        ->type_name("MODEL")
        ->excludes(backend);
    declare_fast_forward(app, fast_forward_);
    output_.declare(app, outputs_);
    app.add_flag("--quiet", output_.quiet, "print the lines of the ranks, no report")->group("Output");
  }

  void execute(const Session& session) override {
    SimulationOptions options = output_.options();
    options.progress = session.meter;
    // The ranks' lines do without, the report with sums; of millions of nodes intervals are most of the
    // memory.
    options.every_interval = !output_.json.empty() || !output_.csv.empty() || !output_.trace.empty();
    options.intervals = options.every_interval || !output_.quiet;
    Astra2Run done = run_astra2(request(), options);
    if (!logging_configuration_.empty() && logging_configuration_ != "empty") {
      done.run.warnings.push_back(
          fmt::format("--logging-configuration {} is ignored: logs have one form", logging_configuration_));
    }
    std::vector<std::string> folders;
    for (const NamedContents& file : done.files) {  // where the configuration puts them
      std::string folder = std::filesystem::path(file.path).parent_path().string();
      if (!folder.empty() && (folders.empty() || folders.back() != folder))
        folders.push_back(std::move(folder));
    }
    // ASTRA-sim's default. Without trace-enabled the log repeats what is printed.
    if (logging_folder_.empty() && done.wants_log) logging_folder_ = "log";
    if (!logging_folder_.empty()) {
      folders.push_back(logging_folder_);
      done.files.push_back({logging_folder_ + "/log.log", done.log});
    }
    output_.write(session, done.run, std::move(done.files), folders);
    const Session people = for_people(session, {output_.json, output_.trace});
    people.out << done.lines;
    if (!output_.quiet) people.out << '\n' << write_run_text(done.run, people.style());
  }

 private:
  Astra2Request request() const {
    Astra2Request request = request_;
    if (!backend_.empty() && !request.settings.logical_topology.empty())
      throw Error("--backend " + backend_, "chooses between the analytical networks, and this is ns-3's",
                  "omit it");
    HtsimSettings& htsim = request.settings.htsim;
    htsim.used = !htsim.protocol.empty() || htsim_options_.has_value();
    if (htsim_options_) htsim.options = rest_of_line(*htsim_options_);
    if (htsim.used && !backend_.empty())
      throw Error("--backend " + backend_, "chooses between the analytical networks, and this is htsim's",
                  "omit it");
    request.settings.semantics = backend_.empty() || parse_choice(backend_, kBackends, "--backend") == 0
                                     ? Semantics::astra2_unaware
                                     : Semantics::astra2_aware;
    request.native = parse_choice(profile_, kAstra2Profiles, "--profile") == 1;
    // ns-3's own network is that of packets, htsim's too.
    const bool packets = !request.settings.logical_topology.empty() || request.settings.htsim.used;
    const std::string network = network_.empty() && packets && fast_forward_ ? "packet" : network_;
    if (fast_forward_ && network.empty())
      throw Error("--fast-forward", "is for the packet network, and none is chosen", "--network packet");
    if (!network.empty()) {
      request.network =
          parse_component(fast_forward_ ? with_fast_forward(network) : network, "--network " + network);
    }
    request.settings.queues_per_dimension = parse_flag(queues_, "--num-queues-per-dim", 1, 1 << 16);
    request.settings.injection_scale = parse_scale(injection_scale_, "--injection-scale");
    request.settings.rendezvous = parse_switch(rendezvous_, "--rendezvous-protocol");
    request.compute_scale = parse_scale(compute_scale_, "--compute-scale");
    request.comm_scale = parse_scale(comm_scale_, "--comm-scale");
    return request;
  }

  Astra2Request request_;
  std::string logging_configuration_, logging_folder_;
  std::string queues_ = "1", injection_scale_ = "1", compute_scale_ = "1", comm_scale_ = "1";
  std::string rendezvous_ = "false", backend_, profile_ = "astra", network_;
  std::optional<std::string> htsim_options_;  // joined (cli/command.h)
  bool fast_forward_ = false;
  OutputFlags output_;
};

}  // namespace

std::unique_ptr<Command> make_astra2_command() {
  return std::make_unique<Astra2Command>();
}

}  // namespace armilla
