#include <csignal>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "cli/run_main.h"

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file size limit is then an error of write(), like a full disk

  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return armilla::run_main(arguments, {std::cout, std::cerr, armilla::wants_colour(1),
                                       armilla::is_terminal(2), armilla::terminal_width(1)});
}
