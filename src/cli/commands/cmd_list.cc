#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/registry.h"
#include "cli/command.h"
#include "cli/commands/catalogue.h"
#include "write/text_table.h"

namespace armilla {
namespace {

std::string describe(const ParameterInfo& parameter) {
  std::string text =
      fmt::format("{} ({}", parameter.name,
                  parameter.type == ParameterType::choice ? parameter.choices : name_of(parameter.type));
  if (!parameter.default_value.empty()) text += fmt::format(", default {}", parameter.default_value);
  return text + fmt::format("): {}", parameter.help);
}

class ListCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    std::vector<std::string> names;
    for (const CatalogueFamily& family : catalogue()) names.emplace_back(family.name);
    app.add_option("family", family_, "what to list (default: everything)")->type_name("FAMILY");
    app.add_flag("--markdown", markdown_, "as docs/reference/components.md");
  }

  void execute(const Session& session) override {
    // Refuses a name that is none, and says which was probably meant.
    if (!family_.empty()) find_component("family", catalogue(), family_, "armilla list");
    for (const CatalogueFamily& family : catalogue()) {
      if (family_.empty() || family.name == family_) (markdown_ ? list_markdown : list_text)(session, family);
    }
  }

 private:
  static void list_text(const Session& session, const CatalogueFamily& family) {
    session.out << wrap(family.help, fmt::format("{}: ", family.name), session.width);
    const std::vector<CatalogueEntry> entries = family.entries();
    std::size_t column = 20;
    for (const CatalogueEntry& entry : entries) column = std::max(column, entry.name.size());
    for (const CatalogueEntry& entry : entries) {
      session.out << wrap(entry.help, fmt::format("  {:<{}} ", entry.name, column), session.width);
      for (const ParameterInfo& parameter : entry.parameters)
        session.out << wrap(describe(parameter), fmt::format("  {:<{}}   ", "", column), session.width);
    }
    session.out << '\n';
  }

  static void list_markdown(const Session& session, const CatalogueFamily& family) {
    session.out << fmt::format("## {}\n\nThese are {}.\n\n| name | what it is |\n|---|---|\n", family.name,
                               family.help);
    for (const CatalogueEntry& entry : family.entries()) {
      std::string help = entry.help;
      for (const ParameterInfo& parameter : entry.parameters)
        help += fmt::format("<br>`{}`", describe(parameter));
      // A bar would end the cell.
      for (std::size_t at = 0; (at = help.find('|', at)) != std::string::npos; at += 2) help.insert(at, "\\");
      session.out << fmt::format("| `{}` | {} |\n", entry.name, help);
    }
    session.out << '\n';
  }

  std::string family_;
  bool markdown_ = false;
};

}  // namespace

std::unique_ptr<Command> make_list_command() {
  return std::make_unique<ListCommand>();
}

}  // namespace armilla
