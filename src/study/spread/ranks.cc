#include "study/spread/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <stdexcept>
#include <thread>

#include "base/error.h"

namespace armilla {
namespace {

// To a follower: a seat and a piece for it; nothing: it is over. From one: a seat, and the news of its piece.
struct Order {
  std::int64_t seat = 0;
  Piece piece{};
  Seat::News news = Seat::News::outcome;
};

std::string text_of(const Order& order) {
  return {reinterpret_cast<const char*>(&order), sizeof order};
}
Order order_in(const std::string& text) {
  Order order;
  std::memcpy(&order, text.data(), sizeof order);
  return order;
}

// Between looks, which cost a core its time: soon again after something happened, later after nothing did.
class Pause {
 public:
  void rest(bool something) {
    pause_ = something ? kLeast : std::min(2 * pause_, kMost);
    std::this_thread::sleep_for(pause_);
  }

 private:
  static constexpr std::chrono::microseconds kLeast{20}, kMost{1000};
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
    Pause pause;
    while (hand_out()) pause.rest(listen());
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
    post_.send(place.rank, text_of({place.seat, *place.piece}));
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
  Pause pause;
  for (;;) {
    bool something = false;
    while (const auto letter = post_->look()) {
      if (letter->second.empty()) return;
      const Order order = order_in(letter->second);
      seats_[static_cast<std::size_t>(order.seat)]->give(order.piece);
      something = true;
    }
    for (std::size_t seat = 0; seat < seats_.size(); ++seat) {
      while (const std::optional<Seat::Message> message = seats_[seat]->look()) {
        const Order news{static_cast<std::int64_t>(seat), {.number = message->piece}, message->news};
        post_->send(0, text_of(news) + message->text);
        something = true;
      }
    }
    pause.rest(something);
  }
}

void Ranks::serve(const std::function<std::string(const Piece&)>& perform) {
  seats_.back()->serve(perform);
}

void Ranks::share_out(const Piecework& work) {
  Leader(work, seats_, *post_).lead();
}

}  // namespace armilla
