// Progress of what takes long, for people at a terminal: one line that is written anew a few times a second
// and taken away at the end.
//
//   simulating  43 %, about 7 s left; best 2.404 s
//
// Nothing is shown in the first second. Whoever works says what it does and how much of it is done; both are
// a store each, so they can be said often. A thread of its own writes, so that work that says nothing shows
// its time at least. The time left is that spent on the present step x (1 - share) / share: it assumes that
// work goes on as it went so far.
//
// Where standard error is no terminal the same becomes whole lines, a few: after 20 s, and each time when
// twice as much time has passed.
//
//   armilla: simulating  3 %, about 32 min 20 s left; best 2.404 s
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>
#include <thread>

#include "base/progress.h"

namespace armilla {

// The line after `elapsed` seconds of the step, of which `share` is done; a share of 0 is unknown. No longer
// than `width`.
std::string progress_line(std::string_view step, double share, double elapsed, std::string_view remark = {},
                          std::size_t width = 79);

class ProgressLine final : public Progress {
 public:
  // `terminal`: the line is written anew; else each is a line of its own, after `patience` and twice as
  // much each time.
  explicit ProgressLine(std::ostream& out, std::chrono::milliseconds patience = std::chrono::seconds(1),
                        std::size_t width = 79, bool terminal = true);
  ~ProgressLine() override;
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void begin(std::string_view step) override;
  void update(double share) override { share_.store(share, std::memory_order_relaxed); }
  void remark(std::string_view text) override;
  // Takes the line away until the next step begins; before anything else is written to the terminal.
  void hide();

 private:
  using Clock = std::chrono::steady_clock;

  void watch();
  void write();
  void clear();

  std::ostream& out_;
  std::chrono::milliseconds patience_;
  std::size_t width_;
  bool terminal_;
  std::mutex mutex_;  // of all below but the share
  std::condition_variable over_;
  bool ended_ = false, hidden_ = false;
  std::string step_, remark_;
  Clock::time_point begin_ = Clock::now();  // of the step
  Clock::time_point since_ = begin_;        // there has been something to show
  std::size_t shown_ = 0;                   // characters on the line
  Clock::time_point start_ = begin_;        // of everything
  std::atomic<double> share_ = 0;
  std::thread writer_;
};

// Passes on what is written to `buffer` and hides the progress before.
class HidesProgress final : public std::streambuf {
 public:
  HidesProgress(std::streambuf& buffer, ProgressLine& progress) : buffer_(buffer), progress_(progress) {}

 private:
  int_type overflow(int_type c) override;
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int sync() override { return buffer_.pubsync(); }

  std::streambuf& buffer_;
  ProgressLine& progress_;
};

}  // namespace armilla
