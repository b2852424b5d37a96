// For tests that look at many random cases, or at many combinations: all of them as the program is released,
// one of eleven under AddressSanitizer, which takes ten times as long (tools/test.sh runs both).
#pragma once

namespace armilla {

// From one case to the next that is looked at; what a test has seen at the end is divided by it. A prime, so
// that cases of every remainder are among them where each second or fifth is of its own kind.
#ifdef __SANITIZE_ADDRESS__
constexpr int kCaseStep = 11;
#else
constexpr int kCaseStep = 1;
#endif

}  // namespace armilla
