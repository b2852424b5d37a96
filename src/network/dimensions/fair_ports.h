// Links by which messages leave a rank, shared fairly among those who send there: the collectives of a family
// of groups are one sender, all messages of pipelines another. Those of one sender are served first come,
// first served; of several, each gets an equal part of the link's time for as long as it has something to
// send (processor sharing; Kleinrock, Queueing Systems II, 4.4), as of the queue pairs of a network adapter,
// which takes turns packet by packet. While a port has one sender, its messages are booked the moment they
// come: the same as a link without senders.
//
// Exact to a picosecond: what is left of a message is counted in parts of one, so that what happens at a
// port depends on nothing but when messages came there, not on their order within a moment.
// Cost: O(1) per message of a port with one sender, and per row of them; O(senders) and an event more where
// there are several. A row of which some are left when another sender comes is messages again.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/units.h"
#include "event/event_queue.h"
#include "event/state_digest.h"
#include "network/links/link_table.h"

namespace armilla {

class FairPorts final : public EventHandler {
 public:
  // A message that is through: its first byte was sent at `begin`, its last one at `end`. Of a row, the first
  // byte of the first one and the last byte of the last one.
  struct Departure {
    std::uint32_t flight = 0;
    Time begin, end;
  };
  // A message at the port's near end, with its first byte and its last; not after now.
  struct Arrival {
    std::uint32_t flight = 0;
    std::uint16_t sender = 0;
    Time head, tail;
    Time service;           // when alone
    std::uint32_t row = 1;  // Message::row
  };
  // Who is told when messages depart, ahead of that where nobody else sends. A departure that somebody got in
  // the way of is called off before a later one is told.
  class Client {
   public:
    virtual ~Client() = default;
    virtual void departs(const Departure& departure) = 0;
    virtual void called_off(std::uint32_t flight) = 0;
    // Before that: of the last `left` messages of a row each has a flight of its own from now on. The first
    // of them, which are numbered in a row; the row is what went before them.
    virtual std::vector<std::uint32_t> taken_apart(std::uint32_t flight, std::uint32_t left) = 0;
  };

  FairPorts(EventQueue& queue, Client& client)
      : queue_(queue), client_(client), target_(queue.add_handler(*this)) {}
  FairPorts(const FairPorts&) = delete;
  FairPorts& operator=(const FairPorts&) = delete;

  // Of a link, which stays where it is.
  std::uint32_t open(Link& link);
  void join(std::uint32_t port, const Arrival& arrival);
  // Whether nobody but the sender has anything left at the port: then rows may join.
  bool is_left_to(std::uint16_t sender, std::uint32_t port);

  void handle(std::uint64_t argument) override;
  bool empty() const { return ports_.empty(); }

  // What is under way at ports that several share, and the events of all ports; `described(flight)` is a
  // digest. `begun(time)` is told when what is served began to be.
  template <class Described, class Begun>
  void add_state(StateDigest& state, const Described& described, const Begun& begun) const {
    const Time now = queue_.now();
    // The sum of a digest knows no order: each part says which port it is of, and which place it has there.
    for (std::size_t number = 0; number < ports_.size(); ++number) {
      const Port& port = ports_[number];
      if (port.senders.empty()) continue;
      state.add('p', number, now.value - port.since.value, port.senders.size());
      for (const Sender& sender : port.senders) {
        state.add('q', number, sender.name);
        for (std::size_t place = 0; place < sender.waiting().size(); ++place) {
          const Waiting& waiting = sender.waiting()[place];
          const Digest flight = described(waiting.flight);
          begun(waiting.begin);
          state.add('w', number, sender.name, place, flight.low, flight.high,
                    static_cast<std::uint64_t>(waiting.left), static_cast<std::uint64_t>(waiting.left >> 64),
                    waiting.begin == kEndOfTime ? INT64_MAX : (waiting.begin - now).value);
        }
      }
    }
    queue_.for_each_pending([&](const Event& event) {
      if (event.target == target_) state.add('s', (event.time - now).value);
    });
  }

 private:
  static constexpr std::int64_t kParts = 5040;  // of a picosecond: up to ten senders share it exactly
  struct Booked {
    Departure departure;
    Time service;
    std::uint32_t row = 1;
  };
  struct Waiting {
    std::uint32_t flight = 0;
    Time begin;            // kEndOfTime: not yet
    WideProduct left = 0;  // parts of picoseconds of the link's whole time
  };
  struct Sender {
    std::uint16_t name = 0;
    std::vector<Waiting> messages;  // in the order in which they came
    std::size_t first = 0;          // of them that is not through: it is served
    bool waits() const { return first < messages.size(); }
    std::span<const Waiting> waiting() const { return std::span(messages).subspan(first); }
  };
  struct Port {
    Link* link = nullptr;
    std::vector<Booked> booked;   // of one sender, in the order of their ends
    std::size_t first = 0;        // of them that is not known to be through
    std::uint16_t sender = 0;     // whose they are
    std::vector<Sender> senders;  // where there are several; each waits for something
    Time since;                   // when they were last looked at
    std::uint32_t stamp = 0;      // of its event
  };

  void book(Port& port, const Arrival& arrival);
  void take_over(Port& port, const Booked& booked);
  void begin_sharing(Port& port);
  void advance(Port& port);
  void end_sharing(Port& port);
  void wait(std::uint32_t number);

  EventQueue& queue_;
  Client& client_;
  std::uint32_t target_;
  std::deque<Port> ports_;  // in place while others are opened
};

// Links by which messages come to a rank, of which one learns when the last byte would be through. Messages
// of one sender are served first come, first served. Those of several fill each other's gaps: a message that
// came slowly, or long ago, has been served in what others have left since its first byte was there. Who is
// looked at first does not wait, so that order decides who waits, not how much is carried.
// Cost: O(1) for one sender, else O(intervals since the message's first byte), of which the latest
// 1024 are kept: before them all time counts as taken, so that no more is carried than there is time for.
class Intake {
 public:
  struct Served {
    Time begin, end;
  };
  Served book(std::uint16_t sender, Time head, Time tail, Time service);
  // So many messages in a row, each of which comes as fast as it is served.
  void book_row(std::uint16_t sender, Time head, Time service, std::uint32_t messages);
  // As far as it matters to what comes from `floor` on; `number` names the link.
  void add_state(StateDigest& state, std::uint64_t number, Time floor, Time now) const;

 private:
  struct Interval {
    Time begin, end;
  };
  void occupy(Time begin, Time end, Time service);
  void forget_first();

  static constexpr std::size_t kMostIntervals = 1024;
  std::vector<std::pair<std::uint16_t, Time>> free_;  // per sender, when it has been served
  std::deque<Interval> busy_;                         // ascending, with gaps between them
  Time taken_until_;                                  // what lies before is not known any more
};

}  // namespace armilla
