// Loops over rows, compiled for each vector width of x86-64 and chosen at run time.
#pragma once

#include <cstdint>

namespace fixit {

float dot(const float* x, const float* y, int64_t count);
// y += scale * x
void add_scaled(float* y, const float* x, float scale, int64_t count);
float largest(const float* x, int64_t count);  // -infinity for none
// x[i] = exp(scale * x[i] - shift); returns their sum. Relative error below 1e-6; below exp(-87) it is 0.
float exponentiate(float* x, float scale, float shift, int64_t count);
void multiply(float* x, float scale, int64_t count);
// y = x * scale * weight
void scale_by_weight(float* y, const float* x, float scale, const float* weight, int64_t count);

}  // namespace fixit
