//! libmillrace.so: its exports and its version, both read from the public headers.
const std = @import("std");
const Build = std.Build;
const Context = @import("context.zig").Context;
const glob = @import("context.zig").glob;

/// libmillrace.so exports the functions that the public headers declare as MR_API. The linker takes these, and what
/// they use, from the static library.
pub fn addSharedLibrary(c: Context, library: *Build.Step.Compile) *Build.Step.Compile {
    const b = c.b;
    const m = c.module();
    m.pic = true;
    m.linkLibrary(library);
    c.linkSystemOfLibrary(m);
    c.addMemoryFunctions(m);
    if (c.package == .wheel) c.addSources(m, &.{"packaging/wheel_libc/stderr.c"}, &.{});
    const shared = c.prepare(b.addLibrary(.{
        .name = "millrace",
        .linkage = .dynamic,
        .root_module = m,
        .version = version(b),
    }));
    for (publicFunctions(b)) |name| shared.forceUndefinedSymbol(name);
    const script = b.fmt("MILLRACE_{d} {{ global: mr_*; local: *; }};\n", .{version(b).major});
    shared.setVersionScript(b.addWriteFiles().add("exports.map", script));
    return shared;
}

/// MR_VERSION_MAJOR, MR_VERSION_MINOR and MR_VERSION_PATCH of include/millrace/api.h.
pub fn version(b: *Build) std.SemanticVersion {
    const text = readSource(b, "include/millrace/api.h");
    return .{
        .major = numberAfter(text, "#define MR_VERSION_MAJOR "),
        .minor = numberAfter(text, "#define MR_VERSION_MINOR "),
        .patch = numberAfter(text, "#define MR_VERSION_PATCH "),
    };
}

fn numberAfter(text: []const u8, prefix: []const u8) usize {
    const begin = (std.mem.indexOf(u8, text, prefix) orelse @panic("api.h has no version")) + prefix.len;
    const end = std.mem.indexOfScalarPos(u8, text, begin, '\n').?;
    return std.fmt.parseInt(usize, text[begin..end], 10) catch @panic("the version in api.h is not a number");
}

/// The functions that the public headers declare, each in a line that starts with MR_API.
fn publicFunctions(b: *Build) []const []const u8 {
    var list: std.ArrayList([]const u8) = .empty;
    for (glob(b, "include/millrace", ".h")) |header| {
        var lines = std.mem.splitScalar(u8, readSource(b, header), '\n');
        while (lines.next()) |line| {
            if (!std.mem.startsWith(u8, line, "MR_API ")) continue;
            var words = std.mem.tokenizeAny(u8, line, " *");
            while (words.next()) |word| {
                const end = std.mem.indexOfScalar(u8, word, '(') orelse continue;
                if (!std.mem.startsWith(u8, word, "mr_")) continue;
                list.append(b.allocator, word[0..end]) catch @panic("OOM");
                break;
            }
        }
    }
    return list.items;
}

fn readSource(b: *Build, path: []const u8) []const u8 {
    const directory = b.build_root.handle;
    return directory.readFileAlloc(b.graph.io, path, b.allocator, .unlimited) catch @panic("cannot read a header");
}
