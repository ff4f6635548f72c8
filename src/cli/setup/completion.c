/* pawl completion: scripts that complete commands, verbs, options and their words in a shell. They
 * are written from the table of commands. */
#include "cli/commands.h"

static enum cli_exit completion_bash(struct session *s);
static enum cli_exit completion_zsh(struct session *s);
static enum cli_exit completion_fish(struct session *s);

static const struct verb VERBS[] = {
    {.name = "bash",
     .about = "Print the completion script for bash",
     .notes = "For this shell: source <(pawl completion bash). For all: save it as "
              "/usr/share/bash-completion/completions/pawl",
     .local = true,
     .run = completion_bash},
    {.name = "zsh",
     .about = "Print the completion script for zsh",
     .notes = "For this shell: source <(pawl completion zsh). For all: save it as _pawl in a "
              "folder of $fpath",
     .local = true,
     .run = completion_zsh},
    {.name = "fish",
     .about = "Print the completion script for fish",
     .notes = "For this shell: pawl completion fish | source. For all: save it as "
              "~/.config/fish/completions/pawl.fish",
     .local = true,
     .run = completion_fish},
};

const struct command COMMAND_COMPLETION = {
    "completion", "Print a script that completes commands in your shell", VERBS, ARRAY_LEN(VERBS)};

/* --- what the shells share --- */

/* The options of a verb, list after list; NULL at the end. */
static const struct option *option_at(const struct verb *verb, size_t i)
{
    const struct option *const lists[] = {
        verb->options, verb->more_options, verb->store ? SESSION_STORE_OPTIONS : NULL,
        verb->local || verb->standalone != NULL ? NULL : SESSION_COMMON_OPTIONS};
    for (size_t l = 0; l < ARRAY_LEN(lists); l++)
        for (const struct option *o = lists[l]; o != NULL && o->name != NULL; o++)
            if (i-- == 0)
                return o;
    return NULL;
}

static bool takes_file(const struct option *option)
{
    return option->value != NULL && strstr(option->value, "FILE") != NULL;
}

/* "run_start" of "run" and "start"; a command without verbs has its own name only. */
static void put_key(const struct command *command, const struct verb *verb, char *out, size_t size)
{
    (void)snprintf(out, size, "%s%s%s", command->name, verb->name != NULL ? " " : "",
                   verb->name != NULL ? verb->name : "");
}

/* Calls each for every verb of every command. */
static void for_each_verb(void (*each)(const struct command *command, const struct verb *verb))
{
    const struct command *command;
    for (size_t c = 0; (command = command_at(c)) != NULL; c++)
        for (size_t v = 0; v < command->verb_count; v++)
            each(command, &command->verbs[v]);
}

static void print_words(const char *separated, char from)
{
    for (const char *p = separated; *p != '\0'; p++)
        putchar(*p == from ? ' ' : *p);
}

/* --- bash --- */

static void bash_verb(const struct command *command, const struct verb *verb)
{
    char key[64];
    const struct option *option;
    put_key(command, verb, key, sizeof(key));
    printf("    '%s') options='", key);
    for (size_t i = 0; (option = option_at(verb, i)) != NULL; i++)
        printf("--%s ", option->name);
    printf("--help' ;;\n");
}

/* One case for each option whose values are known. */
static void bash_values(const struct command *command, const struct verb *verb)
{
    char key[64];
    const struct option *option;
    put_key(command, verb, key, sizeof(key));
    for (size_t i = 0; (option = option_at(verb, i)) != NULL; i++) {
        if (option->kind != OPTION_CHOICE)
            continue;
        printf("    '%s --%s') words='", key, option->name);
        print_words(option->choices, '|');
        printf("' ;;\n");
    }
}

static void bash_commands(void)
{
    const struct command *command;
    fputs("    '') words='", stdout);
    for (size_t c = 0; (command = command_at(c)) != NULL; c++)
        printf("%s ", command->name);
    fputs("' ;;\n", stdout);
    for (size_t c = 0; (command = command_at(c)) != NULL; c++) {
        if (command->verbs[0].name == NULL)
            continue;
        printf("    '%s') words='", command->name);
        for (size_t v = 0; v < command->verb_count; v++)
            printf("%.*s ", (int)strcspn(command->verbs[v].name, " "), command->verbs[v].name);
        fputs("' ;;\n", stdout);
    }
}

/* Second words of verbs such as `entity type set`. */
static void bash_second_words(const struct command *command, const struct verb *verb)
{
    const char *space = verb->name != NULL ? strchr(verb->name, ' ') : NULL;
    if (space != NULL)
        printf("    '%s %.*s') words=\"$words %s\" ;;&\n", command->name, (int)(space - verb->name),
               verb->name, space + 1);
}

static enum cli_exit completion_bash(struct session *s)
{
    (void)s;
    fputs("# bash completion for pawl\n"
          "_pawl() {\n"
          "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
          "    local key='' words='' options='' i\n"
          "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
          "        [[ ${COMP_WORDS[i]} == -* ]] && break\n"
          "        key+=\"${key:+ }${COMP_WORDS[i]}\"\n"
          "    done\n"
          "    while :; do\n"
          "    case $key in\n",
          stdout);
    for_each_verb(bash_verb);
    fputs("    esac\n"
          "    [[ -n $options || $key != *' '* ]] && break\n"
          "    key=${key% *}\n"
          "    done\n"
          "    case \"$key $previous\" in\n",
          stdout);
    for_each_verb(bash_values);
    fputs("    esac\n"
          "    if [[ -n $words ]]; then\n"
          "        COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
          "        return\n"
          "    fi\n"
          "    if [[ $current == -* ]]; then\n"
          "        COMPREPLY=($(compgen -W \"$options\" -- \"$current\"))\n"
          "        return\n"
          "    fi\n"
          "    key=''\n"
          "    for ((i = 1; i < COMP_CWORD; i++)); do key+=\"${key:+ }${COMP_WORDS[i]}\"; done\n"
          "    case $key in\n",
          stdout);
    bash_commands();
    for_each_verb(bash_second_words);
    fputs("    esac\n"
          "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
          "    [[ -n $words ]] || COMPREPLY=($(compgen -f -- \"$current\"))\n"
          "}\n"
          "complete -o filenames -F _pawl pawl\n",
          stdout);
    return CLI_DONE;
}

/* --- zsh --- */

/* Quotes for single quotes, and without what _describe and _arguments read. */
static void zsh_text(const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '\'')
            fputs("'\\''", stdout);
        else if (*p == '[' || *p == ']')
            putchar(*p == '[' ? '(' : ')');
        else if (*p == ':')
            fputs("\\:", stdout);
        else
            putchar(*p);
    }
}

static void zsh_option(const struct option *option)
{
    printf(" '%s--%s", option->many ? "*" : "", option->name);
    putchar('[');
    zsh_text(option->help);
    putchar(']');
    if (option->kind == OPTION_CHOICE) {
        printf(":%s:(", option->name);
        print_words(option->choices, '|');
        putchar(')');
    } else if (option->kind != OPTION_SWITCH) {
        printf(":%s:%s", option->name, takes_file(option) ? "_files" : "");
    }
    putchar('\'');
}

static void zsh_verb(const struct command *command, const struct verb *verb)
{
    char key[64];
    const struct option *option;
    put_key(command, verb, key, sizeof(key));
    printf("    '%s') _arguments", key);
    for (size_t i = 0; (option = option_at(verb, i)) != NULL; i++)
        zsh_option(option);
    fputs(" '--help[Print help]' '*:file:_files'; return ;;\n", stdout);
}

static void zsh_verbs_of(const struct command *command)
{
    if (command->verbs[0].name == NULL)
        return;
    printf("    '%s') list=(", command->name);
    for (size_t v = 0; v < command->verb_count; v++) {
        putchar('\'');
        printf("%.*s:", (int)strcspn(command->verbs[v].name, " "), command->verbs[v].name);
        zsh_text(command->verbs[v].about);
        fputs("' ", stdout);
    }
    fputs(") ;;\n", stdout);
}

static void zsh_second_words(const struct command *command, const struct verb *verb)
{
    const char *space = verb->name != NULL ? strchr(verb->name, ' ') : NULL;
    if (space == NULL)
        return;
    printf("    [[ $key == '%s %.*s' ]] && list+=('%s:", command->name, (int)(space - verb->name),
           verb->name, space + 1);
    zsh_text(verb->about);
    fputs("')\n", stdout);
}

static enum cli_exit completion_zsh(struct session *s)
{
    const struct command *command;
    (void)s;
    fputs("#compdef pawl\n"
          "_pawl() {\n"
          "    local key='' i\n"
          "    local -a list\n"
          "    for ((i = 2; i < CURRENT; i++)); do\n"
          "        [[ ${words[i]} == -* ]] && break\n"
          "        key+=\"${key:+ }${words[i]}\"\n"
          "    done\n"
          "    case $key in\n"
          "    '') list=(",
          stdout);
    for (size_t c = 0; (command = command_at(c)) != NULL; c++) {
        printf("'%s:", command->name);
        zsh_text(command->about);
        fputs("' ", stdout);
    }
    fputs(") ;;\n", stdout);
    for (size_t c = 0; (command = command_at(c)) != NULL; c++)
        zsh_verbs_of(command);
    fputs("    esac\n", stdout);
    for_each_verb(zsh_second_words);
    fputs("    if (( $#list )); then _describe command list; return; fi\n"
          "    while :; do\n"
          "    case $key in\n",
          stdout);
    for_each_verb(zsh_verb);
    fputs("    esac\n"
          "    [[ $key == *' '* ]] || break\n"
          "    key=${key% *}\n"
          "    done\n"
          "}\n"
          "if [ \"$funcstack[1]\" = _pawl ]; then _pawl \"$@\"; else compdef _pawl pawl; fi\n",
          stdout);
    return CLI_DONE;
}

/* --- fish --- */

static void fish_text(const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '\'' || *p == '\\')
            putchar('\\');
        putchar(*p);
    }
}

static void fish_verb(const struct command *command, const struct verb *verb)
{
    char key[64];
    const struct option *option;
    put_key(command, verb, key, sizeof(key));
    for (size_t i = 0; (option = option_at(verb, i)) != NULL; i++) {
        printf("complete -c pawl -n '__pawl_is %s' -l %s", key, option->name);
        if (option->kind == OPTION_CHOICE) {
            fputs(" -xa '", stdout);
            print_words(option->choices, '|');
            putchar('\'');
        } else if (option->kind != OPTION_SWITCH) {
            fputs(takes_file(option) ? " -r" : " -x", stdout);
        }
        fputs(" -d '", stdout);
        fish_text(option->help);
        fputs("'\n", stdout);
    }
}

/* Offers a verb after its command, or its second word after its first. */
static void fish_offer(const struct command *command, const struct verb *verb)
{
    if (verb->name == NULL)
        return;
    size_t first = strcspn(verb->name, " ");
    printf("complete -c pawl -n '__pawl_after %s' -fa '%.*s' -d '", command->name, (int)first,
           verb->name);
    fish_text(verb->about);
    fputs("'\n", stdout);
    if (verb->name[first] == '\0')
        return;
    printf("complete -c pawl -n '__pawl_after %s %.*s' -fa '%s' -d '", command->name, (int)first,
           verb->name, verb->name + first + 1);
    fish_text(verb->about);
    fputs("'\n", stdout);
}

static enum cli_exit completion_fish(struct session *s)
{
    const struct command *command;
    (void)s;
    fputs("# fish completion for pawl\n"
          "function __pawl_words\n"
          "    for word in (commandline -opc)[2..-1]\n"
          "        string match -q -- '-*' $word; and break\n"
          "        echo $word\n"
          "    end\n"
          "end\n"
          "function __pawl_after\n"
          "    set -l have (string join ' ' (__pawl_words))\n"
          "    test \"$have\" = \"$argv\"\n"
          "end\n"
          "function __pawl_is\n"
          "    set -l words (__pawl_words)\n"
          "    set -l have (string join ' ' $words[1..(count $argv)])\n"
          "    test \"$have\" = \"$argv\"\n"
          "end\n",
          stdout);
    for (size_t c = 0; (command = command_at(c)) != NULL; c++) {
        printf("complete -c pawl -n '__pawl_after' -fa %s -d '", command->name);
        fish_text(command->about);
        fputs("'\n", stdout);
    }
    for_each_verb(fish_offer);
    for_each_verb(fish_verb);
    return CLI_DONE;
}
