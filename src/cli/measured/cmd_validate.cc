#include <CLI/CLI.hpp>

#include "base/output_file.h"
#include "base/units_text.h"
#include "cli/command.h"
#include "cli/flags/model_flags.h"
#include "read/measurements.h"
#include "study/validate.h"
#include "write/validation.h"

namespace armilla {
namespace {

class ValidateCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("files", files_,
                   "tables of measurements: training steps, memory peaks, collectives or kernels "
                   "(docs/validation.md)")
        ->type_name("FILE.csv")
        ->required();
    app.add_option("--misses", misses_, "list so many of the largest errors of each kind (default 5)")
        ->type_name("N");
    app.add_option("--json", json_, "write the figures of every set to FILE")
        ->type_name("FILE")
        ->group("Output");
    app.add_option("--csv", csv_, "write prediction and error of every row to FILE")
        ->type_name("FILE")
        ->group("Output");
    app.add_option("--svg", svg_, "plot predictions over measurements in FILE")
        ->type_name("FILE")
        ->group("Output");
    app.add_flag("--quiet", quiet_, "print nothing but errors")->group("Output");
  }

  void execute(const Session& session) override {
    constexpr std::int64_t kMostMisses = 1'000'000'000;
    const auto misses = static_cast<std::size_t>(parse_flag(misses_, "--misses", 0, kMostMisses));
    std::vector<MeasurementFile> tables;
    for (const std::string& file : files_) tables.push_back(read_measurements(file));
    const Validation validation = validate(tables, *session.meter);
    std::vector<NamedContents> files;
    if (!json_.empty()) files.push_back({json_, write_validation_json(validation, misses)});
    if (!csv_.empty()) files.push_back({csv_, write_validation_csv(validation)});
    if (!svg_.empty()) files.push_back({svg_, write_validation_svg(validation)});
    write_files(files);
    const Session people = for_people(session, {json_, csv_, svg_});
    if (!quiet_) people.out << write_validation_text(validation, misses, people.style());
  }

 private:
  std::vector<std::string> files_;
  std::string misses_ = "5", json_, csv_, svg_;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Command> make_validate_command() {
  return std::make_unique<ValidateCommand>();
}

}  // namespace armilla
