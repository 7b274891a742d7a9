#include "core/sandbox/exec/file_view.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace fixit {
namespace {

// Hidden by the new root's tmpfs while that is filled; every path of the view is opened before.
constexpr const char* kStage = "/tmp";

struct Bind {
  std::string path;
  int tree = -1;  // detached clone of the mount; closed when the process leaves this program
  bool folder = false;
};

Status failed(const std::string& what) {
  return Status(ErrorCode::kDenied, what + ": " + std::strerror(errno));
}

Result<Bind> clone_tree(const std::string& path, bool read_only, bool devices) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return Status(ErrorCode::kNotFound, path + ": " + std::strerror(errno));
  Bind bind{path, open_tree(AT_FDCWD, path.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE),
            S_ISDIR(info.st_mode)};
  if (bind.tree < 0) return failed("open_tree of " + path);
  struct mount_attr attributes = {};
  attributes.attr_set =
      MOUNT_ATTR_NOSUID | (read_only ? MOUNT_ATTR_RDONLY : 0) | (devices ? 0 : MOUNT_ATTR_NODEV);
  if (mount_setattr(bind.tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes, sizeof attributes) != 0)
    return failed("mount_setattr of " + path);
  return bind;
}

// open_tree needs absolute, normal paths: "/a/../b" would be bound at a place nobody asked for.
Result<std::vector<Bind>> clone_all(std::vector<std::string> read_only, const std::string& writable) {
  std::vector<Bind> binds;
  std::sort(read_only.begin(), read_only.end());  // a folder comes before what lies inside it
  read_only.erase(std::unique(read_only.begin(), read_only.end()), read_only.end());
  for (const std::string& path : read_only) {
    if (path.empty() || path[0] != '/' || std::filesystem::path(path).lexically_normal() != path)
      return Status(ErrorCode::kInvalid, "read-only path `" + path + "` is not absolute and normal");
    auto bind = clone_tree(path, true, false);
    if (!bind.ok() && bind.status().code() == ErrorCode::kNotFound) continue;
    if (!bind.ok()) return bind.status();
    binds.push_back(std::move(*bind));
  }
  for (const char* device : {"/dev/null", "/dev/zero", "/dev/urandom"}) {
    FIXIT_ASSIGN_OR_RETURN(Bind bind, clone_tree(device, false, true));
    binds.push_back(std::move(bind));
  }
  if (!writable.empty()) {
    FIXIT_ASSIGN_OR_RETURN(Bind bind, clone_tree(writable, false, false));
    binds.push_back(std::move(bind));
  }
  return binds;
}

Status attach(const Bind& bind) {
  const std::string target = kStage + bind.path;
  struct stat info = {};
  if (stat(target.c_str(), &info) != 0) {  // else it lies inside a folder bound before: its own place exists
    std::error_code error;
    std::filesystem::create_directories(
        bind.folder ? std::filesystem::path(target) : std::filesystem::path(target).parent_path(), error);
    if (error)
      return Status(ErrorCode::kDenied, "creating " + bind.path + " in the view: " + error.message());
    if (!bind.folder) {
      const int file = open(target.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0444);
      if (file < 0) return failed("creating " + bind.path + " in the view");
      close(file);
    }
  }
  if (move_mount(bind.tree, "", AT_FDCWD, target.c_str(), MOVE_MOUNT_F_EMPTY_PATH) != 0)
    return failed("binding " + bind.path);
  return Status();
}

std::vector<std::pair<std::string, std::string>> root_links() {
  std::vector<std::pair<std::string, std::string>> links;
  for (const char* path : {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}) {
    std::error_code error;
    const auto target = std::filesystem::read_symlink(path, error);
    if (!error) links.emplace_back(path, target.string());
  }
  return links;
}

}  // namespace

Status enter_file_view(const std::vector<std::string>& read_only, const std::string& writable) {
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return failed("making mounts private");
  FIXIT_ASSIGN_OR_RETURN(const auto binds, clone_all(read_only, writable));
  const auto links = root_links();
  if (mount("tmpfs", kStage, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=0755") != 0)
    return failed("mounting a tmpfs");
  for (const Bind& bind : binds) FIXIT_RETURN_IF_ERROR(attach(bind));
  for (const auto& [path, target] : links)  // fails where the path was bound itself, which is as good
    if (symlink(target.c_str(), (kStage + path).c_str()) != 0 && errno != EEXIST)
      return failed("linking " + path);
  if (chdir(kStage) != 0 || syscall(SYS_pivot_root, ".", ".") != 0) return failed("pivot_root");
  if (umount2(".", MNT_DETACH) != 0) return failed("detaching the old root");
  struct mount_attr attributes = {};
  attributes.attr_set = MOUNT_ATTR_RDONLY;
  if (mount_setattr(AT_FDCWD, "/", 0, &attributes, sizeof attributes) != 0)
    return failed("making the root read-only");
  return chdir("/") == 0 ? Status() : failed("entering the new root");
}

}  // namespace fixit
