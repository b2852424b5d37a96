// One module alone: base, which every other uses.
#include "base/units.h"
#include "base/units_text.h"

int main() {
  return armilla::to_text(armilla::parse_bytes("1.5MiB", "size")) == "1.500 MiB" ? 0 : 1;
}
