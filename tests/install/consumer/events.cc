#include "event/event_queue.h"

namespace {

struct Counter final : armilla::EventHandler {
  std::uint64_t sum = 0;
  void handle(std::uint64_t argument) override { sum += argument; }
};

}  // namespace

int main() {
  armilla::EventQueue queue;
  Counter counter;
  const std::uint32_t target = queue.add_handler(counter);
  queue.schedule(armilla::nanoseconds(2), target, 40);
  queue.schedule(armilla::nanoseconds(1), target, 2);
  return queue.run() && counter.sum == 42 && queue.now() == armilla::nanoseconds(2) ? 0 : 1;
}
