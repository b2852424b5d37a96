#include "read/onnx/constant.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "read/encoding/wire_reader.h"

namespace armilla {
namespace {

// TensorProto.DataType codes whose payloads are decoded, and how raw_data holds them.
enum class Encoding { none, f32, f64, u8, i8, u16, i16, i32, i64, u32, f16, bf16 };

Encoding encoding_of(std::int32_t data_type) {
  switch (data_type) {
    case 1:
      return Encoding::f32;
    case 2:
    case 9:
      return Encoding::u8;
    case 3:
      return Encoding::i8;
    case 4:
      return Encoding::u16;
    case 5:
      return Encoding::i16;
    case 6:
      return Encoding::i32;
    case 7:
      return Encoding::i64;
    case 10:
      return Encoding::f16;
    case 11:
      return Encoding::f64;
    case 12:
      return Encoding::u32;
    case 13:
      return Encoding::i64;  // beyond 2^63 no shape makes sense
    case 16:
      return Encoding::bf16;
    default:
      return Encoding::none;
  }
}

bool is_real(Encoding encoding) {
  return encoding == Encoding::f32 || encoding == Encoding::f64 || encoding == Encoding::f16 ||
         encoding == Encoding::bf16;
}

std::size_t width_of(Encoding encoding) {
  switch (encoding) {
    case Encoding::u8:
    case Encoding::i8:
      return 1;
    case Encoding::u16:
    case Encoding::i16:
    case Encoding::f16:
    case Encoding::bf16:
      return 2;
    case Encoding::f64:
    case Encoding::i64:
      return 8;
    default:
      return 4;
  }
}

// IEEE 754 half precision: 5 bits of exponent with bias 15, 10 of mantissa; exponent 0 is subnormal.
double half_to_real(std::uint16_t half) {
  const double sign = (half & 0x8000U) != 0 ? -1 : 1;
  const int exponent = (half >> 10) & 31;
  const int mantissa = half & 1023;
  if (exponent == 31) return mantissa == 0 ? sign * HUGE_VAL : std::nan("");
  return sign * (exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa + 1024, exponent - 25));
}

// bfloat16 is the upper half of a float.
double bfloat_to_real(std::uint16_t bits) {
  return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
}

// raw_data is little-endian, and so are the machines that this runs on: bytes are copied as they are.
void append_raw(std::string_view raw, Encoding encoding, OnnxConstant& to) {
  const std::size_t width = width_of(encoding);
  for (std::size_t i = 0; i + width <= raw.size(); i += width) {
    const char* at = raw.data() + i;
    switch (encoding) {
      case Encoding::f32:
        to.reals.push_back(static_cast<double>(WireReader::load<float>(at)));
        break;
      case Encoding::f64:
        to.reals.push_back(WireReader::load<double>(at));
        break;
      case Encoding::f16:
        to.reals.push_back(half_to_real(WireReader::load<std::uint16_t>(at)));
        break;
      case Encoding::bf16:
        to.reals.push_back(bfloat_to_real(WireReader::load<std::uint16_t>(at)));
        break;
      case Encoding::u8:
        to.ints.push_back(WireReader::load<std::uint8_t>(at));
        break;
      case Encoding::i8:
        to.ints.push_back(WireReader::load<std::int8_t>(at));
        break;
      case Encoding::u16:
        to.ints.push_back(WireReader::load<std::uint16_t>(at));
        break;
      case Encoding::i16:
        to.ints.push_back(WireReader::load<std::int16_t>(at));
        break;
      case Encoding::i32:
        to.ints.push_back(WireReader::load<std::int32_t>(at));
        break;
      case Encoding::u32:
        to.ints.push_back(WireReader::load<std::uint32_t>(at));
        break;
      case Encoding::i64:
        to.ints.push_back(WireReader::load<std::int64_t>(at));
        break;
      case Encoding::none:
        return;
    }
  }
}

// int32_data holds every type of at most 32 bits, and the bit patterns of the 16-bit floats.
void append_number(std::int64_t number, Encoding encoding, OnnxConstant& to) {
  if (encoding == Encoding::f16) {
    to.reals.push_back(half_to_real(static_cast<std::uint16_t>(number)));
  } else if (encoding == Encoding::bf16) {
    to.reals.push_back(bfloat_to_real(static_cast<std::uint16_t>(number)));
  } else {
    to.ints.push_back(number);
  }
}

// The first `limit` values, and one more where the payload holds too many.
OnnxConstant decode_payload(const WireTensor& tensor, const std::string& file, Encoding encoding,
                            std::size_t limit) {
  OnnxConstant constant;
  constant.shape = tensor.dims;
  constant.floating = is_real(encoding);
  const WireSource source{tensor.message.data(), file};
  WireReader in(tensor.message, source);
  // One more than the limit, so that the caller sees a payload that is too long.
  const auto is_short = [&] { return constant.size() <= limit; };
  while (in.next() && is_short()) {
    // TensorProto: 4 float_data, 5 int32_data, 7 int64_data, 9 raw_data, 10 double_data, 11 uint64_data.
    switch (in.tag()) {
      case 4:
        in.reals<float>([&](float value) {
          if (is_short()) constant.reals.push_back(static_cast<double>(value));
        });
        break;
      case 10:
        in.reals<double>([&](double value) {
          if (is_short()) constant.reals.push_back(value);
        });
        break;
      case 5:
      case 7:
      case 11:
        in.numbers([&](std::int64_t value) {
          if (is_short()) append_number(value, encoding, constant);
        });
        break;
      case 9: {
        const std::string_view raw = in.bytes();
        append_raw(raw.substr(0, (limit + 1) * width_of(encoding)), encoding, constant);
        break;
      }
      default:
        break;
    }
  }
  return constant;
}

}  // namespace

std::optional<OnnxConstant> decode_tensor(const WireTensor& tensor, const std::string& file) {
  const Encoding encoding = encoding_of(tensor.data_type);
  if (tensor.external || tensor.message.empty() || encoding == Encoding::none) return std::nullopt;
  std::int64_t elements = 1;
  // Larger ones are not decoded: nothing that decides about shapes is as large.
  for (const std::int64_t dimension : tensor.dims) {
    if (dimension < 0 || dimension > kMaxConstantElements) return std::nullopt;
    elements *= dimension;
    if (elements > kMaxConstantElements) return std::nullopt;
  }
  const auto limit = static_cast<std::size_t>(elements);
  OnnxConstant constant = decode_payload(tensor, file, encoding, limit);
  // A payload that does not fit its shape is not believed.
  if (constant.size() != limit || (constant.floating ? !constant.ints.empty() : !constant.reals.empty()))
    return std::nullopt;
  return constant;
}

std::vector<double> decode_beginning(const WireTensor& tensor, const std::string& file, std::size_t count) {
  const Encoding encoding = encoding_of(tensor.data_type);
  if (tensor.external || tensor.message.empty() || !is_real(encoding)) return {};
  OnnxConstant constant = decode_payload(tensor, file, encoding, count);
  constant.reals.resize(std::min(constant.reals.size(), count));
  return constant.reals;
}

}  // namespace armilla
