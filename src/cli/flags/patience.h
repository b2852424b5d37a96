// --patience, of commands that simulate many runs.
#pragma once

#include <string>

#include "cli/command.h"
#include "study/patience.h"

namespace CLI {
class App;
}

namespace armilla {

void add_patience_flag(CLI::App& app, std::string& text, const std::string& group);
// Tells people on standard error, unless `quiet`. Throws Error.
Patience patience_of(const std::string& text, const Session& session, bool quiet);

}  // namespace armilla
