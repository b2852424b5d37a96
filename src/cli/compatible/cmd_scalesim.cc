#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "base/error.h"
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
    add("-p", path_, "DIR", "write the reports to DIR/RUN_NAME; made if missing");
    add("-i", input_, "conv|gemm", "form of the topology: convolutions, or M, N, K")->capture_default_str();
    add("-l", layout_, "FILE", "layouts of v3: without influence unless the configuration asks for them");
    add("-s", save_, "Y|N", "traces of v3: none are written")->capture_default_str();
    app.add_flag("--quiet", quiet_, "print nothing but errors")->group("Output");
  }

  void execute(const Session& session) override {
    request_.products = parse_choice(input_, kInputs, "-i") == 1;
    if (path_ == "-") throw Error("-p -", "is standard output, no folder", "a folder of that name is ./-");
    if (!path_.empty()) check_target_folder(path_);
    const bool traces = parse_choice(save_, kSaveTraces, "-s") == 1;
    ScaleSimAnswer answer = run_scalesim(request_, *session.meter);
    if (traces) answer.notes.push_back("-s Y: traces of every access are not written");
    if (!path_.empty()) {
      const std::string folder = (std::filesystem::path(path_) / answer.run.config.run_name).string();
      write_with_folders(folder, write_scalesim_reports(answer.run, folder));
    }
    if (quiet_) return;
    session.out << write_scalesim_text(answer.run);
    for (const std::string& note : answer.notes) session.out << fmt::format("note: {}\n", note);
  }

 private:
  static void write_with_folders(const std::string& folder, const std::vector<NamedContents>& files) {
    std::error_code failure;
    std::filesystem::create_directories(folder, failure);
    if (failure) throw Error(folder, fmt::format("cannot be made: {}", failure.message()));
    write_files(files);
  }

  ScaleSimRequest request_;
  std::string path_, layout_, input_ = "conv", save_ = "N";
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Command> make_scalesim_command() {
  return std::make_unique<ScaleSimCommand>();
}

}  // namespace armilla
