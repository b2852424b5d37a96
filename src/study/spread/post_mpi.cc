// The C++ bindings of old are not needed, and not everywhere.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include "study/spread/post.h"

// MPI's own errors end the job with a message (MPI_ERRORS_ARE_FATAL, the default), so that no result is
// looked at here.
namespace armilla {

Post::Post() {
  // Other threads there may be, but this one alone calls MPI.
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
}

Post::~Post() {
  MPI_Finalize();
}

void Post::send(int to, const std::string& text) {
  MPI_Send(text.data(), static_cast<int>(text.size()), MPI_BYTE, to, 0, MPI_COMM_WORLD);
}

std::optional<std::pair<int, std::string>> Post::look() {
  int is_there = 0;
  MPI_Status status;
  MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &is_there, &status);
  if (is_there == 0) return std::nullopt;
  int size = 0;
  MPI_Get_count(&status, MPI_BYTE, &size);
  std::string text(static_cast<std::size_t>(size), '\0');
  MPI_Recv(text.data(), size, MPI_BYTE, status.MPI_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return std::pair(status.MPI_SOURCE, std::move(text));
}

}  // namespace armilla
