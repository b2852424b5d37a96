#include "cli/run_main.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <chrono>
#include <string_view>
#include <thread>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <new>
#include <set>

#include "base/error.h"
#include "base/file_status.h"
#include "base/output_file.h"
#include "base/progress_line.h"
#include "base/suggest.h"
#include "cli/interrupt.h"
#include "study/named_files.h"

namespace armilla {
namespace {

// Scripts tell by the exit code whose fault it is.
constexpr int kDone = 0, kOurBug = 1, kUserInput = 2;

int report(const Session& session, const std::string& text) {
  const bool colour = session.progress && session.colour;
  session.err << (colour ? "\x1b[1;31marmilla: error:\x1b[0m " : "armilla: error: ") << text << '\n';
  return kUserInput;
}

// A full disk or a closed pipe shows only when the buffer is flushed.
void require_written(std::ostream& out) {
  out.flush();
  if (!out) throw Error("standard output", "cannot be written", "is the disk full?");
}

// The innermost command that was named on the command line.
const CLI::App& innermost(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : innermost(*parsed.front());
}

std::string full_name(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : full_name(*app.get_parent()) + " " + app.get_name();
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

// What other tools and papers call our flags; the first of `flags` that a command has is meant.
struct Synonym {
  std::string_view name;
  std::string_view flag;
};
constexpr std::array kSynonyms = {
    Synonym{"--gpus", "--ranks"},
    Synonym{"--num-gpus", "--ranks"},
    Synonym{"--n-gpus", "--ranks"},
    Synonym{"--devices", "--ranks"},
    Synonym{"--npus", "--ranks"},
    Synonym{"--world-size", "--ranks"},
    Synonym{"--nproc", "--ranks"},
    Synonym{"--nodes", "--ranks"},
    Synonym{"--num-nodes", "--ranks"},
    Synonym{"--tensor", "--tp"},
    Synonym{"--pipeline", "--pp"},
    Synonym{"--data", "--dp"},
    Synonym{"--expert", "--ep"},
    Synonym{"--tensor-parallel", "--tp"},
    Synonym{"--tensor-model-parallel", "--tp"},
    Synonym{"--pipeline-parallel", "--pp"},
    Synonym{"--pipeline-model-parallel", "--pp"},
    Synonym{"--data-parallel", "--dp"},
    Synonym{"--context-parallel", "--cp"},
    Synonym{"--expert-parallel", "--ep"},
    Synonym{"--expert-model-parallel", "--ep"},
    Synonym{"--expert-tensor-parallel", "--etp"},
    Synonym{"--virtual-pipeline-model-parallel", "--vpp"},
    Synonym{"--virtual-pipeline", "--vpp"},
    Synonym{"--virtual-stages", "--vpp"},
    Synonym{"--interleave", "--vpp"},
    Synonym{"--mbs", "--micro-batch"},
    Synonym{"--gbs", "--global-batch"},
    Synonym{"--gradient-accumulation", "--micro-batches"},
    Synonym{"--gradient-accumulation-steps", "--micro-batches"},
    Synonym{"--num-microbatches", "--micro-batches"},
    Synonym{"--sequence", "--seq"},
    Synonym{"--sequence-length", "--seq"},
    Synonym{"--seq-length", "--seq"},
    Synonym{"--seq-len", "--seq"},
    Synonym{"--context", "--seq"},
    Synonym{"--dtype", "--precision"},
    Synonym{"--bf16", "--precision"},
    Synonym{"--fp16", "--precision"},
    Synonym{"--fp8", "--precision"},
    Synonym{"--activation-checkpointing", "--recompute"},
    Synonym{"--recompute-activations", "--recompute"},
    Synonym{"--cluster", "--machine"},
    Synonym{"--system", "--machine"},
    Synonym{"--size", "--bytes"},
    Synonym{"--sizes", "--bytes"},
    Synonym{"--message-size", "--bytes"},
    Synonym{"--algo", "--algorithm"},
    Synonym{"--output", "-o"},
    Synonym{"-topo", "--htsim_opts"},
};

// The hint for an option that a command does not have.
std::string suggest_option(std::string_view typed, const std::vector<std::string>& options) {
  std::string_view name = typed;
  // Megatron-LM spells --tensor-model-parallel-size, DeepSpeed --zero-stage.
  for (const std::string_view end : {"-size", "-stage", "-degree"}) {
    const bool known = std::find(options.begin(), options.end(), name) != options.end();
    if (!known && name.ends_with(end)) name.remove_suffix(end.size());
  }
  const auto has = [&](std::string_view flag) {
    return flag == "-o" || std::find(options.begin(), options.end(), flag) != options.end();
  };
  if (has(name)) return fmt::format("did you mean '{}'?", name);
  for (const Synonym& synonym : kSynonyms) {
    if ((synonym.name == name || synonym.name == typed) && has(synonym.flag))
      return fmt::format("did you mean '{}'?", synonym.flag);
  }
  return suggest(typed, options);
}

// CLI11's sentences about what is missing or given too often; any other is left as it is.
std::string in_our_words(std::string_view said, const CLI::App& command) {
  constexpr std::string_view kRequired = " is required", kTwice = ": At Most 1 required but received ",
                             kNoValue = ": 1 required ", kMissing = " missing";
  if (said == "A subcommand is required") return "a command is required";
  if (said.ends_with(kRequired)) {
    const std::string name(said.substr(0, said.size() - kRequired.size()));
    const CLI::Option* const option = command.get_option_no_throw(name);
    const bool positional = option != nullptr && option->get_positional() && option->get_lnames().empty();
    return fmt::format("{} is required", positional ? option->get_type_name() : name);
  }
  if (const std::size_t at = said.find(kTwice); at != std::string_view::npos) {
    const std::string_view times = said.substr(at + kTwice.size());
    return fmt::format("{} is given {}", said.substr(0, at),
                       times == "2" ? "twice" : fmt::format("{} times", times));
  }
  if (const std::size_t at = said.find(kNoValue); at != std::string_view::npos && said.ends_with(kMissing)) {
    const std::string_view value = said.substr(at + kNoValue.size());
    return fmt::format("{} has no {}", said.substr(0, at), value.substr(0, value.size() - kMissing.size()));
  }
  return std::string(said);
}

// CLI11's complaint in our words: what was typed, and what was probably meant.
Error explain(const CLI::ParseError& error, const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App& command = innermost(app);
  const std::string where = full_name(command);
  const std::string help = fmt::format("see '{} --help'", where);
  const std::vector<std::string> verbs = command_names(command);
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr ||
      dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    const std::vector<std::string> options = option_names(command);
    for (const std::string& argument : command.remaining()) {
      const std::string name = argument.substr(0, argument.find('='));
      if (name.starts_with("-"))
        return Error(where, fmt::format("unknown option '{:.60}'", name), suggest_option(name, options));
      if (!verbs.empty())
        return Error(where, fmt::format("unknown command '{:.60}'", argument), suggest(argument, verbs));
      return Error(where, fmt::format("unexpected argument '{:.60}'", argument), help);
    }
    // CLI11 misses a command where an unknown one was typed.
    if (!verbs.empty() && !arguments.empty() && !arguments.back().starts_with("-") && &command == &app) {
      return Error(where, fmt::format("unknown command '{:.60}'", arguments.front()),
                   suggest(arguments.front(), verbs));
    }
  }
  const std::string said = in_our_words(error.what(), command);
  if (said.ends_with(kEmptyValue))
    return Error(where, said, "give one, or leave the flag out (a shell variable that is not set is empty)");
  return Error(where, said, verbs.empty() ? help : suggest("", verbs));
}

// Nothing at all, "help" and "help VERB" ask for what --help prints.
std::vector<std::string> with_help_spelled_out(const std::vector<std::string>& typed, const CLI::App& app) {
  if (typed.empty()) return {"--help"};
  if (typed.front() != "help") return typed;
  std::vector<std::string> arguments(typed.begin() + 1, typed.end());
  if (!arguments.empty() && !arguments.front().starts_with("-")) {
    const std::vector<std::string> verbs = command_names(app);
    if (std::find(verbs.begin(), verbs.end(), arguments.front()) == verbs.end()) {
      throw Error("armilla help", fmt::format("unknown command '{:.60}'", arguments.front()),
                  suggest(arguments.front(), verbs));
    }
  }
  arguments.push_back("--help");
  return arguments;
}

// What follows kRestOfLine is one text, which an option without its value before it would take for that.
void require_value_before_rest(const std::vector<std::string>& typed, const CLI::App& app) {
  const auto rest = std::ranges::find(typed, kRestOfLine);
  if (typed.empty() || typed.front() != "astra2" || rest == typed.end()) return;
  const CLI::App& command = *app.get_subcommand("astra2");
  const CLI::Option* const before = command.get_option_no_throw(*(rest - 1));
  if (before != nullptr && before->get_items_expected_min() > 0)
    throw Error(full_name(command), fmt::format("{} has no {}", *(rest - 1), before->get_type_name()),
                fmt::format("see '{} --help'", full_name(command)));
}

// What cannot be written is refused before the work, and so is a file that two would write, or that is read.
// Returns the files that the command reads, where it writes any.
std::vector<std::string> check_outputs(const CLI::App& command, const OutputOptions& outputs) {
  std::vector<std::string> files, databases, arguments;
  std::set<std::filesystem::path> made;  // folders that come with the files in them
  bool writes = false;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_items_expected_max() == 0 || option->count() == 0) continue;
    const std::optional<OutputKind> kind = outputs.kind_of(*option);
    if (!kind) {
      for (const std::string& argument : option->results()) arguments.push_back(argument);
      continue;
    }
    writes = true;
    const auto path = option->as<std::string>();
    if (kind == OutputKind::by_command) continue;
    if (kind == OutputKind::database) {
      databases.push_back(path);
    } else if (kind == OutputKind::folder || kind == OutputKind::folder_of_tables) {
      if (path != "-") {
        check_target_folder(path);
        made.insert((std::filesystem::path(path) / "").lexically_normal());
      }
      if (path == "-" && kind == OutputKind::folder)
        throw Error(option->get_name() + " -", "is standard output, not a folder",
                    "a folder of that name is ./-");
    } else {
      files.push_back(path);
    }
  }
  if (!files.empty()) {
    std::vector<std::string> different = files;
    std::erase_if(different, [&](const std::string& file) {
      const std::filesystem::path folder =
          (std::filesystem::path(file).parent_path() / "").lexically_normal();
      return made.contains(folder) && !is_there(folder);
    });
    different.insert(different.end(), databases.begin(), databases.end());
    check_targets(different);
  }
  if (!writes) return {};
  std::vector<std::string> inputs = files_named_by(arguments);
  refuse_inputs(files, inputs);
  refuse_inputs(databases, inputs);
  return inputs;
}

// What takes long says so as long as nothing is printed; `quiet`: at a terminal only.
void execute(Command& command, Session session, bool quiet) {
  if (!session.progress && quiet) return command.execute(session);
  ProgressLine progress(session.err, std::chrono::seconds(session.progress ? 1 : 20), session.width - 1,
                        session.progress);
  HidesProgress out_buffer(*session.out.rdbuf(), progress), err_buffer(*session.err.rdbuf(), progress);
  std::ostream out(&out_buffer), err(&err_buffer);
  command.execute(
      {out, err, session.colour, session.progress, session.width, &progress, std::move(session.inputs)});
  if (!out) session.out.setstate(std::ios::failbit);
}

// Every process of an MPI job finds what is wrong with an input that all of them read. The others leave it to
// rank 0, whose end ends the job, and speak only if that goes on.
void let_the_leader_speak() {
  const char* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (rank != nullptr && std::string_view(rank) != "0") std::this_thread::sleep_for(std::chrono::seconds(3));
}

}  // namespace

bool is_terminal(int descriptor) {
  return ::isatty(descriptor) != 0;
}

// NO_COLOR (no-color.org) counts when it is set and not empty. Open MPI's mpirun gives its processes a
// terminal for output wherever its own goes.
bool wants_colour(int descriptor) {
  const char* const none = std::getenv("NO_COLOR");
  const bool under_mpirun = std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr;
  return is_terminal(descriptor) && !under_mpirun && (none == nullptr || *none == '\0');
}

std::size_t terminal_width(int descriptor) {
  constexpr std::size_t kLeast = 40, kMost = 160;
  winsize size{};
  if (::isatty(descriptor) == 0 || ::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
    return kReportWidth;
  return std::clamp<std::size_t>(size.ws_col, kLeast, kMost);
}

int run_main(const std::vector<std::string>& typed, const Session& session) {
  std::vector<std::unique_ptr<Command>> instances;
  const std::unique_ptr<CLI::App> app = make_parser(instances);
  try {
    require_value_before_rest(typed, *app);
    const std::vector<std::string> arguments = with_rest_joined(with_help_spelled_out(typed, *app));
    try {
      // CLI11 takes the arguments in reverse.
      app->parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    } catch (const CLI::Success& asked) {  // --help and --version
      app->exit(asked, session.out, session.err);
      require_written(session.out);
      return kDone;
    } catch (const CLI::ParseError& error) {
      throw explain(error, *app, arguments);
    }
    const CLI::App& asked = *app->get_subcommands().front();
    const std::string name = asked.get_name();
    const CLI::Option* const quiet = asked.get_option_no_throw("--quiet");
    const auto info = std::find_if(commands().begin(), commands().end(),
                                   [&](const CommandInfo& c) { return c.name == name; });
    Command& command = *instances[static_cast<std::size_t>(info - commands().begin())];
    Session with_inputs = session;
    with_inputs.inputs = check_outputs(innermost(asked), command.outputs());
    execute(command, std::move(with_inputs), quiet != nullptr && quiet->count() > 0);
    require_written(session.out);
    return kDone;
  } catch (const Interrupted& interrupted) {
    report(session, interrupted.what());
    return 128 + CatchInterrupt::signal();  // as the shell has it
  } catch (const Error& error) {
    let_the_leader_speak();
    return report(session, error.what());
  } catch (const std::bad_alloc&) {
    return report(session, "not enough memory for this input\n  hint: check its sizes");
  } catch (const std::exception& error) {
    session.err << "armilla: internal error: " << error.what()
                << "\n  hint: this is a bug in Armilla; please report it with the command line\n";
    return kOurBug;
  }
}

}  // namespace armilla
