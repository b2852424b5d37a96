#include "read/encoding/gzip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>

#include "base/error.h"

namespace armilla {
namespace {

// A small file must not fill the memory (deflate packs up to a thousandfold): what is larger than 64 MiB
// may unpack to 500 times its size, and nothing to more than 4 GiB.
constexpr std::uint64_t kMaxBytes = std::uint64_t{4} << 30;
constexpr std::uint64_t kMaxRatio = 500;
constexpr std::uint64_t kFreeBytes = std::uint64_t{64} << 20;
constexpr int kGzipOnly = 16 + MAX_WBITS;

class Inflater {
 public:
  explicit Inflater(const std::string& name) {
    if (inflateInit2(&stream, kGzipOnly) != Z_OK) throw Error(name, "zlib cannot be started");
  }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  z_stream stream{};
};

}  // namespace

bool is_gzip(std::span<const char> bytes) {
  return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
}

std::string unpack_gzip(std::span<const char> bytes, const std::string& name) {
  const auto fail = [&](std::size_t at, const std::string& message) {
    throw Error(fmt::format("{}: byte {}", name, at), message, "the gzip file is damaged or was cut short");
  };
  const std::uint64_t limit = std::min(kMaxBytes, std::max(kFreeBytes, bytes.size() * kMaxRatio));
  Inflater inflater(name);
  z_stream& stream = inflater.stream;
  std::string unpacked;
  std::size_t taken = 0, made = 0;
  while (true) {
    // A byte more than the limit tells a file that exceeds it from one that just fits.
    if (made == unpacked.size())
      unpacked.resize(std::min<std::uint64_t>(std::max<std::uint64_t>(2 * made, 1 << 16), limit + 1));
    // zlib counts in 32 bits, files do not.
    const auto input = static_cast<uInt>(std::min<std::size_t>(bytes.size() - taken, 1U << 30));
    const auto room = static_cast<uInt>(std::min<std::size_t>(unpacked.size() - made, 1U << 30));
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + taken));
    stream.avail_in = input;
    stream.next_out = reinterpret_cast<Bytef*>(unpacked.data() + made);
    stream.avail_out = room;
    const int state = inflate(&stream, Z_NO_FLUSH);
    taken += input - stream.avail_in;
    made += room - stream.avail_out;
    if (made > limit) fail(taken, fmt::format("unpacks to more than {} MiB", limit >> 20));
    if (state == Z_STREAM_END) {
      if (taken == bytes.size()) break;
      // A file may have several members, one after the other (RFC 1952).
      if (!is_gzip(bytes.subspan(taken))) fail(taken, "something else follows the packed data");
      inflateReset(&stream);
      continue;
    }
    if (state == Z_BUF_ERROR || (state == Z_OK && taken == bytes.size() && made < unpacked.size()))
      fail(bytes.size(), "the packed data ends too early");
    if (state != Z_OK) fail(taken, fmt::format("cannot unpack: {}", stream.msg ? stream.msg : "bad data"));
  }
  unpacked.resize(made);
  return unpacked;
}

std::string peek_gzip(std::span<const char> bytes, std::size_t most) {
  static const std::string kNoName;
  Inflater inflater(kNoName);
  z_stream& stream = inflater.stream;
  std::string unpacked(most, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(std::min<std::size_t>(bytes.size(), 1U << 30));
  stream.next_out = reinterpret_cast<Bytef*>(unpacked.data());
  stream.avail_out = static_cast<uInt>(most);
  // Whatever came out before an error is enough to guess the kind of file; its reader tells the error.
  inflate(&stream, Z_SYNC_FLUSH);
  unpacked.resize(most - stream.avail_out);
  return unpacked;
}

}  // namespace armilla
