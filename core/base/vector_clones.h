// FIXIT_VECTOR_CLONES before a function with hot loops: compiled for AVX-512, AVX2 and plain x86-64, the best
// one chosen when the program is loaded. Sanitizers' run times start after the resolvers, so those builds take the plain
// form.
#pragma once

#if defined(__x86_64__) && !defined(FIXIT_SANITIZED)
#define FIXIT_VECTOR_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FIXIT_VECTOR_CLONES
#endif
