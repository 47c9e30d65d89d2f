//! The step "wheel": the Python package with libmillrace.so and the programs, for pip. They run on every processor of
//! the architecture and with every C library since glibc 2.28.
const std = @import("std");
const Build = std.Build;
const LazyPath = Build.LazyPath;
const context = @import("context.zig");
const library_steps = @import("library.zig");
const shared_library = @import("shared.zig");
const Context = context.Context;

/// The programs that the wheel installs as console scripts: python/millrace/_tools.py.
const program_names = [_][]const u8{ "tfrecord-make", "tfrecord-cat", "graph-run" };
const glibc: std.SemanticVersion = .{ .major = 2, .minor = 28, .patch = 0 };

pub fn add(c: Context) void {
    const b = c.b;
    const step = b.step("wheel", "Build the Python wheel in zig-out/wheel");
    var p = c;
    p.package = .wheel;
    var query = c.target.query;
    query.glibc_version = glibc;
    if (query.isNativeCpu()) query.cpu_model = .baseline;
    p.target = b.resolveTargetQuery(query);
    if (c.isForHost()) p.sysroot = hostLibraries(p);
    const library = library_steps.addLibrary(p, null);
    const shared = shared_library.addSharedLibrary(p, library);

    const tree = b.addWriteFiles();
    _ = tree.addCopyFile(shared.getEmittedBin(), shared.major_only_filename.?);
    for (library_steps.addPrograms(p, shared)) |program| {
        for (program_names) |name| {
            if (!std.mem.eql(u8, program.name, name)) continue;
            _ = tree.addCopyFile(program.getEmittedBin(), b.fmt("bin/{s}", .{name}));
        }
    }
    const run = b.addSystemCommand(&.{ "python3", "packaging/wheel" });
    run.setCwd(b.path(""));
    run.has_side_effects = true; // reads the Python package and the system's notices
    run.addDirectoryArg(tree.getDirectory());
    const directory = run.addOutputDirectoryArg("wheel");
    run.addArg(b.fmt("{f}", .{shared_library.version(b)}));
    const install = b.addInstallDirectory(.{
        .source_dir = directory,
        .install_dir = .prefix,
        .install_subdir = "wheel",
    });
    step.dependOn(&install.step);
    addTest(b, directory);
}

/// The step "wheel-test"; arguments after "--" are the interpreters to install the wheel with.
fn addTest(b: *Build, directory: LazyPath) void {
    const step = b.step("wheel-test", "Check the Python wheel and install it (some: -- python3.12)");
    const run = b.addSystemCommand(&.{ "python3", "tests/packaging/wheel.py" });
    run.setCwd(b.path(""));
    run.has_side_effects = true;
    run.stdio = .inherit;
    run.addDirectoryArg(directory);
    if (b.args) |args| run.addArgs(args);
    step.dependOn(&run.step);
}

/// This machine's headers and static libraries in the form of a sysroot, without those of its C library, which is newer
/// than the wheel's.
fn hostLibraries(c: Context) LazyPath {
    const b = c.b;
    const triple = c.target.result.linuxTriple(b.allocator) catch @panic("OOM");
    const root = b.addWriteFiles();
    const include: LazyPath = .{ .cwd_relative = "/usr/include" };
    const headers = [_][]const u8{
        "jpeglib.h", "jmorecfg.h",       "jerror.h",  "jpegint.h",    "png.h",     "pngconf.h",
        "zlib.h",    "zconf.h",          "pcre2.h",   "liburing.h",   "jansson.h", "jansson_config.h",
        "expat.h",   "expat_external.h", "gif_lib.h", "pnglibconf.h",
    };
    for (headers) |name| _ = root.addCopyFile(include.path(b, name), b.fmt("usr/include/{s}", .{name}));
    for ([_][]const u8{ "jconfig.h", "tiff.h", "tiffconf.h", "tiffio.h", "tiffvers.h" }) |name| {
        const path = b.fmt("{s}/{s}", .{ triple, name });
        _ = root.addCopyFile(include.path(b, path), b.fmt("usr/include/{s}", .{path}));
    }
    for ([_][]const u8{ "protobuf-c", "liburing", "webp" }) |name|
        _ = root.addCopyDirectory(include.path(b, name), b.fmt("usr/include/{s}", .{name}), .{});
    for (context.tool_libraries ++ context.static_libraries) |name| {
        const directory = if (std.mem.eql(u8, name, "openblas")) "/openblas-serial" else "";
        const path = b.fmt("usr/lib/{s}{s}/lib{s}.a", .{ triple, directory, name });
        _ = root.addCopyFile(.{ .cwd_relative = b.fmt("/{s}", .{path}) }, path);
    }
    return root.getDirectory();
}
