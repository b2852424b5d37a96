#include <atomic>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "cli/run_main.h"

namespace {

// What is put aside for the way out when memory has run out: trees of JSON take some more to go. Not touched,
// it takes none.
constexpr std::size_t kPutAside = std::size_t{32} << 20;
std::atomic<void*> put_aside = nullptr;

void end_for_want_of_memory() {
  std::set_new_handler(nullptr);
  std::free(put_aside.exchange(nullptr));
  throw std::bad_alloc();
}

}  // namespace

int main(int argc, char** argv) {
  put_aside = std::malloc(kPutAside);
  std::set_new_handler(end_for_want_of_memory);
  std::signal(SIGXFSZ, SIG_IGN);  // a file size limit is then an error of write(), like a full disk

  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return armilla::run_main(arguments, {std::cout, std::cerr, armilla::wants_colour(1),
                                       armilla::is_terminal(2), armilla::terminal_width(1)});
}
