#include "study/spread/post.h"

#include "base/error.h"

namespace armilla {

Post::Post() {
  throw Error("mpirun", "this program was built without MPI",
              "install libopenmpi-dev and openmpi-bin and build it again (docs/cluster.md)");
}
Post::~Post() = default;

void Post::send(int, const std::string&) {}
std::optional<std::pair<int, std::string>> Post::look() {
  return std::nullopt;
}

}  // namespace armilla
