// RoCE v2: queue pairs that keep to a rate, a window or both; every packet in order is acknowledged;
// go-back-N, go-back-0 or selective repeat (IRN, Mittal et al., SIGCOMM 2018).
#include <algorithm>

#include "network/packet/forward/words.h"
#include "network/packet/transport/selective.h"
#include "network/packet/transport/transport.h"

namespace armilla::packets {

namespace {

Traits roce_traits(const PacketSettings& settings) {
  const CongestionControl algorithm = settings.congestion_control;
  const bool telemetry = algorithm == CongestionControl::hpcc;
  const bool htsim = telemetry && settings.hpcc_as_htsim;
  const bool timely = algorithm == CongestionControl::timely, swift = algorithm == CongestionControl::swift;
  const std::uint32_t more = telemetry ? kTelemetry : timely || swift ? kTimeStamp : 0;
  // Round trips as long as the simulation, and whole chunks that are sent again, are not the same later.
  // Rates of DCTCP and Swift still climb when they seem to stand, and one cut too many takes long to be made
  // good where links differ in speed.
  const bool shifts = settings.recovery != LossRecovery::go_back_0 && algorithm != CongestionControl::dctcp &&
                      !swift && !htsim && !(timely && settings.timely_without_timestamps);
  // Telemetry, and what of a flow arrived out of order, are not written down.
  const bool repeats = shifts && !telemetry && settings.recovery != LossRecovery::selective &&
                       settings.ack_interval <= settings.payload;
  if (htsim)
    return {.header = kPulledHeader,
            .control = kPulledHeader,
            .telemetry = true,
            .told_when_sent = true,
            .forgets = true};
  return {.header = kDataHeader + more,
          .control = std::max(kSmallestFrame - 34 + 22, kLinkAndIp + kAcknowledgementHeader + more),
          .telemetry = telemetry,
          .windows = (settings.window || swift) && !htsim,
          .forgets = true,
          .shifts = shifts,
          .repeats = repeats};
}

class Roce : public Transport {
 public:
  explicit Roce(Hosts& hosts)
      : Transport(hosts),
        algorithm_(settings_.congestion_control),
        selective_(settings_.recovery == LossRecovery::selective),
        // Swift is an algorithm of windows.
        window_follows_rate_(settings_.window_follows_rate || algorithm_ == CongestionControl::swift),
        // Whole chunks are acknowledged: with less than one under way a flow would wait for ever.
        least_window_(settings_.recovery == LossRecovery::go_back_0
                          ? static_cast<std::uint64_t>(settings_.chunk + settings_.payload)
                          : 1) {}

  void add_flow(bool) override {
    switch (algorithm_) {
      case CongestionControl::dcqcn:
        dcqcn_.emplace_back();
        break;
      case CongestionControl::hpcc:
        hpcc_.emplace_back();
        break;
      case CongestionControl::timely:
        timely_.emplace_back();
        break;
      case CongestionControl::dctcp:
        dctcp_.emplace_back();
        break;
      case CongestionControl::swift:
        swift_.emplace_back();
        break;
      default:
        break;
    }
    if (selective_) repeats_.emplace_back();
  }

  void forget(std::uint32_t index) override {
    if (selective_) repeats_[index] = {};
  }

  void extend(std::uint32_t index) override {
    if (selective_) repeats_[index].grow(words(index));
  }

  void begin(std::uint32_t index) override {
    const std::int64_t rate = flows_[index].rate;
    switch (algorithm_) {
      case CongestionControl::dcqcn:
        dcqcn_[index] = {};
        dcqcn_[index].target = rate;
        break;
      case CongestionControl::hpcc:
        hpcc_[index] = {};
        hpcc_[index].rate = rate;
        for (HpccState::PerHop& hop : hpcc_[index].per_hop) hop.rate = rate;
        break;
      case CongestionControl::timely:
        timely_[index] = {};
        timely_[index].rate = rate;
        break;
      case CongestionControl::dctcp:
        dctcp_[index] = {};
        break;
      case CongestionControl::swift:
        swift_[index] = {};
        break;
      default:
        break;
    }
  }
  void begin_again(std::uint32_t index, std::int64_t) override { begin(index); }

  // What recovers may send though the window is full: it sends what is counted as under way already.
  bool may_send(std::uint32_t index) const override {
    const Flow& flow = flows_[index];
    return (flow.next < flow.size && !flow.window_full(window_follows_rate_, least_window_)) ||
           recovers(index);
  }

  void next_data(std::uint32_t index, Packet& data) override {
    const Flow& flow = flows_[index];
    data.sequence = flow.next;
    if (selective_ && repeats_[index].recovering) {
      Selective& repeat = repeats_[index];
      data.sequence = repeat.resend * payload();
      ++repeat.resend;
      repeat.find_lost();
    }
    data.payload = static_cast<std::uint16_t>(std::min(payload(), flow.size - data.sequence));
  }

  void receive_data(std::uint32_t number) override {
    Packet& data = packets_[number];
    const std::uint32_t index = data.flow;
    Flow& flow = flows_[index];
    bool reply = false, missing = false;
    const std::uint64_t arrived = data.sequence;
    const auto chunk = static_cast<std::uint64_t>(settings_.chunk);
    if (selective_ && !flow.finished) {
      Selective& repeat = repeats_[index];
      const std::uint64_t place = arrived / payload();
      Selective::set(repeat.arrived, place);
      if (arrived == flow.expected) {
        flow.expected = repeat.expected(place, payload(), flow.size);
      } else if (arrived > flow.expected) {
        // Where packets take several ways, one that is early says nothing of those before it.
        missing = flow.ways == 1;
      }
      reply = true;
      data.repeat = arrived;
    } else if (arrived == flow.expected) {
      flow.expected += data.payload;
      // As ns-3 has it: the interval is compared with all bytes so far, so that it only delays the first
      // acknowledgement.
      reply = flow.expected >= static_cast<std::uint64_t>(settings_.ack_interval) ||
              (chunk != 0 && flow.expected % chunk == 0);
    } else if (arrived > flow.expected) {
      // One NACK for each gap and interval: every packet behind a gap would ask for the same.
      if (events_.now() >= flow.next_nack_ns || flow.last_nack != flow.expected) {
        flow.next_nack_ns = events_.now() + kNackInterval;
        flow.last_nack = flow.expected;
        if (settings_.recovery == LossRecovery::go_back_0) flow.expected = flow.expected / chunk * chunk;
        reply = missing = true;
      }
    } else {
      // Old data is answered only where the sender asks, after a timeout.
      reply = data.asks;
    }
    if (mail_.is_used()) mail_.note_arrivals(index);
    if (reply) {
      hosts_.answer(number, missing ? PacketKind::nack : PacketKind::ack);
    } else {
      flows_.free_packet(number);
    }
  }

  void receive_acknowledgement(std::uint32_t number) override {
    const Packet packet = packets_[number];
    const std::uint32_t index = packet.flow;
    Flow& flow = flows_[index];
    std::uint64_t sequence = packet.sequence;
    // Only whole chunks count: what is left of one is sent again from its beginning.
    if (settings_.recovery == LossRecovery::go_back_0 && sequence < flow.size) {
      const auto chunk = static_cast<std::uint64_t>(settings_.chunk);
      sequence = sequence / chunk * chunk;
    }
    const std::uint64_t before = flow.acknowledged;
    flow.acknowledged = std::max(flow.acknowledged, sequence);
    // Without this a window would count what is under way below zero, and stay full.
    if (flow.window != 0 || packet.asks || mail_.is_used())
      flow.next = std::max(flow.next, flow.acknowledged);
    if (flow.acknowledged >= flow.size) hosts_.finish(index);
    if (selective_) {
      Selective& repeat = repeats_[index];
      const std::uint64_t place = packet.repeat / payload(), first = flow.acknowledged / payload();
      Selective::set(repeat.known, place);
      repeat.highest_known = std::max(repeat.highest_known, place);
      // What was found missing before is on its way again; only a gap behind all that is a new loss.
      if (packet.kind == PacketKind::nack && first >= repeat.recover_until) {
        repeat.resend = first;
        repeat.recover_until = (flow.highest + payload() - 1) / payload();
      }
      repeat.resend = std::max(repeat.resend, first);
      if (flow.ways == 1 || repeat.recovering) repeat.find_lost();
    } else if (packet.kind == PacketKind::nack) {
      flow.next = flow.acknowledged;
    }
    if (!flow.finished) control(index, packet, number, flow.acknowledged - before);
    flows_.free_packet(number);
    hosts_.refresh(index);
    hosts_.serve(flow.port);
  }

  void timed_out(std::uint32_t index) override {
    Flow& flow = flows_[index];
    if (selective_) {
      repeats_[index].resend = flow.acknowledged / payload();
      repeats_[index].recovering = true;
    } else {
      flow.next = flow.acknowledged;
    }
  }

  std::uint32_t stamp_of(std::uint32_t kind, std::uint32_t index) const override {
    return kind == kIncrease ? flows_[index].increase_stamp : flows_[index].life;
  }

  void timer(const WheelEvent& event) override {
    Flow& flow = flows_[event.subject];
    DcqcnState& state = dcqcn_[event.subject];
    // Timers are not taken back when a flow starts over: those of a former life carry another stamp.
    if (flow.finished || event.stamp != stamp_of(event.kind, event.subject)) {
      events_.forget();
      return;
    }
    switch (event.kind) {
      case kAlpha:
        state.alpha = (1 - settings_.gain) * state.alpha + (state.marked_for_alpha ? settings_.gain : 0);
        state.marked_for_alpha = false;
        events_.schedule(after(settings_.alpha_interval_us), kAlpha, event.subject, event.stamp);
        break;
      case kDecrease:
        events_.schedule(after(settings_.decrease_interval_us), kDecrease, event.subject, event.stamp);
        if (!state.marked_for_decrease) break;
        state.decrease(flow, settings_);
        hosts_.refresh(event.subject);
        events_.schedule(after(settings_.increase_interval_us), kIncrease, event.subject,
                         ++flow.increase_stamp);
        break;
      default:
        events_.schedule(after(settings_.increase_interval_us), kIncrease, event.subject,
                         ++flow.increase_stamp);
        state.increase(flow, settings_);
        hosts_.refresh(event.subject);
        break;
    }
  }

  void code(std::uint32_t index, Words& words) override {
    if (algorithm_ == CongestionControl::dcqcn) {
      DcqcnState& state = dcqcn_[index];
      words.value(state.target);
      words.real(state.alpha);
      for (bool* flag : {&state.marked_for_alpha, &state.marked_for_decrease, &state.started})
        words.value(*flag);
      state.stage =
          std::min<std::int64_t>(state.stage, settings_.fast_recoveries + 1);  // all later ones are alike
      words.value(state.stage);
    } else if (algorithm_ == CongestionControl::timely) {
      TimelyState& state = timely_[index];
      words.sequence_if_any(state.next_update);
      state.stage = std::min(state.stage, TimelyState::kLeaps);
      for (std::int64_t* value : {&state.rate, &state.stage, &state.last_round_trip_ns}) words.value(*value);
      words.real(state.difference_ns);
    }
  }
  // DCQCN's rates stand between its timers.
  std::int64_t longest_period_ns(std::uint32_t index) const override {
    const Flow& flow = flows_[index];
    return algorithm_ == CongestionControl::dcqcn && flow.rate < flow.line_rate
               ? settings_.increase_interval_us * 1000
               : 0;
  }

  void shift(std::uint32_t index, const Shift& by) override {
    const auto move = [&](std::uint64_t& sequence) {
      if (sequence != 0) sequence += by.bytes;
    };
    switch (algorithm_) {
      case CongestionControl::hpcc:
        move(hpcc_[index].next_update);
        by.move(hpcc_[index].last);
        break;
      case CongestionControl::timely:
        move(timely_[index].next_update);
        break;
      case CongestionControl::dctcp:
        move(dctcp_[index].next_update);
        move(dctcp_[index].reduced_until);
        break;
      case CongestionControl::swift:
        swift_[index].last_decrease_ns += by.ns;
        break;
      default:
        break;
    }
    if (selective_) repeats_[index].shift(by.bytes / payload());
  }

 protected:
  bool recovers(std::uint32_t index) const { return selective_ && repeats_[index].recovering; }

  enum : std::uint32_t { kLook = kTimer, kAlpha = kIdleTimers, kDecrease, kIncrease };

 private:
  std::int64_t after(std::int64_t us) const { return events_.now() + us * 1000; }

  // The mark of the data packet comes back in its acknowledgement, which is a CNP at once.
  virtual void control(std::uint32_t index, const Packet& packet, std::uint32_t number, std::uint64_t bytes) {
    Flow& flow = flows_[index];
    const std::int64_t now = events_.now();
    switch (algorithm_) {
      case CongestionControl::dcqcn: {
        if (!packet.echo) break;
        DcqcnState& state = dcqcn_[index];
        state.marked_for_alpha = state.marked_for_decrease = true;
        // Timers begin with the first mark: until then alpha means nothing.
        if (state.started) break;
        state.alpha = 1;
        state.marked_for_alpha = false;
        events_.schedule(after(settings_.alpha_interval_us), kAlpha, index, flow.life);
        // A nanosecond later than alpha's.
        events_.schedule(after(settings_.decrease_interval_us) + 1, kDecrease, index, flow.life);
        state.target = flow.rate;
        state.started = true;
        break;
      }
      case CongestionControl::hpcc: {
        const std::int64_t rate =
            hpcc_[index].acknowledged(flow, packet.sequence, packets_.telemetry(number), settings_);
        if (rate >= 0) change_rate(index, rate);
        break;
      }
      case CongestionControl::timely:
        timely_[index].acknowledged(flow, packet.sequence,
                                    now - (settings_.timely_without_timestamps ? 0 : packet.sent_ns),
                                    settings_);
        break;
      case CongestionControl::dctcp:
        dctcp_[index].acknowledged(flow, packet.sequence, packet.echo, settings_);
        break;
      case CongestionControl::swift:
        swift_[index].acknowledged(flow, now, static_cast<std::int64_t>(bytes), now - packet.sent_ns,
                                   flow.hops, settings_);
        break;
      default:
        break;
    }
  }

  void change_rate(std::uint32_t index, std::int64_t rate) {
    Flow& flow = flows_[index];
    // The time of the next packet was set by the old rate: the difference is made good.
    flow.next_send_ns += transmission_ns(flow.last_size, rate) - transmission_ns(flow.last_size, flow.rate);
    hosts_.wake_earlier(flow);
    flow.rate = rate;
  }

  const CongestionControl algorithm_;
  const bool selective_, window_follows_rate_;
  const std::uint64_t least_window_;
  std::vector<DcqcnState> dcqcn_;  // per flow, those of the algorithm in use
  std::vector<HpccState> hpcc_;
  std::vector<TimelyState> timely_;
  std::vector<DctcpState> dctcp_;
  std::vector<SwiftState> swift_;
  std::vector<Selective> repeats_;
};

// HtsimHpccState says what is different.
class HtsimHpcc final : public Roce {
 public:
  using Roce::Roce;

  void add_flow(bool open) override {
    Roce::add_flow(open);
    states_.emplace_back();
  }

  void begin(std::uint32_t index) override {
    Roce::begin(index);
    HtsimHpccState& state = states_[index];
    state = {};
    state.committed = state.next_update = flows_[index].next;
    state.window = static_cast<std::uint64_t>(static_cast<double>(flows_[index].rate) / 8e9 *
                                              static_cast<double>(HtsimHpccState::kRoundTripNs));
    look(index, 0);
  }

  void extend(std::uint32_t index) override {
    Roce::extend(index);
    // A connection that is over begins again.
    if (flows_[index].started && !flows_[index].finished && !states_[index].looks) look(index, 0);
  }

  bool may_send(std::uint32_t index) const override {
    return Roce::may_send(index) && (flows_[index].next < states_[index].committed || recovers(index));
  }

  void timer(const WheelEvent& event) override {
    if (event.kind != kLook) return Roce::timer(event);
    Flow& flow = flows_[event.subject];
    HtsimHpccState& state = states_[event.subject];
    if (event.stamp != flow.life) return events_.forget();
    state.looks = false;
    if (flow.finished || state.committed >= flow.size) return;
    const std::int64_t due_ps = state.last_look_ps + state.spacing_ps(frame());
    // It may have been put off since.
    if (state.last_look_ps >= 0 && due_ps > events_.now() * 1000) return look(event.subject, due_ps);
    state.last_look_ps = std::max(due_ps, (events_.now() - 1) * 1000);
    // Where there is no room, none comes before an acknowledgement.
    if (state.window < state.committed - flow.acknowledged + payload()) return;
    state.committed += payload();
    look(event.subject, state.last_look_ps + state.spacing_ps(frame()));
    hosts_.refresh(event.subject);
    hosts_.serve(flow.port);
  }

 private:
  void look(std::uint32_t index, std::int64_t at_ps) {
    states_[index].looks = true;
    events_.schedule(std::max(events_.now(), (at_ps + 999) / 1000), kLook, index, flows_[index].life);
  }
  std::int64_t frame() const { return static_cast<std::int64_t>(payload()) + kPulledHeader; }

  void control(std::uint32_t index, const Packet& packet, std::uint32_t number, std::uint64_t) override {
    HtsimHpccState& state = states_[index];
    const std::int64_t spacing_ps = state.spacing_ps(frame()), now_ps = events_.now() * 1000;
    if (packet.kind == PacketKind::nack) {
      state.committed = flows_[index].next;
      state.window = payload();
    } else {
      state.acknowledged(packet.sequence, packets_.telemetry(number), static_cast<std::int64_t>(payload()),
                         frame(), settings_);
    }
    if (state.looks || state.committed >= flows_[index].size) return;
    // It has looked in vain since, once in each of these times.
    if (state.last_look_ps >= 0 && now_ps > state.last_look_ps)
      state.last_look_ps += (now_ps - state.last_look_ps) / spacing_ps * spacing_ps;
    look(index, state.last_look_ps + spacing_ps);
  }

  std::vector<HtsimHpccState> states_;
};

std::unique_ptr<Transport> make_roce(Hosts& hosts) {
  const PacketSettings& settings = hosts.core().settings;
  if (settings.congestion_control == CongestionControl::hpcc && settings.hpcc_as_htsim)
    return std::make_unique<HtsimHpcc>(hosts);
  return std::make_unique<Roce>(hosts);
}

}  // namespace

const TransportRow kRoce = {roce_traits, make_roce};

}  // namespace armilla::packets
