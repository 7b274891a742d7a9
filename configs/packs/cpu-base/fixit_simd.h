// Eight single precision lanes (AVX2 and FMA).
#pragma once

#include <immintrin.h>

namespace fixit {

struct F8 {
  __m256 v;
};

inline F8 zero() {
  return {_mm256_setzero_ps()};
}
inline F8 broadcast(float x) {
  return {_mm256_set1_ps(x)};
}

// Eight floats from any address; load_aligned and store_aligned want a multiple of 32 bytes.
inline F8 load(const float* p) {
  return {_mm256_loadu_ps(p)};
}
inline F8 load_aligned(const float* p) {
  return {_mm256_load_ps(p)};
}
inline void store(float* p, F8 a) {
  _mm256_storeu_ps(p, a.v);
}
inline void store_aligned(float* p, F8 a) {
  _mm256_store_ps(p, a.v);
}

// All bits set in the first n lanes, 0 <= n <= 8: for tails.
inline __m256i first_lanes(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
// Touches the first n floats only; the other lanes are 0.
inline F8 load_first(const float* p, int n) {
  return {_mm256_maskload_ps(p, first_lanes(n))};
}
inline void store_first(float* p, F8 a, int n) {
  _mm256_maskstore_ps(p, first_lanes(n), a.v);
}

inline F8 operator+(F8 a, F8 b) {
  return {_mm256_add_ps(a.v, b.v)};
}
inline F8 operator-(F8 a, F8 b) {
  return {_mm256_sub_ps(a.v, b.v)};
}
inline F8 operator*(F8 a, F8 b) {
  return {_mm256_mul_ps(a.v, b.v)};
}
inline F8 operator/(F8 a, F8 b) {
  return {_mm256_div_ps(a.v, b.v)};
}
inline F8 max(F8 a, F8 b) {
  return {_mm256_max_ps(a.v, b.v)};
}
inline F8 min(F8 a, F8 b) {
  return {_mm256_min_ps(a.v, b.v)};
}

// a * b + c and c - a * b, rounded once.
inline F8 fma(F8 a, F8 b, F8 c) {
  return {_mm256_fmadd_ps(a.v, b.v, c.v)};
}
inline F8 fnma(F8 a, F8 b, F8 c) {
  return {_mm256_fnmadd_ps(a.v, b.v, c.v)};
}

// Over the eight lanes.
inline float sum(F8 a) {
  __m128 x = _mm_add_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  x = _mm_add_ps(x, _mm_movehl_ps(x, x));
  return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}
inline float largest(F8 a) {
  __m128 x = _mm_max_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  x = _mm_max_ps(x, _mm_movehl_ps(x, x));
  return _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)));
}

// e^x to about 1e-7 relative for -87 <= x <= 88; clamped outside, so that e^-inf gives about 1e-38.
// x = n ln 2 + r with |r| <= ln 2 / 2; e^r by its Taylor polynomial of degree 7; 2^n by the exponent's bits.
inline F8 exp(F8 x) {
  x = max(min(x, broadcast(88.0f)), broadcast(-87.0f));
  const __m256 n = _mm256_round_ps(_mm256_mul_ps(x.v, _mm256_set1_ps(1.44269504f)),
                                   _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  F8 r = fnma({n}, broadcast(0.693359375f), x);  // ln 2 in two parts: the first is exact in n times it
  r = fnma({n}, broadcast(-2.12194440e-4f), r);
  F8 p = broadcast(1.0f / 5040);
  p = fma(p, r, broadcast(1.0f / 720));
  p = fma(p, r, broadcast(1.0f / 120));
  p = fma(p, r, broadcast(1.0f / 24));
  p = fma(p, r, broadcast(1.0f / 6));
  p = fma(p, r, broadcast(0.5f));
  p = fma(p, r, broadcast(1.0f));
  p = fma(p, r, broadcast(1.0f));
  const __m256i exponent =
      _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);
  return {_mm256_mul_ps(p.v, _mm256_castsi256_ps(exponent))};
}

}  // namespace fixit
