#include <cstdlib>

#include "study/spread.h"
#include "study/spread/ranks.h"

namespace armilla {
namespace {

std::int64_t number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? 0 : std::strtoll(text, nullptr, 10);
}

// Open MPI's own mpirun, and srun where it speaks PMIx.
bool is_started_by_mpi() {
  return number_in("OMPI_COMM_WORLD_SIZE") > 1 ||
         (std::getenv("PMIX_RANK") != nullptr && number_in("SLURM_NTASKS") > 1);
}

}  // namespace

Crew::Crew(std::int64_t jobs) : jobs_(thread_count(jobs)) {}
Crew::Crew(std::int64_t jobs, std::unique_ptr<Ranks> ranks) : jobs_(jobs), ranks_(std::move(ranks)) {}
Crew::~Crew() = default;

Crew Crew::of_job(std::int64_t jobs) {
  if (!is_started_by_mpi()) return Crew(jobs);
  const std::int64_t seats = jobs > 0 ? jobs : 1;
  return {seats, std::make_unique<Ranks>(seats)};
}

bool Crew::follows() const {
  return ranks_ && ranks_->follows();
}
void Crew::follow() {
  ranks_->follow();
}
bool Crew::serves() const {
  return ranks_ && ranks_->serves();
}
void Crew::serve(const std::function<std::string(const Piece&)>& perform) {
  ranks_->serve(perform);
}

void Crew::share_out(const Piecework& work) {
  if (ranks_) return ranks_->share_out(work);
  share_among_threads(work, jobs_);
}

}  // namespace armilla
