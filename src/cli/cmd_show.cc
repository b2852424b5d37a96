#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/error.h"
#include "base/suggest.h"
#include "base/units_text.h"
#include "cli/catalogue.h"
#include "cli/command.h"
#include "read/machine_yaml.h"

namespace armilla {
namespace {

// "  memory bandwidth    2.039 TB/s  (unverified)"
void line(const Session& session, std::string_view title, const std::string& value, bool unverified = false) {
  session.out << fmt::format("  {:<20} {}{}\n", title, value, unverified ? "  (unverified)" : "");
}

void show_device(const Session& session, const Device& device) {
  const auto doubtful = [&](const std::string& field) {
    return std::find(device.unverified.begin(), device.unverified.end(), field) != device.unverified.end();
  };
  session.out << fmt::format("device {}: {}\n", device.name, device.description);
  line(session, "memory", to_text(device.memory), doubtful("memory"));
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
  line(session, "launch overhead", to_text(device.launch_overhead), doubtful("launch_overhead"));
  line(session, "source", device.source);
}

void show_machine(const Session& session, const Machine& machine) {
  const auto mark = [&](const std::string& dimension, std::string_view field) {
    const bool doubtful = std::find(machine.unverified.begin(), machine.unverified.end(),
                                    fmt::format("{}.{}", dimension, field)) != machine.unverified.end();
    return doubtful ? " (unverified)" : "";
  };
  session.out << fmt::format("machine {}: {}\n", machine.name, machine.description);
  for (std::size_t d = 0; d < machine.dimensions.size(); ++d) {
    const Dimension& dimension = machine.dimensions[d];
    line(session, fmt::format("dimension {}: {}", d, dimension.name),
         fmt::format("{} of {}{}, {}{} per link and direction, {}{} per hop", name_of(dimension.kind),
                     dimension.size, mark(dimension.name, "size"), to_text(dimension.bandwidth),
                     mark(dimension.name, "bandwidth"), to_text(dimension.latency),
                     mark(dimension.name, "latency")));
  }
  line(session, "devices", fmt::format("{} of {}", rank_count(machine), machine.device.name));
  line(session, "source", machine.source);
  session.out << '\n';
  show_device(session, machine.device);
}

class ShowCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("name", name_,
                   "the name of a machine, device, compute model, network, algorithm or format, or a machine "
                   "or device file")
        ->type_name("NAME|FILE")
        ->required();
  }

  void execute(const Session& session) override {
    const bool file = name_.ends_with(".yaml") || name_.ends_with(".yml");
    bool found = false;
    std::vector<std::string> known;
    for (const CatalogueFamily& family : catalogue()) {
      for (const CatalogueEntry& entry : family.entries()) {
        known.push_back(entry.name);
        if (entry.name != name_) continue;
        if (found) session.out << '\n';
        found = true;
        show(session, family, entry);
      }
    }
    if (!found && file) {
      const Config config = Config::read(name_);
      if (config.is_map() && !config.has("dimensions") && config.has("memory_bandwidth")) {
        show_device(session, read_device(config));
      } else {
        show_machine(session, read_machine(config));
      }
      found = true;
    }
    if (!found)
      throw Error("armilla show", fmt::format("nothing is called '{:.60}'", name_), suggestion(known));
  }

 private:
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
      session.out << fmt::format("{} {}: {}\n", family.singular, entry.name, entry.help);
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
};

}  // namespace

std::unique_ptr<Command> make_show_command() {
  return std::make_unique<ShowCommand>();
}

}  // namespace armilla
