#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/units_text.h"
#include "cli/command.h"
#include "cli/flags/model_flags.h"
#include "study/check_input.h"

namespace armilla {
namespace {

class CheckCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option(
           "inputs", inputs_,
           "models, machines and devices by name or file, and any other file or prefix of traces: it says "
           "what each is and validates it")
        ->type_name("NAME|FILE|PREFIX")
        ->required();
    app.add_option("--dim", dimensions_, "size of a symbolic dimension of a model")
        ->type_name("NAME=SIZE")
        ->allow_extra_args(false);
    app.add_option("--comm-group", options_.groups, "communicator groups of traces, as in ASTRA-sim 2")
        ->type_name("FILE");
    app.add_option("--npus", ranks_, "ranks of a job of traces; default: as many as there are files")
        ->type_name("N");
  }

  void execute(const Session& session) override {
    if (!ranks_.empty()) options_.ranks = parse_flag(ranks_, "--npus", 1, INT32_MAX);
    options_.model.dimensions = parse_dimensions(dimensions_);
    options_.progress = session.meter;
    std::size_t refused = 0;
    bool model = false, groups = false, ranks = false;
    for (const std::string& input : inputs_) {
      try {
        const CheckedInput checked = check_input(input, options_);
        session.out << fmt::format("{}: {}\n", input, checked.text);
        model = model || checked.uses_model;
        groups = groups || checked.uses_groups;
        ranks = ranks || checked.uses_ranks;
      } catch (const Error& error) {
        // Of several inputs every one is looked at; the exit code speaks for all.
        if (inputs_.size() == 1) throw;
        ++refused;
        session.err << fmt::format("armilla: error: {}\n", error.what());
      }
    }
    if (refused > 0)
      throw Error("armilla check",
                  fmt::format("{} of {} {} not valid", refused, typed_count(inputs_.size(), "input"),
                              refused == 1 ? "is" : "are"));
    struct Flag {
      const char *name, *what;
      bool given, used;
    };
    for (const Flag& flag : {Flag{"--dim", "no model", !dimensions_.empty(), model},
                             Flag{"--comm-group", "no job of traces", !options_.groups.empty(), groups},
                             Flag{"--npus", "no job of traces", !ranks_.empty(), ranks}}) {
      if (flag.given && !flag.used)
        session.out << fmt::format("note: {} has no effect: {} is checked\n", flag.name, flag.what);
    }
  }

 private:
  std::vector<std::string> inputs_, dimensions_;
  std::string ranks_;
  CheckOptions options_;
};

}  // namespace

std::unique_ptr<Command> make_check_command() {
  return std::make_unique<CheckCommand>();
}

}  // namespace armilla
