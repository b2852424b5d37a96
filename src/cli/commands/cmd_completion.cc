#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "base/sorted.h"
#include "cli/command.h"
#include "cli/commands/catalogue.h"

namespace armilla {
namespace {

// What can follow a command: its flags, sub-commands and, where names are expected, those of a family.
struct Words {
  std::string command;  // "zoo fetch"
  std::vector<std::string> words;
};

std::vector<std::string> names_of(std::string_view family_name) {
  std::vector<std::string> names;
  for (const CatalogueFamily& family : catalogue()) {
    if (family.name != family_name) continue;
    for (const CatalogueEntry& entry : family.entries()) names.push_back(entry.name);
  }
  return names;
}

// From the parser itself, so that a new command or flag is completed without being listed again.
void collect(const CLI::App& app, const std::string& path, std::vector<Words>& all) {
  Words here{path, {}};
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    here.words.push_back(sub->get_name());
    collect(*sub, path.empty() ? sub->get_name() : path + " " + sub->get_name(), all);
  }
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) here.words.push_back("--" + name);
  }
  const auto offer = [&](std::string_view family) {
    const std::vector<std::string> names = names_of(family);
    here.words.insert(here.words.end(), names.begin(), names.end());
  };
  if (path == "run" || path == "layers" || path == "translate" || path == "check" || path == "zoo show")
    offer("models");
  if (path == "list") {
    for (const CatalogueFamily& family : catalogue()) here.words.emplace_back(family.name);
  }
  if (path == "show") {
    for (const CatalogueFamily& family : catalogue()) offer(family.name);
  }
  if (path == "completion") here.words.insert(here.words.end(), {"bash", "zsh"});
  sort_unique(here.words);
  all.push_back(std::move(here));
}

// Values after a flag.
constexpr std::pair<std::string_view, std::string_view> kFlagValues[] = {{"--machine", "machines"},
                                                                         {"--device", "devices"},
                                                                         {"--compute", "compute"},
                                                                         {"--network", "networks"},
                                                                         {"--algorithm", "algorithms"}};

constexpr std::pair<std::string_view, std::string_view> kFlagWords[] = {
    {"--precision", "fp32 tf32 bf16 fp16 fp8"},
    {"--optimizer", "sgd momentum adam"},
    {"--decomposition", "multi-axis bandwidth-aware baseline flat"},
    {"--chunk-order", "fifo lifo priority"},
    {"--policy", "DATA MODEL HYBRID_DATA_MODEL HYBRID_MODEL_DATA"},
    {"--to", "astra-text csv json"},
    {"--gradients", "weights all"}};

std::string bash(const std::vector<Words>& all) {
  std::string text =
      "# bash completion of armilla\n"
      "_armilla() {\n"
      "  local current=\"${COMP_WORDS[COMP_CWORD]}\" previous=\"${COMP_WORDS[COMP_CWORD-1]}\" path=\"\" word "
      "words=\"\"\n"
      "  case \"$previous\" in\n";
  for (const auto& [flag, family] : kFlagValues)
    text += fmt::format("    {}) words=\"{}\" ;;\n", flag, fmt::join(names_of(family), " "));
  for (const auto& [flag, words] : kFlagWords) text += fmt::format("    {}) words=\"{}\" ;;\n", flag, words);
  text +=
      "  esac\n"
      "  if [[ -z \"$words\" ]]; then\n"
      "    for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "      case \"${path:+$path }$word\" in\n";
  std::vector<std::string> paths;
  for (const Words& words : all) {
    if (!words.command.empty()) paths.push_back(fmt::format("\"{}\"", words.command));
  }
  text += fmt::format("        {}) path=\"${{path:+$path }}$word\" ;;\n", fmt::join(paths, "|"));
  text +=
      "      esac\n"
      "    done\n"
      "    case \"$path\" in\n";
  for (const Words& words : all)
    text += fmt::format("      \"{}\") words=\"{}\" ;;\n", words.command, fmt::join(words.words, " "));
  text +=
      "    esac\n"
      "  fi\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "  [[ ${#COMPREPLY[@]} -gt 0 ]] || COMPREPLY=($(compgen -f -- \"$current\"))\n"
      "}\n"
      "complete -o filenames -F _armilla armilla\n";
  return text;
}

// zsh runs the bash function through its own emulation.
std::string zsh(const std::vector<Words>& all) {
  return "#compdef armilla\n# zsh completion of armilla, through zsh's bash emulation\nautoload -U +X "
         "bashcompinit && bashcompinit\n" +
         bash(all);
}

class CompletionCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("shell", shell_, "bash or zsh")
        ->type_name("SHELL")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh"}));
  }

  void execute(const Session& session) override {
    std::vector<std::unique_ptr<Command>> instances;
    std::vector<Words> all;
    collect(*make_parser(instances), "", all);
    session.out << (shell_ == "bash" ? bash(all) : zsh(all));
  }

 private:
  std::string shell_;
};

}  // namespace

std::unique_ptr<Command> make_completion_command() {
  return std::make_unique<CompletionCommand>();
}

}  // namespace armilla
