// Who does the pieces of long work: threads of this process, or, under mpirun, processes on many machines.
//
// Pieces are numbered. Each goes to whoever is free, so that a slow one holds nobody up; what comes of it
// goes to the leader, who alone has the database. Under MPI every rank runs the same program with the same
// arguments on the same files: a piece is a number and what the leader alone knows of it, two other numbers;
// what comes of it is a text.
//
// What a death costs. A rank of MPI does nothing itself but hand pieces on: it has a keeper, a process forked
// before MPI is set up (children of a process that uses MPI are unsafe: docs.open-mpi.org, "fork, system,
// popen"), and the keeper forks the runner, which knows nothing of MPI and does the pieces. A runner that
// dies, killed, out of memory or by a fault of ours, loses the piece that it had: the keeper forks another,
// and the piece is done again. Should a rank itself die, Open MPI ends the whole job; what the leader has
// written stays.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace armilla {

struct Piece {
  std::int64_t number = 0;
  std::int64_t limit = 0;  // of what is to be done; what it means is for who does it
  std::int64_t part = 0;   // of the work, where its parts are shared out one after the other
};

struct Piecework {
  // The next piece, or nothing: there are no more. Once that was said, it is not asked again.
  std::function<std::optional<Piece>()> next;
  // Does a piece and returns what came of it. Called by many at once, in other processes under MPI. What it
  // throws ends the whole work.
  std::function<std::string(const Piece&)> perform;
  // Takes what came of a piece, by its number.
  std::function<void(std::int64_t, std::string)> finish;
  // Takes a piece that killed whoever did it, each of kMostDeaths times.
  std::function<void(std::int64_t, const std::string& how)> give_up;
  // Whether nobody wants the rest any more, pieces under way included. Threads see it in `perform`, other
  // processes are left to their work, and end with the leader.
  std::function<bool()> stopped;
};
// All but `perform` are never called by two at once, and under MPI by the leader alone.
inline constexpr int kMostDeaths = 3;

// The cores of the machine, where `asked` is 0.
std::int64_t thread_count(std::int64_t asked);

// By threads of this process. Rethrows the first exception of the work, after the pieces under way.
void share_among_threads(const Piecework& work, std::int64_t threads);

class Ranks;

// Everybody who takes part.
class Crew {
 public:
  // This process alone, `jobs` pieces at once; 0: as many as the machine has cores.
  explicit Crew(std::int64_t jobs = 0);
  // The ranks of the MPI job that this process was started in, `jobs` pieces at once each (0: one), or, where
  // it was started by itself, as above. Before the process has threads or open files of its own. Throws Error
  // under an MPI that this program was built without.
  static Crew of_job(std::int64_t jobs);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // Whether this process is a rank that hands on what the leader says: `follow` is all that it does.
  bool follows() const;
  // Until the leader has no more work.
  void follow();

  // Whether this process is a runner: `serve` is all that it does.
  bool serves() const;
  [[noreturn]] void serve(const std::function<std::string(const Piece&)>& perform);

  // Of the leader, or of a process without others.
  void share_out(const Piecework& work);
  std::int64_t jobs() const { return jobs_; }  // pieces at once, in this process

 private:
  Crew(std::int64_t jobs, std::unique_ptr<Ranks> ranks);

  std::int64_t jobs_;
  std::unique_ptr<Ranks> ranks_;  // of an MPI job
};

}  // namespace armilla
