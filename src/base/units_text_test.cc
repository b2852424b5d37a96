#include "base/units_text.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/amount.h"
#include "base/duration.h"
#include "base/error_testing.h"

namespace armilla {
namespace {

TEST(UnitsText, EveryTimeUnit) {
  EXPECT_EQ(parse_time("7ps", "t"), picoseconds(7));
  EXPECT_EQ(parse_time("500ns", "t"), nanoseconds(500));
  EXPECT_EQ(parse_time("2.5us", "t"), nanoseconds(2500));
  EXPECT_EQ(parse_time("2.5\u00b5s", "t"), nanoseconds(2500));
  EXPECT_EQ(parse_time("2.5\u03bcs", "t"), nanoseconds(2500));
  EXPECT_EQ(parse_time(" 3 ms ", "t"), milliseconds(3));
  EXPECT_EQ(parse_time("1s", "t"), milliseconds(1000));
  EXPECT_EQ(parse_time("1min", "t"), milliseconds(60'000));
  EXPECT_EQ(parse_time("1h", "t"), milliseconds(3'600'000));
  EXPECT_EQ(parse_time("0s", "t"), Time(0));
}

TEST(UnitsText, DecimalAndBinaryPrefixesOfBytes) {
  EXPECT_EQ(parse_bytes("1kB", "b"), Bytes(1000));
  EXPECT_EQ(parse_bytes("1KiB", "b"), Bytes(1024));
  EXPECT_EQ(parse_bytes("25MiB", "b"), Bytes(26'214'400));
  EXPECT_EQ(parse_bytes("80GB", "b"), Bytes(80'000'000'000));
  EXPECT_EQ(parse_bytes("1.5TiB", "b"), Bytes(1'649'267'441'664));
}

TEST(UnitsText, BitsAndBytesPerSecond) {
  EXPECT_DOUBLE_EQ(parse_bandwidth("400Gbps", "b").value, 50e9);
  EXPECT_DOUBLE_EQ(parse_bandwidth("400Gb/s", "b").value, 50e9);
  EXPECT_DOUBLE_EQ(parse_bandwidth("50GB/s", "b").value, 50e9);
  EXPECT_DOUBLE_EQ(parse_bandwidth("50GBps", "b").value, 50e9);
  EXPECT_DOUBLE_EQ(parse_bandwidth("3.35TB/s", "b").value, 3.35e12);
  EXPECT_DOUBLE_EQ(parse_bandwidth("1GiB/s", "b").value, 1073741824.0);
}

TEST(UnitsText, RatesAndFrequencies) {
  EXPECT_DOUBLE_EQ(parse_flop_rate("312TFLOPS", "f").value, 312e12);
  EXPECT_DOUBLE_EQ(parse_flop_rate("1.5 PFLOP/s", "f").value, 1.5e15);
  EXPECT_DOUBLE_EQ(parse_flop_rate("624TOPS", "f").value, 624e12);
  EXPECT_DOUBLE_EQ(parse_frequency("1.41GHz", "f").value, 1.41e9);
}

TEST(UnitsText, NumbersWithoutDimension) {
  EXPECT_EQ(parse_count("-3", "c"), -3);
  EXPECT_DOUBLE_EQ(parse_real("-2.5e3", "r"), -2500);
  EXPECT_DOUBLE_EQ(parse_fraction("0.9", "f"), 0.9);
  EXPECT_DOUBLE_EQ(parse_fraction("90%", "f"), 0.9);
  EXPECT_DOUBLE_EQ(parse_fraction("100 %", "f"), 1);
}

TEST(UnitsText, ABareNumberIsRefused) {
  EXPECT_EQ(error_of([] { parse_time("500", "latency"); }),
            "latency: '500' has no unit\n  hint: expected a time with its unit, such as '500ns'");
  EXPECT_EQ(error_of([] { parse_bytes("25", "bucket"); }),
            "bucket: '25' has no unit\n  hint: expected a size with its unit, such as '25MiB'");
  EXPECT_EQ(error_of([] { parse_bandwidth("300", "x"); }),
            "x: '300' has no unit\n  hint: expected a bandwidth with its unit, such as '400Gbps'");
}

TEST(UnitsText, AnUnknownUnitIsRefusedWithTheNearest) {
  EXPECT_EQ(error_of([] { parse_bytes("25mib", "bucket"); }),
            "bucket: 'mib' is not a unit of a size\n  hint: did you mean 'MiB'?");
  EXPECT_EQ(
      error_of([] { parse_time("5 fortnights", "t"); }),
      "t: 'fortnights' is not a unit of a time\n  hint: known: ps, ns, us, \u00b5s, \u03bcs, ms, s, min, h");
  EXPECT_EQ(error_of([] { parse_frequency("1.4GHzz", "f"); }),
            "f: 'GHzz' is not a unit of a frequency\n  hint: did you mean 'GHz'?");
}

TEST(UnitsText, WhatIsNoNumberIsRefused) {
  const std::string hint = "\n  hint: expected a time with its unit, such as '500ns'";
  EXPECT_EQ(error_of([] { parse_time("", "t"); }), "t: '' is not a number" + hint);
  EXPECT_EQ(error_of([] { parse_time("fast", "t"); }), "t: 'fast' is not a number" + hint);
  EXPECT_EQ(error_of([] { parse_time("nan s", "t"); }), "t: 'nan s' is not a number" + hint);
  EXPECT_EQ(error_of([] { parse_time("inf s", "t"); }), "t: 'inf s' is not a number" + hint);
  EXPECT_EQ(error_of([] { parse_time("1e999s", "t"); }), "t: '1e999s' is out of range" + hint);
  EXPECT_EQ(error_of([] { parse_count("3.5", "c"); }), "c: '3.5' is not a whole number");
  EXPECT_EQ(error_of([] { parse_count("99999999999999999999", "c"); }),
            "c: '99999999999999999999' is out of range");
  EXPECT_EQ(error_of([] { parse_real("1 2", "r"); }), "r: '1 2' is not a plain number");
}

TEST(UnitsText, NegativeZeroAndAbsurdValuesAreRefused) {
  EXPECT_EQ(error_of([] { parse_time("-1ns", "t"); }),
            "t: '-1ns' is negative\n  hint: expected a time with its unit, such as '500ns'");
  EXPECT_EQ(error_of([] { parse_time("0.2ps", "t"); }),
            "t: '0.2ps' is too small\n  hint: the resolution is 1 ps");
  EXPECT_EQ(error_of([] { parse_time("10000h", "t"); }),
            "t: '10000h' is absurdly long\n  hint: the longest time is 26 days");
  EXPECT_EQ(error_of([] { parse_bytes("0.1B", "b"); }),
            "b: '0.1B' is too small\n  hint: the resolution is 1 B");
  EXPECT_EQ(error_of([] { parse_bytes("1e300TB", "b"); }),
            "b: '1e300TB' is absurdly large\n  hint: the limit is 1000 PB");
  EXPECT_EQ(error_of([] { parse_bandwidth("0GB/s", "b"); }),
            "b: '0GB/s' is too small\n  hint: the lowest value is 1 B/s");
  EXPECT_EQ(error_of([] { parse_bandwidth("1e300TB/s", "b"); }),
            "b: '1e300TB/s' is absurdly large\n  hint: the limit is 1e+18 B/s");
  EXPECT_EQ(error_of([] { parse_flop_rate("0TFLOPS", "f"); }),
            "f: '0TFLOPS' is too small\n  hint: the lowest value is 1 FLOPS");
  EXPECT_EQ(error_of([] { parse_frequency("1e300GHz", "f"); }),
            "f: '1e300GHz' is absurdly large\n  hint: the limit is 1e+15 Hz");
  for (const char* text : {"1.5", "-0.1", "101%", "0.5x"}) {
    EXPECT_EQ(
        error_of([&] { parse_fraction(text, "f"); }),
        "f: '" + std::string(text) + "' is not a fraction between 0 and 1\n  hint: write '0.9' or '90%'");
  }
}

TEST(UnitsText, HostileTextIsCutInMessages) {
  const std::string message = error_of([] { parse_time(std::string(100'000, 'x'), "t"); });
  EXPECT_LT(message.size(), 200U);
}

TEST(UnitsText, PrintsFourDigitsWithAPrefix) {
  EXPECT_EQ(to_text(Time(0)), "0 s");
  EXPECT_EQ(to_text(picoseconds(12'345'678'901)), "12.35 ms");
  EXPECT_EQ(to_text(nanoseconds(1)), "1.000 ns");
  EXPECT_EQ(to_text(picoseconds(999'970)), "1.000 us");
  EXPECT_EQ(to_text(Bytes(1023)), "1023 B");
  EXPECT_EQ(to_text(Bytes(102'228'128)), "97.49 MiB");
  EXPECT_EQ(to_text(Flops(4'089'184'256)), "4.089 Gflop");
  EXPECT_EQ(to_text(gigabytes_per_second(300)), "300.0 GB/s");
  EXPECT_EQ(to_text(teraflops(19.5)), "19.50 TFLOP/s");
  EXPECT_EQ(to_text(Frequency(1.41e9)), "1.410 GHz");
}

TEST(UnitsText, Separators) {
  EXPECT_EQ(with_separators(0), "0");
  EXPECT_EQ(with_separators(999), "999");
  EXPECT_EQ(with_separators(25'557'032), "25,557,032");
  EXPECT_EQ(with_separators(-1'000), "-1,000");
  EXPECT_EQ(with_separators(-100), "-100");
}

TEST(UnitsText, Amounts) {
  EXPECT_EQ(parse_amount("15T", "--tokens 15T"), 15e12);
  EXPECT_EQ(parse_amount("1.28M", "n"), 1.28e6);
  EXPECT_EQ(parse_amount(" 300 B ", "n"), 300e9);
  EXPECT_EQ(parse_amount("2k", "n"), 2000);
  EXPECT_EQ(parse_amount("3e11", "n"), 3e11);
  const auto refusal = [](std::string_view text) { return error_of([&] { parse_amount(text, "n"); }); };
  EXPECT_EQ(refusal("15t"),
            "n: 't' is not the suffix of a count\n  hint: k, M, B and T stand for 1e3, 1e6, 1e9 and 1e12");
  EXPECT_EQ(refusal("many"), "n: 'many' is not a number\n  hint: expected a count such as '15T' or '300e9'");
  EXPECT_EQ(refusal("0"), "n: '0' is not a positive count");
  EXPECT_EQ(refusal("-1T"), "n: '-1T' is not a positive count");
  EXPECT_EQ(refusal("9e18"), "n: '9e18' is absurdly large\n  hint: the limit is 1e18");
  EXPECT_EQ(amount_text(15e12), "15T");
  EXPECT_EQ(amount_text(1.28e6), "1.28M");
  EXPECT_EQ(amount_text(999'999'999), "1B");
  EXPECT_EQ(amount_text(5e4), "50k");
  EXPECT_EQ(amount_text(512), "512");
}

TEST(UnitsText, Durations) {
  EXPECT_EQ(duration_text(0), "0 s");
  EXPECT_EQ(duration_text(1.4544e-6), "1.454 us");
  EXPECT_EQ(duration_text(0.7621), "762.1 ms");
  EXPECT_EQ(duration_text(0.99999), "1 s");
  EXPECT_EQ(duration_text(4.5236), "4.524 s");
  EXPECT_EQ(duration_text(3 * 3600), "3 h");
  EXPECT_EQ(duration_text(31557600 * 30.0), "30 years");
  EXPECT_EQ(duration_text(31557600 * 46063.0), "46,063 years");
  EXPECT_EQ(duration_text(31557600 * 1e20), "1e+20 years");
  EXPECT_EQ(duration_text(std::numeric_limits<double>::infinity()), "inf years");
}

TEST(Units, ConversionsSaturateAtTheEndOfTime) {
  EXPECT_EQ(from_seconds(1e300), kEndOfTime);
  EXPECT_EQ(from_seconds(std::nan("")), kEndOfTime);
  EXPECT_EQ(time_to_move(Bytes(INT64_MAX), Bandwidth(1)), kEndOfTime);
  EXPECT_EQ(time_to_move(Bytes(300), gigabytes_per_second(300)), nanoseconds(1));
  EXPECT_EQ(time_to_compute(Flops(0), teraflops(1)), Time(0));
}

TEST(UnitsText, PowerAndMoney) {
  EXPECT_EQ(parse_power("0.7kW", "x"), Power(700));
  EXPECT_EQ(parse_money("2.5MUSD", "x"), Money(2.5e6));
  EXPECT_EQ(parse_price("6.88USD/h", "x"), Money(6.88));
  EXPECT_EQ(error_of([] { parse_price("6.88", "--price 6.88"); }),
            "--price 6.88: '6.88' has no unit\n  hint: expected a price with its unit, such as '6.88USD/h'");
  EXPECT_EQ(error_of([] { parse_power("1e20MW", "x"); }),
            "x: '1e20MW' is absurdly large\n  hint: the limit is 1e+15 W");
  EXPECT_EQ(to_text(Power(700)), "700.0 W");
  EXPECT_EQ(to_text(Energy(3600 * 1234.5)), "1.234 kWh");
  EXPECT_EQ(to_text(Energy(0)), "0.000 uWh");
  EXPECT_EQ(to_text(Money(0.0123)), "0.0123 USD");
  EXPECT_EQ(to_text(Money(999.96)), "1,000 USD");
  EXPECT_EQ(to_text(Money(12'345'678)), "12.35M USD");
}

TEST(UnitsText, OneIsSingular) {
  EXPECT_EQ(counted(1, "sample"), "1 sample");
  EXPECT_EQ(counted(0, "sample"), "0 samples");
  EXPECT_EQ(counted(8U, "micro-batch"), "8 micro-batches");
  EXPECT_EQ(counted(std::size_t{4096}, "token"), "4,096 tokens");
}

}  // namespace
}  // namespace armilla
