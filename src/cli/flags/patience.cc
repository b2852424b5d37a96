#include "cli/flags/patience.h"

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/units_text.h"

namespace armilla {

void add_patience_flag(CLI::App& app, std::string& text, const std::string& group) {
  app.add_option("--patience", text,
                 "with the networks packet and flit: refuse what would take longer, as estimated beforehand "
                 "(default 1h)")
      ->type_name("TIME")
      ->group(group);
}

Patience patience_of(const std::string& text, const Session& session, bool quiet) {
  Patience patience;
  if (!text.empty()) {
    patience.asked = true;
    patience.longest = parse_time(text, "--patience " + text);
    if (patience.longest <= Time(0))
      throw Error("--patience " + text, "leaves no time", "give a time above 0, such as 2h");
  }
  if (!quiet) {
    patience.tell = [&session](const std::string& sentence) {
      session.err << wrap(sentence, "note: ", session.width) << std::flush;
    };
  }
  return patience;
}

}  // namespace armilla
