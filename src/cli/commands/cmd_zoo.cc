#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/error.h"
#include "base/progress.h"
#include "base/units_text.h"
#include "cli/command.h"
#include "read/read.h"
#include "write/text_table.h"
#include "zoo/fetch.h"
#include "zoo/zoo.h"

namespace armilla {
namespace {

class ZooCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.require_subcommand(1);
    list_ =
        app.add_subcommand("list", "models that are compiled in, fetched, or known to the ONNX Model Zoo");
    show_ = app.add_subcommand("show", "one model: inputs, parameters, arithmetic");
    show_->add_option("name", name_, "a model's name")->type_name("NAME")->required();
    fetch_ = app.add_subcommand("fetch", "download a model into the cache");
    fetch_->add_option("name", name_, "a name of the ONNX Model Zoo ('armilla zoo list') or an address")
        ->type_name("NAME|URL")
        ->required();
    fetch_
        ->add_option("--base-url", options_.base_url,
                     "where the zoo is (default: $ARMILLA_ZOO_URL, else the ONNX Model Zoo); {model} stands "
                     "for the name")
        ->type_name("URL");
    fetch_->add_option("--sha256", options_.sha256, "expected checksum, for addresses")->type_name("HEX");
    fetch_->add_flag("--refresh", options_.refresh, "download again even if it is there");
  }

  void execute(const Session& session) override {
    if (list_->parsed()) list(session);
    if (show_->parsed()) show(session);
    if (fetch_->parsed()) fetch(session);
  }

 private:
  static void list(const Session& session) {
    session.out << "compiled in:\n";
    for (const ZooModel& model : zoo_models())
      session.out << wrap(model.description, fmt::format("  {:<16} ", model.name), session.width);
    session.out << fmt::format("\nfetched (in {}):\n", model_cache_directory());
    const std::vector<std::string> cached = cached_models();
    if (cached.empty()) session.out << "  none\n";
    for (const std::string& name : cached) session.out << fmt::format("  {}\n", name);
    session.out << "\nto fetch from the ONNX Model Zoo:\n";
    for (const ZooDownload& model : zoo_downloads())
      session.out << wrap(model.description,
                          fmt::format("  {:<24} {:>10}  ", model.name, to_text(model.size)), session.width);
  }

  // By the reader that all commands use, so that a fetched model is shown as it will be simulated.
  void show(const Session& session) const {
    const Model model = read_model(name_, {});
    const ModelTotals sums = totals(model);
    session.out << fmt::format("{}\n", model.name);
    for (const ZooModel& known : zoo_models()) {
      if (known.name == name_) session.out << fmt::format("  {}\n", known.description);
    }
    const auto tensors = [&](std::string_view title, const std::vector<std::uint32_t>& ids) {
      for (const std::uint32_t id : ids) {
        const Tensor& tensor = model.tensors[id];
        session.out << fmt::format("  {:<12} {} {} {}\n", title, tensor.name, name_of(tensor.dtype),
                                   shape_text(tensor));
      }
    };
    tensors("input", model.inputs);
    tensors("output", model.outputs);
    session.out << fmt::format("  {:<12} {} in {}\n", "operators", model.operators.size(),
                               counted(model.layers.size(), "layer"));
    session.out << fmt::format("  {:<12} {} ({})\n", "parameters", with_separators(sums.parameters),
                               to_text(sums.parameter_bytes));
    session.out << fmt::format("  {:<12} {} multiply-accumulates, {} for {} {}\n", "forward",
                               with_separators(sums.forward_macs), to_text(sums.forward_flops), model.batch,
                               model.batch == 1 ? "sample" : "samples");
    for (const std::string& note : model.notes) session.out << fmt::format("  note: {}\n", note);
  }

  void fetch(const Session& session) {
    session.meter->begin("fetching " + name_);
    options_.progress = [meter = session.meter](const FetchProgress& progress) {
      // A server need not tell the size; then there is no share to show.
      if (progress.total > Bytes(0))
        meter->update(static_cast<double>(progress.received.value) /
                      static_cast<double>(progress.total.value));
    };
    const FetchedModel model = fetch_model(name_, options_);
    session.out << fmt::format("{} {}\n", model.was_there ? "already there:" : "fetched", model.path);
    if (model.resumed_from > Bytes(0))
      session.out << fmt::format("  resumed after {}\n", to_text(model.resumed_from));
    session.out << fmt::format("  {}, SHA-256 {}{}\n", to_text(model.size), model.sha256,
                               model.verified ? " (as expected)" : " (not known beforehand)");
    session.out << fmt::format("  use it as: armilla layers {}\n",
                               model.name.empty() ? model.path : model.name);
  }

  CLI::App* list_ = nullptr;
  CLI::App* show_ = nullptr;
  CLI::App* fetch_ = nullptr;
  std::string name_;
  FetchOptions options_;
};

}  // namespace

std::unique_ptr<Command> make_zoo_command() {
  return std::make_unique<ZooCommand>();
}

}  // namespace armilla
