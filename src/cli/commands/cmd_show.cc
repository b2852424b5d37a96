#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/suggest.h"
#include "base/units_text.h"
#include "cli/command.h"
#include "cli/commands/catalogue.h"
#include "ir/derived/interconnect_figures.h"
#include "read/file_format.h"
#include "read/study.h"
#include "read/topology.h"
#include "write/machine.h"
#include "write/text_table.h"
#include "zoo/zoo.h"

namespace armilla {
namespace {

// "  memory bandwidth    2.039 TB/s (unverified)"
void line(const Session& session, std::string_view title, const std::string& value, bool unverified = false) {
  session.out << wrap(value + (unverified ? " (unverified)" : ""), fmt::format("  {:<20} ", title),
                      session.width);
}

void source(const Session& session, const std::string& text) {
  if (!text.empty()) session.out << wrap(text, fmt::format("  {:<20} ", "source"), session.width);
}

void show_device(const Session& session, const Device& device) {
  const auto doubtful = [&](const std::string& field) {
    return std::find(device.unverified.begin(), device.unverified.end(), field) != device.unverified.end();
  };
  session.out << wrap(device.description, fmt::format("device {}: ", device.name), session.width);
  line(session, "memory", to_text(device.memory), doubtful("memory"));
  if (device.reserved > Bytes(0))
    line(session, "driver and context", to_text(device.reserved), doubtful("reserved"));
  if (device.communicator_buffers > Bytes(0)) {
    line(session, "per communicator", to_text(device.communicator_buffers), doubtful("communicator_buffers"));
  }
  if (device.product_workspace > Bytes(0))
    line(session, "workspace of products", to_text(device.product_workspace), doubtful("product_workspace"));
  line(session, "memory bandwidth", to_text(device.memory_bandwidth), doubtful("memory_bandwidth"));
  line(session, "vector rate, fp32", to_text(device.vector_rate), doubtful("vector_rate"));
  for (const auto& [dtype, rate] : device.matrix_rate) {
    line(session, fmt::format("matrix rate, {}", name_of(dtype)), to_text(rate),
         doubtful(fmt::format("matrix_rate.{}", name_of(dtype))) || doubtful("matrix_rate"));
  }
  line(session, "matrix efficiency", fmt::format("{}", device.matrix_efficiency),
       doubtful("matrix_efficiency"));
  line(session, "vector efficiency", fmt::format("{}", device.vector_efficiency),
       doubtful("vector_efficiency"));
  line(session, "memory efficiency", fmt::format("{}", device.memory_efficiency),
       doubtful("memory_efficiency"));
  if (const auto& arrays = device.arrays) {
    line(session, "systolic arrays",
         fmt::format("{0} x {0}{1}", arrays->side,
                     arrays->memories > 1
                         ? fmt::format(", {} cores with memories of their own", arrays->memories)
                         : ""),
         doubtful("arrays.side"));
  }
  line(session, "launch overhead", to_text(device.launch_overhead), doubtful("launch_overhead"));
  if (device.busy_power)
    line(session, "power, computing", to_text(*device.busy_power), doubtful("busy_power"));
  if (device.idle_power) line(session, "power, idle", to_text(*device.idle_power), doubtful("idle_power"));
  if (device.price) {
    line(session, "price", fmt::format("{:g} USD per hour", device.price->value), doubtful("price"));
  }
  source(session, device.source);
}

void show_links(const Session& session, const Interconnect& graph) {
  const InterconnectFigures figures = figures_of(graph);
  line(session, "links",
       fmt::format("{} between {}, {}{}", with_separators(figures.cables), counted(figures.devices, "device"),
                   figures.nics > 0 ? counted(figures.nics, "network interface") + ", " : "",
                   counted(figures.switches, "switch")));
  line(session, "diameter",
       fmt::format("{}{} between two devices", figures.diameter_is_exact ? "" : "at least ",
                   counted(figures.diameter, "link")));
  const auto each = [&](Bandwidth cut) {
    return fmt::format(
        "{} each",
        to_text(Bandwidth(cut.value / static_cast<double>(std::max<std::int64_t>(1, figures.devices / 2)))));
  };
  std::string bisection = fmt::format("{} from the first half of the devices to the others, {}",
                                      to_text(figures.bisection), each(figures.bisection));
  constexpr double kWorthSaying = 0.999;
  if (figures.least_bisection.value < kWorthSaying * figures.bisection.value)
    bisection += fmt::format("; between other halves {}, {}", to_text(figures.least_bisection),
                             each(figures.least_bisection));
  line(session, "bisection", bisection);
  if (figures.oversubscription > 0)
    line(session, "oversubscription", fmt::format("{:.3g} at the worst switch", figures.oversubscription));
}

// How many cables the links of a hierarchy have, without making them.
double cables_of(const Machine& machine) {
  const auto devices = static_cast<double>(rank_count(machine));
  double cables = 0;
  for (const Dimension& dimension : machine.dimensions) {
    if (dimension.size == 1) continue;
    const bool pairs = dimension.kind == DimensionKind::fully_connected;
    cables += pairs ? devices * static_cast<double>(dimension.size - 1) / 2 : devices;
  }
  return cables;
}

// Links without devices of their own: "fat-tree:k=8", or a topology's file.
bool is_topology(const std::string& name) {
  if (names_topology(name)) return name.find(':') != std::string::npos;
  if (!is_path(name)) return false;
  const FileKind kind = sniff_file(name);
  switch (kind) {
    case FileKind::infragraph:
    case FileKind::booksim_config:
    case FileKind::astra1_network:
    case FileKind::astra2_network:
    case FileKind::htsim_topology:
    case FileKind::hpcc_topology:
      return true;
    default: {
      if (kind < FileKind::json) return false;
      // HPCC's and SimAI's begin with how many nodes there are.
      const MappedFile file(name);
      return !file.bytes().empty() && file.bytes().front() >= '0' && file.bytes().front() <= '9';
    }
  }
}

Machine without_device(const std::string& topology) {
  MachineLinks links = named_topology(topology);
  Machine machine;
  machine.name = topology;
  machine.graph = std::move(links.graph);
  machine.dimensions = std::move(links.dimensions);
  return machine;
}

void show_topology(const Session& session, const std::string& name) {
  const Interconnect links = links_of(without_device(name));
  session.out << fmt::format("topology {}\n", printable(name));
  show_links(session, links);
  if (const std::string note = named_topology(name).without_effect; !note.empty())
    line(session, "note", note);
}

void show_machine(const Session& session, const Machine& machine) {
  const auto mark = [&](const std::string& dimension, std::string_view field) {
    const bool doubtful = std::find(machine.unverified.begin(), machine.unverified.end(),
                                    fmt::format("{}.{}", dimension, field)) != machine.unverified.end();
    return doubtful ? " (unverified)" : "";
  };
  if (machine.description.empty()) {
    session.out << fmt::format("machine {}\n", machine.name);
  } else {
    session.out << wrap(machine.description, fmt::format("machine {}: ", machine.name), session.width);
  }
  for (std::size_t d = 0; d < machine.dimensions.size(); ++d) {
    const Dimension& dimension = machine.dimensions[d];
    line(session, fmt::format("dimension {}: {}", d, dimension.name),
         fmt::format("{}{} of {}{}, {}{} per {} and direction, {}{} per hop",
                     machine.graph.empty() ? "" : "collectives are planned for a ",
                     dimension.cables.empty() ? name_of(dimension.kind) : "Cables", dimension.size,
                     mark(dimension.name, "size"), to_text(dimension.bandwidth),
                     mark(dimension.name, "bandwidth"), dimension.cables.empty() ? "link" : "member",
                     to_text(dimension.latency), mark(dimension.name, "latency")));
  }
  line(session, "devices", fmt::format("{} of {}", rank_count(machine), machine.device.name));
  if (machine.host_power) {
    const bool doubtful = std::ranges::find(machine.unverified, "host_power") != machine.unverified.end();
    line(session, "rest of a server",
         fmt::format("{} per device{}", to_text(*machine.host_power), doubtful ? " (unverified)" : ""));
  }
  // The links of a hierarchy have a switch where a dimension has cables, and would count it. Of many, which
  // the dimensions say, the figures would take long.
  constexpr double kMostCables = 4096;
  const bool has_cables = std::ranges::any_of(
      machine.dimensions, [](const Dimension& dimension) { return !dimension.cables.empty(); });
  const double cables = cables_of(machine);
  if (!has_cables && (!machine.graph.empty() || (cables > 0 && cables <= kMostCables)))
    show_links(session, links_of(machine));
  else if (has_cables)
    line(session, "links", "those of cables, whose diameter and bisection are not worked out");
  else if (cables > kMostCables)
    line(session, "links",
         fmt::format("{}, whose diameter and bisection are not worked out",
                     with_separators(static_cast<std::int64_t>(cables))));
  source(session, machine.source);
  session.out << '\n';
  show_device(session, machine.device);
}

class ShowCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option(
           "name", name_,
           "the name of a machine, device, compute model, network, algorithm or format, a topology such as "
           "fat-tree:k=8, or a file of a machine, device or topology")
        ->type_name("NAME|FILE")
        ->required();
    app.add_flag("--yaml", yaml_, "print the description of a machine or device, to copy and change");
    CLI::Option* const dot =
        app.add_flag("--dot", dot_, "print the links of a machine or topology as a drawing for Graphviz");
    app.add_flag("--svg", svg_, "print the links of a machine or topology as a drawing for browsers")
        ->excludes(dot);
  }

  void execute(const Session& session) override {
    if (yaml_ + dot_ + svg_ > 1)
      throw Error(dot_ ? "--dot" : "--svg", fmt::format("is given beside {}", yaml_ ? "--yaml" : "--svg"),
                  "each prints something else: give one of them");
    if (dot_ || svg_) {
      const Machine machine = names_topology(name_) || is_topology(name_)
                                  ? without_device(name_)
                                  : load_machine(name_, "armilla show");
      session.out << (dot_ ? write_interconnect_dot(machine) : write_interconnect_svg(machine));
      return;
    }
    if (yaml_) {
      session.out << yaml();
      return;
    }
    bool found = false;
    std::vector<std::string> known;
    for (const CatalogueFamily& family : catalogue()) {
      for (const CatalogueEntry& entry : family.entries()) {
        known.push_back(entry.name);
        // A machine shows its device, which may have the same name.
        if (entry.name != name_ || (found && family.name == "devices")) continue;
        if (found) session.out << '\n';
        found = true;
        show(session, family, entry);
      }
    }
    if (found) return;
    if (is_topology(name_)) return show_topology(session, name_);
    if (is_path(name_)) {
      if (is_device_file()) {
        show_device(session, load_device(name_, name_));
      } else {
        std::vector<std::string> notes;
        show_machine(session, load_machine(name_, name_, &notes));
        for (const std::string& note : notes) line(session, "note", note);
      }
      return;
    }
    if (!show_meant(session))
      throw Error("armilla show", fmt::format("nothing is called '{:.60}'", name_), suggestion(known));
  }

 private:
  bool is_device_file() const {
    const FileKind kind = sniff_file(name_);
    if (kind < FileKind::json && kind != FileKind::device && kind != FileKind::machine)
      throw wrong_kind(name_, kind, "a machine or a device");
    return kind == FileKind::device;
  }

  // Machines and devices that the name means without being theirs: "h100".
  bool show_meant(const Session& session) const {
    const std::vector<std::string> machines = machines_meant(name_), devices = devices_meant(name_);
    std::vector<std::string> shown;  // devices, with their machines
    std::string between;
    for (const std::string& name : machines) {
      const Machine machine = load_machine(name, name);
      session.out << std::exchange(between, "\n");
      show_machine(session, machine);
      shown.push_back(machine.device.name);
    }
    for (const std::string& name : devices) {
      if (std::find(shown.begin(), shown.end(), name) != shown.end()) continue;
      session.out << std::exchange(between, "\n");
      show_device(session, load_device(name, name));
    }
    return !machines.empty() || !devices.empty();
  }

  std::string yaml() const {
    if (names_topology(name_) || is_topology(name_))
      throw Error("armilla show --yaml",
                  fmt::format("'{:.60}' is a topology, not a machine or a device", name_),
                  "write it as 'topology' of a machine; --dot and --svg draw its links");
    if (is_path(name_)) return is_device_file() ? device_text(name_, name_) : machine_text(name_, name_);
    const auto is = [&](const std::vector<std::string>& names) {
      return std::find(names.begin(), names.end(), name_) != names.end();
    };
    if (is(machine_names())) return machine_text(name_, "armilla show");
    if (is(device_names())) return device_text(name_, "armilla show");
    std::vector<std::string> meant = machines_meant(name_);
    const std::size_t machines = meant.size();
    for (const std::string& device : devices_meant(name_)) {
      if (std::find(meant.begin(), meant.end(), device) == meant.end()) meant.push_back(device);
    }
    if (meant.size() == 1)
      return machines == 1 ? machine_text(meant[0], "armilla show") : device_text(meant[0], "armilla show");
    throw Error("armilla show --yaml", fmt::format("no machine and no device is called '{:.60}'", name_),
                meant.empty() ? "'armilla list machines' and 'armilla list devices' list them"
                              : fmt::format("did you mean '{}'?", fmt::join(meant, "' or '")));
  }

  // Only a near miss helps here; a list of every name would not.
  std::string suggestion(const std::vector<std::string>& known) const {
    const std::string hint = suggest(name_, known);
    return hint.starts_with("did you mean") ? hint : "'armilla list' lists everything that has a name";
  }

  static void show(const Session& session, const CatalogueFamily& family, const CatalogueEntry& entry) {
    if (family.name == "machines") {
      show_machine(session, load_machine(entry.name, entry.name));
    } else if (family.name == "devices") {
      show_device(session, load_device(entry.name, entry.name));
    } else {
      session.out << wrap(entry.help, fmt::format("{} {}: ", family.singular, entry.name), session.width);
      if (family.name == "models") session.out << fmt::format("  more: armilla zoo show {}\n", entry.name);
      for (const ParameterInfo& parameter : entry.parameters) {
        line(
            session, parameter.name,
            fmt::format(
                "{}; {}{}", parameter.help,
                parameter.type == ParameterType::choice ? parameter.choices : name_of(parameter.type),
                parameter.default_value.empty() ? "" : fmt::format(", default {}", parameter.default_value)));
      }
    }
  }

  std::string name_;
  bool yaml_ = false, dot_ = false, svg_ = false;
};

}  // namespace

std::unique_ptr<Command> make_show_command() {
  return std::make_unique<ShowCommand>();
}

}  // namespace armilla
