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
        end_by(number);
    } else {
        came = number;
    }
}

void interrupt_install(const char *text)
{
    static const int numbers[] = {SIGINT, SIGTERM};
    message = text;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        struct sigaction before, action = {.sa_handler = take, .sa_flags = SA_RESTART};
        /* A signal that the parent process ignores stays ignored, as under nohup. */
        if (sigaction(numbers[i], nullptr, &before) == 0 && before.sa_handler != SIG_IGN)
            (void)sigaction(numbers[i], &action, nullptr);
    }
}

void interrupt_defer(void)
{
    message = nullptr;
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
