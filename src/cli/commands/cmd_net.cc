#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/output_file.h"
#include "base/units_text.h"
#include "cli/command.h"
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
};

TrafficResult run_booksim(const NetRequest& request) {
  BooksimConfig config = read_booksim(request.file);
  FlitStudy& study = config.study;
  if (request.seed) study.seed = *request.seed;
  TrafficResult result;
  result.title = describe(study);
  try {
    const RateResult rate = simulate_flits(study);
    if (const std::optional<double> latency = zero_load_latency(study, rate.hops_avg);
        latency && !rate.saturated)
      result.facts.emplace_back(
          "zero load", fmt::format("{:.2f} cycles for as many hops, where nothing is in the way", *latency));
    result.outcome = rate;
  } catch (const Error& error) {
    throw Error(error.where.empty() ? request.file : request.file + ": " + error.where, error.message,
                error.hint);
  }
  result.notes = std::move(config.notes);
  return result;
}

TrafficResult run_roce(const NetRequest& request) {
  RoceInput input = read_roce_config(request.file);
  if (request.seed) {
    if (*request.seed == 0) throw Error("--seed 0", "must be above 0");
    input.job.settings.seed = static_cast<std::uint64_t>(*request.seed);
  }
  const std::string network =
      request.network.empty() ? std::string(flow_networks().front().name) : request.network;
  TrafficResult result = run_flows(parse_component(network, "--network " + network), std::move(input.job));
  result.notes.insert(result.notes.begin(), input.notes.begin(), input.notes.end());
  return result;
}

// A machine, a topology by its parameters, or a topology file.
Interconnect links_named(const std::string& name) {
  if (is_path(name) && !names_topology(name)) {
    return sniff_file(name) == FileKind::machine ? links_of(load_machine(name, name))
                                                 : read_topology_file(name).graph;
  }
  if (!names_topology(name)) return links_of(load_machine(name, "armilla net"));
  Machine machine;
  MachineLinks made = make_topology(parse_component(name, name));
  machine.graph = std::move(made.graph);
  machine.dimensions = std::move(made.dimensions);
  return links_of(machine);
}

TrafficResult run_traffic(const NetRequest& request) {
  FlowJob job;
  job.where = request.file;
  job.graph = network_graph(links_named(request.file));
  job.flows = read_traffic_flows(request.traffic, "--traffic " + request.traffic, job.graph);
  job.usual_settings = true;
  job.settings.congestion_control = CongestionControl::dcqcn;
  if (request.seed) {
    if (*request.seed == 0) throw Error("--seed 0", "must be above 0");
    job.settings.seed = static_cast<std::uint64_t>(*request.seed);
  }
  const std::string network =
      request.network.empty() ? std::string(flow_networks().front().name) : request.network;
  return run_flows(parse_component(network, "--network " + network), std::move(job));
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
    app.add_option("--seed", seed_, "of all that is random, instead of the file's")->type_name("N");
    app.add_option("--json", json_, "write the figures to FILE (docs/formats/traffic_json.md)")
        ->type_name("FILE")
        ->group("Output");
    app.add_flag("--quiet", quiet_, "print nothing but errors")->group("Output");
  }

  void execute(const Session& session) override {
    if (!seed_.empty()) request_.seed = parse_count(seed_, "--seed " + seed_);
    const TrafficResult result =
        request_.traffic.empty() ? input_of(request_.file).run(request_) : run_traffic(request_);
    std::vector<NamedContents> files;
    if (!json_.empty()) files.push_back({json_, write_traffic_json(result)});
    write_files(files);
    const Session people = for_people(session, {json_});
    if (!quiet_) people.out << write_traffic_text(result, people.style());
  }

 private:
  NetRequest request_;
  std::string seed_, json_;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Command> make_net_command() {
  return std::make_unique<NetCommand>();
}

}  // namespace armilla
