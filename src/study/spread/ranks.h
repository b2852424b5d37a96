// The ranks of an MPI job at work (study/spread.h): the leader, rank 0, tells each seat of each
// rank what to do.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "study/spread.h"
#include "study/spread/post.h"
#include "study/spread/seat.h"

namespace armilla {

class Ranks {
 public:
  // With so many seats each. Returns in runners as well.
  explicit Ranks(std::int64_t seats);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  bool follows() const { return post_ && post_->rank() > 0; }
  void follow();
  bool serves() const { return !post_; }
  [[noreturn]] void serve(const std::function<std::string(const Piece&)>& perform);
  // Throws Error where no seat is left that could do anything.
  void share_out(const Piecework& work);

 private:
  std::vector<std::unique_ptr<Seat>> seats_;  // of this rank
  std::optional<Post> post_;                  // of a rank, not of a runner
};

}  // namespace armilla
