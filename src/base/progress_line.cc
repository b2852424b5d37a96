#include "base/progress_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <system_error>

namespace armilla {
namespace {

constexpr std::chrono::milliseconds kBetween(250);

// "7 s", "3 min 20 s", "2 h 5 min".
std::string duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::ceil(std::min(seconds, 1e9)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace

std::string progress_line(std::string_view step, double share, double elapsed, std::string_view remark,
                          std::size_t width) {
  std::string line;
  if (share > 0) {
    const double done = std::min(share, 1.0);
    // 100 % is when the line is gone.
    const int percent = std::min(99, static_cast<int>(100 * done));
    line = fmt::format("{} {:2} %, about {} left", step, percent, duration(elapsed * (1 - done) / done));
  } else {
    // What nothing is known of yet says how long it has taken.
    line = fmt::format("{}, {} so far", step, duration(elapsed));
  }
  if (!remark.empty()) line += fmt::format("; {}", remark);
  // A longer one would leave its beginning behind when it is written anew.
  if (line.size() > width) line.resize(width);
  return line;
}

// A thread of its own writes, so that a long step without any news shows that time passes.
ProgressLine::ProgressLine(std::ostream& out, std::chrono::milliseconds patience, std::size_t width,
                           bool terminal)
    : out_(out), patience_(patience), width_(width), terminal_(terminal) {
  try {
    writer_ = std::thread([this] { watch(); });
  } catch (const std::system_error&) {
    // Where no thread can be had there is no line.
  }
}

ProgressLine::~ProgressLine() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    clear();
  }
  over_.notify_all();
  if (writer_.joinable()) writer_.join();
}

void ProgressLine::begin(std::string_view step) {
  const std::lock_guard lock(mutex_);
  step_ = step;
  remark_.clear();
  begin_ = Clock::now();
  // After something was printed patience begins anew.
  if (hidden_) since_ = begin_;
  hidden_ = false;
  share_.store(0, std::memory_order_relaxed);
}

void ProgressLine::remark(std::string_view text) {
  const std::lock_guard lock(mutex_);
  remark_ = text;
}

void ProgressLine::hide() {
  const std::lock_guard lock(mutex_);
  hidden_ = true;
  clear();
}

void ProgressLine::watch() {
  std::unique_lock lock(mutex_);
  while (!over_.wait_for(lock, std::min(patience_, kBetween), [this] { return ended_; })) {
    if (hidden_) continue;
    if (terminal_) {
      if (Clock::now() - since_ >= patience_) write();
    } else if (Clock::now() - start_ >= patience_ && !step_.empty()) {
      write();
      patience_ *= 2;
    }
  }
}

void ProgressLine::write() {
  const double elapsed = std::chrono::duration<double>(Clock::now() - begin_).count();
  const std::string line = progress_line(step_.empty() ? "working" : step_,
                                         share_.load(std::memory_order_relaxed), elapsed, remark_,
                                         // Lines of a log are written one below the other.
                                         terminal_ ? width_ : SIZE_MAX);
  if (!terminal_) {
    out_ << fmt::format("armilla: {}\n", line) << std::flush;
    return;
  }
  out_ << '\r' << line;
  if (line.size() < shown_) out_ << std::string(shown_ - line.size(), ' ');
  out_ << std::flush;
  shown_ = std::max(shown_, line.size());
}

void ProgressLine::clear() {
  if (shown_ > 0) out_ << '\r' << std::string(shown_, ' ') << '\r' << std::flush;
  shown_ = 0;
}

HidesProgress::int_type HidesProgress::overflow(int_type c) {
  progress_.hide();
  return traits_type::eq_int_type(c, traits_type::eof()) ? traits_type::not_eof(c)
                                                         : buffer_.sputc(traits_type::to_char_type(c));
}

std::streamsize HidesProgress::xsputn(const char* text, std::streamsize size) {
  progress_.hide();
  return buffer_.sputn(text, size);
}

}  // namespace armilla
