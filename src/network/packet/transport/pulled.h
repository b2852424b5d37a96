// What NDP and EQDS have in common: switches cut packets that they have no room for down to their headers,
// which go on first, so that a receiver learns of everything that was sent; a receiver paces its senders by
// pulls, one NIC's as fast as its link takes data; packets take all ways of their flow, by as many names as
// it tells apart (`paths`), which switches hash to a way each.
#pragma once

#include <optional>

#include "network/packet/transport/transport.h"

namespace armilla::packets {

Traits pulled_traits(const PacketSettings& settings);

class Pulled : public Transport {
 public:
  std::uint32_t choose_way(std::uint32_t flow, Packet& packet) final;
  std::uint32_t way_back(const Packet& packet) const final;
  void timer(const WheelEvent& event) final;
  void receive_acknowledgement(std::uint32_t packet) final;

 protected:
  // Of a flow, a bit for each packet. Short flows have one line of the processor's cache, and
  // nothing elsewhere.
  struct alignas(64) Pieces {
    struct Word {                 // of 64 packets
      std::uint64_t arrived = 0;  // as the receiver knows
      std::uint64_t known = 0;    // the same, as far as the sender has been told
      std::uint64_t lost = 0;     // to be sent again
    };
    Word first;
    std::vector<Word> rest;
    std::uint64_t first_lost = 0;  // none is before it
    std::int64_t losses = 0;

    std::size_t words() const { return rest.size() + 1; }
    Word& word(std::size_t i) { return i == 0 ? first : rest[i - 1]; }
    const Word& word(std::size_t i) const { return i == 0 ? first : rest[i - 1]; }
    bool has_arrived(std::uint64_t packet) const {
      return (word(packet / 64).arrived >> (packet % 64) & 1) != 0;
    }
    // Returns whether it was news.
    bool lose(std::uint64_t packet);
    // Packets of one word.
    void learn(std::size_t word, std::uint64_t bits);
    void learn(std::uint64_t packet) { learn(packet / 64, std::uint64_t{1} << (packet % 64)); }
    std::uint64_t take_lost();
  };

  // The lines of flows that wait for a NIC's pulls; those before go first.
  static constexpr std::size_t kLines = 3;

  // Pulls of a NIC are as far apart as so many bytes on its link.
  Pulled(Hosts& hosts, double interval_bytes) : Transport(hosts), interval_bytes_(interval_bytes) {}

  void add_flow(bool) override {
    pieces_.emplace_back();
    places_.emplace_back();
    paths_.emplace_back();
  }
  void extend(std::uint32_t flow) override { pieces_[flow].rest.resize(words(flow) - 1); }
  void fetch(std::uint32_t flow) const override {
    __builtin_prefetch(&pieces_[flow], 1);
    __builtin_prefetch(&paths_[flow], 1);
  }
  std::int64_t wire_bytes() const { return settings_.payload + core_.traits.header; }
  // Packets that a sender may send before the first pull: more than there can be under way at once.
  std::int64_t window(const Flow& flow) const;

  // The receiver's: marks data as arrived, returns whether it was news.
  bool note_data(std::uint32_t flow, const Packet& data);
  // The sender's: an acknowledgement, word of a packet that was cut, or a pull has come. What all senders
  // take from it has been noted (what has arrived, what was cut; the flow may be over), the rest has not.
  virtual void heard(std::uint32_t flow, const Packet& packet) = 0;
  // How much of its pull is new to a sender that `had` that of those before.
  static std::uint64_t newly_pulled(std::uint64_t& had, const Packet& packet);
  // Everything sent that is not known to have arrived is lost; returns how many packets that are news.
  std::int64_t lose_all(std::uint32_t flow);

  void reply(std::uint32_t packet, PacketKind kind, std::uint64_t pull);
  // A packet of the flow without data: pulls to its source, requests to its destination.
  void send_control(std::uint32_t flow, PacketKind kind, std::uint64_t pull);

  // Nobody is in line at the NIC of the flow's receiver, and its next pull may go: the caller sends it.
  bool pull_at_once(std::uint32_t flow);
  // Where it is not yet.
  void stand_in_line(std::uint32_t flow, std::size_t line);
  // It is the flow's turn, and it is in that line no longer: stands in line again, if it wants. Returns all
  // that its sender has been pulled for with this pull; nullopt: it needs none.
  virtual std::optional<std::uint64_t> pull(std::uint32_t flow, std::size_t line) = 0;

  std::vector<Pieces> pieces_;
  std::vector<bool> shunned_;  // per flow and path: to be skipped once; empty: none ever

 private:
  struct Place {  // of a flow in the lines
    std::array<std::uint32_t, kLines> next = {kNone, kNone, kNone};
    std::array<bool, kLines> waits = {};
  };
  struct Pacer {
    struct Line {
      std::uint32_t head = kNone, tail = kNone;
    };
    std::array<Line, kLines> lines;
    std::int64_t interval_ps = 0;
    std::int64_t free_ps = 0;  // when the next pull may go
    bool ticks = false;        // an event will look who is next
  };
  struct Paths {
    std::uint32_t next_there = 0, next_back = 0;
  };

  // All before the acknowledgement's sequence has arrived.
  void note_acknowledged(std::uint32_t flow, std::uint64_t sequence);
  std::uint32_t way_of(std::uint32_t flow, std::uint32_t path) const;
  std::uint32_t nic_of_receiver(std::uint32_t flow);
  void tick_later(std::uint32_t nic);

  const double interval_bytes_;
  std::vector<Place> places_;
  std::vector<Paths> paths_;
  std::vector<Pacer> pacers_;  // per NIC
};

}  // namespace armilla::packets
