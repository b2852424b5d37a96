#include "study/spread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <vector>

#include "study/spread/seat.h"

namespace armilla {
namespace {

TEST(Threads, EveryPieceIsDoneOnce) {
  for (const std::int64_t threads : {1, 4}) {
    std::vector<int> done(1000);
    std::int64_t next = 0;
    Piecework work;
    work.next = [&]() -> std::optional<Piece> {
      if (next == 1000) return std::nullopt;
      const std::int64_t number = next++;
      return Piece{number, 3 * number};
    };
    work.perform = [](const Piece& piece) { return std::to_string(piece.number * piece.limit); };
    work.finish = [&](std::int64_t piece, const std::string& outcome) {
      EXPECT_EQ(outcome, std::to_string(3 * piece * piece));
      ++done[static_cast<std::size_t>(piece)];
    };
    Crew(threads).share_out(work);
    EXPECT_EQ(done, std::vector<int>(1000, 1)) << threads << " threads";
  }
}

TEST(Threads, AnExceptionEndsTheWork) {
  std::int64_t next = 0;
  Piecework work;
  work.next = [&]() -> std::optional<Piece> { return Piece{next++}; };
  work.perform = [](const Piece& piece) -> std::string {
    if (piece.number >= 10) throw std::runtime_error("ten");
    return {};
  };
  work.finish = [](std::int64_t, const std::string&) {};
  EXPECT_THROW(share_among_threads(work, 3), std::runtime_error);
  EXPECT_LE(next, 13);
}

Seat::Message news_of(Seat& seat) {
  for (int i = 0; i < 100'000; ++i) {
    if (std::optional<Seat::Message> message = seat.look()) return *message;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  ADD_FAILURE() << "no news for 10 s";
  return {};
}

// What a runner of these tests does with a piece.
std::string odd_job(const Piece& piece) {
  if (piece.number == 1) ::raise(SIGKILL);
  if (piece.number == 2) ::_exit(7);
  if (piece.number == 3) throw std::runtime_error("three");
  return std::to_string(piece.number + piece.limit) + " by " + std::to_string(::getpid());
}

pid_t runner_in(const std::string& outcome) {
  return static_cast<pid_t>(std::stol(outcome.substr(outcome.find("by ") + 3)));
}

TEST(Seats, ADeadRunnerHasASuccessor) {
  Seat seat;
  if (seat.serves()) seat.serve(odd_job);
  seat.give({10});
  const Seat::Message first = news_of(seat);
  EXPECT_EQ(first.news, Seat::News::outcome);
  EXPECT_THAT(first.text, testing::StartsWith("10 by "));
  seat.give({1});
  const Seat::Message death = news_of(seat);
  EXPECT_EQ(death.news, Seat::News::death);
  EXPECT_EQ(death.piece, 1);
  EXPECT_EQ(death.text, "signal 9 (Killed)");
  seat.give({7, 4});
  const Seat::Message second = news_of(seat);
  EXPECT_EQ(second.news, Seat::News::outcome);
  EXPECT_THAT(second.text, testing::StartsWith("11 by "));
  EXPECT_EQ(second.piece, 7);
  EXPECT_NE(runner_in(first.text), runner_in(second.text));
}

// A runner that is killed between two pieces, before or after the second was given, has lost neither.
TEST(Seats, ARunnerThatDiesIdleLosesNothing) {
  Seat seat;
  if (seat.serves()) seat.serve(odd_job);
  for (std::int64_t piece = 100; piece < 160; piece += 2) {
    seat.give({piece});
    const Seat::Message first = news_of(seat);
    ASSERT_EQ(first.news, Seat::News::outcome);
    EXPECT_EQ(first.piece, piece);
    ::kill(runner_in(first.text), SIGKILL);
    seat.give({piece + 1});
    Seat::Message second = news_of(seat);
    // Killed after its outcome was sent and before it had said that it is idle, or else with the
    // second piece.
    if (second.news == Seat::News::death) {
      if (second.piece == piece + 1) seat.give({piece + 1});
      second = news_of(seat);
    }
    EXPECT_EQ(second.news, Seat::News::outcome);
    EXPECT_EQ(second.piece, piece + 1);
    EXPECT_THAT(second.text, testing::StartsWith(std::to_string(piece + 1) + " by "));
  }
}

TEST(Seats, WhatIsThrownIsToldAndARunnerThatEndsIsGone) {
  Seat seat;
  if (seat.serves()) seat.serve(odd_job);
  seat.give({3});
  const Seat::Message fault = news_of(seat);
  EXPECT_EQ(fault.news, Seat::News::fault);
  EXPECT_EQ(fault.text, "three");
  seat.give({2});
  const Seat::Message absence = news_of(seat);
  EXPECT_EQ(absence.news, Seat::News::absence);
  EXPECT_EQ(absence.text, "the process that was to do it ended with exit code 7");
  EXPECT_FALSE(seat.look());
}

}  // namespace
}  // namespace armilla
