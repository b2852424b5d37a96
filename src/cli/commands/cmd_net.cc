#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/memory_left.h"
#include "base/output_file.h"
#include "base/suggest.h"
#include "base/units_text.h"
#include "cli/command.h"
#include "cli/flags/fast_forward.h"
#include "network/flit.h"
#include "network/flow_networks.h"
#include "read/file_format.h"
#include "read/roce.h"
#include "read/study.h"
#include "read/topology.h"
#include "read/traffic.h"
#include "read/traffic_patterns.h"
#include "write/traffic.h"
#include "zoo/zoo.h"

namespace armilla {
namespace {

// What every kind of input is run with.
struct NetRequest {
  std::string file;
  std::optional<std::int64_t> seed;  // instead of the file's
  std::string network;               // what flows run on; empty: the default
  std::string traffic;               // over the file's links; empty: the file has its own
  std::vector<DamagedLink> damage;   // of these
  bool sampled = false;              // what links do over time is asked for
  bool fast_forward = false;
  bool json = false;  // is written
  Progress* progress = &no_progress();
};

ComponentChoice network_of(const NetRequest& request) {
  const std::string name =
      request.network.empty() ? std::string(flow_networks().front().name) : request.network;
  return parse_component(request.fast_forward ? with_fast_forward(name) : name, "--network " + name);
}

TrafficResult run_booksim(const NetRequest& request) {
  if (!request.network.empty() && request.network != "flit")
    throw Error("--network " + request.network,
                fmt::format("is what flows run on, and {} is traffic by rate on routers", request.file),
                "omit it");
  if (request.fast_forward)
    throw Error("--fast-forward",
                fmt::format("is for the packet network, and {} is traffic by rate on routers", request.file),
                "omit it");
  BooksimConfig config = read_booksim(request.file);
  FlitStudy& study = config.study;
  if (request.seed) {
    // Those of BookSim's own key, 0 and negative ones among them.
    if (*request.seed != static_cast<std::int32_t>(*request.seed))
      throw Error(fmt::format("--seed {}", *request.seed), "is out of range",
                  fmt::format("BookSim's are from {} to {}", INT32_MIN, INT32_MAX));
    study.seed = *request.seed;
  }
  TrafficResult result;
  result.title = describe(study);
  try {
    const RateResult rate = simulate_flits(study, *request.progress);
    if (const std::optional<double> latency = zero_load_latency(study, rate.hops_avg);
        latency && !rate.saturated)
      result.facts.emplace_back(
          "zero load", fmt::format("{:.2f} cycles for as many hops, where nothing is in the way", *latency));
    result.outcome = rate;
  } catch (const Error& error) {
    // The flits' checks name keys, as BookSim does; of which file, is known here.
    throw Error(error.where.empty() ? request.file : request.file + ": " + error.where, error.message,
                error.hint);
  }
  result.notes = std::move(config.notes);
  return result;
}

void check_seed(std::int64_t seed) {
  if (seed < 1) throw Error(fmt::format("--seed {}", seed), "must be above 0");
}

void note_idle_seed(const NetRequest& request, const ComponentChoice& network,
                    std::vector<std::string>& notes) {
  if (!request.seed || network.name == "packet") return;
  notes.push_back(fmt::format(
      "--seed has no effect: nothing is by chance on the network {}{}", network.name,
      request.traffic.starts_with("permutation") ? "; permutation:seed= says who sends to whom" : ""));
}

TrafficResult run_roce(const NetRequest& request) {
  RoceInput input = read_roce_config(request.file);
  if (request.seed) {
    check_seed(*request.seed);
    input.job.settings.seed = static_cast<std::uint64_t>(*request.seed);
  }
  input.job.sampled = request.sampled;
  input.job.progress = request.progress;
  const ComponentChoice network = network_of(request);
  note_idle_seed(request, network, input.notes);
  TrafficResult result = run_flows(network, std::move(input.job));
  result.notes.insert(result.notes.begin(), input.notes.begin(), input.notes.end());
  return result;
}

// A machine, a topology by its parameters, or a topology file.
Machine machine_named(const std::string& name, std::vector<std::string>& warnings) {
  const bool path = is_path(name) && !names_topology(name);
  const FileKind kind = path ? sniff_file(name) : FileKind::machine;
  if (kind == FileKind::ns3_config)
    throw Error(name, "is a configuration of ns-3, which names its own topology and flows",
                "omit --traffic, or give the topology file");
  if (!path && !names_topology(name)) {
    // Nearly a topology's is no machine's.
    std::vector<std::string> known = machine_names();
    for (const TopologyInfo& topology : topologies()) known.emplace_back(topology.name);
    const std::string hint = suggest(name.substr(0, name.find(':')), known);
    const bool near = std::ranges::any_of(topologies(), [&](const TopologyInfo& topology) {
      return hint == fmt::format("did you mean '{}'?", topology.name);
    });
    if (near) throw Error(name, "is neither a machine nor a topology", hint);
  }
  if (path ? kind == FileKind::machine : !names_topology(name))
    return load_machine(name, path ? name : "armilla net", &warnings);
  Machine machine;
  MachineLinks made = named_topology(name);
  if (!made.without_effect.empty()) warnings.push_back(std::move(made.without_effect));
  machine.graph = std::move(made.graph);
  machine.dimensions = std::move(made.dimensions);
  return machine;
}

TrafficResult run_traffic(const NetRequest& request) {
  std::vector<std::string> warnings;
  const Machine machine = machine_named(request.file, warnings);
  FlowJob job;
  job.where = request.file;
  const ComponentChoice network = network_of(request);
  const std::string where = "--traffic " + request.traffic;
  job.flows = read_traffic_flows(request.traffic, where, network_graph(links_of(machine)), &warnings,
                                 [&](std::int64_t flows) {
                                   constexpr std::int64_t kInFigures = 64, kInJson = 1100;  // as measured
                                   check_memory(network, machine, request.damage, where, flows,
                                                request.json ? kInJson : kInFigures, memory_left());
                                 });
  // No file says any: those that suit the graph (network/packet.h).
  job.usual_settings = true;
  job.sampled = request.sampled;
  job.progress = request.progress;
  job.settings.congestion_control = CongestionControl::dcqcn;
  if (request.seed) {
    check_seed(*request.seed);
    job.settings.seed = static_cast<std::uint64_t>(*request.seed);
  }
  note_idle_seed(request, network, warnings);
  TrafficResult result = run_flows(network, machine, request.damage, std::move(job));
  result.notes.insert(result.notes.begin(), warnings.begin(), warnings.end());
  return result;
}

struct NetInput {
  FileKind kind;  // as read/file_format.h tells it by the file's contents
  TrafficResult (*run)(const NetRequest& request);
};
constexpr std::array kNetInputs = {
    NetInput{FileKind::booksim_config, run_booksim},
    NetInput{FileKind::ns3_config, run_roce},
};

const NetInput& input_of(const std::string& file) {
  if (names_topology(file))
    throw Error(file, "is a topology, and nothing says what flows over it",
                "--traffic permutation, incast:8, all-to-all or a file of flows");
  if (const std::vector<std::string> machines = machine_names();
      std::ranges::find(machines, file) != machines.end())
    throw Error(file, "is a machine, and nothing says what flows over it",
                "--traffic permutation, incast:8, all-to-all or a file of flows");
  const FileKind kind = sniff_file(file);
  for (const NetInput& input : kNetInputs) {
    if (input.kind == kind) return input;
  }
  throw wrong_kind(file, kind, "traffic on a network: a configuration of BookSim, or of HPCC's ns-3");
}

class NetCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("file", request_.file,
                   "a configuration of BookSim, or of HPCC's or ASTRA-sim's ns-3 with its topology and "
                   "flows, as it is; with --traffic a topology such as fat-tree:k=8, a machine, or a file of "
                   "either (docs/net.md)")
        ->type_name("FILE")
        ->required();
    app.add_option(
           "--traffic", request_.traffic,
           "flows over a topology: incast:16, permutation, all-to-all, shift (docs/net.md), or a file "
           "of flows of HPCC's ns-3 or htsim")
        ->type_name("PATTERN|FILE");
    app.add_option("--network", request_.network, "what flows run on, instead of packet (docs/net.md)")
        ->type_name("NETWORK");
    declare_fast_forward(app, request_.fast_forward);
    app.add_option("--fail-link", failed_,
                   "with --traffic: links that fail, or carry a share: leaf0-spine1,leaf0-spine2=0.5")
        ->type_name("A-B[=SHARE],...")
        ->delimiter(',');
    app.add_option("--seed", seed_, "of all that is random, instead of the file's")->type_name("N");
    outputs_.add(app, "--json", json_, "write the figures to FILE (docs/formats/traffic_json.md)")
        ->group("Output");
    outputs_.add(app, "--csv", csv_, "write a table of the flows to FILE")->group("Output");
    app.add_flag("--over-time", over_time_,
                 "what links do over time: utilisation, queues and PFC pauses, in the report and in --json")
        ->group("Output");
    outputs_.add(app, "--links-csv", links_csv_, "write the same as a table to FILE")->group("Output");
    outputs_.add(app, "--svg", svg_, "draw it to FILE")->group("Output");
    outputs_.add(app, "--trace", trace_, "write it as counters for ui.perfetto.dev to FILE")->group("Output");
    app.add_flag("--quiet", quiet_, "print nothing but errors")->group("Output");
  }

  void execute(const Session& session) override {
    for (const std::string& text : failed_)
      request_.damage.push_back(parse_damage(text, "--fail-link " + text));
    if (!request_.damage.empty() && request_.traffic.empty())
      throw Error("--fail-link " + failed_.front(), "needs --traffic over a topology",
                  "a config.txt of ns-3 has LINK_DOWN");
    if (!seed_.empty()) request_.seed = parse_count(seed_, "--seed " + seed_);
    request_.progress = session.meter;
    request_.json = !json_.empty();
    request_.sampled = over_time_ || !links_csv_.empty() || !svg_.empty() || !trace_.empty();
    const bool by_flows = request_.sampled || !csv_.empty();
    // Before it is run: traffic by rate has no flows, and no links over time.
    if (by_flows && request_.traffic.empty() && input_of(request_.file).kind == FileKind::booksim_config)
      throw Error(request_.file, "is traffic by rate, whose report has all figures that there are",
                  "--json writes them; --csv, --over-time, --links-csv, --svg and --trace are for flows");
    const TrafficResult result =
        request_.traffic.empty() ? input_of(request_.file).run(request_) : run_traffic(request_);
    std::vector<NamedContents> files;
    if (!json_.empty()) files.push_back({json_, write_traffic_json(result)});
    const FlowsResult* flows = std::get_if<FlowsResult>(&result.outcome);
    if (!csv_.empty()) files.push_back({csv_, write_flows_csv(*flows)});
    if (!links_csv_.empty()) files.push_back({links_csv_, write_link_samples_csv(flows->samples)});
    if (!svg_.empty()) files.push_back({svg_, write_link_samples_svg(flows->samples, result.title)});
    if (!trace_.empty()) files.push_back({trace_, write_link_samples_perfetto(flows->samples)});
    write_files(files);
    const Session people = for_people(session, {json_, csv_, links_csv_, svg_, trace_});
    if (!quiet_) people.out << write_traffic_text(result, people.style());
  }

 private:
  NetRequest request_;
  std::vector<std::string> failed_;
  std::string seed_, json_, csv_, links_csv_, svg_, trace_;
  bool over_time_ = false;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Command> make_net_command() {
  return std::make_unique<NetCommand>();
}

}  // namespace armilla
