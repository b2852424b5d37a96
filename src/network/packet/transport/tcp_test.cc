#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "base/oracle_testing.h"
#include "network/packet.h"
#include "network/packet/packet_testing.h"

namespace armilla {
namespace {

constexpr std::int64_t kTcpSegment = 1502;  // on the wire, with 1448 bytes of data

struct TcpCase {
  CongestionControl control;
  std::int64_t senders, bytes;
  std::int64_t gigabits, receiver_gigabits, delay_ns;
  std::int64_t queue;  // segments, at the switch
  std::int64_t mark;   // segments queued beyond which DCTCP's switch marks; 0: never
  double mean_us, max_us;
};

FlowJob tcp_job(const TcpCase& row) {
  FlowJob job;
  job.where = "test";
  job.graph = star_graph(row.senders + 1, row.gigabits * 1'000'000'000, row.delay_ns);
  job.graph.links.back().bits_per_second = row.receiver_gigabits * 1'000'000'000;
  for (std::int64_t sender = 0; sender < row.senders; ++sender)
    job.flows.push_back({sender, row.senders, row.bytes});
  job.settings.congestion_control = row.control;
  job.settings.payload = 1448;
  job.settings.retransmit_timeout_ns = 200'000'000;
  // One port that is full leaves as much of the buffer free as it holds.
  job.settings.buffer = 2 * row.queue * kTcpSegment;
  job.settings.ecn = row.mark > 0;
  const std::int64_t marked = row.mark * kTcpSegment;
  for (const std::int64_t rate : {row.gigabits, row.receiver_gigabits})
    job.settings.ecn_of_rate[rate * 1'000'000'000] = {marked, marked, 1};
  return job;
}

// Receivers' timers of 40 ms run for long after the last packet.
TEST(Tcp, FiguresOverTimeEndWithTheTraffic) {
  FlowJob job = star_job(3);
  job.settings.congestion_control = CongestionControl::tcp_cubic;
  job.settings.payload = 1448;
  job.flows = {{0, 2, 100'000}, {1, 2, 100'000}};
  job.sampled = true;
  const PacketOutcome outcome = simulate_packets(job);
  const std::int64_t last = std::max(outcome.flows[0].fct_ns, outcome.flows[1].fct_ns);
  EXPECT_GE(outcome.end_ns, last);
  EXPECT_LT(outcome.end_ns, last + 10'000);
  ASSERT_FALSE(outcome.samples.links.empty());
  EXPECT_GE(outcome.samples.links[0].utilisation.size(), 128U);
}

// Until the last byte is there, of ns-3 3.37: senders and a receiver around one router, IPv4, no pacing, at
// least 200 ms until a retransmission, acknowledgements delayed by 40 ms at most; DCTCP behind a RED queue.
TEST(Tcp, AnswersAsNs3) {
  using enum CongestionControl;
  const TcpCase rows[] = {
      {tcp_newreno, 1, 10'000'000, 100, 100, 1000, 1000, 0, 842.6, 842.6},
      {tcp_cubic, 1, 10'000'000, 100, 100, 1000, 1000, 0, 856.2, 856.2},
      {tcp_newreno, 1, 1'000'000, 10, 10, 1000, 1000, 0, 837.6, 837.6},
      {tcp_newreno, 4, 2'500'000, 100, 100, 1000, 10'000, 0, 822.4, 834.9},
      {tcp_newreno, 16, 1'000'000, 100, 100, 1000, 10'000, 0, 1315.5, 1332.1},
      {tcp_newreno, 1, 100'000'000, 100, 10, 100'000, 100, 0, 94'804, 94'804},
      {tcp_newreno, 1, 100'000'000, 100, 10, 10'000, 200, 0, 83'144, 83'144},
      {tcp_newreno, 2, 50'000'000, 100, 10, 10'000, 200, 0, 77'357, 83'096},
      {tcp_cubic, 1, 100'000'000, 100, 10, 10'000, 200, 0, 83'317, 83'317},
      {tcp_cubic, 2, 50'000'000, 100, 10, 10'000, 200, 0, 82'832, 83'095},
      {tcp_dctcp, 2, 50'000'000, 100, 10, 10'000, 10'000, 20, 81'910, 83'191},
      {tcp_dctcp, 1, 100'000'000, 100, 10, 100'000, 10'000, 65, 100'470, 100'470},
      {tcp_dctcp, 4, 50'000'000, 25, 25, 20'000, 5000, 50, 65'321, 67'671},
  };
  for (const TcpCase& row : rows) {
    const FlowJob job = tcp_job(row);
    const PacketOutcome outcome = simulate_packets(job);
    double sum = 0, most = 0;
    for (const PacketFlowOutcome& flow : outcome.flows) {
      ASSERT_GE(flow.fct_ns, 0);
      sum += static_cast<double>(flow.fct_ns) * 1e-3;
      most = std::max(most, static_cast<double>(flow.fct_ns) * 1e-3);
    }
    const std::string which = testing::PrintToString(&row - rows);
    EXPECT_NEAR(sum / static_cast<double>(row.senders) / row.mean_us, 1, 0.03) << which;
    EXPECT_NEAR(most / row.max_us, 1, 0.03) << which;
    EXPECT_EQ(outcome.timeouts, 0) << which;
    EXPECT_EQ(outcome.pauses, 0) << which;
  }
}

// "RESULT n=4 bytes=2500000 cc=TcpNewReno fct_max_ns=854272 ...": senders around a router with links of 1 us.
// It says neither the links' rate nor the segments' size: the rate is that of two which moves all in this
// time, and segments are as many as packets passed two links, those that answer among them.
TEST(Tcp, AnswersAsTheNs3OfOthers) {
  for (const Oracle& oracle : oracles("network/ns3_tcp.txt")) {
    int rows = 0;
    std::ifstream file(oracle.path);
    for (std::string line; std::getline(file, line); ++rows) {
      SCOPED_TRACE(line);
      std::map<std::string, std::string> row;
      for (const std::string& word : split(line, ' ')) {
        const std::size_t sign = word.find('=');
        if (sign != std::string::npos) row[word.substr(0, sign)] = word.substr(sign + 1);
      }
      const std::int64_t senders = std::stoll(row.at("n")), bytes = std::stoll(row.at("bytes"));
      const double least = std::stod(row.at("fct_min_ns")), most = std::stod(row.at("fct_max_ns"));
      ASSERT_EQ(row.at("done"), row.at("n"));
      const double bits = static_cast<double>(senders * bytes) * 8;
      const std::int64_t gigabits = bits / most <= 10 ? 10 : 100;
      const std::string& cc = row.at("cc");
      FlowJob job =
          tcp_job({cc == "TcpCubic"   ? CongestionControl::tcp_cubic
                   : cc == "TcpDctcp" ? CongestionControl::tcp_dctcp
                                      : CongestionControl::tcp_newreno,
                   senders, bytes, gigabits, gigabits, 1000, 10'000, cc == "TcpDctcp" ? 65 : 0, 0, 0});
      if (std::stod(row.at("txpkts")) < 2 * static_cast<double>(senders * bytes) / 1448)
        job.settings.payload = 8900;
      std::int64_t shortest = INT64_MAX, longest = 0;
      for (const PacketFlowOutcome& flow : simulate_packets(job).flows) {
        ASSERT_GE(flow.fct_ns, 0);
        shortest = std::min(shortest, flow.fct_ns);
        longest = std::max(longest, flow.fct_ns);
      }
      // Which of sixteen is first, and when (here 6 % later), goes by who lost what in whose first windows.
      if (senders <= 4) {
        EXPECT_NEAR(static_cast<double>(shortest), least, 0.03 * least);
      }
      EXPECT_NEAR(static_cast<double>(longest), most, 0.03 * most);
    }
    EXPECT_GE(rows, oracle.whole ? 7 : 5);
  }
}

// A port that is full drops, and its senders notice: by what comes after the loss, or by their timers when
// nothing does.
TEST(Tcp, MakesLossesGood) {
  using enum CongestionControl;
  for (const CongestionControl control : {tcp_newreno, tcp_cubic, tcp_dctcp}) {
    const FlowJob job = tcp_job({control, 16, 1'000'000, 100, 100, 1000, 100, 0, 0, 0});
    const PacketOutcome outcome = simulate_packets(job);
    EXPECT_GT(outcome.dropped_packets, 0);
    EXPECT_GE(outcome.repeated_packets, outcome.dropped_packets);
    EXPECT_LE(outcome.longest_queue, job.settings.buffer / 2);
    for (const PacketFlowOutcome& flow : outcome.flows) EXPECT_GE(flow.fct_ns, 0);
  }
}

// The first segment is answered when no second one comes; a handshake goes before.
TEST(Tcp, DelaysAnAcknowledgementForAWhile) {
  FlowJob job = tcp_job({CongestionControl::tcp_newreno, 1, 3 * 1448, 100, 100, 1000, 100, 0, 0, 0});
  job.settings.initial_window = 1;
  job.settings.delayed_ack_ns = 500'000;
  const std::int64_t round_trip_ns = 4000;
  const std::int64_t fct_ns = simulate_packets(job).flows.front().fct_ns;
  EXPECT_GT(fct_ns, 500'000 + 3 * round_trip_ns);
  EXPECT_LT(fct_ns, 500'000 + 3 * round_trip_ns + 1000);
}

// Two senders, one port: it holds eight packets, and drops some by chance from the sixth on.
TEST(Tcp, PortsMayHaveQueuesOfTheirOwn) {
  TcpCase row{CongestionControl::tcp_newreno, 2, 1'000'000, 100, 100, 1000, 100'000, 0, 0, 0};
  FlowJob job = tcp_job(row);
  EXPECT_EQ(simulate_packets(job).dropped_packets, 0);
  job.settings.port_queue = 8;
  job.settings.port_queue_random = 0;
  const PacketOutcome whole = simulate_packets(job);
  EXPECT_GT(whole.dropped_packets, 0);
  EXPECT_LE(whole.longest_queue, 8 * kTcpSegment);
  EXPECT_GT(whole.longest_queue, 7 * kTcpSegment);
  job.settings.port_queue_random = 3;
  const PacketOutcome random = simulate_packets(job);
  EXPECT_LE(random.longest_queue, 8 * kTcpSegment);
  EXPECT_NE(random.dropped_packets, whole.dropped_packets);
  job.settings.seed = 2;
  EXPECT_NE(simulate_packets(job).flows.front().fct_ns, random.flows.front().fct_ns);
  for (const PacketOutcome* outcome : {&whole, &random})
    for (const PacketFlowOutcome& flow : outcome->flows) EXPECT_GE(flow.fct_ns, 0);
}

// One flow over two links of 100 Gb/s and 1 us each.
TEST(Tcp, AcknowledgementsMayTakeNoTime) {
  constexpr std::int64_t kSegments = 10, kHeaders = kTcpSegment - 1448;
  TcpCase row{CongestionControl::tcp_newreno, 1, kSegments * 1448, 100, 100, 1000, 10'000, 0, 0, 0};
  FlowJob job = tcp_job(row);
  const std::int64_t with = simulate_packets(job).flows.front().fct_ns;
  job.settings.acks_take_no_time = true;
  const std::int64_t without = simulate_packets(job).flows.front().fct_ns;
  // There and there again, where the sender's window holds all: what the request takes, then the data.
  const double request = 2 * (kHeaders * 0.08 + 1000), data = (kSegments + 1) * kTcpSegment * 0.08 + 2000;
  EXPECT_NEAR(static_cast<double>(without), request + data, 20);
  // The answer to the request and the last acknowledgement go back.
  EXPECT_NEAR(static_cast<double>(with - without), 2 * request, 20);
  // Without a loss, slow start to two segments makes ten take longer than no end to it.
  job.settings.initial_window = 2;
  const std::int64_t open = simulate_packets(job).flows.front().fct_ns;
  job.settings.first_threshold = 2;
  EXPECT_GT(simulate_packets(job).flows.front().fct_ns, open);
}

}  // namespace
}  // namespace armilla
