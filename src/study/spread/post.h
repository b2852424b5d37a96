// Messages between the ranks of an MPI job. The one place that knows MPI (post_mpi.cc); a program that is
// built without has post_none.cc, which refuses to be started under it.
#pragma once

#include <optional>
#include <string>
#include <utility>

namespace armilla {

class Post {
 public:
  // Joins the job. Throws Error where this program cannot.
  Post();
  // Leaves it, when all others do.
  ~Post();
  Post(const Post&) = delete;
  Post& operator=(const Post&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  void send(int to, const std::string& text);
  // The oldest message that is there, and whose; without waiting.
  std::optional<std::pair<int, std::string>> look();

 private:
  int rank_ = 0, size_ = 1;
};

}  // namespace armilla
