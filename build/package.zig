//! What the step "install" adds to the library and the programs (man pages, completions, files for pkg-config and
//! CMake), and the step "deb".
const std = @import("std");
const Build = std.Build;
const LazyPath = Build.LazyPath;
const context = @import("context.zig");
const library_steps = @import("library.zig");
const shared_library = @import("shared.zig");
const Context = context.Context;

/// The programs for users; the others are for the developers of millrace and are not packaged.
const program_names = [_][]const u8{ "tfrecord-make", "tfrecord-cat", "graph-run", "train-images", "feed-images" };

pub fn add(c: Context, programs: []const *Build.Step.Compile) void {
    const b = c.b;
    const install = b.getInstallStep();
    const texts = helpTexts(c, programs);
    const directories = [_][2][]const u8{
        .{ "man", "share/man/man1" },
        .{ "bash", "share/bash-completion/completions" },
        .{ "zsh", "share/zsh/site-functions" },
        .{ "fish", "share/fish/vendor_completions.d" },
    };
    for (directories) |directory| install.dependOn(&b.addInstallDirectory(.{
        .source_dir = texts.path(b, directory[0]),
        .install_dir = .prefix,
        .install_subdir = directory[1],
    }).step);
    const layout: Layout = .{
        .prefix = "${pcfiledir}/../..",
        .libdir = "${prefix}/lib",
        .prefix_from_cmake = "../../..",
    };
    for (configFiles(b, layout)) |file|
        install.dependOn(&b.addInstallFileWithDir(file.contents, .lib, file.path).step);
    addDeb(c, texts);
}

/// Man pages and completions in the directories man, bash, zsh and fish, made from what the programs print for --help.
fn helpTexts(c: Context, programs: []const *Build.Step.Compile) LazyPath {
    const b = c.b;
    const run = b.addRunArtifact(c.buildProgram("help-texts", "packaging/help_texts"));
    const directory = run.addOutputDirectoryArg("texts");
    for (programsForUsers(b, runnable(c, programs))) |program| run.addArtifactArg(program);
    run.setEnvironmentVariable("MILLRACE_DATE", changelogDate(b));
    return directory;
}

/// The programs, or those for this machine if they are built for another one.
fn runnable(c: Context, programs: []const *Build.Step.Compile) []const *Build.Step.Compile {
    if (c.isForHost()) return programs;
    var native = c;
    native.target = c.b.graph.host;
    return library_steps.addPrograms(native, library_steps.addLibrary(native, null));
}

fn programsForUsers(b: *Build, programs: []const *Build.Step.Compile) []const *Build.Step.Compile {
    var list: std.ArrayList(*Build.Step.Compile) = .empty;
    for (program_names) |name| {
        for (programs) |program| {
            if (std.mem.eql(u8, program.name, name)) list.append(b.allocator, program) catch @panic("OOM");
        }
    }
    return list.items;
}

// ---- Files for pkg-config and CMake ----

const Layout = struct { prefix: []const u8, libdir: []const u8, prefix_from_cmake: []const u8 };
/// A file and its path in the directory of libraries.
const ConfigFile = struct { path: []const u8, contents: LazyPath };

fn configFiles(b: *Build, layout: Layout) [3]ConfigFile {
    const paths = [_][]const u8{
        "pkgconfig/libmillrace.pc",
        "cmake/millrace/millraceConfig.cmake",
        "cmake/millrace/millraceConfigVersion.cmake",
    };
    const files = b.addWriteFiles();
    var list: [paths.len]ConfigFile = undefined;
    for (paths, &list) |path, *file| {
        const template = b.fmt("packaging/{s}.in", .{std.fs.path.basename(path)});
        var text = readFile(b, template);
        text = replace(b, text, "@prefix@", layout.prefix);
        text = replace(b, text, "@libdir@", layout.libdir);
        text = replace(b, text, "@prefix_from_cmake@", layout.prefix_from_cmake);
        text = replace(b, text, "@version@", version(b));
        file.* = .{ .path = path, .contents = files.add(path, text) };
    }
    return list;
}

fn replace(b: *Build, text: []const u8, from: []const u8, to: []const u8) []const u8 {
    return std.mem.replaceOwned(u8, b.allocator, text, from, to) catch @panic("OOM");
}

fn readFile(b: *Build, path: []const u8) []const u8 {
    return b.build_root.handle.readFileAlloc(b.graph.io, path, b.allocator, .limited(1 << 20)) catch |reason|
        std.debug.panic("{s}: {t}", .{ path, reason });
}

fn version(b: *Build) []const u8 {
    return b.fmt("{f}", .{shared_library.version(b)});
}

/// The date of the newest entry of the packages' changelog: "22 Nov 2026".
fn changelogDate(b: *Build) []const u8 {
    const text = readFile(b, "packaging/debian/changelog");
    const author = std.mem.indexOf(u8, text, "\n -- ") orelse @panic("packaging/debian/changelog has no author");
    const begin = std.mem.indexOfScalarPos(u8, text, author, '>').? + ">  Sun, ".len;
    return text[begin..][0.."22 Nov 2026".len];
}

// ---- Debian packages ----

/// zig-out/deb: programs and libraries for every processor of the architecture, which share Debian's libraries.
fn addDeb(c: Context, texts: LazyPath) void {
    const b = c.b;
    const step = b.step("deb", "Build Debian packages in zig-out/deb");
    var p = c;
    p.package = .debian;
    if (c.target.query.isNativeCpu()) p.target = b.resolveTargetQuery(.{ .cpu_model = .baseline });
    const triple = p.target.result.linuxTriple(b.allocator) catch @panic("OOM");
    const library = library_steps.addLibrary(p, null);

    const tree = b.addWriteFiles();
    for (programsForUsers(b, library_steps.addPrograms(p, library))) |program|
        _ = tree.addCopyFile(program.getEmittedBin(), b.fmt("bin/{s}", .{program.name}));
    _ = tree.addCopyFile(library.getEmittedBin(), "lib/libmillrace.a");
    for (configFiles(b, .{
        .prefix = "/usr",
        .libdir = b.fmt("${{prefix}}/lib/{s}", .{triple}),
        .prefix_from_cmake = "../../../..",
    })) |file| _ = tree.addCopyFile(file.contents, b.fmt("lib/{s}", .{file.path}));
    _ = tree.addCopyDirectory(b.path("include"), "include", .{});
    if (c.ops_header) |header| _ = tree.addCopyFile(header, "include/millrace/ops.h");
    _ = tree.addCopyDirectory(texts, "texts", .{});
    const shared = shared_library.addSharedLibrary(p, library);
    _ = tree.addCopyFile(shared.getEmittedBin(), b.fmt("shared/{s}", .{shared.out_filename}));

    const run = b.addSystemCommand(&.{"packaging/deb"});
    run.setCwd(b.path(""));
    run.has_side_effects = true; // reads the machine's list of packages
    if (c.sysroot) |root| run.setEnvironmentVariable("DPKG_INFO", root.path(b, "info").getPath(b));
    run.addDirectoryArg(tree.getDirectory());
    const packages = run.addOutputDirectoryArg("deb");
    run.addArgs(&.{ version(b), debianArchitecture(p.target.result.cpu.arch), triple });
    step.dependOn(&b.addInstallDirectory(.{
        .source_dir = packages,
        .install_dir = .prefix,
        .install_subdir = "deb",
    }).step);
}

fn debianArchitecture(arch: std.Target.Cpu.Arch) []const u8 {
    return switch (arch) {
        .x86_64 => "amd64",
        .aarch64 => "arm64",
        else => @tagName(arch),
    };
}
