// The event queue alone, under the hold model (Jones 1986): a fixed number of events is pending, and each one
// that is handled schedules one more, a random time ahead.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "event/event_queue.h"
#include "goal_reporter.h"

namespace armilla {
namespace {

constexpr double kGoal = 20e6;  // events per second on one core
constexpr std::size_t kDelays = 1 << 14;

// Delays are drawn beforehand, so that the clock measures the queue and not the generator: exponential with a
// mean of 1 us, as ticks of a picosecond.
std::vector<Time> random_delays() {
  std::vector<Time> delays(kDelays);
  std::uint64_t state = 0x9e3779b97f4a7c15;
  for (Time& delay : delays) {
    state = state * 6364136223846793005 + 1442695040888963407;
    const double uniform = static_cast<double>((state >> 11) + 1) * 0x1p-53;
    delay = Time(static_cast<std::int64_t>(-std::log(uniform) * 1e6));
  }
  return delays;
}

class Hold final : public EventHandler {
 public:
  explicit Hold(std::int64_t pending) : delays_(random_delays()), target_(queue_.add_handler(*this)) {
    for (std::int64_t i = 0; i < pending; ++i) schedule();
  }

  void handle(std::uint64_t) override { schedule(); }

  void run_slice() { queue_.run(end_ += kSlice); }
  std::int64_t handled() const { return queue_.handled(); }

 private:
  static constexpr Time kSlice = nanoseconds(1000);

  void schedule() {
    queue_.schedule(queue_.now() + delays_[next_ % kDelays], target_, next_);
    ++next_;
  }

  EventQueue queue_;
  std::vector<Time> delays_;
  std::uint32_t target_;
  std::uint64_t next_ = 0;
  Time end_;
};

void event_queue_hold(benchmark::State& state) {
  Hold hold(state.range(0));
  // Buckets grow to their final size before the clock starts.
  while (hold.handled() < 4 * state.range(0)) hold.run_slice();
  const std::int64_t before = hold.handled();
  for (auto _ : state) hold.run_slice();
  set_goal(state, "events", static_cast<double>(hold.handled() - before), kGoal);
}
BENCHMARK(event_queue_hold)->Arg(1'000)->Arg(32'000)->Arg(1'000'000);

}  // namespace
}  // namespace armilla
