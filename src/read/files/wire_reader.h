// One protobuf message, field by field, on protozero's varint decoder.
//
// In place of protozero::pbf_reader, which keeps lengths in 32 bits and asserts the wire type of each field:
// lengths are 64 bits wide (models beyond 4 GB), a field of another wire type than asked for is reported, and
// errors carry the offset in the file. Groups (wire types 3 and 4) are refused: ONNX has none.
#pragma once

#include <fmt/format.h>

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
    if (tag_ == 0 || key > UINT32_MAX) source_.fail(start_, "no protobuf field starts here");
    if (type != 0 && type != 1 && type != 2 && type != 5)
      source_.fail(start_, fmt::format("field {} has the unsupported wire type {}", tag_, type));
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
  template <class T>
  static T load(const char* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
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
    if (type_ != type)
      source_.fail(start_, fmt::format("field {} has wire type {} where {} belongs", tag_,
                                       static_cast<int>(type_), static_cast<int>(type)));
  }
  std::uint64_t decode() {
    try {
      return protozero::decode_varint(&at_, end_);
    } catch (const protozero::exception&) {
      source_.fail(at_, at_ + protozero::max_varint_length > end_ ? "the file ends in the middle of a number"
                                                                  : "a number has more than 64 bits");
    }
  }
  const char* take(std::uint64_t size) {
    const auto left = static_cast<std::uint64_t>(end_ - at_);
    if (size > left)
      source_.fail(start_ != nullptr ? start_ : at_,
                   fmt::format("field {} needs {} bytes, but only {} are left", tag_, size, left));
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
