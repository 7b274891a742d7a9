// Real g++ in the real sandbox, on a store in memory.
#include "worker/compile/compiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "core/base/clock.h"
#include "tests/support/eventually.h"
#include "tests/support/temporary_folder.h"

namespace fixit {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kGood = R"(
#include <cmath>
extern "C" void run(const float* a, float* b, long n) {
  for (long i = 0; i < n; ++i) b[i] = std::sqrt(a[i]);
}
)";

class CompilerTest : public ::testing::Test {
 protected:
  CompilerTest() {
    gpu_.name = "cpu";
    gpu_.arch = "x86-64";
    auto started = Compiler::start(*store_, 2);
    if (!started.ok()) throw std::runtime_error(started.status().to_string());
    compiler_ = std::move(started).value();
  }

  std::future<CompileRecord> submit(const std::string& source,
                                    std::map<std::string, std::string> headers = {}) {
    auto promise = std::make_shared<std::promise<CompileRecord>>();
    auto future = promise->get_future();
    compiler_->submit({source, std::move(headers), gpu_},
                      [promise](CompileRecord record) { promise->set_value(std::move(record)); });
    return future;
  }
  CompileRecord compile(const std::string& source, std::map<std::string, std::string> headers = {}) {
    auto future = submit(source, std::move(headers));
    if (future.wait_for(std::chrono::seconds(90)) != std::future_status::ready)
      throw std::runtime_error("the compiler did not answer");
    return future.get();
  }
  std::string log(const CompileRecord& record) {
    const auto bytes = store_->get(record.log);
    return bytes.ok() ? *bytes : bytes.status().to_string();
  }

  std::unique_ptr<BlobStore> store_ = make_memory_store();
  GpuConfig gpu_;
  std::unique_ptr<Compiler> compiler_;
};

TEST_F(CompilerTest, MakesASharedObjectAndAnswersTheSecondTimeFromTheCache) {
  const CompileRecord first = compile(kGood);
  ASSERT_EQ(first.status, TurnStatus::kCorrect) << first.check << " " << first.evidence << log(first);
  EXPECT_FALSE(first.cached);
  EXPECT_EQ(first.toolchain, compiler_->toolchain());
  EXPECT_THAT(first.toolchain, HasSubstr("g++ "));
  EXPECT_EQ(store_->get(first.artifact).value().substr(0, 4),
            "\x7f"
            "ELF");
  EXPECT_TRUE(store_->lookup("compile/" + first.key).value().has_value());

  const CompileRecord second = compile(kGood);
  EXPECT_TRUE(second.cached);
  EXPECT_EQ(second.key, first.key);
  EXPECT_EQ(second.artifact, first.artifact);
}

TEST_F(CompilerTest, TheObjectDoesNotDependOnTheFolderItWasMadeIn) {
  const CompileRecord first =
      compile(std::string(kGood) + "extern \"C\" const char* where() { return __FILE__ __TIME__; }\n");
  auto other_store = make_memory_store();
  auto other = Compiler::start(*other_store, 1);
  ASSERT_TRUE(other.ok());
  std::promise<CompileRecord> promise;
  (*other)->submit(
      {std::string(kGood) + "extern \"C\" const char* where() { return __FILE__ __TIME__; }\n", {}, gpu_},
      [&](CompileRecord record) { promise.set_value(std::move(record)); });
  const CompileRecord second = promise.get_future().get();
  EXPECT_FALSE(second.cached);
  EXPECT_EQ(first.key, second.key);
  EXPECT_EQ(first.artifact, second.artifact);
}

TEST_F(CompilerTest, EachInputIsPartOfTheKey) {
  const CompileRecord plain = compile(kGood);
  EXPECT_NE(compile(std::string(kGood) + " ").key, plain.key);
  EXPECT_NE(compile(kGood, {{"tiles.h", ""}}).key, plain.key);
  gpu_.compile_flags = {"-ffast-math"};
  EXPECT_NE(compile(kGood).key, plain.key);
  gpu_.compile_flags = {};
  gpu_.arch = "x86-64-v2";
  EXPECT_NE(compile(kGood).key, plain.key);
}

TEST_F(CompilerTest, AnErrorKeepsTheWholeLogWithoutThePathsOfThisMachine) {
  const CompileRecord record = compile("extern \"C\" void run() { undeclared(); }\n");
  EXPECT_EQ(record.status, TurnStatus::kCompileError);
  EXPECT_TRUE(record.artifact.empty());
  EXPECT_THAT(log(record), HasSubstr("kernel.cpp:1:"));
  EXPECT_THAT(log(record), HasSubstr("undeclared"));
  EXPECT_THAT(log(record), Not(HasSubstr("fixit-compile-")));
  EXPECT_TRUE(compile("extern \"C\" void run() { undeclared(); }\n").cached);
}

TEST_F(CompilerTest, PackHeadersLieBesideTheSource) {
  const CompileRecord record = compile("#include \"tiles.h\"\nextern \"C\" int run() { return kTile; }\n",
                                       {{"tiles.h", "constexpr int kTile = 8;\n"}});
  EXPECT_EQ(record.status, TurnStatus::kCorrect) << log(record);
}

TEST_F(CompilerTest, BannedHeadersAreFoundHoweverTheyAreReached) {
  for (const char* source : {
           "#include <dlfcn.h>\nextern \"C\" void run() {}\n",
           "#define HEADER <sys/socket.h>\n#include HEADER\nextern \"C\" void run() {}\n",
           "#include <cblas.h>\nextern \"C\" void run() {}\n",           // whether installed or not
           "#include <Eigen/Dense>\nextern \"C\" void run() {}\n",       // likewise
           "#include <dlfcn.h>\nextern \"C\" void run() { broken; }\n",  // and whether the rest compiles or
                                                                         // not
       }) {
    const CompileRecord record = compile(source);
    EXPECT_EQ(record.status, TurnStatus::kBanned) << source << log(record);
    EXPECT_EQ(record.check, "header");
    EXPECT_THAT(record.evidence, ::testing::AnyOf(HasSubstr("may not"), HasSubstr("must do"))) << source;
    EXPECT_TRUE(record.artifact.empty());
  }
}

TEST_F(CompilerTest, TheWholeStandardLibraryIsAllowed) {
  const CompileRecord record = compile(
      "#include <bits/stdc++.h>\n#include <immintrin.h>\n#include <pthread.h>\nextern \"C\" void run() {}\n");
  EXPECT_EQ(record.status, TurnStatus::kCorrect) << record.evidence << log(record);
}

TEST_F(CompilerTest, FilesOfTheMachineCannotBeIncluded) {
  for (const char* path : {"/etc/passwd", "../../../../etc/passwd", "/proc/self/environ"}) {
    const CompileRecord record =
        compile(std::string("#include \"") + path + "\"\nextern \"C\" void run() {}\n");
    EXPECT_EQ(record.status, TurnStatus::kCompileError) << path;
    EXPECT_THAT(log(record), Not(HasSubstr("root:"))) << path;
    EXPECT_THAT(log(record), Not(HasSubstr("PATH="))) << path;
  }
}

TEST_F(CompilerTest, EndlessWorkIsBoundedAndSaysSo) {
  gpu_.compile_deadline_s = 2;
  const std::string source =
      "template <unsigned long N, unsigned long M> struct S { static constexpr unsigned long v = "
      "S<N - 1, 2 * M>::v + S<N - 1, 2 * M + 1>::v; };\n"
      "template <unsigned long M> struct S<0, M> { static constexpr unsigned long v = M; };\n"
      "extern \"C\" unsigned long run() { return S<40, 1>::v; }\n";
  const int64_t begin = Clock::system().steady_ms();
  const CompileRecord record = compile(source);
  EXPECT_LT(Clock::system().steady_ms() - begin, 15'000);
  EXPECT_EQ(record.status, TurnStatus::kCompileError) << record.evidence;
  EXPECT_THAT(log(record), HasSubstr("took longer than 2 seconds"));
  EXPECT_FALSE(store_->lookup("compile/" + record.key).value().has_value());  // may pass on an idle machine
}

TEST_F(CompilerTest, EndlessRecursionOfTemplatesIsAnOrdinaryError) {
  const CompileRecord record = compile(
      "template <int N> struct S { static constexpr int v = S<N + 1>::v; };\nextern \"C\" int run() { return "
      "S<0>::v; }\n");
  EXPECT_EQ(record.status, TurnStatus::kCompileError);
  EXPECT_LE(log(record).size(), (1u << 20) + 100);
}

TEST_F(CompilerTest, EqualSourcesInFlightAreCompiledOnce) {
  std::vector<std::future<CompileRecord>> futures;
  for (int i = 0; i < 8; ++i) futures.push_back(submit(kGood));  // microseconds, against a compiler's tenths
  const CompileRecord first = futures[0].get();
  EXPECT_EQ(first.status, TurnStatus::kCorrect);
  for (size_t i = 1; i < futures.size(); ++i) {
    const CompileRecord joined = futures[i].get();
    EXPECT_FALSE(joined.cached);
    EXPECT_EQ(joined.artifact, first.artifact);
    EXPECT_EQ(joined.seconds, first.seconds);  // the same measurement: there was only one compilation
  }
}

TEST_F(CompilerTest, AnotherTargetIsNotTheKernelsFault) {
  gpu_.target = TargetKind::kCuda;
  const CompileRecord record = compile(kGood);
  EXPECT_EQ(record.status, TurnStatus::kInfra);
  EXPECT_EQ(record.check, "target");
}

TEST_F(CompilerTest, LeavingDoesNotWaitForACompilationToEnd) {
  const std::string source =
      "template <unsigned long N, unsigned long M> struct S { static constexpr unsigned long v = "
      "S<N - 1, 2 * M>::v + S<N - 1, 2 * M + 1>::v; };\n"
      "template <unsigned long M> struct S<0, M> { static constexpr unsigned long v = M; };\n"
      "extern \"C\" unsigned long run() { return S<60, 1>::v; }\n";
  const testing::TemporaryFolder folder;
  setenv("TMPDIR", folder.path().c_str(), 1);
  submit(source);
  // g++ makes its assembler file at once and is then busy for minutes.
  const bool running = testing::eventually([&] {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
      if (entry.path().extension() == ".s") return true;
    return false;
  });
  unsetenv("TMPDIR");
  ASSERT_TRUE(running);
  const int64_t begin = Clock::system().steady_ms();
  compiler_.reset();
  EXPECT_LT(Clock::system().steady_ms() - begin, 5'000);
}

}  // namespace
}  // namespace fixit
