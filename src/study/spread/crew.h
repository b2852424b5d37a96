// Shares numbered pieces of work out among those who can do them, each piece to whoever is free: a slow one holds
// nobody up.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace armilla {

struct Piecework {
  // The number of the next piece, or nothing: there are no more. Once that was said, it is not asked again.
  std::function<std::optional<std::int64_t>()> next;
  // Does a piece and returns what came of it. Called by many at once. What it throws ends the whole work.
  std::function<std::string(std::int64_t)> perform;
  // Takes what came of a piece.
  std::function<void(std::int64_t, std::string)> finish;
};
// `next` and `finish` are never called at the same time, nor by two at once.

// The cores of the machine, where `asked` is 0.
std::int64_t thread_count(std::int64_t asked);

// By threads of this process. Rethrows the first exception of any of the three, after the pieces under way.
void share_out(const Piecework& work, std::int64_t threads);

}  // namespace armilla
