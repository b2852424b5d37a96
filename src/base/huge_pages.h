// Memory of large vectors in huge pages, where the system has them (Linux: madvise). Memory that is touched
// in no order costs less by them: the processor has to look up fewer pages.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <vector>

namespace armilla {

template <typename T>
struct HugePages {
  using value_type = T;

  HugePages() = default;
  template <typename U>
  HugePages(const HugePages<U>&) {}

  T* allocate(std::size_t count) {
    void* memory = ::operator new(count * sizeof(T), alignment(count));
    if (count * sizeof(T) >= kHuge)
      ::madvise(memory, count * sizeof(T), MADV_HUGEPAGE);  // no harm if it fails
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) { ::operator delete(memory, alignment(count)); }

  bool operator==(const HugePages&) const = default;

 private:
  static constexpr std::size_t kHuge = std::size_t{2} << 20;  // bytes of one
  static std::align_val_t alignment(std::size_t count) {
    return std::align_val_t{count * sizeof(T) >= kHuge ? kHuge : alignof(T)};
  }
};

template <typename T>
using HugeVector = std::vector<T, HugePages<T>>;

}  // namespace armilla
