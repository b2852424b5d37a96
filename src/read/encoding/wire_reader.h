// One protobuf message, field by field, on protozero's varint decoder.
//
// In place of protozero::pbf_reader, which keeps lengths in 32 bits and asserts the wire type of each field:
// lengths are 64 bits wide (models beyond 4 GB), a field of another wire type than asked for is reported, and
// errors carry the offset in the file. Groups (wire types 3 and 4) are refused: ONNX has none.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <protozero/varint.hpp>
#include <string>
#include <string_view>

#include "base/error.h"

namespace armilla {

struct WireSource {
  const char* begin;
  const std::string& name;
  const char* hint = "the file is damaged or no ONNX model; export or download it again";

  [[noreturn]] void fail(const char* at, const std::string& message) const {
    throw Error(fmt::format("{}: byte {}", name, at - begin), message, hint);
  }
};

class WireReader {
 public:
  enum class Type : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

  WireReader(std::string_view message, const WireSource& source)
      : at_(message.data()), end_(message.data() + message.size()), source_(source) {}

  // Moves to the next field; false at the end. A value that was not asked for is skipped.
  bool next() {
    if (pending_) skip();
    if (at_ == end_) return false;
    start_ = at_;
    const std::uint64_t key = decode();
    tag_ = static_cast<std::uint32_t>(key >> 3);
    const auto type = static_cast<unsigned>(key & 7);
    if (tag_ == 0 || key > UINT32_MAX) refuse_start(source_, start_);
    if (type != 0 && type != 1 && type != 2 && type != 5) refuse_type(source_, start_, tag_, type);
    type_ = static_cast<Type>(type);
    pending_ = true;
    return true;
  }

  std::uint32_t tag() const { return tag_; }
  Type type() const { return type_; }

  std::int64_t number() {
    expect(Type::varint);
    return std::bit_cast<std::int64_t>(decode());
  }
  std::string_view bytes() {
    expect(Type::bytes);
    return view();
  }
  float real() { return fixed<float>(); }
  // Of 4 or 8 bytes.
  template <class T>
  T fixed() {
    expect(sizeof(T) == 4 ? Type::fixed32 : Type::fixed64);
    return load<T>(take(sizeof(T)));
  }
  // Fixed fields are little-endian whatever the host is.
  template <class T>
  static T load(const char* from) {
    std::array<char, sizeof(T)> bytes;
    std::memcpy(bytes.data(), from, bytes.size());
    if constexpr (std::endian::native == std::endian::big) std::reverse(bytes.begin(), bytes.end());
    return std::bit_cast<T>(bytes);
  }

  // A repeated field, packed or not: calls `each` for every element of this occurrence.
  template <class Each>
  void numbers(Each each) {
    if (type_ != Type::bytes) return each(number());
    WireReader packed(bytes(), source_);
    while (packed.at_ != packed.end_) each(std::bit_cast<std::int64_t>(packed.decode()));
  }
  template <class T, class Each>
  void reals(Each each) {
    if (type_ != Type::bytes) {
      return each(fixed<T>());
    }
    WireReader packed(bytes(), source_);
    while (packed.at_ != packed.end_) each(load<T>(packed.take(sizeof(T))));
  }

  const WireSource& source() const { return source_; }

 private:
  void skip() {
    pending_ = false;
    switch (type_) {
      case Type::varint:
        decode();
        break;
      case Type::fixed64:
        take(8);
        break;
      case Type::bytes:
        view();
        break;
      case Type::fixed32:
        take(4);
        break;
    }
  }
  void expect(Type type) {
    pending_ = false;
    if (type_ != type) refuse_other_type(source_, start_, tag_, type_, type);
  }
  // What is rare is apart and sees copies only, so that a reader is inlined where it is used and lives in
  // registers.
  [[noreturn, gnu::noinline]] static void refuse_start(const WireSource& source, const char* start) {
    source.fail(start, "no protobuf field starts here");
  }
  [[noreturn, gnu::noinline]] static void refuse_type(const WireSource& source, const char* start,
                                                      std::uint32_t tag, unsigned type) {
    source.fail(start, fmt::format("field {} has the unsupported wire type {}", tag, type));
  }
  [[noreturn, gnu::noinline]] static void refuse_other_type(const WireSource& source, const char* start,
                                                            std::uint32_t tag, Type found, Type wanted) {
    source.fail(start, fmt::format("field {} has wire type {} where {} belongs", tag, static_cast<int>(found),
                                   static_cast<int>(wanted)));
  }
  [[noreturn, gnu::noinline]] static void refuse_size(const WireSource& source, const char* start,
                                                      std::uint32_t tag, std::uint64_t size,
                                                      std::uint64_t left) {
    source.fail(start, fmt::format("field {} needs {} bytes, but only {} are left", tag, size, left));
  }
  // Most numbers are keys, lengths and small values of one byte.
  std::uint64_t decode() {
    if (at_ != end_ && static_cast<signed char>(*at_) >= 0) return static_cast<unsigned char>(*at_++);
    const Decoded decoded = decode_long(at_, end_, source_);
    at_ = decoded.behind;
    return decoded.value;
  }
  struct Decoded {
    std::uint64_t value;
    const char* behind;
  };
  [[gnu::noinline]] static Decoded decode_long(const char* at, const char* end, const WireSource& source) {
    try {
      const std::uint64_t value = protozero::decode_varint(&at, end);
      return {value, at};
    } catch (const protozero::exception&) {
      source.fail(at, at + protozero::max_varint_length > end ? "the file ends in the middle of a number"
                                                              : "a number has more than 64 bits");
    }
  }
  const char* take(std::uint64_t size) {
    const auto left = static_cast<std::uint64_t>(end_ - at_);
    if (size > left) refuse_size(source_, start_ != nullptr ? start_ : at_, tag_, size, left);
    const char* from = at_;
    at_ += size;
    return from;
  }
  std::string_view view() {
    const std::uint64_t size = decode();
    return {take(size), static_cast<std::size_t>(size)};
  }

  const char* at_;
  const char* end_;
  const char* start_ = nullptr;
  const WireSource& source_;
  std::uint32_t tag_ = 0;
  Type type_ = Type::varint;
  bool pending_ = false;
};

}  // namespace armilla
