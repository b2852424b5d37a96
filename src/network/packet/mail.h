// Messages: what connections carry. Sequence numbers of a message begin at a multiple of the payload, so that
// packets never span two messages; its last packet is shorter on the wire than in them. And what has arrived,
// of messages and of flows that come one by one.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "network/packet/flows.h"

namespace armilla::packets {

class Mail {
 public:
  struct Message {
    std::uint64_t end = 0, bytes_end = 0;  // in sequence numbers
    std::uint64_t number = 0;
  };
  struct Box {  // of a connection
    std::vector<Message> messages;
    std::size_t posted = 0, arrived = 0, forgotten = 0;  // of them
    std::uint64_t end = 0;                               // of all messages ever
  };

  Mail(Core& core, const Flows& flows) : core_(core), flows_(flows) {}

  // Whether flows are connections.
  bool is_used() const { return !boxes_.empty(); }
  const Box& operator[](std::uint32_t connection) const { return boxes_[connection]; }

  // One more connection.
  void open() { boxes_.emplace_back(); }
  void post(std::uint32_t connection, std::int64_t bytes, std::uint64_t message);
  // The connection's next message begins; returns where it ends.
  std::uint64_t begin_next(std::uint32_t connection);
  // Receivers have data in order up to where they expect more.
  void note_arrivals(std::uint32_t connection) {
    Box& box = boxes_[connection];
    while (box.arrived < box.posted && box.messages[box.arrived].end <= flows_[connection].expected) {
      tell_next(connection);
      core_.watcher.arrived(connection);
    }
  }
  // Messages of a connection arrive in the order in which they were posted.
  void tell_next(std::uint32_t connection) {
    Box& box = boxes_[connection];
    arrived_.push_back(box.messages[box.arrived++].number);
  }
  // Bytes on the wire, but headers, of a packet of the connection.
  std::uint32_t wire_payload(std::uint32_t connection, std::uint64_t sequence, std::uint64_t payload) const;

  // Flows that come are told by numbers of their own.
  void name_flow(std::uint32_t flow, std::uint64_t number) {
    if (number_of_.size() <= flow) number_of_.resize(flow + std::size_t{1});
    number_of_[flow] = number;
  }
  void flow_is_over(std::uint32_t flow) {
    if (!number_of_.empty()) arrived_.push_back(number_of_[flow]);
  }

  std::vector<std::uint64_t>& arrived() { return arrived_; }

 private:
  Core& core_;
  const Flows& flows_;
  std::vector<Box> boxes_;                // per flow, where flows are connections
  std::vector<std::uint64_t> number_of_;  // per flow, where flows come one by one
  std::vector<std::uint64_t> arrived_;    // by their numbers
};

}  // namespace armilla::packets
