//! The build of millrace: options, steps, and a function for each kind of program.
//!
//! Sources are found by globbing: a new .c file in base/, records/, … is part of the library; a new directory in tools/
//! or datasets/ and a new file in examples/ is a program; a new file in tests/ is part of the test runner.
const std = @import("std");
const Build = std.Build;
const LazyPath = Build.LazyPath;

const library_directories = [_][]const u8{
    "base",
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
    "graph/ir",
    "graph/ops",
    "graph/plan",
    "graph/run",
    "graph/state",
    "graph/train",
};
const system_libraries = [_][]const u8{ "jpeg", "png16", "z", "protobuf-c", "jansson", "expat", "uring" };
/// Decoders of image formats that only the tools convert.
const tool_libraries = [_][]const u8{ "webpdemux", "webp", "gif", "tiff", "zstd", "lzma", "jbig", "deflate" };
const warnings = [_][]const u8{ "-Wall", "-Wextra", "-Wshadow", "-Wvla", "-Wno-unused-parameter", "-Wno-missing-field-initializers", "-Werror" };
const c_flags = [_][]const u8{
    "-std=c23",          "-D_GNU_SOURCE", "-fno-math-errno", "-fvisibility=hidden",
    // The same results on every machine: multiply and add are fused only where the code requests it.
    "-ffp-contract=off",
} ++ warnings;

const Sanitize = enum { thread, undefined };
const Cuda = enum { auto, on, off };

/// The settings of every program and object.
const Context = struct {
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
    nvcc: ?[]const u8 = null,
    /// Check invariants with assert(); always on without optimization and under a sanitizer.
    assertions: bool = false,

    fn module(c: Context) *Build.Module {
        const m = c.b.createModule(.{
            .target = c.target,
            .optimize = c.optimize,
            .link_libc = true,
            .sanitize_thread = if (c.sanitize == .thread) true else null,
            .sanitize_c = if (c.sanitize == .undefined) .full else .off,
        });
        m.addIncludePath(c.b.path(""));
        m.addIncludePath(c.b.path("include"));
        for (c.generated) |directory| m.addIncludePath(directory);
        return m;
    }

    fn addSources(c: Context, m: *Build.Module, files: []const []const u8, extra: []const []const u8) void {
        const checked: []const []const u8 = if (c.assertions) &.{"-UNDEBUG"} else &.{};
        const flags = std.mem.concat(c.b.allocator, []const u8, &.{ &c_flags, checked, extra }) catch @panic("OOM");
        m.addCSourceFiles(.{ .files = files, .flags = flags });
    }

    fn addProtoSources(c: Context, m: *Build.Module) void {
        for (c.proto_sources) |file| m.addCSourceFile(.{ .file = file, .flags = &.{ "-std=c23", "-w" } });
    }

    fn linkSystem(c: Context, m: *Build.Module) void {
        _ = c;
        for (tool_libraries ++ system_libraries) |name| m.linkSystemLibrary(name, .{ .preferred_link_mode = .static, .use_pkg_config = .no });
        m.linkSystemLibrary("m", .{});
    }

    fn program(c: Context, name: []const u8, files: []const []const u8, library: *Build.Step.Compile) *Build.Step.Compile {
        const m = c.module();
        c.addSources(m, files, &.{});
        m.linkLibrary(library);
        c.linkSystem(m);
        return c.prepare(c.b.addExecutable(.{ .name = name, .root_module = m }));
    }

    fn prepare(c: Context, compile: *Build.Step.Compile) *Build.Step.Compile {
        if (c.headers) |headers| compile.step.dependOn(headers);
        if (c.target.query.isNative()) compile.setLibCFile(c.libc);
        return compile;
    }
};

pub fn build(b: *Build) void {
    // Options.
    const target = b.standardTargetOptions(.{});
    const optimize = b.option(std.builtin.OptimizeMode, "optimize", "ReleaseFast (default), Debug, ReleaseSafe, ReleaseSmall") orelse .ReleaseFast;
    const sanitize = b.option(Sanitize, "sanitize", "Detect data races (thread) or undefined behavior (undefined)");
    const cuda = b.option(Cuda, "cuda", "Kernels for NVIDIA GPUs: auto (if nvcc is found), on, off") orelse .auto;
    const fuzz_seconds = b.option(u32, "fuzz-seconds", "Seconds for which `fuzz` runs each target (60)") orelse 60;

    var c: Context = .{ .b = b, .target = target, .optimize = optimize, .sanitize = sanitize, .assertions = sanitize != null };
    c.nvcc = findNvcc(b, cuda);
    c.libc = debianLibC(b, target);
    addProto(&c);
    addOpsHeader(&c);

    // The library and the programs.
    const library = addLibrary(c);
    b.installArtifact(library);
    b.installDirectory(.{ .source_dir = b.path("include"), .install_dir = .header, .install_subdir = "" });
    const shared = addSharedLibrary(c);
    const check = b.step("check", "Compile everything, run nothing");
    check.dependOn(&library.step);

    const programs = addPrograms(c, library);
    for (programs) |program| {
        b.installArtifact(program);
        check.dependOn(&program.step);
    }
    const installed = b.getInstallStep();

    // The steps.
    const test_step = b.step("test", "Run the tests (some: -- part-of-a-name)");
    // The tests need the library's assertions, which the installed library is built without.
    var checked = c;
    checked.assertions = true;
    const checked_library = if (c.assertions) library else addLibrary(checked);
    const tests = addTests(checked, checked_library, check);
    const run_tests = b.addRunArtifact(tests);
    run_tests.setEnvironmentVariable("MILLRACE_BIN", b.pathFromRoot(b.getInstallPath(.bin, "")));
    run_tests.setEnvironmentVariable("MILLRACE_ROOT", b.pathFromRoot(""));
    run_tests.setCwd(b.path(""));
    run_tests.step.dependOn(installed);
    run_tests.has_side_effects = true;
    addSanitizerOptions(run_tests);
    const failing = addPreload(c);
    check.dependOn(&failing.step);
    const preload: Build.InstallDir = .{ .custom = "preload" };
    run_tests.step.dependOn(&b.addInstallArtifact(failing, .{ .dest_dir = .{ .override = preload } }).step);
    run_tests.setEnvironmentVariable("MILLRACE_PRELOAD", b.pathFromRoot(b.getInstallPath(preload, failing.out_filename)));
    if (b.args) |args| run_tests.addArgs(args);
    test_step.dependOn(&run_tests.step);
    addFuzzReplay(checked, checked_library, if (b.args == null) test_step else null, check);

    addOracle(c, library, shared, check);
    addTidy(c);
    addClangSteps(c, fuzz_seconds);
    addRunSteps(c, programs);
    addGpuKit(c);
}

// ---- Sources ----

/// Files of a directory with the suffix, as paths from the root, sorted; none if the directory does not exist.
fn glob(b: *Build, directory: []const u8, ending: []const u8) []const []const u8 {
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

/// Names of a directory's subdirectories, sorted.
fn subdirectories(b: *Build, directory: []const u8) []const []const u8 {
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

fn lessThan(_: void, a: []const u8, b: []const u8) bool {
    return std.mem.lessThan(u8, a, b);
}

fn librarySources(b: *Build) []const []const u8 {
    var list: std.ArrayList([]const u8) = .empty;
    for (library_directories) |directory| list.appendSlice(b.allocator, glob(b, directory, ".c")) catch @panic("OOM");
    list.appendSlice(b.allocator, glob(b, "proto", ".c")) catch @panic("OOM");
    return list.items;
}

/// Debian's libc6-dev directories, in the format of `zig libc`; null on other systems, where Zig searches itself.
fn debianLibC(b: *Build, target: Build.ResolvedTarget) ?LazyPath {
    if (!target.query.isNative() or target.result.os.tag != .linux or b.libc_file != null) return null;
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

// ---- Generated sources ----

/// Compiles proto/*.proto with protoc-c.
fn addProto(c: *Context) void {
    const b = c.b;
    var directories: std.ArrayList(LazyPath) = .empty;
    var sources: std.ArrayList(LazyPath) = .empty;
    directories.appendSlice(b.allocator, c.generated) catch @panic("OOM");
    const files = glob(b, "proto", ".proto");
    if (files.len == 0) return;
    const protoc = b.addSystemCommand(&.{ "protoc-c", "--proto_path=proto" });
    protoc.setCwd(b.path(""));
    const directory = protoc.addPrefixedOutputDirectoryArg("--c_out=", "proto");
    for (files) |file| {
        protoc.addArg(file);
        protoc.addFileInput(b.path(file));
        const stem = file[0 .. file.len - ".proto".len];
        sources.append(b.allocator, directory.path(b, b.fmt("{s}.pb-c.c", .{std.fs.path.basename(stem)}))) catch @panic("OOM");
    }
    directories.append(b.allocator, directory.dirname()) catch @panic("OOM");
    c.generated = directories.items;
    c.proto_sources = sources.items;
}

/// <millrace/ops.h>: the typed builders, generated by a program that is linked with the operators' rows.
fn addOpsHeader(c: *Context) void {
    const b = c.b;
    const main = glob(b, "graph/header", ".c");
    if (main.len == 0) return;
    var host = c.*;
    host.target = b.graph.host;
    host.optimize = .Debug;
    host.sanitize = null;
    const m = host.module();
    const rows_only = [_][]const u8{"-DMR_ROWS_ONLY"};
    host.addSources(m, main, &rows_only);
    host.addSources(m, glob(b, "graph/ir", ".c"), &rows_only);
    host.addSources(m, glob(b, "base", ".c"), &rows_only);
    host.addSources(m, glob(b, "proto", ".c"), &rows_only);
    host.addProtoSources(m);
    for (glob(b, "graph/ops", ".c")) |file| {
        if (!std.mem.endsWith(u8, file, "_gradient.c")) host.addSources(m, &.{file}, &rows_only);
    }
    m.linkSystemLibrary("protobuf-c", .{ .preferred_link_mode = .static, .use_pkg_config = .no });
    m.linkSystemLibrary("m", .{});
    const writer = host.prepare(b.addExecutable(.{ .name = "ops-header", .root_module = m }));
    const run = b.addRunArtifact(writer);
    const header = run.captureStdOut(.{ .basename = "ops.h" });
    // At a fixed path: in the cache the path would change with the generator, and all users would be recompiled.
    const update = b.addUpdateSourceFiles();
    update.addCopyFileToSource(header, "generated/millrace/ops.h");
    var directories: std.ArrayList(LazyPath) = .empty;
    directories.appendSlice(b.allocator, c.generated) catch @panic("OOM");
    directories.append(b.allocator, b.path("generated")) catch @panic("OOM");
    c.generated = directories.items;
    c.headers = &update.step;
    b.getInstallStep().dependOn(&b.addInstallHeaderFile(header, "millrace/ops.h").step);
}

fn findNvcc(b: *Build, cuda: Cuda) ?[]const u8 {
    if (cuda == .off) return null;
    return b.findProgram(&.{"nvcc"}, &.{ "/usr/local/cuda/bin", "/usr/local/cuda-13.0/bin" }) catch {
        if (cuda == .on) @panic("-Dcuda=on: nvcc is neither on the PATH nor in /usr/local/cuda/bin");
        return null;
    };
}

// ---- Library and programs ----

fn addLibrarySources(c: Context, m: *Build.Module) void {
    c.addSources(m, librarySources(c.b), &.{});
    c.addProtoSources(m);
    addCuda(c, m);
}

/// cuda/*.c; with nvcc also cuda/*.cu, compiled for every supported GPU and embedded as cuda/NAME.fatbin.
fn addCuda(c: Context, m: *Build.Module) void {
    const b = c.b;
    const sources = glob(b, "cuda", ".c");
    const kernels = glob(b, "cuda", ".cu");
    const nvcc = c.nvcc orelse return c.addSources(m, sources, &.{});
    if (kernels.len == 0) return c.addSources(m, sources, &.{});
    const fatbins = b.addWriteFiles();
    for (kernels) |file| {
        const run = b.addSystemCommand(&.{
            nvcc,                                               "-fatbin", "-O3",          "-std=c++17",
            "-Iinclude",                                        "-I.",     "--fmad=false", "-gencode=arch=compute_80,code=sm_80",
            "-gencode=arch=compute_90,code=[sm_90,compute_90]",
        });
        run.setCwd(b.path(""));
        for (glob(b, "cuda", ".h")) |header| run.addFileInput(b.path(header));
        run.addFileArg(b.path(file));
        const stem = std.fs.path.stem(file);
        const fatbin = run.addPrefixedOutputFileArg("--output-file=", b.fmt("{s}.fatbin", .{stem}));
        _ = fatbins.addCopyFile(fatbin, b.fmt("cuda/{s}.fatbin", .{stem}));
    }
    m.addEmbedPath(fatbins.getDirectory());
    m.addIncludePath(.{ .cwd_relative = b.fmt("{s}/../include", .{std.fs.path.dirname(nvcc).?}) });
    c.addSources(m, sources, &.{"-DMR_CUDA=1"});
}

fn addLibrary(c: Context) *Build.Step.Compile {
    const m = c.module();
    addLibrarySources(c, m);
    return c.prepare(c.b.addLibrary(.{ .name = "millrace", .linkage = .static, .root_module = m }));
}

/// libmillrace.so, for ctypes.
fn addSharedLibrary(c: Context) *Build.Step.Compile {
    const m = c.module();
    m.pic = true;
    addLibrarySources(c, m);
    for (system_libraries) |name| m.linkSystemLibrary(name, .{ .preferred_link_mode = .dynamic, .use_pkg_config = .no });
    return c.prepare(c.b.addLibrary(.{ .name = "millrace", .linkage = .dynamic, .root_module = m }));
}

/// tools/NAME/ (with tools/common/*.c), datasets/NAME/, examples/NAME.c.
fn addPrograms(c: Context, library: *Build.Step.Compile) []const *Build.Step.Compile {
    const b = c.b;
    var list: std.ArrayList(*Build.Step.Compile) = .empty;
    const common = glob(b, "tools/common", ".c");
    for (subdirectories(b, "tools")) |name| {
        const own = glob(b, b.fmt("tools/{s}", .{name}), ".c");
        if (own.len == 0 or std.mem.eql(u8, name, "common")) continue;
        const files = std.mem.concat(b.allocator, []const u8, &.{ own, common }) catch @panic("OOM");
        list.append(b.allocator, c.program(name, files, library)) catch @panic("OOM");
    }
    for (subdirectories(b, "datasets")) |name| {
        const own = glob(b, b.fmt("datasets/{s}", .{name}), ".c");
        if (own.len == 0) continue;
        const files = std.mem.concat(b.allocator, []const u8, &.{ own, common }) catch @panic("OOM");
        list.append(b.allocator, c.program(name, files, library)) catch @panic("OOM");
    }
    for (glob(b, "examples", ".c")) |file| {
        const name = b.dupe(std.fs.path.stem(file));
        std.mem.replaceScalar(u8, name, '_', '-');
        const files = std.mem.concat(b.allocator, []const u8, &.{ &.{file}, common }) catch @panic("OOM");
        list.append(b.allocator, c.program(name, files, library)) catch @panic("OOM");
    }
    return list.items;
}

// ---- Tests ----

/// The tests, and the common sources of the tools, which are tested directly.
fn testSources(b: *Build) []const []const u8 {
    var list: std.ArrayList([]const u8) = .empty;
    list.appendSlice(b.allocator, glob(b, "tools/common", ".c")) catch @panic("OOM");
    list.appendSlice(b.allocator, glob(b, "tests", ".c")) catch @panic("OOM");
    for (subdirectories(b, "tests")) |name| {
        if (std.mem.eql(u8, name, "fuzz") or std.mem.eql(u8, name, "oracle") or std.mem.eql(u8, name, "preload")) continue;
        list.appendSlice(b.allocator, glob(b, b.fmt("tests/{s}", .{name}), ".c")) catch @panic("OOM");
    }
    return list.items;
}

fn addTests(c: Context, library: *Build.Step.Compile, check: *Build.Step) *Build.Step.Compile {
    const b = c.b;
    const tests = c.program("millrace-tests", testSources(b), library);
    // The example at the start of each public header is compiled.
    const has_ops = glob(b, "graph/header", ".c").len > 0;
    if (has_ops) for (glob(b, "include/millrace", ".h")) |header| {
        const name = std.fs.path.stem(header);
        if (std.mem.eql(u8, name, "millrace")) continue;
        const awk = b.addSystemCommand(&.{ "awk", "-v", b.fmt("name={s}", .{name}), "-f" });
        awk.addFileArg(b.path("tests/header_example.awk"));
        awk.addFileArg(b.path(header));
        const source = awk.captureStdOut(.{ .basename = b.fmt("{s}_example.c", .{name}) });
        tests.root_module.addCSourceFile(.{ .file = source, .flags = &(c_flags ++ [_][]const u8{"-Wno-unused"}) });
    };
    check.dependOn(&tests.step);
    return tests;
}

/// tests/preload/*.c: a shared library that makes system calls of the installed programs fail.
fn addPreload(c: Context) *Build.Step.Compile {
    const m = c.module();
    m.pic = true;
    m.sanitize_thread = null;
    c.addSources(m, glob(c.b, "tests/preload", ".c"), &.{});
    return c.b.addLibrary(.{ .name = "fail", .linkage = .dynamic, .root_module = m });
}

/// Runs every tests/fuzz/NAME_fuzz.c on the files of tests/fuzz/corpus/NAME/.
fn addFuzzReplay(c: Context, library: *Build.Step.Compile, test_step: ?*Build.Step, check: *Build.Step) void {
    const b = c.b;
    for (glob(b, "tests/fuzz", "_fuzz.c")) |file| {
        const stem = std.fs.path.stem(file);
        const name = stem[0 .. stem.len - "_fuzz".len];
        const replay = c.program(b.fmt("{s}-replay", .{name}), &.{ file, "tests/fuzz/replay.c" }, library);
        check.dependOn(&replay.step);
        const run = b.addRunArtifact(replay);
        run.addArg(b.pathFromRoot(b.fmt("tests/fuzz/corpus/{s}", .{name})));
        run.has_side_effects = true;
        if (test_step) |step| step.dependOn(&run.step);
    }
}

/// Comparison with TensorFlow: tests/oracle/*_oracle.py, with tests/oracle/*.c as programs in zig-out/oracle.
fn addOracle(c: Context, library: *Build.Step.Compile, shared: *Build.Step.Compile, check: *Build.Step) void {
    const b = c.b;
    const step = b.step("oracle", "Compare with TensorFlow 2.15.1 (some: -- part-of-a-name)");
    const run = b.addSystemCommand(&.{"tests/oracle/run"});
    run.setCwd(b.path(""));
    run.has_side_effects = true;
    run.setEnvironmentVariable("MILLRACE_BIN", b.pathFromRoot(b.getInstallPath(.bin, "")));
    run.setEnvironmentVariable("MILLRACE_ORACLE", b.getInstallPath(.{ .custom = "oracle" }, ""));
    run.setEnvironmentVariable("MILLRACE_LIBRARY", b.getInstallPath(.lib, "libmillrace.so"));
    if (b.args) |args| run.addArgs(args);
    run.step.dependOn(b.getInstallStep());
    run.step.dependOn(&b.addInstallArtifact(shared, .{}).step);
    for (glob(b, "tests/oracle", ".c")) |file| {
        const program = c.program(std.fs.path.stem(file), &.{file}, library);
        check.dependOn(&program.step);
        run.step.dependOn(&b.addInstallArtifact(program, .{ .dest_dir = .{ .override = .{ .custom = "oracle" } } }).step);
    }
    step.dependOn(&run.step);
}

fn addTidy(c: Context) void {
    const b = c.b;
    const step = b.step("tidy", "Check layers, file length, format and banned calls");
    const run = b.addSystemCommand(&.{"tests/tidy"});
    run.setCwd(b.path(""));
    run.has_side_effects = true;
    step.dependOn(&run.step);
}

// ---- AddressSanitizer, libFuzzer and clang-tidy: with clang-19, which has the runtimes that Zig lacks ----

const clang = "clang-19";
const clang_flags = c_flags ++ [_][]const u8{ "-g", "-O1", "-fno-omit-frame-pointer", "-fsanitize=address,undefined,fuzzer-no-link", "-fno-sanitize-recover=undefined", "-march=native" };

fn clangObject(c: Context, file: []const u8) LazyPath {
    return clangObjectOf(c, c.b.path(file), std.fs.path.stem(file), &clang_flags);
}

fn clangObjectOf(c: Context, file: LazyPath, stem: []const u8, flags: []const []const u8) LazyPath {
    const b = c.b;
    const run = b.addSystemCommand(&.{ clang, "-c" });
    if (c.headers) |headers| run.step.dependOn(headers);
    run.addArgs(flags);
    run.addPrefixedDirectoryArg("-I", b.path(""));
    run.addPrefixedDirectoryArg("-I", b.path("include"));
    for (c.generated) |directory| run.addPrefixedDirectoryArg("-I", directory);
    run.addArg("-MD");
    _ = run.addPrefixedDepFileOutputArg("-MF", b.fmt("{s}.d", .{stem}));
    run.addFileArg(file);
    return run.addPrefixedOutputFileArg("-o", b.fmt("{s}.o", .{stem}));
}

fn clangProgram(c: Context, name: []const u8, objects: []const LazyPath, link_flags: []const []const u8) LazyPath {
    const run = c.b.addSystemCommand(&.{clang});
    run.addArgs(link_flags);
    for (objects) |object| run.addFileArg(object);
    const program = run.addPrefixedOutputFileArg("-o", name);
    for (tool_libraries ++ system_libraries) |library| run.addArg(c.b.fmt("-l{s}", .{library}));
    run.addArgs(&.{ "-lm", "-lpthread", "-ldl" });
    return program;
}

fn addClangSteps(c: Context, fuzz_seconds: u32) void {
    const b = c.b;
    var library: std.ArrayList(LazyPath) = .empty;
    for (librarySources(b)) |file| library.append(b.allocator, clangObject(c, file)) catch @panic("OOM");
    for (glob(b, "cuda", ".c")) |file| library.append(b.allocator, clangObject(c, file)) catch @panic("OOM");
    for (c.proto_sources, 0..) |file, i|
        library.append(b.allocator, clangObjectOf(c, file, b.fmt("proto{d}", .{i}), &.{ "-std=c23", "-w", "-O1", "-g", "-fsanitize=address" })) catch @panic("OOM");

    const asan = b.step("asan", "Run the tests and the fuzz corpora with AddressSanitizer, LeakSanitizer, UBSan (clang-19)");
    var objects: std.ArrayList(LazyPath) = .empty;
    objects.appendSlice(b.allocator, library.items) catch @panic("OOM");
    for (testSources(b)) |file| objects.append(b.allocator, clangObject(c, file)) catch @panic("OOM");
    const tests = clangProgram(c, "millrace-tests-asan", objects.items, &.{"-fsanitize=address,undefined"});
    const run_tests = Build.Step.Run.create(b, "run tests under AddressSanitizer");
    run_tests.addFileArg(tests);
    run_tests.setCwd(b.path(""));
    run_tests.has_side_effects = true;
    addSanitizerOptions(run_tests);
    run_tests.setEnvironmentVariable("MILLRACE_BIN", b.pathFromRoot(b.getInstallPath(.bin, "")));
    run_tests.setEnvironmentVariable("MILLRACE_ROOT", b.pathFromRoot(""));
    run_tests.step.dependOn(b.getInstallStep());
    if (b.args) |args| run_tests.addArgs(args);
    asan.dependOn(&run_tests.step);

    const fuzz = b.step("fuzz", "Run the fuzz targets (-Dfuzz-seconds=60; some: -- part-of-a-name)");
    for (glob(b, "tests/fuzz", "_fuzz.c")) |file| {
        const stem = std.fs.path.stem(file);
        const name = stem[0 .. stem.len - "_fuzz".len];
        var target: std.ArrayList(LazyPath) = .empty;
        target.appendSlice(b.allocator, library.items) catch @panic("OOM");
        target.append(b.allocator, clangObject(c, file)) catch @panic("OOM");
        const program = clangProgram(c, stem, target.items, &.{"-fsanitize=address,undefined,fuzzer"});
        const corpus = b.pathFromRoot(b.fmt("tests/fuzz/corpus/{s}", .{name}));

        const replay = Build.Step.Run.create(b, b.fmt("replay {s}", .{name}));
        replay.addFileArg(program);
        replay.addArgs(&.{ "-runs=0", "-rss_limit_mb=4096", corpus });
        replay.has_side_effects = true;
        addSanitizerOptions(replay);
        if (b.args == null) asan.dependOn(&replay.step);

        if (!wanted(b, name)) continue;
        const found = b.pathFromRoot(b.fmt("out/fuzz/{s}", .{name}));
        const run = Build.Step.Run.create(b, b.fmt("fuzz {s}", .{name}));
        const shell = b.fmt("mkdir -p '{s}' && exec \"$0\" -max_total_time={d} -rss_limit_mb=4096 -timeout=20 -artifact_prefix='{s}/' '{s}' '{s}'", .{ found, fuzz_seconds, found, found, corpus });
        run.addArgs(&.{ "sh", "-c", shell });
        run.addFileArg(program);
        run.has_side_effects = true;
        addSanitizerOptions(run);
        fuzz.dependOn(&run.step);
    }

    const lint = b.step("lint", "Run clang-tidy-19 on the library");
    for (librarySources(b)) |file| {
        // Only without inherited file descriptors are findings part of the step's failure, and files checked in parallel.
        const run = b.addSystemCommand(&.{ "sh", "-c", "exec \"$@\" 3>&2 2>/dev/null >&3", "lint", "clang-tidy-19", "--quiet" });
        run.expectExitCode(0);
        run.has_side_effects = true;
        run.setCwd(b.path(""));
        run.addFileArg(b.path(file));
        run.addArg("--");
        run.addArgs(&c_flags);
        run.addArgs(&.{ "-I.", "-Iinclude" });
        if (c.headers) |headers| run.step.dependOn(headers);
        if (!definesFailures(file)) run.addArgs(&.{ "-include", "tests/lint.h" });
        for (c.generated) |directory| run.addPrefixedDirectoryArg("-I", directory);
        lint.dependOn(&run.step);
    }
}

/// True for the files that define what tests/lint.h redefines.
fn definesFailures(file: []const u8) bool {
    for ([_][]const u8{ "base/status.c", "base/arena.c", "base/kernel.c", "records/io/file.c", "pipeline/dataset.c" }) |name| {
        if (std.mem.eql(u8, file, name)) return true;
    }
    return false;
}

/// A failed allocation returns a null pointer, as without a sanitizer, so that the code can report it.
fn addSanitizerOptions(run: *Build.Step.Run) void {
    run.setEnvironmentVariable("ASAN_OPTIONS", "allocator_may_return_null=1:detect_stack_use_after_return=1");
    run.setEnvironmentVariable("TSAN_OPTIONS", "allocator_may_return_null=1:halt_on_error=1");
    run.setEnvironmentVariable("UBSAN_OPTIONS", "print_stacktrace=1:halt_on_error=1");
}

/// True if no name was given after "--", or one that is part of this name.
fn wanted(b: *Build, name: []const u8) bool {
    const args = b.args orelse return true;
    for (args) |arg| if (std.mem.indexOf(u8, name, arg) != null) return true;
    return false;
}

// ---- The kit for machines with a GPU ----

/// zig-out/gpu-kit: a program that compares every GPU kernel with the CPU's, for processors with AVX2 (x86_64_v3).
fn addGpuKit(c: Context) void {
    const b = c.b;
    const step = b.step("gpu-kit", "Build zig-out/gpu-kit, to copy to a machine with a GPU and run there");
    var kit = c;
    if (c.target.result.cpu.arch == .x86_64)
        kit.target = b.resolveTargetQuery(.{ .cpu_model = .{ .explicit = &std.Target.x86.cpu.x86_64_v3 } });
    const library = addLibrary(kit);
    const files = [_][]const u8{ "tests/cuda/kit/main.c", "tests/cuda/samples.c", "tests/cuda/samples_run.c", "tests/cuda/model.c", "tests/cuda/prefetch_run.c" };
    const program = kit.program("gpu-kit", &files, library);
    const directory: Build.InstallDir = .{ .custom = "gpu-kit" };
    step.dependOn(&b.addInstallArtifact(program, .{ .dest_dir = .{ .override = directory } }).step);
    for ([_][]const u8{ "run.sh", "torch_prefetch.py" }) |name|
        step.dependOn(&b.addInstallFileWithDir(b.path(b.fmt("tests/cuda/kit/{s}", .{name})), directory, name).step);
}

// ---- Steps that run a program: demo, bench ----

fn addRunSteps(c: Context, programs: []const *Build.Step.Compile) void {
    const b = c.b;
    for (programs) |program| {
        const description = if (std.mem.eql(u8, program.name, "demo"))
            "Run the demo: render images, write records, train, kill, resume, evaluate"
        else if (std.mem.eql(u8, program.name, "bench"))
            "Run benchmarks against other libraries (-- input | pipeline | step | records) [--json]"
        else if (std.mem.eql(u8, program.name, "gpu-kit"))
            continue
        else
            continue;
        const step = b.step(program.name, description);
        const run = b.addRunArtifact(program);
        run.setCwd(b.path(""));
        run.setEnvironmentVariable("MILLRACE_BIN", b.pathFromRoot(b.getInstallPath(.bin, "")));
        run.setEnvironmentVariable("MILLRACE_ROOT", b.pathFromRoot(""));
        run.step.dependOn(b.getInstallStep());
        run.stdio = .inherit;
        run.has_side_effects = true;
        if (b.args) |args| run.addArgs(args);
        step.dependOn(&run.step);
    }
}
