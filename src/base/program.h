// Runs another program of the user's PATH, without a shell: text in, text out.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace armilla {

struct ProgramOutput {
  int status = 0;  // of the exit; 128 + the number of the signal that ended it
  std::string out, err;
};

// `arguments[0]` is the program. Nothing when no such program is installed. Throws Error when the system
// refuses to start it.
std::optional<ProgramOutput> run_program(const std::vector<std::string>& arguments, std::string_view input);

}  // namespace armilla
