/* A command that a user can paste into a shell: words are quoted, and long commands continue on the next line. */
#ifndef MR_TOOLS_GRAPH_RUN_COMMAND_H
#define MR_TOOLS_GRAPH_RUN_COMMAND_H

/* The command that is being printed. */
typedef struct command_line {
    int column;  /* that the next character has, from 0 */
    int columns; /* of the terminal */
} command_line;

/* Starts "    graph-run GRAPH". */
void command_begin(command_line *line, const char *graph);
/* Adds an option and its value, on one line if they fit. value: null: none */
void command_add(command_line *line, const char *option, const char *value);
/* Continues on the next line. */
void command_break(command_line *line);
void command_end(command_line *line);
/* The width of the terminal: of the environment variable COLUMNS, or of the standard output or error; else 80. */
int command_columns(void);

#endif
