#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/error.h"
#include "network/packet.h"
#include "network/packet/simulation.h"
#include "network/ways.h"

namespace armilla {
namespace {

FlowJob job_of(const Ways& ways, const ParameterValues& values) {
  constexpr std::int64_t kLargestPayload = 65'000, kLargestBuffer = std::int64_t{4000} << 20;
  FlowJob job;
  job.where = "network packet";
  const auto check = [&](std::string_view name, std::int64_t least, std::int64_t most) {
    if (!values.is_set(name)) return;
    const std::int64_t value = name == "seed" ? values.count(name) : values.bytes(name).value;
    if (value < least || value > most)
      throw Error(values.where(name), fmt::format("{} is out of range", value),
                  fmt::format("from {} to {}", least, most));
  };
  check("payload", 64, kLargestPayload);
  check("buffer", 1 << 14, kLargestBuffer);
  check("seed", 1, INT64_MAX);
  job.graph = network_graph(ways.graph());
  set_roce(job.settings, values);
  use_usual_settings(job.settings, job.graph);
  if (values.is_set("payload")) job.settings.payload = values.bytes("payload").value;
  job.settings.buffer = values.bytes("buffer").value;
  job.settings.seed = static_cast<std::uint64_t>(values.count("seed"));
  return job;
}

// The packets have a clock of their own. It goes ahead of the run's to the next moment at which anything else can happen,
// or to the next arrival, whichever comes first: what is sent then finds the packets where they are at that moment.
class PacketNetwork final : public Network, public EventHandler {
 public:
  PacketNetwork(const NetworkSetup& setup, const ParameterValues& values)
      : queue_(setup.queue),
        ways_(setup.machine, setup.slow_links, values.choice("routing")),
        job_(job_of(ways_, values)),
        packets_(job_),
        counted_(ways_.links().size()),
        target_(queue_.add_handler(*this)) {}
  PacketNetwork(const PacketNetwork&) = delete;
  PacketNetwork& operator=(const PacketNetwork&) = delete;

  Time send(const Message& message) override {
    ++messages_;
    std::uint32_t number = static_cast<std::uint32_t>(flights_.size());
    if (free_.empty()) {
      flights_.emplace_back();
    } else {
      number = free_.back();
      free_.pop_back();
    }
    flights_[number] = {message, way_of(message), 0};
    ++under_way_;
    const std::int64_t at_ns = (queue_.now().value + 999) / 1000;
    go_on(number, at_ns);
    wake_at(at_ns);
    return kEndOfTime;
  }

  void handle(std::uint64_t stamp) override {
    if (stamp != stamp_) return;
    wake_ns_ = INT64_MAX;
    const Time now = queue_.now();
    const std::int64_t now_ns = now.value / 1000;
    // Alone in its round, and in the one before: nobody has anything left to do at this moment.
    bool alone = last_alone_ == now && queue_.handled() == last_handled_ + 1;
    while (packets_.play_until(now_ns)) {
      deliver();
      alone = false;
    }
    if (!alone || queue_.next_time() == now) {
      last_alone_ = now;
      last_handled_ = queue_.handled();
      if (under_way_ > 0) wake_at(now_ns);
      return;
    }
    if (under_way_ == 0) return;
    const Time next = queue_.next_time();
    const std::int64_t until_ns = next == kEndOfTime ? INT64_MAX : (next.value - 1) / 1000;
    if (until_ns > now_ns && packets_.play_until(until_ns)) {
      wake_at(packets_.now_ns());
    } else {
      if (packets_.next_ns() == INT64_MAX) packets_.explain_standstill();
      wake_at(packets_.next_ns());
    }
  }

  void count(const Message& message, std::int64_t times) override {
    messages_ += times;
    for (const std::uint32_t link : ways_.way(message)) {
      NetworkSums::Carried& sum = counted_[link];
      const Bandwidth bandwidth = ways_.links()[link].figures.bandwidth;
      sum.busy = later(sum.busy, saturating_multiply(time_to_move(message.bytes, bandwidth), times));
      sum.bytes = saturating_add(sum.bytes, saturating_multiply(message.bytes, times));
    }
  }

  std::vector<LinkUse> links() const override {
    std::vector<NetworkSums::Carried> carried = counted_;
    for (std::uint32_t link = 0; link < carried.size(); ++link) {
      const PacketSimulation::Carried sent = packets_.carried(link);
      carried[link].busy = later(carried[link].busy, Time(sent.busy_ps));
      carried[link].bytes = saturating_add(carried[link].bytes, Bytes(sent.bytes));
    }
    return ways_.used(carried);
  }
  std::int64_t messages() const override { return messages_; }

 private:
  struct Flight {
    Message message;
    std::uint32_t way = 0;   // into ways_known_
    std::uint32_t done = 0;  // stretches of it
  };

  // Connections from device to device: those in between take a message as a whole before they pass it on.
  std::uint32_t way_of(const Message& message) {
    const auto ends = static_cast<std::uint64_t>(static_cast<std::uint32_t>(message.source)) << 32 |
                      static_cast<std::uint32_t>(message.destination);
    const auto [found, fresh] = way_numbers_.try_emplace(ends, static_cast<std::uint32_t>(stretches_.size()));
    if (!fresh) return found->second;
    std::vector<std::uint32_t>& stretches = stretches_.emplace_back();
    const std::span<const std::uint32_t> way = ways_.way(message);
    std::size_t begin = 0;
    for (std::size_t i = 0; i < way.size(); ++i) {
      const Ways::Link& link = ways_.links()[way[i]];
      if (!ways_.is_device(link.to)) continue;
      const std::uint64_t pair = std::uint64_t{ways_.links()[way[begin]].from} << 32 | link.to;
      const auto [connection, is_new] = connections_.try_emplace(pair);
      if (is_new) connection->second = packets_.connect(way.subspan(begin, i + 1 - begin));
      stretches.push_back(connection->second);
      begin = i + 1;
    }
    return found->second;
  }

  void go_on(std::uint32_t number, std::int64_t at_ns) {
    const Flight& flight = flights_[number];
    count_packets(flight.message);
    packets_.post(stretches_[flight.way][flight.done], flight.message.bytes.value, number, at_ns);
  }

  void count_packets(const Message& message) {
    packets_sent_ +=
        std::ceil(static_cast<double>(message.bytes.value) / static_cast<double>(job_.settings.payload));
    if (packets_sent_ <= static_cast<double>(kMostPackets)) return;
    throw Error(job_.where,
                fmt::format("after {:.3g} s of the run its messages are more than {:.0e} packets",
                            in_seconds(queue_.now()), static_cast<double>(kMostPackets)),
                "--network flow takes a time that does not depend on the bytes; a larger payload makes fewer "
                "packets");
  }

  // Receivers may send.
  void deliver() {
    for (const std::uint64_t arrived : packets_.take_arrived()) {
      const auto number = static_cast<std::uint32_t>(arrived);
      Flight& flight = flights_[number];
      if (++flight.done < stretches_[flight.way].size()) {
        go_on(number, packets_.now_ns());
        continue;
      }
      const std::uint32_t target = flight.message.target;
      const std::uint64_t argument = flight.message.argument;
      free_.push_back(number);
      --under_way_;
      queue_.handler(target).handle(argument);
    }
  }

  void wake_at(std::int64_t ns) {
    if (ns >= wake_ns_) return;
    wake_ns_ = ns;
    queue_.schedule(std::max(queue_.now(), Time(ns * 1000)), target_, ++stamp_);
  }

  EventQueue& queue_;
  Ways ways_;
  FlowJob job_;
  PacketSimulation packets_;
  std::unordered_map<std::uint64_t, std::uint32_t> connections_;  // by the two devices
  std::unordered_map<std::uint64_t, std::uint32_t> way_numbers_;  // by source and destination
  std::vector<std::vector<std::uint32_t>> stretches_;             // connections, per way
  std::vector<Flight> flights_;
  std::vector<std::uint32_t> free_;
  std::vector<NetworkSums::Carried> counted_;
  std::int64_t messages_ = 0, under_way_ = 0;
  double packets_sent_ = 0;
  std::uint32_t target_;
  std::uint64_t stamp_ = 0;
  std::int64_t wake_ns_ = INT64_MAX;
  Time last_alone_ = Time(-1);  // when it was last woken, and how many events had been handled then
  std::int64_t last_handled_ = 0;
};

}  // namespace

std::unique_ptr<Network> make_packet_network(const NetworkSetup& setup, const ParameterValues& values) {
  return std::make_unique<PacketNetwork>(setup, values);
}

}  // namespace armilla
