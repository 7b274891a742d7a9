#include "worker/extract/extraction.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "worker/extract/entry_point.h"

namespace fixit {
namespace {

const std::string kKernel = "extern \"C\" void run(const float* A, float* C) {\n  C[0] = A[0];\n}\n";
const std::string kSnippet = "int helper();\n";

struct Case {
  std::string name;
  std::string reply;
  std::string finish;
  TurnStatus status;
  std::string source;
};

std::string block(const std::string& tag, const std::string& code, const std::string& fence = "```") {
  return fence + tag + "\n" + code + fence + "\n";
}

std::string crlf(std::string text) {
  for (size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 2))
    text.replace(at, 1, "\r\n");
  return text;
}

std::vector<Case> cases() {
  const auto found = TurnStatus::kPending;
  const auto none = TurnStatus::kNoCode;
  const auto cut = TurnStatus::kTruncated;
  std::vector<Case> all;
  for (const std::string tag :
       {"cpp", "CPP", "Cuda", "c++", "C++", "cu", "cc", "cxx", "cpp {.numberLines}", " cpp ",
        "cpp title=\"kernel.cpp\"", "cpp{a=1}", "cpp:kernel.cpp", "cpp,ignore"})
    all.push_back({"tag [" + tag + "]", "Here.\n" + block(tag, kKernel) + "Done.", "stop", found, kKernel});
  for (const std::string tag : {"", "python", "text", "c", "cppx", "json", "ptx"})
    all.push_back({"other tag [" + tag + "]", block(tag, kKernel), "stop", none, ""});
  const std::string quoting = "const char* s = R\"(\n```\n)\";\n" + kKernel;
  const std::string tagged = "const char* s = \"<think>\";  // </think> here\n" + kKernel;
  const std::string indented = "  ```cpp\n  int a;\n    int b;\nint c;\n  ```\n";
  const std::vector<Case> rest = {
      {"empty reply", "", "stop", none, ""},
      {"empty reply, cut", "", "length", cut, ""},
      {"prose only", "I cannot do this.", "stop", none, ""},
      {"CRLF", crlf("Text\n" + block("cpp", kKernel) + "End\n"), "stop", found, kKernel},
      {"longer fence", block("cpp", kKernel, "`````"), "stop", found, kKernel},
      {"closing fence longer than the opening", "```cpp\n" + kKernel + "`````\n", "stop", found, kKernel},
      {"closing fence shorter", "````cpp\n" + kKernel + "```\n", "stop", none, ""},
      {"tildes", block("cuda", kKernel, "~~~"), "stop", found, kKernel},
      {"tildes are not closed by backticks", "~~~cpp\n" + kKernel + "```\n", "stop", none, ""},
      {"fence in a raw string, outer one longer", block("cpp", quoting, "````"), "stop", found, quoting},
      {"tilde fence in backticks", block("cpp", "// ~~~\n" + kKernel), "stop", found, "// ~~~\n" + kKernel},
      {"indented", indented, "stop", found, "int a;\n  int b;\nint c;\n"},
      {"indented four columns is not a fence", "    ```cpp\n" + kKernel + "    ```\n", "stop", none, ""},
      {"no newline at the end", "```cpp\n" + kKernel + "```", "stop", found, kKernel},
      {"inline code is not a fence", "```cpp``` is the tag", "stop", none, ""},
      {"last definition wins", block("cpp", "void run() { int first; }\n") + block("cpp", kKernel), "stop",
       found, kKernel},
      {"snippet after the kernel", block("cpp", kKernel) + block("cpp", kSnippet), "stop", found, kKernel},
      {"a call is not a definition", block("cpp", kKernel) + block("cpp", "int main() { run(a, c); }\n"),
       "stop", found, kKernel},
      {"a declaration is not a definition", block("cpp", kKernel) + block("cpp", "void run(int);\n{ }\n"),
       "stop", found, kKernel},
      {"no definition: the last complete", block("cpp", "int a;\n") + block("cpp", kSnippet), "stop", found,
       kSnippet},
      {"other languages between", block("cpp", kKernel) + block("bash", "g++ run.cpp\n"), "stop", found,
       kKernel},
      {"empty block", block("cpp", ""), "stop", none, ""},
      {"blank block after the kernel", block("cpp", kKernel) + block("cpp", " \n"), "stop", found, kKernel},
      {"unclosed", "```cpp\n" + kKernel, "stop", none, ""},
      {"unclosed, cut", "```cpp\n" + kKernel, "length", cut, ""},
      {"cut at the opening", "```cpp", "length", cut, ""},
      {"kernel, then an unclosed block", block("cpp", kKernel) + "```cpp\n" + kSnippet, "length", found,
       kKernel},
      {"snippet, then an unclosed kernel", block("cpp", kSnippet) + "```cpp\n" + kKernel, "length", cut, ""},
      {"kernel, then cut prose", block("cpp", kKernel) + "This is fas", "length", found, kKernel},
      {"prose, cut", "First I will", "length", cut, ""},
      {"code only in thinking", "<think>\n" + block("cpp", kKernel) + "</think>\nDone.", "stop", none, ""},
      {"thinking, then code",
       "<think>\n" + block("cpp", "void run() { int no; }\n") + "</think>\n" + block("cpp", kKernel), "stop",
       found, kKernel},
      {"code, then thinking",
       block("cpp", kKernel) + "<think>\n" + block("cpp", "void run() { }\n") + "</think>", "stop", found,
       kKernel},
      {"thinking with an open fence", "<think>\n```cpp\nint x;\n</think>\n" + block("cpp", kKernel), "stop",
       found, kKernel},
      {"thinking whose beginning is missing",
       block("cpp", "void run() { }\n") + "</think>\nOk\n" + block("cpp", kKernel), "stop", found, kKernel},
      {"missing beginning, nothing after", block("cpp", kKernel) + "</think>\nOk\n", "stop", none, ""},
      {"missing beginning, open fence", "```cpp\nint x;\n</think>\n" + block("cpp", kKernel), "stop", found,
       kKernel},
      {"unclosed thinking", "<think>\nplan\n" + block("cpp", kKernel), "stop", none, ""},
      {"unclosed thinking, cut", "<think>\nplan\n" + block("cpp", kKernel), "length", cut, ""},
      {"thinking in capitals", "<THINKING>" + block("cpp", kKernel) + "</Thinking>", "stop", none, ""},
      {"end tag and fence on one line", "<think>x</think>```cpp\n" + kKernel + "```\n", "stop", found,
       kKernel},
      {"tags inside code are code", block("cpp", tagged), "stop", found, tagged},
      {"invalid UTF-8", "\xff\xfe\n```cpp\n// \xc3\x28\n" + kKernel + "```\n\x80", "stop", found,
       "// \xc3\x28\n" + kKernel},
      {"zero byte", std::string("```cpp\n\0\n", 9) + kKernel + "```", "stop", found,
       std::string("\0\n", 2) + kKernel},
  };
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

TEST(Extraction, FindsTheKernelOrSaysWhatIsMissing) {
  for (const Case& test : cases()) {
    SCOPED_TRACE(test.name);
    const Extraction got = extract_kernel(test.reply, test.finish, "run");
    EXPECT_EQ(name_of(got.status), name_of(test.status));
    EXPECT_EQ(got.source, test.source);
    EXPECT_EQ(got.reason.empty(), test.status == TurnStatus::kPending);
  }
}

TEST(Extraction, KeepsTheTagAsWritten) {
  EXPECT_EQ(extract_kernel(block("C++ {.x}", kKernel), "stop", "run").language, "C++");
}

TEST(Extraction, SaysWhyThereIsNoCode) {
  EXPECT_NE(extract_kernel(block("python", "x\n"), "stop", "run").reason.find("tagged python"),
            std::string::npos);
  EXPECT_NE(extract_kernel("```cpp\nx", "stop", "run").reason.find("never closed"), std::string::npos);
  EXPECT_NE(extract_kernel("```cpp\nx", "length", "run").reason.find("token limit"), std::string::npos);
}

TEST(Extraction, TakesMegabytesInLinearTime) {
  std::string calls, thinks, fences;
  for (int i = 0; i < 400000; ++i) {
    calls += "run(";
    thinks += "<think";
    fences += "```x`\n";
  }
  EXPECT_EQ(extract_kernel(block("cpp", calls + "\n"), "stop", "run").source, calls + "\n");
  EXPECT_EQ(extract_kernel(thinks + "\n" + block("cpp", kKernel), "stop", "run").source, kKernel);
  EXPECT_EQ(extract_kernel(fences + block("cpp", kKernel), "stop", "run").source, kKernel);
}

TEST(EntryPoint, SeesDefinitionsOnly) {
  EXPECT_TRUE(defines_function("void run ( int (*f)(int), int b )\n noexcept {", "run"));
  EXPECT_TRUE(defines_function("void run(int a /* ) { */) // why\n{", "run"));
  EXPECT_TRUE(defines_function("namespace k { void f() { auto n = 1'000; } void run(T a) {} }", "run"));
  EXPECT_FALSE(defines_function("void rerun(int a) { run(a); }", "run"));
  EXPECT_FALSE(defines_function("// void run(int a) {\n", "run"));
  EXPECT_FALSE(defines_function("const char* s = \"void run() {\";", "run"));
  EXPECT_FALSE(defines_function("auto s = R\"x(\" void run() { )\" )x\";", "run"));
  EXPECT_FALSE(defines_function("if (run(a)) { }", "run"));
  EXPECT_FALSE(defines_function("", "run"));
}

}  // namespace
}  // namespace fixit
