#include <CLI/CLI.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <system_error>

#include "base/error.h"
#include "base/output_file.h"
#include "base/suggest.h"
#include "base/units_text.h"
#include "cli/command.h"
#include "cli/flags/model_flags.h"
#include "read/measurements.h"
#include "study/validate.h"
#include "write/study.h"
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
    app.add_option("--row", rows_, "only the row with this id, or in this line of a file; may be repeated")
        ->type_name("ROW");
    app.add_option("--misses", misses_, "list so many of the largest errors of each kind (default 5)")
        ->type_name("N");
    outputs_.add(app, "--json", json_, "write the figures of every set to FILE")->group("Output");
    outputs_.add(app, "--csv", csv_, "write prediction and error of every row to FILE")->group("Output");
    outputs_.add(app, "--svg", svg_, "plot predictions over measurements in FILE")->group("Output");
    outputs_
        .add(app, "--studies", studies_,
             "write the study of every predicted step and peak to FOLDER, by its id: armilla run takes it",
             OutputKind::folder)
        ->type_name("FOLDER")
        ->group("Output");
    app.add_flag("--quiet", quiet_, "print nothing but errors")->group("Output");
  }

  void execute(const Session& session) override {
    constexpr std::int64_t kMostMisses = 1'000'000'000;
    const auto misses = static_cast<std::size_t>(parse_flag(misses_, "--misses", 0, kMostMisses));
    std::vector<MeasurementFile> tables;
    for (const std::string& file : files_) tables.push_back(read_measurements(file));
    keep_rows(tables);
    const Validation validation = validate(tables, *session.meter);
    std::vector<NamedContents> files;
    if (!json_.empty()) files.push_back({json_, write_validation_json(validation, misses)});
    if (!csv_.empty()) files.push_back({csv_, write_validation_csv(validation)});
    if (!svg_.empty()) files.push_back({svg_, write_validation_svg(validation)});
    if (!studies_.empty()) {
      add_studies(validation, files);
      std::error_code error;
      std::filesystem::create_directories(studies_, error);
      if (error) throw Error(studies_, fmt::format("cannot make the folder: {}", error.message()));
    }
    write_files(files);
    const Session people = for_people(session, {json_, csv_, svg_});
    if (!quiet_) people.out << write_validation_text(validation, misses, people.style());
  }

 private:
  static std::string line_of(const Measurement& row) { return row.where.substr(row.where.rfind(':') + 1); }

  void keep_rows(std::vector<MeasurementFile>& tables) const {
    if (rows_.empty()) return;
    const auto is_meant = [](const Measurement& row, const std::string& name) {
      return row.id == name || row.where == name || line_of(row) == name;
    };
    for (const std::string& name : rows_) {
      std::vector<std::string> ids;
      bool any = false;
      for (const MeasurementFile& table : tables) {
        for (const Measurement& row : table.rows) {
          any |= is_meant(row, name);
          if (!row.id.empty()) ids.push_back(row.id);
        }
      }
      if (!any)
        throw Error(fmt::format("--row {:.60}", name), "no row has this id, nor is one in this line",
                    ids.empty() ? "no row has an id here: give the line of the file" : suggest(name, ids));
    }
    for (MeasurementFile& table : tables) {
      std::erase_if(table.rows, [&](const Measurement& row) {
        return std::ranges::none_of(rows_, [&](const std::string& name) { return is_meant(row, name); });
      });
    }
    std::erase_if(tables, [](const MeasurementFile& table) { return table.rows.empty(); });
  }

  // Named after the rows' ids, or their lines.
  void add_studies(const Validation& validation, std::vector<NamedContents>& files) const {
    std::map<std::string, std::string> written;
    for (const ValidatedRow& row : validation.rows) {
      if (!row.predicted) continue;
      const std::optional<Study> study = study_of_row(row.measured);
      if (!study) continue;
      const std::string line = line_of(row.measured);
      std::string name = row.measured.id.empty() ? "line-" + line : row.measured.id;
      std::ranges::replace_if(
          name, [](unsigned char c) { return std::isalnum(c) == 0 && c != '-' && c != '.' && c != '_'; },
          '_');
      std::string text = write_study_yaml(
          *study, row.measured.id.empty() ? row.measured.where
                                          : fmt::format("{}, {}", row.measured.id, row.measured.where));
      // Ids may be there twice; a step and its peak have one study.
      if (const auto [known, fresh] = written.try_emplace(name, text); !fresh && known->second != text)
        written[fmt::format("{}-{}", name, line)] = std::move(text);
    }
    if (written.empty())
      throw Error("--studies", "no row is of a step or of a peak", "only those are what armilla run takes");
    for (auto& [name, text] : written)
      files.push_back({fmt::format("{}/{}.yaml", studies_, name), std::move(text)});
  }

  std::vector<std::string> files_, rows_;
  std::string misses_ = "5", json_, csv_, svg_, studies_;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Command> make_validate_command() {
  return std::make_unique<ValidateCommand>();
}

}  // namespace armilla
