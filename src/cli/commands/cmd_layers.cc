#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/output_file.h"
#include "cli/command.h"
#include "cli/flags/model_flags.h"
#include "read/scalesim.h"
#include "read/study.h"
#include "study/run.h"
#include "write/report.h"

namespace armilla {
namespace {

class LayersCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    model_.declare(app);
    CLI::Option* const compute =
        app.add_option("--compute", compute_,
                       "add times (and cycles) of a compute model, such as systolic:rows=128,dataflow=os")
            ->type_name("MODEL");
    app.add_option("--device", device_, "the device the compute model runs on ('armilla list devices')")
        ->type_name("NAME|FILE")
        ->capture_default_str()
        ->needs(compute);
    outputs_.add(app, "--json", json_, "write the table to FILE (docs/formats/layers_json.md)");
    outputs_.add(app, "--csv", csv_, "write the table to FILE");
    app.add_flag("--quiet", quiet_, "print nothing but errors");
  }

  void execute(const Session& session) override {
    LayerTable table;
    if (compute_.empty()) {
      table = layer_table(model_.read());
    } else {
      // Before the model, which may be gigabytes: what is wrong with the flags is said at once.
      const Device device = load_device(device_, "--device " + device_);
      const std::unique_ptr<CostModel> cost =
          make_cost_model(read_compute_choice(compute_, "--compute"), device);
      const Model model = model_.read();
      check_precision(model, *cost, device.name, "--device " + device_);
      table = costed_layers(model, *cost, fmt::format("{} on {}", compute_, device.name));
    }
    if (waits_for_dram())
      table.notes.push_back(
          "a convolution waits for DRAM as the product of its windows does; 'armilla scalesim' follows the "
          "words "
          "that windows share");
    std::vector<NamedContents> files;
    if (!json_.empty()) files.push_back({json_, write_layers_json(table)});
    if (!csv_.empty()) files.push_back({csv_, write_layers_csv(table)});
    write_files(files);
    const Session people = for_people(session, {json_, csv_});
    if (!quiet_) people.out << write_layers_text(table, people.style());
  }

 private:
  // Only the systolic model has the parameter; make_cost_model has refused it for any other.
  bool waits_for_dram() const {
    if (compute_.empty()) return false;
    const ComponentChoice choice = read_compute_choice(compute_, "--compute");
    return choice.parameters.contains("dram_bandwidth");
  }

  ModelFlags model_;
  std::string compute_, json_, csv_;
  std::string device_ = "a100-80gb-sxm";
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Command> make_layers_command() {
  return std::make_unique<LayersCommand>();
}

}  // namespace armilla
