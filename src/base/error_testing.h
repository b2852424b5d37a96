// For tests: what a call throws, as the user would read it.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"

namespace armilla {

inline std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace armilla
