// The words of a convolution's operands: which word of the input stands where in its im2col matrix, as
// SCALE-Sim numbers them (rows of the image, then columns, then channels).
//
// The number of the word at (output pixel i, window element j) is pixel(i) + window(j). Windows that overlap
// share words. Where the stride does not divide what is left of the image, SCALE-Sim rounds the output up,
// and the last windows reach over the edge; nothing is read there.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/formats/systolic.h"

namespace armilla {

struct OutputSize {
  std::int64_t height = 1, width = 1;
};
// Throws Error (beginning with `where`) for sizes that are not positive and a filter larger than its input.
OutputSize output_size(const ConvolutionShape& shape, const std::string& where);

// One index of the im2col matrix: output pixels or window elements.
struct MatrixAxis {
  std::vector<std::int32_t> word, row, column;  // what each adds to the number, and to the place in the image
};

// Both are as long as the axis; the words of the image must be fewer than 2^31.
MatrixAxis pixel_axis(const ConvolutionShape& shape);
MatrixAxis window_axis(const ConvolutionShape& shape);

struct IfmapFacts {
  std::int64_t entries = 0;   // of the im2col matrix that are read
  std::int64_t distinct = 0;  // words among them
  bool each_once = false;     // no word stands twice and nothing reaches over the edge
  bool reaches_over = false;  // the edge
};
IfmapFacts ifmap_facts(const ConvolutionShape& shape);

}  // namespace armilla
