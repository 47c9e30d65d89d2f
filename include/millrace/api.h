/* The version, and what the other headers are written with: attributes, values, lists and options that read the same in
 * C11, C23 and C++17.
 *
 * ```c
 * printf("compiled with millrace %s, running with %s\n", MR_VERSION, mr_version());
 * ```
 *
 * A builder is a macro that takes options by name, in any order: mr_dataset_shuffle(d, .buffer_size = 1000, .seed = 7).
 * In C they are designated initializers, in C++ assignments to the members of the options struct. So in C++ a builder
 * is called inside a function, takes at most 24 options, and sets an array or a nested struct by its members:
 * .kernel_initializer.kind = MR_INIT_ZEROS.
 *
 * A function without a builder takes options as MR_OPTIONS(mr_iterator_options, .threads = 4), a pointer, or null for
 * the defaults. Options in a variable start with its size: mr_iterator_options options = {.size = sizeof options}.
 *
 * The arrays behind MR_INTS, MR_OUTPUTS and the other lists, and the struct behind MR_OPTIONS, exist until the end of
 * the enclosing block in C (the branch of an if is such a block), and until the end of the full expression in C++: pass
 * them on directly. Among the arguments of another macro that takes options they exist until that macro returns.
 *
 * Compatibility. Each struct of options starts with its size, so programs and libraries of different versions work
 * together. A program may be older than the library: the members that its struct lacks are zero. It may be newer: then
 * the members that the library lacks must be zero, otherwise the function fails with MR_INVALID_ARGUMENT. Structs that
 * the library returns have the library's size: a member beyond it must not be read.
 *
 * To add members, put them after the last one, from the previous size of the struct on and without padding, whose bytes
 * may have any value, and define them so that zero is the previous behavior. Structs without a size, such as those that
 * are passed by value or are members of others, do not change. */
#ifndef MILLRACE_API_H
#define MILLRACE_API_H

#include <stddef.h>
#include <stdint.h>

/* The version of the library and its tools, a semantic version (semver.org). */
#define MR_VERSION_MAJOR 0
#define MR_VERSION_MINOR 1
#define MR_VERSION_PATCH 0
/* "MAJOR.MINOR.PATCH" */
#define MR_VERSION MR_VERSION_TEXT_(MR_VERSION_MAJOR, MR_VERSION_MINOR, MR_VERSION_PATCH)
#define MR_VERSION_TEXT_(major, minor, patch) MR_TEXT_(major) "." MR_TEXT_(minor) "." MR_TEXT_(patch)
#define MR_TEXT_(text) #text

/* A function that the library exports. */
#define MR_API __attribute__((visibility("default")))

/* A function whose argument number `format` is a format of printf, and whose argument number `first` is the first one
 * that is formatted; 0: a va_list. */
#define MR_PRINTF_(format, first) __attribute__((__format__(__printf__, format, first)))

/* A type whose values must not be discarded by the caller of a function. */
#if defined(__cplusplus) || __STDC_VERSION__ > 201710L
#define MR_NODISCARD_ [[nodiscard]]
#else
#define MR_NODISCARD_
#endif

/* MR_VALUE_(type, members…) is a struct, MR_LIST_(type, item, items…) a struct of an array and its length.
 *
 * MR_WITH_OPTIONS_(call, type, options…) is the value of call, in which options_ is a variable of this type. Of options
 * that occur twice the last one counts: the defaults come first, then the caller's. This is intended, so the compiler's
 * warning about it is disabled. MR_WITH_SIZE_ is the same for a type that starts with its size.
 *
 * MR_OPTIONS_(type, options…) is MR_OPTIONS for a type whose defaults are not all zero. */
#ifndef __cplusplus

#define MR_VALUE_(type, ...) ((type){__VA_ARGS__})
#define MR_COUNT_(type, ...) (sizeof((type[]){__VA_ARGS__}) / sizeof(type))
#define MR_LIST_(type, item, ...) ((type){(const item[]){__VA_ARGS__}, (int32_t)MR_COUNT_(const item, __VA_ARGS__)})

#if defined(__clang__)
#define MR_ALLOW_OVERRIDES_                                                                                            \
    _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Winitializer-overrides\"")                   \
        _Pragma("clang diagnostic ignored \"-Wshadow\"")
#define MR_END_OVERRIDES_ _Pragma("clang diagnostic pop")
#else
#define MR_ALLOW_OVERRIDES_                                                                                            \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Woverride-init\"")                               \
        _Pragma("GCC diagnostic ignored \"-Woverride-init-side-effects\"")                                             \
            _Pragma("GCC diagnostic ignored \"-Wshadow\"")
#define MR_END_OVERRIDES_ _Pragma("GCC diagnostic pop")
#endif
#define MR_WITH_OPTIONS_(call, type, ...)                                                                              \
    __extension__({                                                                                                    \
        MR_ALLOW_OVERRIDES_ type options_ = {__VA_ARGS__};                                                             \
        MR_END_OVERRIDES_ call;                                                                                        \
    })
#define MR_OPTIONS_(type, ...) ((const type[]){MR_WITH_SIZE_(options_, type, __VA_ARGS__)})
/* Points to a struct of options: MR_OPTIONS(mr_iterator_options, .threads = 4). */
#define MR_OPTIONS(type, ...) ((const type[]){{.size = sizeof(type), __VA_ARGS__}})

#else

template <class... Items> char (&mr_count_(const Items &...items))[sizeof...(Items)];
template <class List, class Item, size_t count> List mr_list_(const Item (&items)[count])
{
    return List{items, static_cast<int32_t>(count)};
}
/* Options that are being set in an expression, and exist until its end. number is that of the MR_OPTIONS in a file; if
 * one is reached again while a value is computed, the inner options are above the outer ones. */
template <class Options, int number> struct mr_being_set_ {
    static mr_being_set_ *&top()
    {
        static thread_local mr_being_set_ *top = nullptr;
        return top;
    }
    Options options = {};
    mr_being_set_ *below = top();
    bool is_set = false;
    mr_being_set_()
    {
        top() = this;
    }
    mr_being_set_(const mr_being_set_ &) = delete;
    mr_being_set_ &operator=(const mr_being_set_ &) = delete;
    ~mr_being_set_()
    {
        if (!is_set) top() = below; /* after an exception */
    }
    static const Options *set()
    {
        mr_being_set_ *done = top();
        done->is_set = true;
        top() = done->below;
        return &done->options;
    }
};
template <class BeingSet> void mr_keep_(const BeingSet &)
{
}
#define MR_VALUE_(type, ...) (type{__VA_ARGS__})
#define MR_COUNT_(type, ...) sizeof(mr_count_(__VA_ARGS__))
#define MR_LIST_(type, item, ...) (mr_list_<type, item>({__VA_ARGS__}))

/* One expression, so that the arrays of lists in the options exist until the call returns. */
#define MR_WITH_OPTIONS_(call, type, ...)                                                                              \
    ([&] {                                                                                                             \
        type options_ = {};                                                                                            \
        return MR_SET_(options_, __VA_ARGS__), call;                                                                   \
    }())
/* Likewise until the end of the caller's expression, which may not be in a block of its own. */
#define MR_OPTIONS_(type, ...)                                                                                         \
    MR_OPTIONS_AT_((mr_being_set_<type, __COUNTER__>), type, .size = sizeof(type), __VA_ARGS__)
#define MR_OPTIONS_AT_(being_set, type, ...)                                                                           \
    (mr_keep_(MR_BARE_ being_set()), MR_SET_((MR_BARE_ being_set::top()->options), __VA_ARGS__),                       \
     MR_BARE_ being_set::set())
#define MR_BARE_(...) __VA_ARGS__
#define MR_OPTIONS(type, ...) MR_OPTIONS_(type, __VA_ARGS__)
/* MR_SET_(o, .a = 1, .b = 2) is (void)(o.a = 1), (void)(o.b = 2). */
#define MR_SET_(options, ...)                                                                                          \
    MR_SET_PICK_(__VA_ARGS__, MR_SET_32_, MR_SET_31_, MR_SET_30_, MR_SET_29_, MR_SET_28_, MR_SET_27_, MR_SET_26_,      \
                 MR_SET_25_, MR_SET_24_, MR_SET_23_, MR_SET_22_, MR_SET_21_, MR_SET_20_, MR_SET_19_, MR_SET_18_,       \
                 MR_SET_17_, MR_SET_16_, MR_SET_15_, MR_SET_14_, MR_SET_13_, MR_SET_12_, MR_SET_11_, MR_SET_10_,       \
                 MR_SET_9_, MR_SET_8_, MR_SET_7_, MR_SET_6_, MR_SET_5_, MR_SET_4_, MR_SET_3_, MR_SET_2_, MR_SET_1_,    \
                 0)(options, __VA_ARGS__)
#define MR_SET_PICK_(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21,   \
                     a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, pick, ...)                                 \
    pick
#define MR_SET_1_(o, a) (void)(o a)
#define MR_SET_2_(o, a, ...) MR_SET_1_(o, a), MR_SET_1_(o, __VA_ARGS__)
#define MR_SET_3_(o, a, ...) MR_SET_1_(o, a), MR_SET_2_(o, __VA_ARGS__)
#define MR_SET_4_(o, a, ...) MR_SET_1_(o, a), MR_SET_3_(o, __VA_ARGS__)
#define MR_SET_5_(o, a, ...) MR_SET_1_(o, a), MR_SET_4_(o, __VA_ARGS__)
#define MR_SET_6_(o, a, ...) MR_SET_1_(o, a), MR_SET_5_(o, __VA_ARGS__)
#define MR_SET_7_(o, a, ...) MR_SET_1_(o, a), MR_SET_6_(o, __VA_ARGS__)
#define MR_SET_8_(o, a, ...) MR_SET_1_(o, a), MR_SET_7_(o, __VA_ARGS__)
#define MR_SET_9_(o, a, ...) MR_SET_1_(o, a), MR_SET_8_(o, __VA_ARGS__)
#define MR_SET_10_(o, a, ...) MR_SET_1_(o, a), MR_SET_9_(o, __VA_ARGS__)
#define MR_SET_11_(o, a, ...) MR_SET_1_(o, a), MR_SET_10_(o, __VA_ARGS__)
#define MR_SET_12_(o, a, ...) MR_SET_1_(o, a), MR_SET_11_(o, __VA_ARGS__)
#define MR_SET_13_(o, a, ...) MR_SET_1_(o, a), MR_SET_12_(o, __VA_ARGS__)
#define MR_SET_14_(o, a, ...) MR_SET_1_(o, a), MR_SET_13_(o, __VA_ARGS__)
#define MR_SET_15_(o, a, ...) MR_SET_1_(o, a), MR_SET_14_(o, __VA_ARGS__)
#define MR_SET_16_(o, a, ...) MR_SET_1_(o, a), MR_SET_15_(o, __VA_ARGS__)
#define MR_SET_17_(o, a, ...) MR_SET_1_(o, a), MR_SET_16_(o, __VA_ARGS__)
#define MR_SET_18_(o, a, ...) MR_SET_1_(o, a), MR_SET_17_(o, __VA_ARGS__)
#define MR_SET_19_(o, a, ...) MR_SET_1_(o, a), MR_SET_18_(o, __VA_ARGS__)
#define MR_SET_20_(o, a, ...) MR_SET_1_(o, a), MR_SET_19_(o, __VA_ARGS__)
#define MR_SET_21_(o, a, ...) MR_SET_1_(o, a), MR_SET_20_(o, __VA_ARGS__)
#define MR_SET_22_(o, a, ...) MR_SET_1_(o, a), MR_SET_21_(o, __VA_ARGS__)
#define MR_SET_23_(o, a, ...) MR_SET_1_(o, a), MR_SET_22_(o, __VA_ARGS__)
#define MR_SET_24_(o, a, ...) MR_SET_1_(o, a), MR_SET_23_(o, __VA_ARGS__)
#define MR_SET_25_(o, a, ...) MR_SET_1_(o, a), MR_SET_24_(o, __VA_ARGS__)
#define MR_SET_26_(o, a, ...) MR_SET_1_(o, a), MR_SET_25_(o, __VA_ARGS__)
#define MR_SET_27_(o, a, ...) MR_SET_1_(o, a), MR_SET_26_(o, __VA_ARGS__)
#define MR_SET_28_(o, a, ...) MR_SET_1_(o, a), MR_SET_27_(o, __VA_ARGS__)
#define MR_SET_29_(o, a, ...) MR_SET_1_(o, a), MR_SET_28_(o, __VA_ARGS__)
#define MR_SET_30_(o, a, ...) MR_SET_1_(o, a), MR_SET_29_(o, __VA_ARGS__)
#define MR_SET_31_(o, a, ...) MR_SET_1_(o, a), MR_SET_30_(o, __VA_ARGS__)
#define MR_SET_32_(o, a, ...) MR_SET_1_(o, a), MR_SET_31_(o, __VA_ARGS__)

#endif

#define MR_WITH_SIZE_(call, type, ...) MR_WITH_OPTIONS_(call, type, .size = sizeof(type), __VA_ARGS__)

#ifdef __cplusplus
extern "C" {
#endif

/* MR_VERSION of the library that the program runs with. Static. */
MR_API const char *mr_version(void);

#ifdef __cplusplus
}
#endif
#endif
