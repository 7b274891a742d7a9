// What check_object refuses, and which instructions find_instructions finds, on objects made by the real
// compiler.
#include "profiler/target/cpu/object_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "core/base/file.h"

namespace fixit {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

std::string compile(const std::string& source, const std::string& flags = "") {
  char pattern[] = "/tmp/fixit-object-XXXXXX";
  const fs::path folder = mkdtemp(pattern);
  std::ofstream(folder / "kernel.cpp") << source;
  const std::string command = "cd " + folder.string() + " && g++ -O2 -std=c++20 -shared -fPIC " + flags +
                              " -o kernel.so kernel.cpp 2>&1";
  EXPECT_EQ(system(command.c_str()), 0) << source;
  auto bytes = read_file(folder / "kernel.so");
  EXPECT_TRUE(bytes.ok());
  fs::remove_all(folder);
  return bytes.ok() ? *bytes : "";
}

ObjectVerdict check(const std::string& source, const std::string& flags = "") {
  const auto verdict = check_object(compile(source, flags), "run");
  EXPECT_TRUE(verdict.ok()) << verdict.status().to_string();
  return verdict.ok() ? *verdict : ObjectVerdict();
}

const std::string kRun = "extern \"C\" void run(float* a, long n) ";

TEST(ObjectCheck, AllowsWhatHonestKernelsUse) {
  const ObjectVerdict verdict = check(
      "#include <cmath>\n#include <cstdio>\n#include <cstring>\n#include <mutex>\n#include "
      "<thread>\n#include <vector>\n" +
          kRun + R"({
        std::vector<float> v(n);
        std::mutex m;
        std::thread t([&] { std::lock_guard l(m); v[0] = std::exp(a[0]); });
        t.join();
        #pragma omp parallel for
        for (long i = 0; i < n; ++i) a[i] = std::sin(v[i]) * sqrtf(a[i]);
        if (n < 0) { std::printf("negative\n"); throw std::runtime_error("n"); }
        static thread_local int calls; static std::vector<int> lazily(3); calls += lazily[0];
        memcpy(a, v.data(), 4); })",
      "-fopenmp");
  EXPECT_TRUE(verdict.allowed) << verdict.check << ": " << verdict.evidence;
}

TEST(ObjectCheck, RefusesForbiddenAndUnknownSymbolsByName) {
  const struct {
    const char *declaration, *call, *evidence;
  } kCases[] = {
      {"#include <dlfcn.h>", "dlopen(0, 1)", "dlopen ("},
      {"#include <stdlib.h>", "system(\"true\")", "system (runs other programs)"},
      {"#include <unistd.h>", "fork()", "fork ("},
      {"#include <unistd.h>", "syscall(1)", "syscall ("},
      {"#include <sys/socket.h>", "socket(1, 1, 0)", "socket (uses the network)"},
      {"#include <stdio.h>", "fopen(\"/etc/passwd\", \"r\")", "fopen ("},
      {"#include <fcntl.h>", "open(\"/etc/passwd\", 0)", "open (opens files)"},
      {"#include <signal.h>", "signal(1, SIG_IGN)", "signal ("},
      {"#include <sys/mman.h>", "mprotect(a, 1, 7)", "mprotect ("},
      {"extern \"C\" void cblas_sgemm();", "cblas_sgemm()", "BLAS"},
      {"extern \"C\" void no_such_thing();", "no_such_thing()", "no_such_thing (is not on the allow-list)"}};
  for (const auto& one : kCases) {
    const ObjectVerdict verdict = check(std::string(one.declaration) + "\n" + kRun + "{ " + one.call + "; }");
    EXPECT_FALSE(verdict.allowed) << one.call;
    EXPECT_EQ(verdict.check, "undefined symbol") << one.call;
    EXPECT_THAT(verdict.evidence, HasSubstr(one.evidence));
  }
  const ObjectVerdict files = check("#include <fstream>\n" + kRun + "{ std::ofstream(\"x\") << n; }");
  EXPECT_THAT(files.evidence, HasSubstr("opens files"));
}

TEST(ObjectCheck, RefusesOtherLibraries) {
  const ObjectVerdict verdict = check(kRun + "{ a[0] = n; }", "-Wl,--no-as-needed -lcrypt");
  EXPECT_EQ(verdict.check, "needed library");
  EXPECT_EQ(verdict.evidence, "libcrypt.so.1");
}

TEST(ObjectCheck, RefusesCodeThatRunsAtLoad) {
  EXPECT_EQ(check("volatile int seen; __attribute__((constructor)) static void early() { seen = 1; }\n" +
                  kRun + "{}")
                .evidence,
            "early()");
  const ObjectVerdict disguised = check(
      "namespace x { extern \"C\" __attribute__((constructor)) void early() asm(\"frame_dummy\"); void "
      "early() {} }\n" +
      kRun + "{}");
  EXPECT_EQ(disguised.check, "constructor");
  const ObjectVerdict stream = check("#include <iostream>\n" + kRun + "{ std::cout << n; }");
  EXPECT_EQ(stream.check, "constructor");
  EXPECT_THAT(stream.evidence, HasSubstr("iostream"));
  const ObjectVerdict section = check("asm(\".section .init\\n nop\\n.text\");\n" + kRun + "{}");
  EXPECT_EQ(section.check, "constructor");
  const ObjectVerdict ifunc = check(
      "extern \"C\" { static void one() {} static void* choose() { return (void*)one; }\n"
      "void chosen() __attribute__((ifunc(\"choose\"))); }\n" +
      kRun + "{ chosen(); }");
  EXPECT_EQ(ifunc.check, "ifunc");
}

TEST(ObjectCheck, RefusesAMissingEntryPointAndExecutableStacks) {
  const ObjectVerdict mangled = check("void run(float*) {}");
  EXPECT_EQ(mangled.check, "entry point");
  EXPECT_THAT(mangled.evidence, HasSubstr("extern \"C\""));
  EXPECT_EQ(check("static " + kRun.substr(11) + "{}\nextern \"C\" void other() { run(0, 0); }").check,
            "entry point");
  EXPECT_EQ(check(kRun + "{}", "-z execstack").check, "executable stack");
}

TEST(ObjectCheck, SurvivesMalformedFiles) {
  EXPECT_EQ(check_object("", "run").status().code(), ErrorCode::kInvalid);
  EXPECT_EQ(check_object("\x7f"
                         "ELF and then nothing",
                         "run")
                .status()
                .code(),
            ErrorCode::kInvalid);
  const std::string good = compile("#include <vector>\n" + kRun + "{ a[0] = std::vector<int>(n)[0]; }");
  for (size_t size = 0; size < good.size(); size += 97) {
    const auto verdict = check_object(std::string_view(good).substr(0, size), "run");
    EXPECT_EQ(verdict.status().code(), ErrorCode::kInvalid) << size;
  }
  std::mt19937_64 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string bad = good;
    for (int i = 0; i < 8; ++i)
      bad[random() % (round % 2 == 0 ? 1024 : bad.size())] = static_cast<char>(random());
    (void)check_object(bad, "run");
    if (round % 10 == 0) (void)find_instructions(bad, "fma");
  }
}

TEST(FindInstructions, FindsEveryFusedMultiplyAddWithItsFlops) {
  const std::string object = compile(
      "#include <immintrin.h>\nextern \"C\" void run(float* a, double* b) {\n"
      " _mm256_storeu_ps(a, _mm256_fmadd_ps(_mm256_loadu_ps(a), _mm256_loadu_ps(a + 8), _mm256_loadu_ps(a + "
      "16)));\n"
      " _mm_storeu_pd(b, _mm_fnmsub_pd(_mm_loadu_pd(b), _mm_loadu_pd(b + 2), _mm_loadu_pd(b + 4)));\n"
      " a[40] = __builtin_fmaf(a[41], a[42], a[43]); }",
      "-mfma -mavx2");
  const auto sites = find_instructions(object, "fma");
  ASSERT_TRUE(sites.ok()) << sites.status().to_string();
  ASSERT_EQ(sites->size(), 3u);
  std::multiset<int> flops;
  for (const CodeSite& site : *sites) {
    EXPECT_EQ(site.function, "run");
    EXPECT_THAT(site.text, HasSubstr("vf"));
    flops.insert(site.flops);
  }
  EXPECT_EQ(flops, (std::multiset<int>{2, 4, 16}));
}

TEST(FindInstructions, SaysWhatItCannotDo) {
  const std::string object = compile(kRun + "{ a[0] = n; }");
  EXPECT_EQ(find_instructions(object, "wgmma").status().code(), ErrorCode::kUnsupported);
  EXPECT_TRUE(find_instructions(object, "fma")->empty());
  const auto junk = find_instructions(compile(kRun + "{ asm volatile(\".byte 0x06, 0x07\"); }"), "fma");
  EXPECT_EQ(junk.status().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(junk.status().message(), HasSubstr("in run"));
}

}  // namespace
}  // namespace fixit
