#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/file_status.h"
#include "base/output_file.h"
#include "base/suggest.h"
#include "base/units_text.h"
#include "cli/command.h"
#include "ir/collective.h"
#include "read/profile.h"
#include "read/study.h"
#include "study/profile.h"
#include "write/report.h"

namespace armilla {
namespace {

std::string counts_text(std::size_t computations, std::size_t communications) {
  return fmt::format("{} and {}", counted(computations, "computation"),
                     counted(communications, "communication"));
}

class ProfileCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.require_subcommand(1);
    import_ = app.add_subcommand("import", "put measured times into a database");
    database_option(*import_);
    import_
        ->add_option("files", files_,
                     "tables of events (armilla events, tools/profile_events.py), outputs of nccl-tests, "
                     "traces of PyTorch's profiler, other databases")
        ->type_name("FILE")
        ->required();
    import_
        ->add_option("--device", device_, "measured on it, as machines call it (default: as the files say)")
        ->type_name("NAME");
    import_
        ->add_option("--collective", collective_,
                     "what an output of nccl-tests is of, where it does not say so, such as all-reduce")
        ->type_name("KIND");
    show_ = app.add_subcommand("show", "what a database holds, by device");
    database_option(*show_);
    export_ = app.add_subcommand("export", "write what a database holds");
    database_option(*export_);
    outputs_.add(*export_, "--csv", csv_, "as a table of events to FILE");
    outputs_.add(*export_, "--json", json_, "as JSON to FILE (docs/formats/events.md)");
  }

  void execute(const Session& session) override {
    if (import_->parsed()) import_files(session);
    if (show_->parsed()) show(session);
    if (export_->parsed()) export_files();
  }

 private:
  void database_option(CLI::App& app) {
    app.add_option("database", database_, "a profile database")->type_name("DATABASE")->required();
  }

  void import_files(const Session& session) const {
    // Databases can be imported, too, but not one into itself.
    refuse_inputs({database_}, files_);
    if (!collective_.empty() && collective_ != "send" && !collective_from_name(collective_)) {
      std::vector<std::string_view> names = {"send"};
      for (const CollectiveKind kind : kCollectiveKinds) names.push_back(name_of(kind));
      throw Error(fmt::format("--collective {:.60}", collective_), "unknown collective",
                  suggest(collective_, std::span<const std::string_view>(names)));
    }
    // All are read before anything is written.
    std::vector<Profile> profiles;
    for (const std::string& file : files_) {
      Profile& profile =
          profiles.emplace_back(is_there(file) && is_database(file) ? read_profile_database(file)
                                                                    : import_profile(file, collective_));
      if (profile.computations.empty() && profile.communications.empty())
        throw Error(file, "has no measured time",
                    "events that were measured have a time, and 'measured' as their source");
      if (device_.empty()) continue;
      for (MeasuredComputation& event : profile.computations) event.measured.device = device_;
      for (MeasuredCommunication& event : profile.communications) event.measured.device = device_;
    }
    note_unknown_devices(profiles, session);
    note_idle_collective(profiles, session);
    for (const Profile& profile : profiles) {
      const ProfileImport done = import_into(database_, profile);
      session.out << fmt::format("{}: {} ({} new, {} replaced, {} as before)\n", profile.file,
                                 counts_text(profile.computations.size(), profile.communications.size()),
                                 done.added, done.replaced, done.unchanged);
    }
  }

  // A device of one's own may be called anything.
  void note_unknown_devices(const std::vector<Profile>& profiles, const Session& session) const {
    std::set<std::string> devices;
    for (const Profile& profile : profiles) {
      for (const MeasuredComputation& event : profile.computations) devices.insert(event.measured.device);
      for (const MeasuredCommunication& event : profile.communications) devices.insert(event.measured.device);
    }
    const std::vector<std::string> names = device_names();
    for (const std::string& device : devices) {
      if (device.empty() || std::ranges::find(names, device) != names.end()) continue;
      session.out << fmt::format(
          "note: no device of the zoo is called '{}' (armilla list devices): only a machine of your own "
          "whose device has that name will use these times{}\n",
          device, device_.empty() ? "; --device says which device it is" : "");
    }
  }

  void note_idle_collective(const std::vector<Profile>& profiles, const Session& session) const {
    if (collective_.empty()) return;
    const bool is_used = std::ranges::any_of(profiles, [&](const Profile& profile) {
      return std::ranges::any_of(profile.communications, [&](const MeasuredCommunication& event) {
        return event.key.name == collective_;
      });
    });
    if (!is_used)
      session.out << fmt::format(
          "note: --collective {} has no effect: the files say themselves what they are of\n", collective_);
  }

  void show(const Session& session) const {
    const Profile profile = read_profile_database(database_);
    std::map<std::string, std::pair<std::size_t, std::size_t>> counts;
    for (const MeasuredComputation& event : profile.computations) ++counts[event.measured.device].first;
    for (const MeasuredCommunication& event : profile.communications) ++counts[event.measured.device].second;
    for (const auto& [device, count] : counts)
      session.out << fmt::format("{}: {}\n", device.empty() ? "any device" : device,
                                 counts_text(count.first, count.second));
    if (counts.empty()) session.out << "nothing yet\n";
  }

  void export_files() const {
    if (csv_.empty() && json_.empty())
      throw Error("armilla profile export", "nothing is to be written", "add --csv FILE or --json FILE");
    const Profile profile = read_profile_database(database_);
    std::vector<NamedContents> files;
    if (!csv_.empty()) files.push_back({csv_, write_profile_csv(profile)});
    if (!json_.empty()) files.push_back({json_, write_profile_json(profile)});
    write_files(files);
  }

  CLI::App* import_ = nullptr;
  CLI::App* show_ = nullptr;
  CLI::App* export_ = nullptr;
  std::string database_, device_, collective_, csv_, json_;
  std::vector<std::string> files_;
};

}  // namespace

std::unique_ptr<Command> make_profile_command() {
  return std::make_unique<ProfileCommand>();
}

}  // namespace armilla
