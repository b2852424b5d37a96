// Commands of the program ("verbs"): one table; each command is one source file, cmd_<verb>.cc.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/progress.h"
#include "write/text_table.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace armilla {

// What a command may talk to.
struct Session {
  std::ostream& out;
  std::ostream& err;
  bool colour = false;                // `out` is a terminal that wants colours
  bool progress = false;              // `err` is a terminal
  std::size_t width = kReportWidth;   // of `out`
  Progress* meter = &no_progress();   // told how far what takes long is (base/progress_line.h)
  std::vector<std::string> inputs{};  // of a command that writes: what it must not write over

  TextStyle style() const { return {colour, width}; }
};

// Of the program and of the sources that predictions come from: 0.1.0-1fd4c53a6fa2
// (cmake/ArmillaDigest.cmake). Builds of the same sources have the same; where it differs, predictions may.
std::string build_version();

// Where a command prints what is for people to read: standard error where one of the `outputs` is "-",
// standard output itself.
Session for_people(const Session& session, std::initializer_list<std::string_view> outputs);

enum class OutputKind {
  file,
  folder,            // made if missing
  folder_of_tables,  // likewise; why tables do not go to standard output the command explains
  database,          // opened before the work: only whether another option names it, too, matters
  by_command,        // that the command looks at itself, since it may be the prefix of several
};

// The options that say what is written where. What cannot be written is refused before the work, and so is a
// file that two would write, or that is read (run_main.cc): of the options that were added here.
class OutputOptions {
 public:
  CLI::Option* add(CLI::App& app, const std::string& flags, std::string& value, const std::string& help,
                   OutputKind kind = OutputKind::file);
  // Nothing for an option that does not say where to write.
  std::optional<OutputKind> kind_of(const CLI::Option& option) const;

 private:
  std::vector<std::pair<const CLI::Option*, OutputKind>> options_;
};

class Command {
 public:
  virtual ~Command() = default;
  // Declares flags and arguments; they are bound to members, so the command must outlive the parsing.
  virtual void declare(CLI::App& app) = 0;
  // Throws Error.
  virtual void execute(const Session& session) = 0;

  const OutputOptions& outputs() const { return outputs_; }

 protected:
  OutputOptions outputs_;
};

// Of astra2, as there: what follows this flag is htsim's, to the end of the line, and comes as one text,
// which rest_of_line takes apart again.
inline constexpr std::string_view kRestOfLine = "--htsim_opts";
std::vector<std::string> with_rest_joined(const std::vector<std::string>& arguments);
std::vector<std::string> rest_of_line(std::string_view joined);

struct Example {
  // After "armilla "; run by a test in a folder that holds a copy of examples/ and nothing else.
  std::string_view arguments;
  std::string_view help;
};

// What the parser says of "--tp ''".
inline constexpr std::string_view kEmptyValue = "the value is empty";

struct CommandInfo {
  std::string_view name;
  std::string_view help;
  std::span<const Example> examples;
  std::unique_ptr<Command> (*make)();
};
std::span<const CommandInfo> commands();

// The factories, in cmd_<verb>.cc.
std::unique_ptr<Command> make_astra1_command();
std::unique_ptr<Command> make_astra2_command();
std::unique_ptr<Command> make_calibrate_command();
std::unique_ptr<Command> make_check_command();
std::unique_ptr<Command> make_collective_command();
std::unique_ptr<Command> make_completion_command();
std::unique_ptr<Command> make_events_command();
std::unique_ptr<Command> make_layers_command();
std::unique_ptr<Command> make_list_command();
std::unique_ptr<Command> make_net_command();
std::unique_ptr<Command> make_profile_command();
std::unique_ptr<Command> make_run_command();
std::unique_ptr<Command> make_scale_command();
std::unique_ptr<Command> make_scalesim_command();
std::unique_ptr<Command> make_search_command();
std::unique_ptr<Command> make_show_command();
std::unique_ptr<Command> make_sweep_command();
std::unique_ptr<Command> make_translate_command();
std::unique_ptr<Command> make_validate_command();
std::unique_ptr<Command> make_zoo_command();

// The parser with every command declared, for parsing and for shell completion. `instances` receives the
// commands, in table order.
std::unique_ptr<CLI::App> make_parser(std::vector<std::unique_ptr<Command>>& instances);

}  // namespace armilla
