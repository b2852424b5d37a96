#include <sys/mman.h>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <iostream>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "cli/run_main.h"

namespace {

// Address space that is put aside for the way out when memory has run out: trees of JSON take some more to
// go. Not from the allocator, in which AddressSanitizer would look through all of it for leaks.
constexpr std::size_t kPutAside = std::size_t{32} << 20;
std::atomic<void*> put_aside = nullptr;

void end_for_want_of_memory() {
  std::set_new_handler(nullptr);
  if (void* const given_back = put_aside.exchange(nullptr)) ::munmap(given_back, kPutAside);
  throw std::bad_alloc();
}

}  // namespace

int main(int argc, char** argv) {
  void* const mapped = ::mmap(nullptr, kPutAside, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped != MAP_FAILED) put_aside = mapped;
  std::set_new_handler(end_for_want_of_memory);
  std::signal(SIGXFSZ, SIG_IGN);  // a file size limit is then an error of write(), like a full disk

  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return armilla::run_main(arguments, {std::cout, std::cerr, armilla::wants_colour(1),
                                       armilla::is_terminal(2), armilla::terminal_width(1)});
}
