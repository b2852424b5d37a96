// Ctrl-C while something long runs, or the SIGTERM that batch systems send before they end a job: it ends
// with what it has found. A second one ends the program at once.
#pragma once

#include <atomic>
#include <csignal>

#include "base/error.h"

namespace armilla {

// What a command throws then, when all that there was until then is written: exit code 130, or 143 of
// SIGTERM, as of whatever these end.
class Interrupted : public Error {
 public:
  using Error::Error;
};

class CatchInterrupt {
 public:
  CatchInterrupt() : before_(std::signal(SIGINT, note)), term_before_(std::signal(SIGTERM, note)) {
    caught() = 0;
  }
  ~CatchInterrupt() {
    std::signal(SIGINT, before_);
    std::signal(SIGTERM, term_before_);
  }
  CatchInterrupt(const CatchInterrupt&) = delete;
  CatchInterrupt& operator=(const CatchInterrupt&) = delete;

  static bool happened() { return caught() != 0; }
  // The latest that was caught; 0: none.
  static int signal() { return caught(); }

 private:
  static std::atomic<int>& caught() {
    static std::atomic<int> value = 0;
    return value;
  }
  static void note(int signal) {
    caught() = signal;
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGTERM, SIG_DFL);
  }

  void (*before_)(int);
  void (*term_before_)(int);
};

}  // namespace armilla
