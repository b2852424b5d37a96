#include "read/encoding/wire_reader.h"

#include <gtest/gtest.h>

#include <vector>

namespace armilla {
namespace {

// Protocol Buffers, "Encoding": fixed fields are little-endian on every host.
TEST(WireReader, FixedFieldsAreLittleEndian) {
  const std::string name = "m";
  // Field 1 of 4 bytes, 1.5; field 2 of 8 bytes, 2^40 + 3; field 3, packed: 1.0 and -2.0.
  constexpr unsigned char kMessage[] = {0x0d, 0, 0,    0xc0, 0x3f, 0x11, 3,    0,    0, 0, 0, 1,
                                        0,    0, 0x1a, 8,    0,    0,    0x80, 0x3f, 0, 0, 0, 0xc0};
  const std::string message(reinterpret_cast<const char*>(kMessage), sizeof kMessage);
  const WireSource source{message.data(), name};
  WireReader reader(message, source);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.tag(), 1U);
  EXPECT_EQ(reader.real(), 1.5F);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.fixed<std::uint64_t>(), (std::uint64_t{1} << 40) + 3);
  ASSERT_TRUE(reader.next());
  std::vector<float> reals;
  reader.reals<float>([&](float value) { reals.push_back(value); });
  EXPECT_EQ(reals, (std::vector<float>{1, -2}));
  EXPECT_FALSE(reader.next());
}

}  // namespace
}  // namespace armilla
