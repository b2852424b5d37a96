#include "ir/profile.h"

#include <fmt/format.h>

#include <charconv>

#include "base/checked.h"

namespace armilla {
namespace {

// A number in front of `text`, which is cut off.
std::optional<std::int64_t> take_size(std::string_view& text) {
  std::int64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc() || size < 1) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return size;
}

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

std::optional<Gemm> take_gemm(std::string_view& text) {
  Gemm gemm;
  std::optional<std::int64_t> size = take_size(text);
  if (size && take(text, " x ")) {
    gemm.count = *size;
    size = take_size(text);
  }
  if (!size || !take(text, "x")) return std::nullopt;
  gemm.m = *size;
  size = take_size(text);
  if (!size || !take(text, "x")) return std::nullopt;
  gemm.n = *size;
  size = take_size(text);
  if (!size) return std::nullopt;
  gemm.k = *size;
  return gemm;
}

}  // namespace

std::string shapes_text(std::span<const Gemm> gemms) {
  std::string text;
  for (const Gemm& gemm : gemms) {
    if (!text.empty()) text += ", ";
    if (gemm.count > 1) text += fmt::format("{} x ", gemm.count);
    text += fmt::format("{}x{}x{}", gemm.m, gemm.n, gemm.k);
  }
  return text;
}

std::optional<std::vector<Gemm>> shapes_from(std::string_view text) {
  std::vector<Gemm> gemms;
  if (text.empty()) return gemms;
  do {
    const std::optional<Gemm> gemm = take_gemm(text);
    if (!gemm) return std::nullopt;
    gemms.push_back(*gemm);
  } while (take(text, ", "));
  return text.empty() ? std::optional(std::move(gemms)) : std::nullopt;
}

ComputationKey key_of(std::string name, Phase phase, const Work& work) {
  return {std::move(name),  phase,           shapes_text(work.gemms), std::string(name_of(work.dtype)),
          work.flops.value, work.bytes.value};
}

ComputationKey product_key(const Gemm& gemm, DType dtype) {
  constexpr std::int64_t kBitsPerByte = 8;
  const std::string where(kProduct);
  const auto product = [&](std::int64_t a, std::int64_t b) { return checked_multiply(a, b, where); };
  const std::int64_t elements = checked_add(
      checked_add(product(gemm.m, gemm.k), product(gemm.k, gemm.n), where), product(gemm.m, gemm.n), where);
  Work work;
  work.kind = WorkKind::matrix;
  work.dtype = dtype;
  work.gemms = {gemm};
  work.flops = Flops(product(2, product(product(gemm.m, gemm.n), product(gemm.k, gemm.count))));
  work.bytes = Bytes(product(product(elements, gemm.count), bits_of(dtype)) / kBitsPerByte);
  return key_of(where, Phase::other, work);
}

}  // namespace armilla
