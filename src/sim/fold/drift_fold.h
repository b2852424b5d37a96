// Folding in time of stages that drift apart. Where messages go one way only, as in the forward passes of
// GPipe, a slow stage falls further and further behind those before it, and the state of the whole run never
// repeats (sim/fold/time_fold.h). But the state of each stage does: it waits for nobody, since what it
// receives has long been there, or only for stages that go at its pace.
//
// A stage is a set of ranks that share collectives; one feeds another if it sends to it. Looked at are stages
// whose collectives are lone (sim/memo/lone_groups.h), whose messages share no links with those of others,
// and which feed each other in no circle, at moments when none of their own communications is under way: then
// nothing of a stage is on any link. Its state is what its ranks are at, which receives wait, and its events,
// but not how many messages have arrived. Suppose that it was there before, q periods and a time P ago; let Q
// be a multiple of all stages' q, and P' = P Q / q. What followed the first such look e of a stage follows
// again and again, if that is so of all stages that feed it and if of each of them, v feeding u,
//   P'(v) = P'(u), e(v) <= e(u), and as many messages were there at each look of u from e(u) on: all that
//           arrive later were sent after e(v), and repeat as v does; or
//   P'(v) < P'(u), and u has waited for none from e(u) on, for P'(u) at least, and had taken at e(u) all that
//           had arrived at e(v): what u takes P'(u) later was sent after e(v), and comes P'(v) later.
// So a number of periods, the same for all, is taken out of every loop; but stages then are at different
// moments, and their ranks later than the run's clock by different times. Behind the loop:
//   - what a stage sends to one that is later must be there before it is waited for: in truth it is earlier;
//   - a stage to which a later one sends must be idle: it waits until then, and is as late from there on;
//   - a collective of both, one that is not lone beside such messages, and all that depends on moments that
//     the clock does not know are refused (ClocksDisagree): the run is played anew without this.
// A rank is fed by one stage alone, or messages of stages at different paces would meet on its link. Times
// are exact, which a property test demands; events that are left out are not counted. Cost: per period and
// stage O(ranks + feeds + pending events + looks of it x its feeds), for at most 128 looks, 64 stages and 256
// feeds; with more it does nothing.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "event/state_digest.h"
#include "sim/engine/messenger.h"
#include "sim/engine/recorder.h"
#include "sim/engine/run_context.h"
#include "sim/memo/memoised_collectives.h"

namespace armilla {

struct NativePlay;
struct RunParts;

// What ranks would do to each other depends on moments that the run's clock does not know: it has to be
// played without stages that have clocks of their own.
struct ClocksDisagree {};

class DriftFold final : public RunObserver {
 public:
  // Without `may_look` it does nothing.
  DriftFold(const NativePlay& play, bool may_look, const RunContext& context, const RunParts& parts);
  DriftFold(const DriftFold&) = delete;
  DriftFold& operator=(const DriftFold&) = delete;

  // Stages of this loop, which all ranks are in, are looked at from now on, if they may be.
  void begin(std::size_t loop);
  void end() { is_looking_ = false; }
  bool is_looking() const { return is_looking_; }
  // Whether some ranks are later than others.
  bool clocks_differ() const { return differ_; }
  // At the end of a round. Whether something was left out.
  bool round_over();

  // Each but `arrives` may throw ClocksDisagree.
  void issues(std::int32_t rank, std::uint32_t family) override;
  void leaves(const Channel& channel) override;
  void arrives(const Channel& channel) override;
  void waits(const Channel& channel) override;
  void meets(const Channel& channel) override;

 private:
  // Messages of all feeds at a moment.
  struct Counts {
    Time at;
    std::vector<std::int64_t> arrived;  // since the stages were found
    std::vector<std::int64_t> here;     // that are not received yet
  };
  // A moment of a stage, and sums so far.
  struct Look {
    Counts counts;
    std::int64_t period = 0;
    Recorder::Sums ranks;
    MemoisedCollectives::Sums performed;
  };
  struct Stage {
    std::vector<std::int32_t> ranks;  // simulated
    std::vector<std::size_t> feeds;   // that lead to it
    std::int64_t calls = 0;           // collectives in a period
    std::map<Digest, Look> looks;
    std::int64_t latest = -1;   // period that it was looked at in
    Look from, until;           // alike
    bool repeats = false;       // these are the latest two
    std::vector<Counts> alike;  // all looks since it has done so, in the same time
    Time since;                 // of these, the one from which on it follows that it will go on so
    // Since clocks differ: messages of earlier stages under way to it, whether it has been made to wait for a
    // later one, and whether it has issued collectives that are not lone.
    std::int64_t coming = 0;
    bool has_waited = false, is_exchanging = false;

    std::int64_t periods() const { return until.period - from.period; }
    Time length() const { return until.counts.at - from.counts.at; }
    Time pace(std::int64_t of_periods) const { return length() * (of_periods / periods()); }
    // The look at that time.
    const Counts& at(Time time) const { return *std::ranges::find(alike, time, &Counts::at); }
  };
  // A channel between stages.
  struct Feed {
    std::size_t from = 0, to = 0;  // stages
    Channel channel;
    std::int64_t messages = 0;  // in a period
    std::int64_t arrived = 0;   // since the stages were found
    Time last_wait{-1};         // for one of them
  };

  bool find_stages();
  bool have_own_links();
  // Puts stages behind those that feed them; false where they feed each other in a circle.
  bool order_stages();
  bool look(Stage& stage);
  bool add_state(StateDigest& state, const Stage& stage) const;
  bool try_to_leave_out();
  // Finds the stage's `since`, those that feed it having theirs; false where it does not follow yet.
  bool goes_on(Stage& stage, std::int64_t periods) const;
  // Whether no message of the stage's collectives was sent one by one.
  bool performs_all(const Stage& stage) const;
  bool holds(std::size_t feed, const Counts& look, std::int64_t periods) const;
  void leave_out(std::int64_t periods);
  void count_messages(std::int64_t periods);
  void compare_clocks();
  std::size_t stage_of(std::int32_t rank) const { return stage_of_[static_cast<std::size_t>(rank)]; }
  std::int32_t simulated(std::int32_t rank) const { return context_.classes.simulated_rank(rank); }
  // Ranks of a channel, simulated.
  std::int32_t source_of(const Channel& channel) const { return simulated(channel.source); }
  std::int32_t destination_of(const Channel& channel) const { return simulated(channel.destination); }
  // While stages are looked at; nullptr: none.
  Feed* feed_over(const Channel& channel);
  Time later_by(std::int32_t rank) const { return later_by_[static_cast<std::size_t>(rank)]; }

  RunContext context_;
  const RunParts& parts_;
  bool may_look_, is_looking_ = false, differ_ = false;
  std::size_t loop_ = 0;
  std::vector<std::size_t> stage_of_;  // per simulated rank
  std::vector<Stage> stages_;
  std::vector<std::size_t> order_;  // of stages, each behind those that feed it
  std::vector<Feed> feeds_;
  std::vector<Time> later_by_;  // per simulated rank, than the clock
};

}  // namespace armilla
