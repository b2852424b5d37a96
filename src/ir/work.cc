#include "ir/work.h"

namespace armilla {

std::string_view name_of(Kernel kernel) {
  switch (kernel) {
    case Kernel::any:
      return "any";
    case Kernel::attention:
      return "attention";
    case Kernel::attention_backward:
      return "attention backward";
    case Kernel::flash_2:
      return "flash-2";
    case Kernel::flash_2_backward:
      return "flash-2 backward";
    case Kernel::flash_triton:
      return "flash-triton";
    case Kernel::flash_triton_backward:
      return "flash-triton backward";
    case Kernel::scan:
      return "scan";
    case Kernel::scan_backward:
      return "scan backward";
    case Kernel::weight_gradient:
      return "weight gradient";
    case Kernel::norm:
      return "norm";
    case Kernel::norm_backward:
      return "norm backward";
    case Kernel::activation:
      return "activation";
    case Kernel::rotary:
      return "rotary";
    case Kernel::permute:
      return "permute";
    case Kernel::gather:
      return "gather";
    case Kernel::loss:
      return "loss";
  }
  return "?";
}

std::string_view name_of(Scaling scaling) {
  switch (scaling) {
    case Scaling::delayed:
      return "delayed";
    case Scaling::current:
      return "current";
    case Scaling::block:
      return "block";
    case Scaling::rows:
      return "rows";
    case Scaling::done:
      return "done";
  }
  return "?";
}

}  // namespace armilla
