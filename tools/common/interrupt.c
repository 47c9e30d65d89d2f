/* See interrupt.h. */
#include "common/interrupt.h"

#include <assert.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *_Atomic message;
static _Atomic int came;

/* Restores the default action and raises the signal again, so that the parent process sees what ended the program. */
static void end_by(int number)
{
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static void take(int number)
{
    const char *text = message;
    if (text) {
        (void)!write(STDERR_FILENO, text, strlen(text));
        end_by(number);
    } else if (came != 0) {
        /* The standard error may be the same closed pipe. */
        if (number != SIGPIPE) end_by(number);
    } else {
        came = number;
    }
}

/* A signal that the parent process ignores stays ignored, as under nohup. */
static void handle(int number)
{
    struct sigaction before, action = {.sa_handler = take, .sa_flags = SA_RESTART};
    if (sigaction(number, nullptr, &before) == 0 && before.sa_handler != SIG_IGN)
        (void)sigaction(number, &action, nullptr);
}

void interrupt_install(const char *text)
{
    message = text;
    handle(SIGINT);
    handle(SIGTERM);
    handle(SIGHUP);
}

void interrupt_defer(void)
{
    message = nullptr;
}

void interrupt_defer_pipe(void)
{
    interrupt_defer();
    handle(SIGPIPE);
}

int interrupt_signal(void)
{
    return came;
}

void interrupt_exit(void)
{
    int number = came;
    assert(number != 0);
    (void)fflush(stdout);
    (void)fflush(stderr);
    end_by(number);
    _exit(128 + number);
}
