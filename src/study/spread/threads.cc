#include <algorithm>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "study/spread.h"

namespace armilla {

std::int64_t thread_count(std::int64_t asked) {
  const auto cores = static_cast<std::int64_t>(std::thread::hardware_concurrency());
  return asked > 0 ? asked : std::max<std::int64_t>(cores, 1);
}

void share_among_threads(const Piecework& work, std::int64_t threads) {
  std::mutex mutex;  // of what is shared: `over`, `failed`, and the calls of `next` and `finish`
  bool over = false;
  std::exception_ptr failed;
  const auto take = [&]() -> std::optional<Piece> {
    const std::lock_guard lock(mutex);
    if (over) return std::nullopt;
    const std::optional<Piece> piece = work.next();
    over = !piece;
    return piece;
  };
  const auto labour = [&] {
    try {
      while (const std::optional<Piece> piece = take()) {
        std::string outcome = work.perform(*piece);
        const std::lock_guard lock(mutex);
        work.finish(piece->number, std::move(outcome));
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      over = true;
      if (!failed) failed = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  try {
    for (std::int64_t t = 1; t < threads; ++t) others.emplace_back(labour);
  } catch (const std::system_error&) {
    // There is neither memory nor room for more threads: fewer do the same.
  } catch (const std::bad_alloc&) {
  }
  labour();
  for (std::thread& other : others) other.join();
  if (failed) std::rethrow_exception(failed);
}

}  // namespace armilla
