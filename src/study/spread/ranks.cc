#include "study/spread/ranks.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <deque>
#include <map>
#include <stdexcept>

#include "base/error.h"

namespace armilla {
namespace {

// To a follower: a seat and a piece for it; nothing: it is over. From one: a seat, and the news of its piece.
struct Order {
  std::int64_t seat = 0;
  Piece piece{};
  Seat::News news = Seat::News::outcome;
};

std::string bytes_of_order(const Order& order) {
  return {reinterpret_cast<const char*>(&order), sizeof order};
}
Order order_in(const std::string& text) {
  Order order;
  std::memcpy(&order, text.data(), sizeof order);
  return order;
}

// Between looks, which cost a core its time: until there is news of a seat of this rank, but no longer
// than messages of others, which wake nobody, may wait. Soon again after something happened, later after
// nothing did.
class Pause {
 public:
  explicit Pause(const std::vector<std::unique_ptr<Seat>>& seats) : seats_(seats) {}

  // `longest`: that nobody else may wait for longer.
  void rest(bool something, std::chrono::microseconds longest = kMost) {
    pause_ = something ? kLeast : std::min(2 * pause_, longest);
    sockets_.clear();
    for (const std::unique_ptr<Seat>& seat : seats_)
      sockets_.push_back({.fd = seat->socket(), .events = POLLIN, .revents = 0});
    const timespec pause{.tv_sec = 0, .tv_nsec = std::chrono::nanoseconds(pause_).count()};
    ::ppoll(sockets_.data(), sockets_.size(), &pause, nullptr);
  }

  static constexpr std::chrono::microseconds kLeast{20}, kMost{1000};
  // Where all that can be heard from others is that nothing more is asked for.
  static constexpr std::chrono::microseconds kMostWhileBusy{16000};

 private:
  const std::vector<std::unique_ptr<Seat>>& seats_;
  std::vector<pollfd> sockets_;
  std::chrono::microseconds pause_ = kLeast;
};

struct Place {
  int rank = 0;
  std::int64_t seat = 0;
  std::optional<Piece> piece{};
  bool usable = true;
};

class Leader {
 public:
  Leader(const Piecework& work, std::vector<std::unique_ptr<Seat>>& seats, Post& post)
      : work_(work), seats_(seats), post_(post) {
    for (int rank = 0; rank < post.size(); ++rank) {
      for (std::size_t seat = 0; seat < seats.size(); ++seat)
        places_.push_back({rank, static_cast<std::int64_t>(seat)});
    }
  }

  void lead() {
    Pause pause(seats_);
    while (!(work_.stopped && work_.stopped()) && hand_out()) pause.rest(listen());
  }

 private:
  // Whether there is anything to wait for.
  bool hand_out() {
    bool busy = false, usable = false;
    for (Place& place : places_) {
      if (!place.usable) continue;
      usable = true;
      if (!place.piece && (place.piece = next())) give(place);
      busy = busy || place.piece.has_value();
    }
    if (!usable && (!over_ || !again_.empty()))
      throw Error("mpirun", fmt::format("nobody is left who could do anything: {}", absence_));
    return busy;
  }

  std::optional<Piece> next() {
    if (!again_.empty()) {
      const Piece piece = again_.front();
      again_.pop_front();
      return piece;
    }
    if (over_) return std::nullopt;
    const std::optional<Piece> piece = work_.next();
    over_ = !piece;
    return piece;
  }

  void give(const Place& place) {
    if (place.rank == 0) return seats_[static_cast<std::size_t>(place.seat)]->give(*place.piece);
    post_.send(place.rank, bytes_of_order({place.seat, *place.piece}));
  }

  bool listen() {
    bool something = false;
    for (std::size_t seat = 0; seat < seats_.size(); ++seat) {
      while (std::optional<Seat::Message> message = seats_[seat]->look()) {
        hear(place_of(0, static_cast<std::int64_t>(seat)), *std::move(message));
        something = true;
      }
    }
    while (const auto letter = post_.look()) {
      const Order order = order_in(letter->second);
      hear(place_of(letter->first, order.seat),
           {order.news, order.piece.number, letter->second.substr(sizeof order)});
      something = true;
    }
    return something;
  }

  Place& place_of(int rank, std::int64_t seat) {
    return places_[static_cast<std::size_t>(rank) * seats_.size() + static_cast<std::size_t>(seat)];
  }

  void hear(Place& place, Seat::Message message) {
    // Of a runner that died with an outcome sent: its successor has what was given since.
    if (message.news == Seat::News::death && (!place.piece || place.piece->number != message.piece)) return;
    const std::optional<Piece> piece = std::exchange(place.piece, std::nullopt);
    switch (message.news) {
      case Seat::News::outcome:
        return work_.finish(message.piece, std::move(message.text));
      case Seat::News::death:
        if (++deaths_[message.piece] < kMostDeaths) return again_.push_front(*piece);
        return work_.give_up(message.piece, message.text);
      case Seat::News::absence:
        place.usable = false;
        absence_ = message.text;
        if (piece) again_.push_front(*piece);
        return;
      case Seat::News::fault:
        throw std::runtime_error(message.text);
    }
  }

  const Piecework& work_;
  std::vector<std::unique_ptr<Seat>>& seats_;
  Post& post_;
  std::vector<Place> places_;
  std::deque<Piece> again_;  // pieces whose runners died
  std::map<std::int64_t, int> deaths_;
  std::string absence_;
  bool over_ = false;
};

}  // namespace

Ranks::Ranks(std::int64_t seats) {
  for (std::int64_t seat = 0; seat < seats; ++seat) {
    seats_.push_back(std::make_unique<Seat>());
    if (!seats_.back()->serves()) continue;
    for (std::int64_t other = 0; other < seat; ++other) seats_[static_cast<std::size_t>(other)]->abandon();
    return;
  }
  post_.emplace();
}

Ranks::~Ranks() {
  if (!post_ || post_->rank() > 0) return;
  for (int rank = 1; rank < post_->size(); ++rank) post_->send(rank, {});
}

void Ranks::follow() {
  Pause pause(seats_);
  for (std::size_t under_way = 0;;) {
    bool something = false;
    while (const auto letter = post_->look()) {
      if (letter->second.empty()) return;
      const Order order = order_in(letter->second);
      seats_[static_cast<std::size_t>(order.seat)]->give(order.piece);
      ++under_way;
      something = true;
    }
    for (std::size_t seat = 0; seat < seats_.size(); ++seat) {
      while (const std::optional<Seat::Message> message = seats_[seat]->look()) {
        const Order news{static_cast<std::int64_t>(seat), {.number = message->piece}, message->news};
        post_->send(0, bytes_of_order(news) + message->text);
        under_way -= std::min<std::size_t>(under_way, 1);
        something = true;
      }
    }
    pause.rest(something, under_way < seats_.size() ? Pause::kMost : Pause::kMostWhileBusy);
  }
}

void Ranks::serve(const std::function<std::string(const Piece&)>& perform) {
  seats_.back()->serve(perform);
}

void Ranks::share_out(const Piecework& work) {
  Leader(work, seats_, *post_).lead();
}

}  // namespace armilla
