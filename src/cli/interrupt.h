// Ctrl-C while something long runs: it ends with what it has found. A second one ends the program at once.
#pragma once

#include <atomic>
#include <csignal>

#include "base/error.h"

namespace armilla {

// What a command throws then, when all that there was until then is written: exit code 130, as of whatever
// Ctrl-C ends.
class Interrupted : public Error {
 public:
  using Error::Error;
};

class CatchInterrupt {
 public:
  CatchInterrupt() : before_(std::signal(SIGINT, note)) { interrupted() = false; }
  ~CatchInterrupt() { std::signal(SIGINT, before_); }
  CatchInterrupt(const CatchInterrupt&) = delete;
  CatchInterrupt& operator=(const CatchInterrupt&) = delete;

  static bool happened() { return interrupted(); }

 private:
  static std::atomic<bool>& interrupted() {
    static std::atomic<bool> value = false;
    return value;
  }
  static void note(int) {
    interrupted() = true;
    std::signal(SIGINT, SIG_DFL);
  }

  void (*before_)(int);
};

}  // namespace armilla
