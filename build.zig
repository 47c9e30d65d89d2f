//! The build of millrace: its options and steps. The functions that add them are in build/.
//!
//! Sources are found by globbing: a new .c file in base/, records/io/, … is part of the library; a new directory in
//! tools/ or datasets/ and a new file in examples/ is a program; a new file in tests/ is part of the test runner.
const std = @import("std");
const Build = std.Build;
const context = @import("build/context.zig");
const library_steps = @import("build/library.zig");
const addSharedLibrary = @import("build/shared.zig").addSharedLibrary;
const test_steps = @import("build/tests.zig");
const clang_steps = @import("build/clang.zig");
const package_steps = @import("build/package.zig");
const wheel_steps = @import("build/wheel.zig");
const Context = context.Context;

pub fn build(b: *Build) void {
    // Options.
    const target = context.targetOption(b);
    const optimize = b.option(std.builtin.OptimizeMode, "optimize", "Default: ReleaseFast") orelse .ReleaseFast;
    const sanitize = b.option(context.Sanitize, "sanitize", "Detect data races or undefined behavior");
    const cuda = b.option(context.Cuda, "cuda", "Build GPU kernels (auto, the default: if nvcc is found)") orelse .auto;
    const fuzz_seconds = b.option(u32, "fuzz-seconds", "Seconds for which `fuzz` runs each target (60)") orelse 60;

    var c: Context = .{
        .b = b,
        .target = target,
        .optimize = optimize,
        .sanitize = sanitize,
        .assertions = sanitize != null,
    };
    c.nvcc = context.findNvcc(b, cuda);
    c.libc = context.debianLibC(b);
    c.sysroot = context.findSysroot(b, target);
    library_steps.addProto(&c);
    library_steps.addOpsHeader(&c);
    library_steps.addFatbins(&c);

    // The library and the programs.
    const library = library_steps.addLibrary(c, null);
    b.installArtifact(library);
    b.installDirectory(.{ .source_dir = b.path("include"), .install_dir = .header, .install_subdir = "" });
    const shared = addSharedLibrary(c, library);
    // The runtime of -Dsanitize=thread belongs to the program, not to a library.
    if (sanitize == null) b.installArtifact(shared);
    const check = b.step("check", "Compile everything, run nothing");
    check.dependOn(&library.step);
    check.dependOn(&shared.step);

    const programs = library_steps.addPrograms(c, library);
    for (programs) |program| {
        b.installArtifact(program);
        check.dependOn(&program.step);
    }

    package_steps.add(c, programs);
    wheel_steps.add(c);

    // The steps.
    const reference = c.buildProgram("api-reference", "docs/reference");
    check.dependOn(&reference.step);
    test_steps.addNeonTest(c);
    test_steps.addTestStep(c, library, if (sanitize == null) shared else null, reference, check);
    test_steps.addOracle(c, library, check);
    test_steps.addTidy(c);
    clang_steps.addClangSteps(c, fuzz_seconds);
    addRunSteps(c, programs);
    addGpuKit(c);
    addReference(c, reference);
}

// ---- The kit for machines with a GPU ----

/// zig-out/gpu-kit: a program that compares every GPU kernel with the CPU's, for processors with AVX2 (x86_64_v3).
fn addGpuKit(c: Context) void {
    const b = c.b;
    const step = b.step("gpu-kit", "Build zig-out/gpu-kit, to copy to a machine with a GPU and run there");
    var kit = c;
    if (c.target.result.cpu.arch == .x86_64)
        kit.target = b.resolveTargetQuery(.{ .cpu_model = .{ .explicit = &std.Target.x86.cpu.x86_64_v3 } });
    const library = library_steps.addLibrary(kit, null);
    const files = [_][]const u8{
        "tests/cuda/kit/main.c",
        "tests/cuda/samples.c",
        "tests/cuda/samples_run.c",
        "tests/cuda/model.c",
        "tests/cuda/prefetch_run.c",
    };
    const program = kit.program("gpu-kit", &files, library);
    const directory: Build.InstallDir = .{ .custom = "gpu-kit" };
    step.dependOn(&b.addInstallArtifact(program, .{ .dest_dir = .{ .override = directory } }).step);
    for ([_][]const u8{ "run.sh", "torch_prefetch.py" }) |name|
        step.dependOn(&b.addInstallFileWithDir(b.path(b.fmt("tests/cuda/kit/{s}", .{name})), directory, name).step);
}

// ---- The API reference ----

/// zig-out/docs: HTML pages written by docs/reference/ from the public headers.
fn addReference(c: Context, program: *Build.Step.Compile) void {
    const b = c.b;
    const step = b.step("docs", "Write the API reference to zig-out/docs");
    const run = b.addRunArtifact(program);
    run.setCwd(b.path(""));
    if (c.headers) |headers| run.step.dependOn(headers);
    run.addArg(b.getInstallPath(.{ .custom = "docs" }, ""));
    run.addArgs(context.glob(b, "include/millrace", ".h"));
    run.addArg("generated/millrace/ops.h");
    run.has_side_effects = true;
    step.dependOn(&run.step);
}

// ---- Steps that run a program: demo, bench ----

fn addRunSteps(c: Context, programs: []const *Build.Step.Compile) void {
    const b = c.b;
    for (programs) |program| {
        const description = if (std.mem.eql(u8, program.name, "demo"))
            "Run the demo: render images, write records, train, kill, resume, evaluate"
        else if (std.mem.eql(u8, program.name, "bench"))
            "Run benchmarks against other libraries (-- input | pipeline | step | records | run) [--json]"
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
