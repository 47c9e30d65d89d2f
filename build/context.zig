//! The settings of every compilation, the flags and libraries, and the search for source files.
const std = @import("std");
const Build = std.Build;
const LazyPath = Build.LazyPath;

pub const library_directories = [_][]const u8{
    "base",
    "builtin",
    "records/io",
    "records/record",
    "records/example",
    "records/checkpoint",
    "records/event",
    "records/formats",
    "queue",
    "kernels",
    "kernels/image",
    "pipeline",
    "pipeline/engine",
    "pipeline/sources",
    "pipeline/stages",
    "graph/data",
    "graph/abi",
    "graph/ir",
    "graph/ops",
    "graph/plan",
    "graph/run",
    "graph/state",
    "graph/train",
};
pub const system_libraries = [_][]const u8{ "jpeg", "png16", "z", "protobuf-c", "uring", "pcre2-8", "lapack", "blas" };
pub const static_libraries = [_][]const u8{ "jpeg", "png16", "z", "protobuf-c", "uring", "pcre2-8", "openblas" };
/// Only the tools read these formats.
pub const tool_libraries = [_][]const u8{
    "jansson", "expat", "webpdemux", "webp", "gif", "tiff", "zstd", "lzma", "jbig", "deflate",
};
pub const warnings = [_][]const u8{
    "-Wall",
    "-Wextra",
    "-Wshadow",
    "-Wvla",
    "-Wno-unused-parameter",
    "-Wno-missing-field-initializers",
    "-Werror",
};
pub const c_flags = [_][]const u8{
    "-std=c23",          "-D_GNU_SOURCE", "-fno-math-errno", "-fvisibility=hidden",
    // The same results on every machine: multiply and add are fused only where the code requests it.
    "-ffp-contract=off",
} ++ warnings;

pub const Sanitize = enum { thread, undefined };
pub const Cuda = enum { auto, on, off };
/// What the files are built for. A package has position-independent programs without symbols; Debian's uses the shared
/// system libraries, the wheel contains the static ones.
pub const Package = enum { none, debian, wheel };

/// The settings of every program and object.
pub const Context = struct {
    b: *Build,
    target: Build.ResolvedTarget,
    optimize: std.builtin.OptimizeMode,
    sanitize: ?Sanitize,
    /// Directories with generated headers: <millrace/ops.h>, "proto/graph.pb-c.h".
    generated: []const LazyPath = &.{},
    proto_sources: []const LazyPath = &.{},
    /// Writes the generated headers; every compilation depends on it.
    headers: ?*Build.Step = null,
    /// Debian's directories of libc headers and startup files; Zig needs a C compiler to find them itself.
    libc: ?LazyPath = null,
    /// For another architecture: Debian's packages for it, unpacked by packaging/sysroot.
    sysroot: ?LazyPath = null,
    nvcc: ?[]const u8 = null,
    /// Writes the compiled GPU kernels, which the library embeds.
    fatbins: ?*Build.Step = null,
    /// <millrace/ops.h>, which is generated.
    ops_header: ?LazyPath = null,
    /// Check invariants with assert(); always on without optimization and under a sanitizer.
    assertions: bool = false,
    package: Package = .none,

    /// A module that may include any file of the repository.
    pub fn module(c: Context) *Build.Module {
        const m = c.emptyModule();
        m.addIncludePath(c.b.path(""));
        c.addPublicHeaders(m);
        return m;
    }

    /// A module that compiles against the installed headers alone.
    pub fn publicModule(c: Context) *Build.Module {
        const m = c.emptyModule();
        c.addPublicHeaders(m);
        return m;
    }

    fn addPublicHeaders(c: Context, m: *Build.Module) void {
        m.addIncludePath(c.b.path("include"));
        for (c.generated) |directory| m.addIncludePath(directory);
    }

    fn emptyModule(c: Context) *Build.Module {
        const m = c.b.createModule(.{
            .target = c.target,
            .optimize = c.optimize,
            .link_libc = true,
            .strip = if (c.package != .none) true else null,
            .pic = if (c.package != .none) true else null,
            .sanitize_thread = if (c.sanitize == .thread) true else null,
            .sanitize_c = if (c.sanitize == .undefined) .full else .off,
        });
        if (c.sysroot) |root| if (!c.isForHost()) {
            const triple = c.target.result.linuxTriple(c.b.allocator) catch @panic("OOM");
            m.addSystemIncludePath(root.path(c.b, "usr/include"));
            m.addSystemIncludePath(root.path(c.b, c.b.fmt("usr/include/{s}", .{triple})));
            m.addLibraryPath(root.path(c.b, c.b.fmt("usr/lib/{s}", .{triple})));
        };
        return m;
    }

    /// Whether programs for the target run on this machine; its processor may be another one.
    pub fn isForHost(c: Context) bool {
        return c.target.query.cpu_arch == null and c.target.query.isNativeOs();
    }

    pub fn addSources(c: Context, m: *Build.Module, files: []const []const u8, extra: []const []const u8) void {
        // Descriptions of variables, which optimized code rarely keeps, would take a quarter of the compiler's time.
        const lines: []const []const u8 = if (c.optimize != .Debug) &.{"-gline-tables-only"} else &.{};
        // For some processors compilers use only half of each AVX-512 register: earlier ones slowed down with all.
        const wide = [_][]const u8{"-mprefer-vector-width=512"};
        const width: []const []const u8 = if (c.target.result.cpu.arch == .x86_64) &wide else &.{};
        const parts = [_][]const []const u8{ &c_flags, lines, width, extra };
        const flags = std.mem.concat(c.b.allocator, []const u8, &parts) catch @panic("OOM");
        if (!c.assertions) return m.addCSourceFiles(.{ .files = files, .flags = flags });
        const checked = std.mem.concat(c.b.allocator, []const u8, &.{ flags, &.{"-UNDEBUG"} }) catch @panic("OOM");
        for (files) |file| m.addCSourceFiles(.{
            .files = &.{file},
            // The object of a file without assertions is the same as in the library that is installed.
            .flags = if (asserts(c.b, file)) checked else flags,
        });
    }

    /// For what Zig links, except with -Dsanitize=thread, whose runtime replaces these functions.
    pub fn addMemoryFunctions(c: Context, m: *Build.Module) void {
        const flags = [_][]const u8{ "-fno-builtin", "-fno-plt", "-fomit-frame-pointer" };
        if (c.sanitize != .thread) c.addSources(m, &.{"build/memory.c"}, &flags);
    }

    pub fn addProtoSources(c: Context, m: *Build.Module) void {
        const flags = [_][]const u8{ "-std=c23", "-w", "-fvisibility=hidden" };
        for (c.proto_sources) |file| m.addCSourceFile(.{ .file = file, .flags = &flags });
    }

    /// The libraries of a program. In a wheel, libmillrace.so contains those that it uses itself.
    fn linkSystem(c: Context, m: *Build.Module) void {
        switch (c.package) {
            .none => c.linkStatic(m, &(tool_libraries ++ static_libraries)),
            .debian => linkShared(m, &(tool_libraries ++ system_libraries)),
            .wheel => c.linkStatic(m, &(tool_libraries ++ [_][]const u8{ "jpeg", "z" })),
        }
    }

    /// The libraries of libmillrace.so.
    pub fn linkSystemOfLibrary(c: Context, m: *Build.Module) void {
        if (c.package == .wheel) c.linkStatic(m, &static_libraries) else linkShared(m, &system_libraries);
    }

    fn linkShared(m: *Build.Module, names: []const []const u8) void {
        for (names) |name| m.linkSystemLibrary(name, .{ .preferred_link_mode = .dynamic, .use_pkg_config = .no });
        m.linkSystemLibrary("m", .{});
    }

    fn linkStatic(c: Context, m: *Build.Module, names: []const []const u8) void {
        for (names) |name| m.linkSystemLibrary(name, .{ .preferred_link_mode = .static, .use_pkg_config = .no });
        // The variant of OpenBLAS without threads of its own; Debian's alternatives may point to another one.
        const triple = c.target.result.linuxTriple(c.b.allocator) catch @panic("OOM");
        const directory = c.b.fmt("usr/lib/{s}/openblas-serial", .{triple});
        if (!c.isForHost()) {
            if (c.sysroot) |root| m.addLibraryPath(root.path(c.b, directory));
        } else m.addLibraryPath(.{ .cwd_relative = c.b.fmt("/{s}", .{directory}) });
        m.linkSystemLibrary("m", .{});
    }

    /// A program that may include any file of the repository: tests and benchmarks.
    pub fn program(
        c: Context,
        name: []const u8,
        files: []const []const u8,
        library: *Build.Step.Compile,
    ) *Build.Step.Compile {
        const m = c.module();
        m.addIncludePath(c.b.path("tools"));
        return c.programOf(m, name, files, library);
    }

    pub fn programOf(
        c: Context,
        m: *Build.Module,
        name: []const u8,
        files: []const []const u8,
        library: *Build.Step.Compile,
    ) *Build.Step.Compile {
        c.addSources(m, files, &.{});
        if (c.package == .wheel) {
            // linkLibrary would add the library's directory in the cache to the path of libraries.
            m.addObjectFile(library.getEmittedBin());
            m.addRPathSpecial("$ORIGIN/..");
            c.addSources(m, &.{"packaging/wheel_libc/arc4random.c"}, &.{});
        } else m.linkLibrary(library);
        c.linkSystem(m);
        c.addMemoryFunctions(m);
        const executable = c.b.addExecutable(.{ .name = name, .root_module = m });
        if (c.package != .none) executable.pie = true;
        if (c.package == .wheel) executable.each_lib_rpath = false;
        return c.prepare(executable);
    }

    /// A program that the build runs: a directory's sources and build/programs/, compiled for this machine.
    pub fn buildProgram(c: Context, name: []const u8, directory: []const u8) *Build.Step.Compile {
        var host = c;
        host.target = c.b.graph.host;
        host.optimize = .Debug;
        host.sanitize = null;
        host.package = .none;
        const m = host.emptyModule();
        m.addIncludePath(c.b.path(""));
        host.addSources(m, glob(c.b, directory, ".c"), &.{});
        host.addSources(m, glob(c.b, "build/programs", ".c"), &.{});
        const executable = c.b.addExecutable(.{ .name = name, .root_module = m });
        executable.setLibCFile(c.libc);
        return executable;
    }

    /// Zig compiles the files of one step on all processors but one: one after the other where there are two. Steps run
    /// side by side, so parts of the library's files are compiled by steps of their own, and the library takes their
    /// objects from the cache. They are found there because the names and the settings are the same.
    pub fn compileParts(c: Context, library: *Build.Step.Compile, files: []const []const u8, after: ?*Build.Step) void {
        for (0..part_count) |i| {
            const m = c.module();
            m.pic = library.root_module.pic;
            c.addSources(m, partOf(c.b, files, i), &.{});
            const part = c.prepare(c.b.addLibrary(.{ .name = library.name, .linkage = .static, .root_module = m }));
            _ = part.getEmittedBin(); // a step without output gives its objects other keys in the cache
            // A file that two steps compile at the same time blocks one of them.
            if (after) |step| part.step.dependOn(step);
            library.step.dependOn(&part.step);
        }
    }

    /// As program, but compiled in parts, beside the library. All files are linked, whether or not they are used.
    pub fn programOfParts(
        c: Context,
        name: []const u8,
        files: []const []const u8,
        library: *Build.Step.Compile,
    ) *Build.Step.Compile {
        const whole = c.program(name, &.{}, library);
        for (0..part_count) |i| {
            const m = c.module();
            m.addIncludePath(c.b.path("tools"));
            c.addSources(m, partOf(c.b, files, i), &.{});
            const part = c.b.addObject(.{ .name = c.b.fmt("{s}-{d}", .{ name, i }), .root_module = m });
            whole.root_module.addObject(c.prepare(part));
        }
        return whole;
    }

    pub fn prepare(c: Context, compile: *Build.Step.Compile) *Build.Step.Compile {
        if (c.headers) |headers| compile.step.dependOn(headers);
        if (c.isForHost()) compile.setLibCFile(c.libc);
        return compile;
    }
};

/// Files of a directory with the suffix, as paths from the root, sorted; none if the directory does not exist.
pub fn glob(b: *Build, directory: []const u8, ending: []const u8) []const []const u8 {
    var list: std.ArrayList([]const u8) = .empty;
    const io = b.graph.io;
    var dir = b.build_root.handle.openDir(io, directory, .{ .iterate = true }) catch return &.{};
    defer dir.close(io);
    var entries = dir.iterate();
    while (entries.next(io) catch @panic("cannot read a directory")) |entry| {
        if (entry.kind != .directory and std.mem.endsWith(u8, entry.name, ending) and entry.name[0] != '.')
            list.append(b.allocator, b.fmt("{s}/{s}", .{ directory, entry.name })) catch @panic("OOM");
    }
    std.mem.sort([]const u8, list.items, {}, lessThan);
    return list.items;
}

/// Whether a file or a header that it includes has an assertion.
fn asserts(b: *Build, file: []const u8) bool {
    const known = asserting.getOrPut(b.allocator, file) catch @panic("OOM");
    if (known.found_existing) return known.value_ptr.*;
    known.value_ptr.* = false; // for headers that include each other
    const text = b.build_root.handle.readFileAlloc(b.graph.io, file, b.allocator, .unlimited) catch return false;
    var found = std.mem.indexOf(u8, text, "<assert.h>") != null or std.mem.indexOf(u8, text, "NDEBUG") != null;
    var lines = std.mem.splitSequence(u8, text, "#include \"");
    _ = lines.next();
    while (lines.next()) |line| {
        if (found) break;
        const end = std.mem.indexOfScalar(u8, line, '"') orelse continue;
        found = asserts(b, line[0..end]) or asserts(b, b.fmt("tools/{s}", .{line[0..end]}));
    }
    asserting.put(b.allocator, file, found) catch @panic("OOM");
    return found;
}

var asserting: std.StringHashMapUnmanaged(bool) = .empty;

/// Names of a directory's subdirectories, sorted.
pub fn subdirectories(b: *Build, directory: []const u8) []const []const u8 {
    var list: std.ArrayList([]const u8) = .empty;
    const io = b.graph.io;
    var dir = b.build_root.handle.openDir(io, directory, .{ .iterate = true }) catch return &.{};
    defer dir.close(io);
    var entries = dir.iterate();
    while (entries.next(io) catch @panic("cannot read a directory")) |entry| {
        if (entry.kind == .directory) list.append(b.allocator, b.dupe(entry.name)) catch @panic("OOM");
    }
    std.mem.sort([]const u8, list.items, {}, lessThan);
    return list.items;
}

/// Steps that compile a large set of files.
const part_count = 4;

/// Every fourth file, from the index on: files of similar size, which compare as similar names, are spread.
fn partOf(b: *Build, files: []const []const u8, index: usize) []const []const u8 {
    var list: std.ArrayList([]const u8) = .empty;
    for (files, 0..) |file, i| if (i % part_count == index) list.append(b.allocator, file) catch @panic("OOM");
    return list.items;
}

fn lessThan(_: void, a: []const u8, b: []const u8) bool {
    return std.mem.lessThan(u8, a, b);
}

pub fn librarySources(b: *Build) []const []const u8 {
    var list: std.ArrayList([]const u8) = .empty;
    for (library_directories) |directory| list.appendSlice(b.allocator, glob(b, directory, ".c")) catch @panic("OOM");
    list.appendSlice(b.allocator, glob(b, "proto", ".c")) catch @panic("OOM");
    return list.items;
}

/// This machine's libc6-dev directories, in the format of `zig libc`; null on systems other than Debian, where Zig
/// searches itself.
pub fn debianLibC(b: *Build) ?LazyPath {
    const target = b.graph.host;
    if (target.result.os.tag != .linux or b.libc_file != null) return null;
    const triple = target.result.linuxTriple(b.allocator) catch @panic("OOM");
    const directory = b.fmt("/usr/lib/{s}", .{triple});
    std.Io.Dir.accessAbsolute(b.graph.io, b.fmt("{s}/crt1.o", .{directory}), .{}) catch return null;
    const text = b.fmt(
        \\include_dir=/usr/include
        \\sys_include_dir=/usr/include/{s}
        \\crt_dir={s}
        \\msvc_lib_dir=
        \\kernel32_lib_dir=
        \\gcc_dir=
        \\
    , .{ triple, directory });
    return b.addWriteFiles().add("libc.txt", text);
}

/// The target of -Dtarget; for another architecture with the C library of Debian 12, as the libraries in the sysroot.
pub fn targetOption(b: *Build) Build.ResolvedTarget {
    var query = b.standardTargetOptionsQueryOnly(.{});
    if (query.cpu_arch != null and query.abi == .gnu and query.glibc_version == null)
        query.glibc_version = .{ .major = 2, .minor = 36, .patch = 0 };
    return b.resolveTargetQuery(query);
}

/// The unpacked packages for another architecture; null if the target is this machine's.
pub fn findSysroot(b: *Build, target: Build.ResolvedTarget) ?LazyPath {
    if (target.result.cpu.arch != .aarch64 or b.graph.host.result.cpu.arch == .aarch64) return null;
    const path = b.pathFromRoot(".toolchain/sysroot-arm64");
    std.Io.Dir.accessAbsolute(b.graph.io, path, .{}) catch
        @panic("-Dtarget=aarch64-linux-gnu needs Debian's libraries for arm64: run packaging/sysroot first");
    return .{ .cwd_relative = path };
}

pub fn findNvcc(b: *Build, cuda: Cuda) ?[]const u8 {
    if (cuda == .off) return null;
    return b.findProgram(&.{"nvcc"}, &.{ "/usr/local/cuda/bin", "/usr/local/cuda-13.0/bin" }) catch {
        if (cuda == .on) @panic("-Dcuda=on: nvcc is neither on the PATH nor in /usr/local/cuda/bin");
        return null;
    };
}
