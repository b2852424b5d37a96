// The sides of a slice of a torus, as clouds of TPUs hand them out (docs.cloud.google.com/tpu/docs/v4: 2 x 2
// x 4, 4 x 4 x 4, 4 x 4 x 8, 8 x 8 x 8, 8 x 8 x 16, ...).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace armilla {

// Of a torus of cubes (squares) of so many devices along every side: whole cubes, or a part of one whose
// sides divide the cube's. As near to a cube as such a product of `devices` goes, the longest side last and
// those of 1 behind it. Blocks of so many devices, such as tensor and context parallelism makes of them,
// take whole axes where any sides have such, as jax's mesh_utils demands of them; these axes come first.
// Empty where there is no such slice. Needs devices, sides, cube and block of at least 1. O(devices ^ (1 -
// 1 / sides)).
std::vector<std::int64_t> slice_sides(std::int64_t devices, std::size_t sides, std::int64_t cube,
                                      std::int64_t block);

}  // namespace armilla
