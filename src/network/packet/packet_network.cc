#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/error.h"
#include "base/slots.h"
#include "base/units_text.h"
#include "network/links/own_clock.h"
#include "network/links/senders_on_links.h"
#include "network/packet.h"
#include "network/packet/limits.h"
#include "network/packet/simulation.h"
#include "network/routing/ways.h"

namespace armilla {
namespace {

double packets_foreseen(const Foreseen& foreseen, const PacketSettings& settings) {
  return std::max(foreseen.messages, foreseen.bytes / static_cast<double>(settings.payload));
}

FlowJob job_of(const Ways& ways, const NetworkSetup& setup, const ParameterValues& values) {
  FlowJob job;
  job.where = "network packet";
  if (values.is_set("seed") && values.count("seed") < 1)
    throw Error(values.where("seed"), fmt::format("{} is out of range", values.count("seed")),
                fmt::format("from 1 to {}", INT64_MAX));
  job.choice = ways.routing().choice;
  job.graph = network_graph(ways.graph());
  job.flows_come = setup.packets.has_value();
  job.usual_settings = !job.flows_come;
  if (!job.flows_come) {
    job.settings.congestion_control = CongestionControl::dcqcn;
  } else {
    // htsim's are those of its TCP alone.
    job.usual_settings = setup.packets->acks_take_no_time && values.is_set("cc") &&
                         values.choice("cc") != row_of(setup.packets->congestion_control).name;
    if (!job.usual_settings) job.settings = *setup.packets;
    job.choice = WayChoice::first;
    if (values.is_set("routing"))
      throw Error(values.where("routing"),
                  "flows of ns-3's and htsim's files take a way each, which a hash chooses",
                  "give their topology to armilla run, as a machine, for other ways");
  }
  set_transport(job, values);
  if (values.is_set("seed")) job.settings.seed = static_cast<std::uint64_t>(values.count("seed"));
  const Foreseen& foreseen = setup.foreseen;
  // Roughly. Those of RoCE are forgotten when they are over.
  constexpr double kMostFlows = 3e7, kBytesOfFlow = 600;
  if (job.flows_come && family_of(job.settings.congestion_control) != TransportFamily::roce &&
      foreseen.messages > kMostFlows)
    throw Error(job.where,
                fmt::format("the {:.2g} messages are a flow each, which would take about {:.0f} GB",
                            foreseen.messages, foreseen.messages * kBytesOfFlow / 1e9),
                "--network flow, or fewer chunks (preferred-dataset-splits)");
  check_packets(job.where, "messages", "payload", packets_foreseen(foreseen, job.settings),
                job.settings.congestion_control);
  return job;
}

std::string_view packet_routing(const ParameterValues& values) {
  if (values.is_set("routing")) return values.choice("routing");
  return sprays(values) ? "spray" : "ecmp";
}

class PacketNetwork final : public Network, public OwnClock {
 public:
  PacketNetwork(const NetworkSetup& setup, const ParameterValues& values)
      : OwnClock(setup.queue),
        ways_(setup.machine, setup.slow_links, packet_routing(values), setup.damage),
        job_(job_of(ways_, setup, values)),
        packets_(job_),
        shared_(ways_.links().size()),
        foreseen_time_(
            play_time(packets_foreseen(setup.foreseen, job_.settings), job_.settings.congestion_control)) {
    if (setup.shared_dimensions != 0 && !job_.flows_come) senders_.emplace(shared_.size());
  }

  // Fast-forward leaves out nobody knows how much.
  PlayTime foreseen_time() const override { return job_.fast_forward ? PlayTime{} : foreseen_time_; }

  Time send(const Message& message) override {
    ++messages_;
    // The next whole nanosecond: packets know no shorter times.
    const std::int64_t at_ns = (queue().now().value + 999) / 1000;
    if (job_.flows_come) {
      const std::uint32_t number = flights_.add({message, 0, 0});
      packets_.begin({message.source, message.destination, message.bytes.value, at_ns}, number, at_ns);
      wake_at(at_ns);
      return kEndOfTime;
    }
    Alternatives& found = alternatives_of(message);
    const auto chosen = static_cast<std::uint32_t>(found.begin + choose(found));
    if (senders_) senders_->enter(row_links_[chosen], message.sender, queue().now(), shared_);
    const std::uint32_t number = flights_.add({message, chosen, 0});
    go_on(number, at_ns);
    wake_at(at_ns);
    return kEndOfTime;
  }

  std::vector<LinkUse> links() const override {
    packets_.bring_up();
    std::vector<NetworkSums::Carried> carried = shared_;
    if (senders_) senders_->bring_up(carried, queue().now());
    for (std::uint32_t link = 0; link < carried.size(); ++link) {
      const packets::Simulation::Carried sent = packets_.carried(link);
      carried[link].busy = Time(sent.busy_ps);
      carried[link].bytes = Bytes(sent.bytes);
    }
    return ways_.used(carried);
  }
  std::int64_t messages() const override { return messages_; }
  std::int64_t messages_under_way() const override { return static_cast<std::int64_t>(flights_.taken()); }
  std::vector<std::string> notes() const override {
    std::vector<std::string> notes = forward_notes();
    if (std::string collision = ways_.collision_note(); !collision.empty())
      notes.push_back(std::move(collision));
    if (job_.settings.acks_take_no_time) {
      const std::int64_t lost = packets_.dropped_packets() + packets_.lost_packets();
      if (lost > 0)
        notes.push_back(fmt::format(
            "htsim's TCP: {} lost, and {} of {:g} ms ran out{}", counted(lost, "packet"),
            counted(packets_.timeouts(), "timer"),
            static_cast<double>(job_.settings.retransmit_timeout_ns) * 1e-6,
            packets_.timeouts() > 0 ? ": times depend on these timers more than on the links" : ""));
    }
    return notes;
  }

 private:
  std::vector<std::string> forward_notes() const {
    if (!job_.fast_forward) return {};
    packets_.bring_up();
    const std::optional<PacketForward> forwarded = packets_.forwarded();
    if (!forwarded || forwarded->frames == 0)
      return {fmt::format("fast-forward: nothing was left out, as {}",
                          forwarded ? "no messages went on alike for long enough, or came again alike"
                                    : why_all_is_played(job_.settings))};
    // Connections stand still in whole periods.
    const std::string times =
        job_.flows_come && forwarded->stretches > 0
            ? fmt::format("within {:g} % of their time packet by packet, except where chance decides",
                          100 * kForwardBound)
            : "exactly what they take packet by packet";
    return {fmt::format(
        "fast-forward: {:.1f} % of the packets were counted, not played, in {} and {} "
        "that came again; messages take {} (docs/models/fast_forward.md)",
        100 * static_cast<double>(forwarded->frames) / static_cast<double>(packets_.frames()),
        counted(forwarded->stretches, "stretch"), counted(forwarded->patterns, "pattern"), times)};
  }

  struct Flight {
    Message message;
    std::uint32_t row = 0;   // into stretches_
    std::uint32_t done = 0;  // stretches of it
  };

  // Of one sender's messages from one device to another: one connection that takes all its ways packet by
  // packet, or, where devices in between take a message as a whole before they pass it on, a row of
  // connections for each way.
  struct Alternatives {
    std::uint32_t begin = 0, count = 0;  // in stretches_
    std::uint32_t messages_spread = 0;
  };

  Alternatives& alternatives_of(const Message& message) {
    const auto [found, fresh] = known_.try_emplace({ends_of(message), message.sender});
    if (!fresh) return found->second;
    found->second.begin = static_cast<std::uint32_t>(stretches_.size());
    const std::span<const Ways::Way> ways = ways_.ways(message);
    const auto passes_devices = [&](const Ways::Way& way) {
      return std::ranges::any_of(std::span(way).first(way.size() - 1),
                                 [&](std::uint32_t link) { return ways_.is_device(ways_.links()[link].to); });
    };
    if (std::ranges::none_of(ways, passes_devices)) {
      stretches_.push_back({new_connection(ways)});
      keep_links(ways);
    } else {
      for (const Ways::Way& way : ways) {
        stretches_.push_back(row_of_connections(way, message.sender));
        keep_links(std::span(&way, 1));
      }
    }
    found->second.count = static_cast<std::uint32_t>(stretches_.size()) - found->second.begin;
    return found->second;
  }

  std::vector<std::uint32_t> row_of_connections(const Ways::Way& way, std::uint16_t sender) {
    std::vector<std::uint32_t> stretches;
    auto begin = way.begin();
    for (auto link = way.begin(); link != way.end(); ++link) {
      if (!ways_.is_device(ways_.links()[*link].to)) continue;
      const Ways::Way part(begin, link + 1);
      const auto [connection, fresh] = connections_.try_emplace({part, sender});
      if (fresh) connection->second = new_connection(std::span(&part, 1));
      stretches.push_back(connection->second);
      begin = link + 1;
    }
    return stretches;
  }

  // Those that the latest row leads over.
  void keep_links(std::span<const Ways::Way> ways) {
    if (!senders_) return;
    // Connections that do not spray take the first of ways that are there for it.
    row_links_.push_back(Ways::distinct_links(job_.choice == WayChoice::first ? ways.first(1) : ways));
  }

  std::uint32_t new_connection(std::span<const Ways::Way> ways) {
    const std::uint32_t connection = packets_.connect(ways);
    waiting_bytes_.resize(connection + std::size_t{1});
    return connection;
  }

  std::size_t choose(Alternatives& found) const {
    if (found.count == 1 || job_.choice == WayChoice::first) return 0;
    if (job_.choice == WayChoice::spread) return found.messages_spread++ % found.count;
    const std::span<const std::vector<std::uint32_t>> rows =
        std::span(stretches_).subspan(found.begin, found.count);
    return static_cast<std::size_t>(std::ranges::min_element(rows, {},
                                                             [&](const std::vector<std::uint32_t>& row) {
                                                               return (waiting_bytes_[row.front()] +
                                                                       job_.settings.payload) *
                                                                      static_cast<std::int64_t>(row.size());
                                                             }) -
                                    rows.begin());
  }

  // A message that is at the end of a stretch; whether there is another.
  bool goes_on(std::uint32_t number, Flight& flight) {
    waiting_bytes_[stretches_[flight.row][flight.done]] -= flight.message.bytes.value;
    if (++flight.done == stretches_[flight.row].size()) return false;
    go_on(number, packets_.now_ns());
    return true;
  }

  void go_on(std::uint32_t number, std::int64_t at_ns) {
    const Flight& flight = flights_[number];
    const std::uint32_t connection = stretches_[flight.row][flight.done];
    waiting_bytes_[connection] += flight.message.bytes.value;
    packets_.post(connection, flight.message.bytes.value, number, at_ns);
  }

  // Ticks are nanoseconds.
  Time time_of(std::int64_t ns) const override { return Time(ns * 1000); }
  std::int64_t last_tick_by(Time time) const override { return time.value / 1000; }
  bool play_until(std::int64_t ns) override { return packets_.play_until(ns); }
  bool any_under_way() const override { return !flights_.empty(); }
  std::int64_t current_tick() const override { return packets_.now_ns(); }
  std::int64_t next_tick() const override { return packets_.next_ns(); }
  void explain_standstill() const override { packets_.explain_standstill(); }

  void deliver() override {
    for (const std::uint64_t arrived : packets_.take_arrived()) {
      const auto number = static_cast<std::uint32_t>(arrived);
      Flight& flight = flights_[number];
      if (!job_.flows_come && goes_on(number, flight)) continue;
      const std::uint32_t target = flight.message.target;
      const std::uint64_t argument = flight.message.argument;
      if (senders_) senders_->leave(row_links_[flight.row], flight.message.sender, queue().now(), shared_);
      flights_.release(number);
      queue().handler(target).handle(argument);
    }
  }

  Ways ways_;
  FlowJob job_;
  mutable packets::Simulation packets_;  // which is brought up to date when it is asked
  std::map<std::pair<Ways::Way, std::uint16_t>, std::uint32_t> connections_;  // of rows, by way and sender
  std::unordered_map<ConnectionKey, Alternatives, ConnectionHash> known_;
  std::vector<std::vector<std::uint32_t>> stretches_;  // rows of connections
  std::vector<std::vector<std::uint32_t>> row_links_;  // of each row, where senders_ are
  std::vector<std::int64_t> waiting_bytes_;            // per connection: posted, not there yet
  Slots<Flight> flights_;
  std::vector<NetworkSums::Carried> shared_;
  std::optional<SendersOnLinks> senders_;  // where there are several
  PlayTime foreseen_time_;
  std::int64_t messages_ = 0;
};

}  // namespace

std::unique_ptr<Network> make_packet_network(const NetworkSetup& setup, const ParameterValues& values) {
  return std::make_unique<PacketNetwork>(setup, values);
}

}  // namespace armilla
