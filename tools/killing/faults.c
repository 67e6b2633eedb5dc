/* A library to preload (LD_PRELOAD) that stands between a process and the files below one folder.

   It counts what the process does to those files, and at a given operation kills the process in the midst of it, or lets
   this and all later ones fail as a full or read-only disk does, or lets the clock jump at each. If asked, it keeps a log of what has been made durable
   by fsync, and links to all that was removed or replaced, from which a loss of power can be worked out afterwards.

   CHAOS_BELOW   the folder, absolute, without symbolic links
   CHAOS_FAULT   kill, enospc, erofs, jump or none
   CHAOS_MATCH   only paths with this in them count, or with a leading ! those without it; empty: all
   CHAOS_AT      the operation that the fault begins at, from 1
   CHAOS_PART    how much of a write is done before the fault, in millionths
   CHAOS_LOG     a file to append the log to
   CHAOS_SHADOW  a folder on the same file system for the links

   What one thread writes by stdio's buffers is counted at fwrite, since libc's own calls cannot be stood between. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

enum { CHANGES, GROWS, REMOVES, SYNCS }; /* what an operation needs: a writable disk, room on it, or neither */
enum { GO, KILL, FAIL };
enum { NONE, KILLS, FULL, READ_ONLY, JUMPS };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *below, *match, *shadows;
static int fault = NONE;
static long at, total, counted, linked;
static volatile long shift; /* seconds by which the clock is wrong */
static double part;
static int logged = -1;

__attribute__((constructor)) static void begin(void) {
    const char *value = getenv("CHAOS_FAULT");
    if (value && !strcmp(value, "kill")) fault = KILLS;
    if (value && !strcmp(value, "enospc")) fault = FULL;
    if (value && !strcmp(value, "erofs")) fault = READ_ONLY;
    if (value && !strcmp(value, "jump")) fault = JUMPS;
    below = getenv("CHAOS_BELOW");
    match = getenv("CHAOS_MATCH");
    shadows = getenv("CHAOS_SHADOW");
    at = (value = getenv("CHAOS_AT")) ? atol(value) : 0;
    part = (value = getenv("CHAOS_PART")) ? atol(value) / 1e6 : 0;
    if ((value = getenv("CHAOS_LOG"))) logged = syscall(SYS_openat, AT_FDCWD, value, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

/* The absolute path of a name as a call was given it; 0 where that is not below the folder. */
static int ours(int folder, const char *name, char *path) {
    path[0] = 0;
    if (!below || !name) return 0;
    if (name[0] == '/') {
        snprintf(path, PATH_MAX, "%s", name);
    } else {
        char link[64];
        if (folder == AT_FDCWD) snprintf(link, sizeof link, "/proc/self/cwd");
        else snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t length = readlink(link, path, PATH_MAX - 1);
        if (length < 0) return 0;
        path[length] = 0;
        if (name[0] && length + strlen(name) + 2 < PATH_MAX) { strcat(path, "/"); strcat(path, name); }
    }
    size_t length = strlen(below);
    return !strncmp(path, below, length) && (path[length] == '/' || path[length] == 0);
}

static int ours_open(int file, char *path) { return ours(file, "", path); }

static int counts(const char *path) {
    const char *rest = path + strlen(below);
    if (!match || !match[0]) return 1;
    return match[0] == '!' ? !strstr(rest, match + 1) : strstr(rest, match) != NULL;
}

/* Called before an operation: whether the fault has come. `*first` where it comes with this one. */
static int strike(const char *path, int needs, int *first) {
    int verdict = GO;
    *first = 0;
    pthread_mutex_lock(&lock);
    total++;
    if (counts(path)) {
        counted++;
        *first = counted == at;
        if (fault == KILLS && *first) verdict = KILL;
        if (fault == JUMPS) shift = (at + counted) * 40503 % 172801 - 86400; /* within a day, either way */
        if (fault == FULL && counted >= at && needs == GROWS) verdict = FAIL;
        if (fault == READ_ONLY && counted >= at && needs != SYNCS) verdict = FAIL;
    }
    pthread_mutex_unlock(&lock);
    return verdict;
}

static void die(void) {
    for (;;) kill(getpid(), SIGKILL);
}

static int refuse(void) {
    errno = fault == FULL ? ENOSPC : EROFS;
    return -1;
}

static void note(const char *form, ...) {
    char line[2 * PATH_MAX];
    va_list list;
    if (logged < 0) return;
    va_start(list, form);
    int length = vsnprintf(line, sizeof line, form, list);
    va_end(list);
    syscall(SYS_write, logged, line, length);
}

__attribute__((destructor)) static void end(void) {
    if (below) note("counted\t%ld\t%ld\n", counted, total);
}

static ino_t inode(const char *path, off_t *size) {
    struct stat found;
    if (lstat(path, &found)) return 0;
    if (size) *size = found.st_size;
    return found.st_ino;
}

static ino_t folder_of(const char *path, const char **name) {
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    *slash = 0;
    *name = path + (slash - folder) + 1;
    return inode(folder, NULL);
}

/* Keeps what an operation is about to remove or replace; writes its name into `kept`, or "-". */
static void keep(const char *path, char *kept) {
    strcpy(kept, "-");
    if (logged < 0 || !shadows) return;
    pthread_mutex_lock(&lock);
    long number = linked++;
    pthread_mutex_unlock(&lock);
    char target[PATH_MAX];
    snprintf(kept, 64, "%d-%ld", getpid(), number);
    snprintf(target, sizeof target, "%s/%s", shadows, kept);
    if (link(path, target)) strcpy(kept, "-");
}

static void opened(const char *path, int existed) {
    const char *name;
    off_t size = 0;
    ino_t file = inode(path, &size), folder = folder_of(path, &name);
    if (!existed) note("create\t%lu\t%s\n", folder, name);
    note("open\t%lu\t%ld\n", file, (long)size);
}

#define OPENED(call, folder, name, writes, failure) \
    char path[PATH_MAX]; \
    if (!(writes) || !ours(folder, name, path)) return call; \
    int first, existed = inode(path, NULL) != 0; \
    int verdict = strike(path, existed ? CHANGES : GROWS, &first); \
    if (verdict == FAIL) { refuse(); return failure; } \
    if (verdict == KILL && part < 0.5) die(); \
    __auto_type result = call; \
    if (result != failure) opened(path, existed); \
    if (verdict == KILL) die(); \
    return result

#define MODE mode_t mode = 0; if (flags & (O_CREAT | O_TMPFILE)) { va_list list; va_start(list, flags); mode = va_arg(list, mode_t); va_end(list); }
#define WRITES ((flags & O_ACCMODE) != O_RDONLY)

int open(const char *name, int flags, ...) {
    REAL(int, "open", const char *, int, ...); MODE
    OPENED(real(name, flags, mode), AT_FDCWD, name, WRITES, -1);
}
int open64(const char *name, int flags, ...) {
    REAL(int, "open64", const char *, int, ...); MODE
    OPENED(real(name, flags, mode), AT_FDCWD, name, WRITES, -1);
}
int openat(int folder, const char *name, int flags, ...) {
    REAL(int, "openat", int, const char *, int, ...); MODE
    OPENED(real(folder, name, flags, mode), folder, name, WRITES, -1);
}
int openat64(int folder, const char *name, int flags, ...) {
    REAL(int, "openat64", int, const char *, int, ...); MODE
    OPENED(real(folder, name, flags, mode), folder, name, WRITES, -1);
}
FILE *fopen(const char *name, const char *mode) {
    REAL(FILE *, "fopen", const char *, const char *);
    OPENED(real(name, mode), AT_FDCWD, name, mode[0] != 'r' || strchr(mode, '+'), NULL);
}
FILE *fopen64(const char *name, const char *mode) {
    REAL(FILE *, "fopen64", const char *, const char *);
    OPENED(real(name, mode), AT_FDCWD, name, mode[0] != 'r' || strchr(mode, '+'), NULL);
}

ssize_t write(int file, const void *data, size_t size) {
    REAL(ssize_t, "write", int, const void *, size_t);
    char path[PATH_MAX];
    int first;
    if (!ours_open(file, path)) return real(file, data, size);
    int verdict = strike(path, GROWS, &first);
    size_t some = part * size;
    if (verdict == KILL) { real(file, data, some); die(); }
    if (verdict == FAIL) return first && some ? real(file, data, some) : refuse();
    return real(file, data, size);
}
ssize_t writev(int file, const struct iovec *pieces, int count) {
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    char path[PATH_MAX];
    int first;
    if (!ours_open(file, path)) return real(file, pieces, count);
    int verdict = strike(path, GROWS, &first);
    if (verdict == KILL) { real(file, pieces, part * count); die(); }
    return verdict == FAIL ? refuse() : real(file, pieces, count);
}
#define PWRITE(function) \
    ssize_t function(int file, const void *data, size_t size, off_t offset) { \
        REAL(ssize_t, #function, int, const void *, size_t, off_t); \
        char path[PATH_MAX]; \
        int first; \
        if (!ours_open(file, path)) return real(file, data, size, offset); \
        int verdict = strike(path, GROWS, &first); \
        if (verdict == KILL) { real(file, data, part * size, offset); die(); } \
        return verdict == FAIL ? refuse() : real(file, data, size, offset); \
    }
PWRITE(pwrite)
PWRITE(pwrite64)

size_t fwrite(const void *data, size_t size, size_t count, FILE *stream) {
    REAL(size_t, "fwrite", const void *, size_t, size_t, FILE *);
    char path[PATH_MAX];
    int first, file = fileno(stream);
    if (file < 0 || !ours_open(file, path)) return real(data, size, count, stream);
    int verdict = strike(path, GROWS, &first);
    size_t some = part * size * count;
    if (verdict == KILL) { real(data, 1, some, stream); fflush(stream); die(); }
    if (verdict == FAIL) {
        if (first) real(data, 1, some, stream);
        refuse();
        return 0;
    }
    return real(data, size, count, stream);
}

#define SYNC(function) \
    int function(int file) { \
        REAL(int, #function, int); \
        char path[PATH_MAX]; \
        int first; \
        if (!ours_open(file, path)) return real(file); \
        int verdict = strike(path, SYNCS, &first); \
        if (verdict == KILL && part < 0.5) die(); \
        int result = real(file); \
        struct stat found; \
        if (!result && !fstat(file, &found)) \
            note(S_ISDIR(found.st_mode) ? "syncdir\t%lu\n" : "sync\t%lu\t%ld\n", found.st_ino, (long)found.st_size); \
        if (verdict == KILL) die(); \
        return result; \
    }
SYNC(fsync)
SYNC(fdatasync)

/* An operation on names: the fault before or after it, and what it did in the log. */
#define NAMED(path, needs, call, before, after) \
    int first, verdict = strike(path, needs, &first); \
    if (verdict == FAIL) return refuse(); \
    if (verdict == KILL && part < 0.5) die(); \
    before; \
    int result = call; \
    if (!result) { after; } \
    if (verdict == KILL) die(); \
    return result

#define RENAME(call, from_folder, from, to_folder, to) \
    char source[PATH_MAX], target[PATH_MAX], kept[64] = "-"; \
    const char *old, *new; \
    if (!ours(from_folder, from, source) | !ours(to_folder, to, target)) return call; \
    NAMED(target, GROWS, call, if (inode(target, NULL)) keep(target, kept), \
          ino_t a = folder_of(source, &old); ino_t b = folder_of(target, &new); \
          note("rename\t%lu\t%s\t%lu\t%s\t%s\n", a, old, b, new, kept))
int rename(const char *from, const char *to) {
    REAL(int, "rename", const char *, const char *);
    RENAME(real(from, to), AT_FDCWD, from, AT_FDCWD, to);
}
int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    REAL(int, "renameat", int, const char *, int, const char *);
    RENAME(real(from_folder, from, to_folder, to), from_folder, from, to_folder, to);
}

#define UNLINK(call, folder, file) \
    char path[PATH_MAX], kept[64]; \
    const char *name; \
    if (!ours(folder, file, path)) return call; \
    NAMED(path, REMOVES, call, keep(path, kept), ino_t a = folder_of(path, &name); note("unlink\t%lu\t%s\t%s\n", a, name, kept))
#define RMDIR(call, folder, file) \
    char path[PATH_MAX]; \
    const char *name; \
    if (!ours(folder, file, path)) return call; \
    ino_t was = inode(path, NULL); \
    NAMED(path, REMOVES, call, , ino_t a = folder_of(path, &name); note("rmdir\t%lu\t%s\t%lu\n", a, name, was))
#define MKDIR(call, folder, file) \
    char path[PATH_MAX]; \
    const char *name; \
    if (!ours(folder, file, path) || inode(path, NULL)) return call; \
    NAMED(path, GROWS, call, , ino_t a = folder_of(path, &name); note("mkdir\t%lu\t%s\t%lu\n", a, name, inode(path, NULL)))
int unlink(const char *file) {
    REAL(int, "unlink", const char *);
    UNLINK(real(file), AT_FDCWD, file);
}
int rmdir(const char *file) {
    REAL(int, "rmdir", const char *);
    RMDIR(real(file), AT_FDCWD, file);
}
static int unlinked(int (*real)(int, const char *, int), int folder, const char *file, int flags) {
    UNLINK(real(folder, file, flags), folder, file);
}
int unlinkat(int folder, const char *file, int flags) {
    REAL(int, "unlinkat", int, const char *, int);
    if (!(flags & AT_REMOVEDIR)) return unlinked(real, folder, file, flags);
    RMDIR(real(folder, file, flags), folder, file);
}
int mkdir(const char *file, mode_t mode) {
    REAL(int, "mkdir", const char *, mode_t);
    MKDIR(real(file, mode), AT_FDCWD, file);
}
int mkdirat(int folder, const char *file, mode_t mode) {
    REAL(int, "mkdirat", int, const char *, mode_t);
    MKDIR(real(folder, file, mode), folder, file);
}

/* Clocks that are set by hand or over the network. Those that only measure durations do not jump. */
int clock_gettime(clockid_t clock, struct timespec *now) {
    REAL(int, "clock_gettime", clockid_t, struct timespec *);
    int result = real(clock, now);
    if (!result && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += shift;
    return result;
}
int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    REAL(int, "gettimeofday", struct timeval *, void *);
    int result = real(now, zone);
    if (!result && now) now->tv_sec += shift;
    return result;
}
time_t time(time_t *now) {
    REAL(time_t, "time", time_t *);
    time_t result = real(NULL) + shift;
    if (now) *now = result;
    return result;
}
