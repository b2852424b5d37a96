#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "base/error.h"
#include "base/mapped_file.h"
#include "cli/command.h"
#include "cli/flags/model_flags.h"
#include "cli/flags/output_flags.h"
#include "study/astra.h"

namespace armilla {
namespace {

constexpr std::string_view kInputs[] = {"conv", "gemm"};
constexpr std::string_view kSaveTraces[] = {"N", "Y"};

class ScaleSimCommand final : public Command {
 public:
  // SCALE-Sim's own flags, of one letter. Those of v3 are taken where they change nothing here, and said to.
  void declare(CLI::App& app) override {
    const auto add = [&](const char* flag, std::string& value, const char* type, const char* help) {
      return app.add_option(flag, value, help)->type_name(type)->group("SCALE-Sim");
    };
    add("-c", request_.config, "FILE", "configuration (.cfg)")->required();
    add("-t", request_.topology, "FILE", "topology (.csv); default: the configuration's own");
    outputs_.add(app, "-p", path_, "write the reports to DIR/RUN_NAME; made if missing", OutputKind::folder)
        ->group("SCALE-Sim");
    add("-i", input_, "conv|gemm", "form of the topology: convolutions, or M, N, K")->capture_default_str();
    add("-l", layout_, "FILE", "layouts of v3: without influence unless the configuration asks for them");
    add("-s", save_, "Y|N", "traces of v3: none are written")->capture_default_str();
    app.add_flag("--quiet", quiet_, "print nothing but errors")->group("Output");
  }

  void execute(const Session& session) override {
    request_.products = parse_choice(input_, kInputs, "-i") == 1;
    const bool traces = parse_choice(save_, kSaveTraces, "-s") == 1;
    if (!layout_.empty()) MappedFile{layout_};  // refuses what is not there
    ScaleSimAnswer answer = run_scalesim(request_, *session.meter);
    if (!layout_.empty()) answer.notes.push_back(fmt::format("-l {}: layouts are not modelled", layout_));
    if (traces) answer.notes.push_back("-s Y: traces of every access are not written");
    if (!path_.empty()) {
      const std::string folder = (std::filesystem::path(path_) / answer.run.config.run_name).string();
      write_into_folders(session, write_scalesim_reports(answer.run, folder), {folder});
    }
    if (quiet_) return;
    session.out << write_scalesim_text(answer.run);
    for (const std::string& note : answer.notes) session.out << fmt::format("note: {}\n", note);
  }

 private:
  ScaleSimRequest request_;
  std::string path_, layout_, input_ = "conv", save_ = "N";
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Command> make_scalesim_command() {
  return std::make_unique<ScaleSimCommand>();
}

}  // namespace armilla
