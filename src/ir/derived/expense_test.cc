#include "ir/derived/expense.h"

#include <gtest/gtest.h>

#include "ir/derived/short_run_testing.h"

namespace armilla {
namespace {

// 4 ranks in 2 s: one computes for 1 s, three for half a second.
Run priced_run() {
  Run run = short_run(4);
  Device& device = run.study.machine.device;
  device.busy_power = Power(700);
  device.idle_power = Power(100);
  device.price = Money(3600);
  run.study.machine.host_power = Power(50);
  run.result.ranks = 4;
  run.result.classes.resize(2);
  run.result.classes[0].compute = milliseconds(1000);
  run.result.classes[1].compute = milliseconds(500);
  run.result.classes[1].representative = 1;
  run.result.classes[1].ranks = 3;
  return run;
}

TEST(Expense, IsWhatDevicesDrawAndCost) {
  const Expense expense = expense_of(priced_run());
  // 2.5 s at 700 W, 5.5 s at 100 W, and 8 s of hosts at 50 W.
  EXPECT_DOUBLE_EQ(expense.energy->value, 2.5 * 700 + 5.5 * 100 + 8 * 50);
  EXPECT_DOUBLE_EQ(expense.full_power->value, 8 * 750);
  EXPECT_DOUBLE_EQ(expense.cost->value, 8);
  EXPECT_DOUBLE_EQ(expense.tokens, 4 * 800);
}

TEST(Expense, OtherDevicesDrawWhatTheyDraw) {
  armilla::Run run = priced_run();
  Device other = run.study.machine.device;
  other.idle_power = Power(300);
  other.price = Money(7200);
  run.study.machine.others = {{1, 9, other}};  // beyond the ranks, too
  const Expense expense = expense_of(run);
  EXPECT_DOUBLE_EQ(expense.energy->value, 2.5 * 700 + 100 + 4.5 * 300 + 8 * 50);
  EXPECT_DOUBLE_EQ(expense.cost->value, 2 + 12);
  run.study.machine.others[0].device.idle_power.reset();
  run.study.machine.others[0].device.price.reset();
  EXPECT_FALSE(expense_of(run).is_known());
  // Of devices that take no part nothing needs to be known.
  run.study.machine.others[0].first = 4;
  EXPECT_TRUE(expense_of(run).energy.has_value());
}

TEST(Expense, IsUnknownWithoutFigures) {
  armilla::Run run = priced_run();
  run.study.machine.device.idle_power.reset();
  EXPECT_FALSE(expense_of(run).energy.has_value());
  EXPECT_TRUE(expense_of(run).cost.has_value());
  run = priced_run();
  run.study.machine.host_power.reset();
  EXPECT_DOUBLE_EQ(expense_of(run).energy->value, 2.5 * 700 + 5.5 * 100);
  run.workload = "a trace";
  EXPECT_FALSE(expense_of(run).is_known());
}

TEST(Expense, LeastEnergyIsReachedByTheRunItself) {
  const armilla::Run run = priced_run();
  const double computing = 2.5e12;
  const auto least = [&](Time iteration, double computes) {
    return least_energy(run.study.machine, 4, iteration, computes);
  };
  EXPECT_EQ(least(run.result.iteration, computing), expense_of(run).energy->value);
  EXPECT_LT(least(run.result.iteration - Time(1'000'000), computing), expense_of(run).energy->value);
  EXPECT_LT(least(run.result.iteration, computing - 1e6), expense_of(run).energy->value);
}

}  // namespace
}  // namespace armilla
