// The program as a function, so that tests can call it: parses the command line, runs one command, turns
// Errors into messages.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace armilla {

// Returns the exit code: 0 done, 1 our bug, 2 the user's input, 130 or 143 interrupted (128 and the signal).
int run_main(const std::vector<std::string>& arguments, const Session& session);

bool is_terminal(int descriptor);
// One that wants colours (https://no-color.org).
bool wants_colour(int descriptor);
// Columns; kReportWidth where it is no terminal or does not tell.
std::size_t terminal_width(int descriptor);

}  // namespace armilla
