//! Steps that use clang-19, which has the runtimes that Zig lacks: AddressSanitizer, libFuzzer, clang-tidy.
const std = @import("std");
const Build = std.Build;
const LazyPath = Build.LazyPath;
const Context = @import("context.zig").Context;
const glob = @import("context.zig").glob;
const librarySources = @import("context.zig").librarySources;
const system_libraries = @import("context.zig").system_libraries;
const tool_libraries = @import("context.zig").tool_libraries;
const c_flags = @import("context.zig").c_flags;
const recipes = @import("tests.zig").recipes;
const recipe_guides = @import("tests.zig").recipe_guides;
const testSources = @import("tests.zig").testSources;
const addSanitizerOptions = @import("tests.zig").addSanitizerOptions;
const wanted = @import("tests.zig").wanted;

const clang = "clang-19";
const clang_flags = c_flags ++ [_][]const u8{
    "-gline-tables-only",
    "-O1",
    "-fno-omit-frame-pointer",
    "-fPIC", // for the shared library
    "-fsanitize=address,undefined,float-cast-overflow",
    "-fno-sanitize-recover=undefined,float-cast-overflow",
    "-march=native",
};
/// Counts and compares what a fuzz target executes. The tests do without: it makes them slower.
const fuzz_flags = clang_flags ++ [_][]const u8{"-fsanitize=fuzzer-no-link"};
const clang_proto_flags = [_][]const u8{ "-std=c23", "-w", "-O1", "-gline-tables-only", "-fPIC", "-fsanitize=address" };

fn clangObject(c: Context, file: []const u8, flags: []const []const u8) LazyPath {
    return clangObjectOf(c, c.b.path(file), std.fs.path.stem(file), flags);
}

/// The objects of the library.
fn clangLibrary(c: Context, flags: []const []const u8) []const LazyPath {
    const b = c.b;
    var library: std.ArrayList(LazyPath) = .empty;
    for (librarySources(b)) |file| library.append(b.allocator, clangObject(c, file, flags)) catch @panic("OOM");
    for (glob(b, "cuda", ".c")) |file| library.append(b.allocator, clangObject(c, file, flags)) catch @panic("OOM");
    for (c.proto_sources, 0..) |file, i| {
        const object = clangObjectOf(c, file, b.fmt("proto{d}", .{i}), &clang_proto_flags);
        library.append(b.allocator, object) catch @panic("OOM");
    }
    return library.items;
}

fn clangObjectOf(c: Context, file: LazyPath, stem: []const u8, flags: []const []const u8) LazyPath {
    const b = c.b;
    const run = b.addSystemCommand(&.{ clang, "-c" });
    if (c.headers) |headers| run.step.dependOn(headers);
    run.addArgs(flags);
    run.addPrefixedDirectoryArg("-I", b.path(""));
    run.addPrefixedDirectoryArg("-I", b.path("include"));
    run.addPrefixedDirectoryArg("-I", b.path("tools"));
    for (c.generated) |directory| run.addPrefixedDirectoryArg("-I", directory);
    run.addArg("-MD");
    _ = run.addPrefixedDepFileOutputArg("-MF", b.fmt("{s}.d", .{stem}));
    run.addFileArg(file);
    return run.addPrefixedOutputFileArg("-o", b.fmt("{s}.o", .{stem}));
}

fn clangProgram(c: Context, name: []const u8, objects: []const LazyPath, link_flags: []const []const u8) LazyPath {
    const run = c.b.addSystemCommand(&.{clang});
    run.addArg("-fuse-ld=lld"); // links a program of this size in one second instead of ten
    run.addArgs(link_flags);
    for (objects) |object| run.addFileArg(object);
    const program = run.addPrefixedOutputFileArg("-o", name);
    for (tool_libraries ++ system_libraries) |library| run.addArg(c.b.fmt("-l{s}", .{library}));
    run.addArgs(&.{ "-lm", "-lpthread", "-ldl" });
    return program;
}

pub fn addClangSteps(c: Context, fuzz_seconds: u32) void {
    const b = c.b;
    const library = clangLibrary(c, &clang_flags);
    const fuzz_library = clangLibrary(c, &fuzz_flags);

    const asan = b.step("asan", "Run the tests and the fuzz corpora with AddressSanitizer and UBSan (clang-19)");
    var objects: std.ArrayList(LazyPath) = .empty;
    objects.appendSlice(b.allocator, library) catch @panic("OOM");
    for (testSources(b)) |file| objects.append(b.allocator, clangObject(c, file, &clang_flags)) catch @panic("OOM");
    for (recipe_guides) |name| {
        const object = clangObjectOf(c, recipes(b, name), name, &clang_flags);
        objects.append(b.allocator, object) catch @panic("OOM");
    }
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

    if (wanted(b, "python")) asan.dependOn(&pythonLifeCycles(c, library).step);

    const fuzz = b.step("fuzz", "Run the fuzz targets (-Dfuzz-seconds=60; some: -- part-of-a-name)");
    const replayer = clangObject(c, "tests/fuzz/replay.c", &clang_flags);
    for (glob(b, "tests/fuzz", "_fuzz.c")) |file| {
        const stem = std.fs.path.stem(file);
        const name = stem[0 .. stem.len - "_fuzz".len];
        const corpus = b.pathFromRoot(b.fmt("tests/fuzz/corpus/{s}", .{name}));

        var replayed: std.ArrayList(LazyPath) = .empty;
        replayed.appendSlice(b.allocator, library) catch @panic("OOM");
        replayed.appendSlice(b.allocator, &.{ clangObject(c, file, &clang_flags), replayer }) catch @panic("OOM");
        const replay = Build.Step.Run.create(b, b.fmt("replay {s}", .{name}));
        const replay_name = b.fmt("{s}-replay-asan", .{name});
        replay.addFileArg(clangProgram(c, replay_name, replayed.items, &.{"-fsanitize=address,undefined"}));
        replay.addArg(corpus);
        replay.has_side_effects = true;
        addSanitizerOptions(replay);
        const limited = "allocator_may_return_null=1:detect_stack_use_after_return=1:hard_rss_limit_mb=4096";
        replay.setEnvironmentVariable("ASAN_OPTIONS", limited);
        if (b.args == null) asan.dependOn(&replay.step);

        var target: std.ArrayList(LazyPath) = .empty;
        target.appendSlice(b.allocator, fuzz_library) catch @panic("OOM");
        target.append(b.allocator, clangObject(c, file, &fuzz_flags)) catch @panic("OOM");
        const program = clangProgram(c, stem, target.items, &.{"-fsanitize=address,undefined,fuzzer"});

        if (!wanted(b, name)) continue;
        const found = b.pathFromRoot(b.fmt("out/fuzz/{s}", .{name}));
        const run = Build.Step.Run.create(b, b.fmt("fuzz {s}", .{name}));
        const shell = b.fmt("mkdir -p '{s}' && exec \"$0\" -max_total_time={d} -rss_limit_mb=4096 -timeout=20 " ++
            "-artifact_prefix='{s}/' '{s}' '{s}'", .{ found, fuzz_seconds, found, found, corpus });
        run.addArgs(&.{ "sh", "-c", shell });
        run.addFileArg(program);
        run.has_side_effects = true;
        addSanitizerOptions(run);
        fuzz.dependOn(&run.step);
    }

    const lint = b.step("lint", "Run clang-tidy-19 on the library");
    for (librarySources(b)) |file| {
        // A step that inherits the terminal runs alone. This one does not, so its findings go to standard error.
        const shell = "exec \"$@\" 3>&2 2>/dev/null >&3";
        const run = b.addSystemCommand(&.{ "sh", "-c", shell, "lint", "clang-tidy-19", "--quiet" });
        run.expectExitCode(0);
        run.has_side_effects = true;
        run.setCwd(b.path(""));
        run.addFileArg(b.path(file));
        run.addArg("--");
        run.addArgs(&c_flags);
        run.addArgs(&.{ "-I.", "-Iinclude" });
        // The paths that the analyzer follows in each function. Its default, 225,000, takes three times as long.
        run.addArgs(&.{ "-Xclang", "-analyzer-config", "-Xclang", "max-nodes=75000" });
        if (c.headers) |headers| run.step.dependOn(headers);
        if (!definesFailures(file)) run.addArgs(&.{ "-include", "tests/lint.h" });
        for (c.generated) |directory| run.addPrefixedDirectoryArg("-I", directory);
        lint.dependOn(&run.step);
    }
}

/// libmillrace.so with AddressSanitizer, under the tests of python/millrace that create and drop objects.
fn pythonLifeCycles(c: Context, library: []const LazyPath) *Build.Step.Run {
    const b = c.b;
    const link_flags = [_][]const u8{ "-shared", "-fsanitize=address,undefined", "-shared-libasan", "-Wl,-z,defs" };
    const shared = clangProgram(c, "libmillrace-asan.so", library, &link_flags);
    const run = b.addSystemCommand(&.{ "python3", "tests/python/address.py" });
    run.setCwd(b.path(""));
    run.has_side_effects = true;
    run.addFileArg(shared);
    run.addArg(clang);
    addSanitizerOptions(run);
    return run;
}

/// True for the files that define what tests/lint.h redefines.
fn definesFailures(file: []const u8) bool {
    const definers = [_][]const u8{
        "base/status.c",
        "base/arena.c",
        "base/kernel.c",
        "records/io/file.c",
        "pipeline/dataset.c",
    };
    for (definers) |name| {
        if (std.mem.eql(u8, file, name)) return true;
    }
    return false;
}
