// A place at which pieces are done by a process of its own: a keeper, and the runner that it forks and,
// should that die, forks again. Linux: both end when the process above them does, however that ends.
//
// The three share a pair of sockets that keep messages whole: a piece goes down; up comes the
// outcome, that the runner died, or that it cannot work at all. Messages say of which piece they are, since a
// runner may die after it has sent an outcome, while who gives pieces has given the next one: that one is
// still to be done, and the death is of the piece before. A runner says in memory that it shares with its
// keeper which piece it has; one that dies without a piece is followed by another, and nobody hears of it.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "study/spread.h"

namespace armilla {

class Seat {
 public:
  enum class News : std::uint8_t {
    outcome,  // of the piece
    death,    // of who had it; the text says how
    fault,    // what `perform` threw
    absence   // nobody will do anything here any more: the exit code of a runner that could not begin
  };
  struct Message {
    News news = News::outcome;
    std::int64_t piece = 0;  // the number, of an outcome, a death or a fault
    std::string text;
  };

  // Forks the keeper. In the runner, this returns as well: with `serves`.
  Seat();
  ~Seat();
  Seat(const Seat&) = delete;
  Seat& operator=(const Seat&) = delete;

  bool serves() const { return serves_; }
  // Of the runner: pieces until there are no more, then the process ends.
  [[noreturn]] void serve(const std::function<std::string(const Piece&)>& perform);

  // To be forgotten by a process that was forked while it had this one.
  void abandon();

  void give(const Piece& piece) const;
  // What has come up, without waiting.
  std::optional<Message> look();
  // What becomes readable when there is something to look at; negative: nothing will come.
  int socket() const { return absent_ ? -1 : socket_; }

 private:
  void keep();

  std::atomic<std::int64_t>* at_work_ =
      nullptr;       // shared by keeper and runners: the number of the piece that is being done
  int socket_ = -1;  // of the runner its own end, else that of who gives pieces
  pid_t keeper_ = 0;
  bool serves_ = false;
  bool absent_ = false;
};

}  // namespace armilla
