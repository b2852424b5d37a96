// How far something is that takes long: whoever works says what it does and how much of it is done. This one
// shows nothing: nobody waits. At a terminal it is a line (base/progress_line.h).
#pragma once

#include <string_view>

namespace armilla {

class Progress {
 public:
  virtual ~Progress() = default;
  // What is done from now on: "simulating".
  virtual void begin(std::string_view) {}
  // Of the step, between 0 and 1.
  virtual void update(double) {}
  // What has come of the step so far, in a few words; the more important the further in front. Until the next
  // step.
  virtual void remark(std::string_view) {}
};
// Has no state, so any number of runs may share it.
inline Progress& no_progress() {
  static Progress nobody;
  return nobody;
}

}  // namespace armilla
