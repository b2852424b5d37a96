// How the verifiers stop at the first thing that is wrong: thrown inside, text outside.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

namespace armilla {

struct Violation {
  std::string text;
};

template <class... Arguments>
[[noreturn]] void violation(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  throw Violation{fmt::format(format, std::forward<Arguments>(arguments)...)};
}

// What `verifier.run()` throws; empty when it throws nothing.
template <class Verifier>
std::string violation_of(Verifier&& verifier) {
  try {
    verifier.run();
    return {};
  } catch (const Violation& found) {
    return found.text;
  }
}

}  // namespace armilla
