#include "core/store/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "core/base/file.h"

namespace fixit {
namespace {

namespace fs = std::filesystem;

class PackStoreTest : public testing::Test {
 protected:
  void SetUp() override { folder_ = fs::temp_directory_path() / ("fixit-store-" + random_hex(8)); }
  void TearDown() override { fs::remove_all(folder_); }

  std::unique_ptr<BlobStore> open() {
    auto store = open_pack_store(folder_);
    EXPECT_TRUE(store.ok()) << store.status().to_string();
    return store.ok() ? std::move(*store) : nullptr;
  }
  fs::path pack() const { return folder_ / "000001.pack"; }

  fs::path folder_;
};

std::string incompressible(size_t size) {
  return from_hex(random_hex(static_cast<int>(size)));
}

TEST_F(PackStoreTest, GivesBackWhatWasPutAfterReopening) {
  const std::vector<std::string> blobs = {"", "a", std::string(100000, 'x'), incompressible(5000)};
  std::vector<BlobHash> hashes;
  {
    auto store = open();
    for (const auto& blob : blobs) hashes.push_back(*store->put(blob));
    ASSERT_TRUE(store->bind("reply/1", hashes[2]).ok());
    EXPECT_EQ(*store->get(hashes[2]), blobs[2]);
  }
  auto store = open();
  for (size_t i = 0; i < blobs.size(); ++i) {
    EXPECT_EQ(hashes[i], sha256(blobs[i]));
    EXPECT_TRUE(store->contains(hashes[i]));
    EXPECT_EQ(*store->get(hashes[i]), blobs[i]);
  }
  EXPECT_EQ(**store->lookup("reply/1"), hashes[2]);
  EXPECT_FALSE(store->lookup("reply/2")->has_value());
  EXPECT_EQ(store->get(sha256("never put")).status().code(), ErrorCode::kNotFound);
  EXPECT_EQ(store->get("../lock").status().code(), ErrorCode::kInvalid);
}

TEST_F(PackStoreTest, CompressesAndStoresEqualBytesOnce) {
  auto store = open();
  const std::string text(1 << 20, 'k');
  ASSERT_TRUE(store->put(text).ok());
  const auto size = fs::file_size(pack());
  EXPECT_LT(size, text.size() / 10);
  ASSERT_TRUE(store->put(text).ok());
  EXPECT_EQ(fs::file_size(pack()), size);
}

TEST_F(PackStoreTest, KeepsTheFirstBindingOfAName) {
  auto store = open();
  const BlobHash first = *store->put("first"), second = *store->put("second");
  ASSERT_TRUE(store->bind("n", first).ok());
  EXPECT_TRUE(store->bind("n", first).ok());
  EXPECT_EQ(store->bind("n", second).code(), ErrorCode::kConflict);
  EXPECT_EQ(store->bind("m", sha256("absent")).code(), ErrorCode::kNotFound);
  EXPECT_EQ(store->bind("", first).code(), ErrorCode::kInvalid);
  EXPECT_EQ(store->bind(std::string(2000, 'n'), first).code(), ErrorCode::kInvalid);
  store.reset();
  store = open();
  EXPECT_EQ(**store->lookup("n"), first);
  EXPECT_EQ(store->bind("n", second).code(), ErrorCode::kConflict);
}

TEST_F(PackStoreTest, RefusesASecondOpener) {
  auto store = open();
  EXPECT_EQ(open_pack_store(folder_).status().code(), ErrorCode::kConflict);
  store.reset();
  EXPECT_TRUE(open_pack_store(folder_).ok());
}

// Every length that a crash may leave the last record at: what stood before it survives, and appending goes
// on.
TEST_F(PackStoreTest, CutsATornTailOfAnyLength) {
  BlobHash kept, torn;
  uintmax_t before = 0;
  {
    auto store = open();
    kept = *store->put("kept");
    before = fs::file_size(pack());
    torn = *store->put("torn away");
  }
  const std::string whole = *read_file(pack());
  for (size_t size = 0; size < whole.size(); ++size) {
    SCOPED_TRACE(size);
    ASSERT_TRUE(write_file_durably(pack(), whole.substr(0, size)).ok());
    auto store = open();
    ASSERT_TRUE(store);
    EXPECT_EQ(store->contains(kept), size >= before);
    EXPECT_FALSE(store->contains(torn));
    const BlobHash next = *store->put("next");
    store.reset();
    store = open();
    EXPECT_EQ(*store->get(next), "next");
  }
}

TEST_F(PackStoreTest, CutsATailOfZeros) {
  BlobHash kept;
  {
    auto store = open();
    kept = *store->put("kept");
  }
  std::ofstream(pack(), std::ios::app | std::ios::binary) << std::string(4096, '\0');
  auto store = open();
  const BlobHash next = *store->put("next");
  store.reset();
  store = open();
  EXPECT_EQ(*store->get(kept), "kept");
  EXPECT_EQ(*store->get(next), "next");
}

// Any one changed byte: never a crash, never wrong bytes, and at most the record it is in is lost.
TEST_F(PackStoreTest, LosesOnlyTheDamagedBlob) {
  const std::vector<std::string> blobs = {"first blob", "second blob", "third blob"};
  {
    auto store = open();
    for (const auto& blob : blobs) ASSERT_TRUE(store->put(blob).ok());
  }
  const std::string whole = *read_file(pack());
  for (size_t at = 8; at < whole.size(); at += 3) {
    SCOPED_TRACE(at);
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x41);
    ASSERT_TRUE(write_file_durably(pack(), changed).ok());
    auto store = open();
    ASSERT_TRUE(store);
    int present = 0;
    for (const auto& blob : blobs) {
      const auto got = store->get(sha256(blob));
      if (got.ok()) {
        EXPECT_EQ(*got, blob);
      }
      present += got.ok();
    }
    EXPECT_EQ(present, 2);
  }
}

TEST_F(PackStoreTest, RefusesAFileThatIsNoPack) {
  fs::create_directories(folder_);
  ASSERT_TRUE(write_file_durably(pack(), "something else entirely").ok());
  EXPECT_EQ(open_pack_store(folder_).status().code(), ErrorCode::kCorrupt);
}

class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    previous_ = std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &limit_);
    const rlimit smaller{bytes, limit_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &smaller);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &limit_);
    std::signal(SIGXFSZ, previous_);
  }

 private:
  rlimit limit_{};
  void (*previous_)(int);
};

TEST_F(PackStoreTest, LeavesNothingTornWhenTheDiskIsFull) {
  auto store = open();
  const BlobHash kept = *store->put(incompressible(1000));
  const auto before = fs::file_size(pack());
  const std::string large = incompressible(10000), small = incompressible(100);
  {
    const FileSizeLimit limit(before + 4096);
    const auto full = store->put(large);
    EXPECT_EQ(full.status().code(), ErrorCode::kFull) << full.status().to_string();
    EXPECT_EQ(fs::file_size(pack()), before);
    EXPECT_TRUE(store->put(small).ok()) << "what still fits is taken";
  }
  EXPECT_TRUE(store->put(large).ok()) << "space again: it goes on";
  ASSERT_TRUE(store->sync().ok());
  store.reset();
  store = open();
  EXPECT_TRUE(store->get(kept).ok());
  EXPECT_EQ(*store->get(sha256(large)), large);
  EXPECT_EQ(*store->get(sha256(small)), small);
}

TEST_F(PackStoreTest, TakesBlobsFromManyThreads) {
  auto store = open();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&store, t] {
      for (int i = 0; i < 50; ++i) {
        const std::string text = "blob " + std::to_string(i);  // the same ones on each thread
        const auto hash = store->put(text);
        ASSERT_TRUE(hash.ok());
        EXPECT_EQ(*store->get(*hash), text);
        if (i % 10 == t) {
          EXPECT_TRUE(store->bind("name/" + std::to_string(i), *hash).ok());
        }
      }
    });
  for (auto& thread : threads) thread.join();
  store.reset();
  store = open();
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(store->contains(sha256("blob " + std::to_string(i))));
  EXPECT_EQ(**store->lookup("name/12"), sha256("blob 12"));
}

TEST(MemoryStore, BehavesAsTheStoreOnDisk) {
  auto store = make_memory_store();
  const BlobHash a = *store->put("a"), b = *store->put("b");
  EXPECT_EQ(*store->get(a), "a");
  EXPECT_TRUE(store->bind("n", a).ok());
  EXPECT_TRUE(store->bind("n", a).ok());
  EXPECT_EQ(store->bind("n", b).code(), ErrorCode::kConflict);
  EXPECT_EQ(store->bind("m", sha256("c")).code(), ErrorCode::kNotFound);
  EXPECT_EQ(**store->lookup("n"), a);
  EXPECT_EQ(store->get(sha256("c")).status().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace fixit
