//! The tests: the test runner, the replay of fuzz corpora, the comparison with TensorFlow, and tidy.
const std = @import("std");
const Build = std.Build;
const LazyPath = Build.LazyPath;
const Context = @import("context.zig").Context;
const glob = @import("context.zig").glob;
const subdirectories = @import("context.zig").subdirectories;
const c_flags = @import("context.zig").c_flags;
const warnings = @import("context.zig").warnings;
const addLibrary = @import("library.zig").addLibrary;
const toolCommonSources = @import("library.zig").toolCommonSources;

/// The step "test": runs the test runner on the installed programs, and the fuzz corpora.
pub fn addTestStep(
    c: Context,
    library: *Build.Step.Compile,
    shared: ?*Build.Step.Compile,
    reference: *Build.Step.Compile,
    check: *Build.Step,
) void {
    const b = c.b;
    const test_step = b.step("test", "Run the tests (some: -- part-of-a-name)");
    // The tests need the library's assertions, which the installed library is built without.
    var checked = c;
    checked.assertions = true;
    const checked_library = if (c.assertions) library else addLibrary(checked, &library.step);
    const tests = addTests(checked, checked_library, check);
    const run_tests = b.addRunArtifact(tests);
    run_tests.setEnvironmentVariable("MILLRACE_BIN", b.pathFromRoot(b.getInstallPath(.bin, "")));
    run_tests.setEnvironmentVariable("MILLRACE_ROOT", b.pathFromRoot(""));
    run_tests.setCwd(b.path(""));
    run_tests.step.dependOn(b.getInstallStep());
    run_tests.has_side_effects = true;
    addSanitizerOptions(run_tests);
    const failing = addPreload(c);
    check.dependOn(&failing.step);
    const preload: Build.InstallDir = .{ .custom = "preload" };
    run_tests.step.dependOn(&b.addInstallArtifact(failing, .{ .dest_dir = .{ .override = preload } }).step);
    const preload_path = b.pathFromRoot(b.getInstallPath(preload, failing.out_filename));
    run_tests.setEnvironmentVariable("MILLRACE_PRELOAD", preload_path);
    const build_programs: Build.InstallDir = .{ .custom = "build" };
    run_tests.step.dependOn(&b.addInstallArtifact(reference, .{ .dest_dir = .{ .override = build_programs } }).step);
    const reference_path = b.pathFromRoot(b.getInstallPath(build_programs, reference.out_filename));
    run_tests.setEnvironmentVariable("MILLRACE_REFERENCE", reference_path);
    if (b.args) |args| run_tests.addArgs(args);
    test_step.dependOn(&run_tests.step);
    addFuzzReplay(checked, checked_library, if (b.args == null) test_step else null, check);
    if (shared) |linked| addHeaderUsers(c, linked, test_step, check);
}

/// The step "neon-test": the kernels of products and random numbers, which use vectors alone, for ARM's vectors on an
/// emulated processor.
pub fn addNeonTest(c: Context) void {
    const b = c.b;
    const step = b.step("neon-test", "Run tests of vector kernels for aarch64 with qemu-aarch64-static");
    var p = c;
    p.target = b.resolveTargetQuery(.{ .cpu_arch = .aarch64, .os_tag = .linux, .abi = .musl });
    p.optimize = .ReleaseFast;
    p.sanitize = null;
    p.sysroot = null;
    p.assertions = true;
    const m = p.module();
    const kernels = [_][]const u8{
        "kernels/gemm.c",      "kernels/gemm_double.c",   "kernels/gemm_pack.c",
        "kernels/gemm_tile.c", "kernels/gemm_tile_amx.c", "kernels/gemm_tile_packed.c",
        "kernels/gemv.c",      "kernels/random.c",        "kernels/gemm_tile_pairs.c",
        "kernels/transpose.c", "kernels/gemv_double.c",
    };
    const files = [_][]const u8{
        "tests/test.c",                     "tests/kernels/gemm_test.c",
        "tests/kernels/gemm_double_test.c", "tests/kernels/random_floats_test.c",
    };
    // Functions that run whole operators are not used, and with them the rest of the library.
    p.addSources(m, &(kernels ++ files), &.{ "-ffunction-sections", "-fdata-sections" });
    p.addSources(m, glob(b, "base", ".c"), &.{ "-ffunction-sections", "-fdata-sections" });
    const tests = b.addExecutable(.{ .name = "neon-tests", .root_module = m });
    tests.link_gc_sections = true;
    const run = b.addSystemCommand(&.{"qemu-aarch64-static"});
    run.addArtifactArg(p.prepare(tests));
    run.stdio = .inherit;
    run.has_side_effects = true;
    step.dependOn(&run.step);
}

/// The tests, and the common sources of the tools, which are tested directly.
pub fn testSources(b: *Build) []const []const u8 {
    var list: std.ArrayList([]const u8) = .empty;
    list.appendSlice(b.allocator, toolCommonSources(b)) catch @panic("OOM");
    list.appendSlice(b.allocator, glob(b, "tests", ".c")) catch @panic("OOM");
    for (subdirectories(b, "tests")) |name| {
        // These have programs and libraries of their own.
        const has_own = for ([_][]const u8{ "fuzz", "oracle", "preload", "users" }) |other| {
            if (std.mem.eql(u8, name, other)) break true;
        } else false;
        if (has_own) continue;
        list.appendSlice(b.allocator, glob(b, b.fmt("tests/{s}", .{name}), ".c")) catch @panic("OOM");
    }
    return list.items;
}

fn addTests(c: Context, library: *Build.Step.Compile, check: *Build.Step) *Build.Step.Compile {
    const b = c.b;
    const tests = c.programOfParts("millrace-tests", testSources(b), library);
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
    for (recipe_guides) |name| tests.root_module.addCSourceFile(.{ .file = recipes(b, name), .flags = &c_flags });
    check.dependOn(&tests.step);
    return tests;
}

/// The guides in docs/ whose C examples are complete functions, which tests/docs runs.
pub const recipe_guides = [_][]const u8{ "datasets-cookbook", "tensorflow-graphs" };

pub fn recipes(b: *Build, guide: []const u8) LazyPath {
    const awk = b.addSystemCommand(&.{ "awk", "-f" });
    awk.addFileArg(b.path("tests/docs/recipes.awk"));
    awk.addFileArg(b.path(b.fmt("docs/{s}.md", .{guide})));
    return awk.captureStdOut(.{ .basename = b.fmt("{s}.c", .{guide}) });
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

/// tests/users/*: programs in C11 and C++17 that use the public headers and libmillrace.so.
fn addHeaderUsers(c: Context, shared: *Build.Step.Compile, test_step: *Build.Step, check: *Build.Step) void {
    const b = c.b;
    inline for (.{ .{ "c11.c", "-std=c11" }, .{ "cxx17.cpp", "-std=c++17" } }) |user| {
        const m = b.createModule(.{ .target = c.target, .optimize = c.optimize, .link_libc = true });
        // Before C23 and C++20, -pedantic requires an option in each call of a builder.
        // Exceptions would need the C++ library.
        const flags = [_][]const u8{ user[1], "-pedantic", "-fno-exceptions" } ++
            [_][]const u8{"-Wno-variadic-macro-arguments-omitted"} ++ warnings;
        m.addCSourceFile(.{ .file = b.path("tests/users/" ++ user[0]), .flags = &flags });
        m.addIncludePath(b.path("include"));
        for (c.generated) |directory| m.addIncludePath(directory);
        m.linkLibrary(shared);
        const name = comptime std.fs.path.stem(user[0]);
        const program = c.prepare(b.addExecutable(.{ .name = name ++ "-user", .root_module = m }));
        check.dependOn(&program.step);
        const run = b.addRunArtifact(program);
        _ = run.addOutputFileArg("example.tfrecord");
        if (b.args == null) test_step.dependOn(&run.step);
    }
}

/// Comparison with TensorFlow: tests/oracle/*_oracle.py, with tests/oracle/*.c as programs in zig-out/oracle.
pub fn addOracle(c: Context, library: *Build.Step.Compile, check: *Build.Step) void {
    const b = c.b;
    const step = b.step("oracle", "Compare with TensorFlow 2.15.1 (some: -- part-of-a-name)");
    const run = b.addSystemCommand(&.{"tests/oracle/run"});
    run.setCwd(b.path(""));
    run.has_side_effects = true;
    run.setEnvironmentVariable("MILLRACE_BIN", b.pathFromRoot(b.getInstallPath(.bin, "")));
    run.setEnvironmentVariable("MILLRACE_ORACLE", b.getInstallPath(.{ .custom = "oracle" }, ""));
    if (b.args) |args| run.addArgs(args);
    run.step.dependOn(b.getInstallStep());
    for (glob(b, "tests/oracle", ".c")) |file| {
        const program = c.program(std.fs.path.stem(file), &.{file}, library);
        check.dependOn(&program.step);
        const directory: Build.InstallDir = .{ .custom = "oracle" };
        run.step.dependOn(&b.addInstallArtifact(program, .{ .dest_dir = .{ .override = directory } }).step);
    }
    step.dependOn(&run.step);
}

pub fn addTidy(c: Context) void {
    const b = c.b;
    const step = b.step("tidy", "Check layers, file length, format and banned calls");
    const run = b.addSystemCommand(&.{"tests/tidy/run"});
    run.setCwd(b.path(""));
    run.has_side_effects = true;
    step.dependOn(&run.step);
}

/// A failed allocation returns a null pointer, as without a sanitizer, so that the code can report it.
pub fn addSanitizerOptions(run: *Build.Step.Run) void {
    run.setEnvironmentVariable("ASAN_OPTIONS", "allocator_may_return_null=1:detect_stack_use_after_return=1");
    run.setEnvironmentVariable("TSAN_OPTIONS", "allocator_may_return_null=1:halt_on_error=1");
    run.setEnvironmentVariable("UBSAN_OPTIONS", "print_stacktrace=1:halt_on_error=1");
}

/// True if no name was given after "--", or one that is part of this name.
pub fn wanted(b: *Build, name: []const u8) bool {
    const args = b.args orelse return true;
    for (args) |arg| if (std.mem.indexOf(u8, name, arg) != null) return true;
    return false;
}
