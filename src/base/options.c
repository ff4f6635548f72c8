/* Reading a command line against tables of options. */
#include "base/options.h"

#include "base/suggest.h"

static enum err parse_option(struct options *o, int argc, char **argv, int *at, struct problem *p);
static enum err parse_argument(struct options *o, const char *value, struct problem *p);
static enum err read_environment(struct options *o, struct problem *p);
static enum err check_complete(const struct options *o, struct problem *p);
static enum err unknown_option(const struct options *o, struct str name, struct problem *p);
static enum err add_value(struct options *o, const struct option *option, const char *value,
                          bool is_given, struct problem *p);
static enum err check_value(const struct option *option, const char *value, bool is_given,
                            struct problem *p);
static const struct option *find(const struct options *o, struct str name);
static bool next_word(struct str *rest, char separator, struct str *ret);

enum err options_parse(struct options *o, int argc, char **argv, int from, struct problem *p)
{
    bool options_end = false;
    for (int i = from; i < argc; i++) {
        struct str word = str_of(argv[i]);
        enum err e = ERR_OK;
        if (options_end || word.len < 2 || word.ptr[0] != '-') {
            e = parse_argument(o, argv[i], p);
        } else if (str_is(word, "--help") || str_is(word, "-h")) {
            o->help = true;
            return ERR_OK;
        } else if (!str_is(word, "--")) {
            e = parse_option(o, argc, argv, &i, p);
        } else if (o->command != NULL) {
            o->argv = i + 1 < argc ? &argv[i + 1] : NULL;
            break;
        } else {
            options_end = true;
        }
        if (e != ERR_OK)
            return e;
    }
    enum err e = read_environment(o, p);
    return e == ERR_OK ? check_complete(o, p) : e;
}

/* --- values --- */

const struct option *options_find(const struct options *o, const char *name)
{
    const struct option *option = find(o, str_of(name));
    assert(option != NULL);
    return option;
}

/* The place of its last value among those read; value_count: there is none. */
static size_t last_value(const struct options *o, const struct option *option)
{
    for (size_t i = o->value_count; i > 0; i--)
        if (o->values[i - 1].option == option)
            return i - 1;
    return o->value_count;
}

const char *options_value(const struct options *o, const struct option *option)
{
    size_t at = last_value(o, option);
    return at < o->value_count ? o->values[at].value : option->fallback;
}

const char *options_text(const struct options *o, const char *name)
{
    return options_value(o, options_find(o, name));
}

bool options_has(const struct options *o, const char *name)
{
    return options_text(o, name) != NULL;
}

int64_t options_number(const struct options *o, const char *name, int64_t otherwise)
{
    assert(options_find(o, name)->kind == OPTION_NUMBER);
    int64_t number;
    const char *value = options_text(o, name);
    return value != NULL && str_to_i64(str_of(value), &number) ? number : otherwise;
}

bool options_is_given(const struct options *o, const char *name)
{
    size_t at = last_value(o, options_find(o, name));
    return at < o->value_count && o->values[at].is_given;
}

const char *options_next(const struct options *o, const char *name, size_t *at)
{
    const struct option *option = options_find(o, name);
    assert(option->many);
    while (*at < o->value_count) {
        size_t i = (*at)++;
        if (o->values[i].option == option)
            return o->values[i].value;
    }
    return NULL;
}

/* --- parsing --- */

static const struct option *find(const struct options *o, struct str name)
{
    for (size_t l = 0; l < OPTIONS_LISTS_MAX; l++)
        for (const struct option *f = o->lists[l]; f != NULL && f->name != NULL; f++)
            if (str_is(name, f->name))
                return f;
    return NULL;
}

static enum err parse_option(struct options *o, int argc, char **argv, int *at, struct problem *p)
{
    const char *word = argv[*at];
    struct str name, value = STR_NONE;
    bool joined = str_cut(str_of(word), '=', &name, &value);
    const struct option *option = NULL;
    if (str_starts_with(name, STR("--")))
        option = find(o, (struct str){name.ptr + 2, name.len - 2});
    if (option == NULL)
        return unknown_option(o, name, p);
    if (option->kind == OPTION_SWITCH) {
        if (joined)
            return problem_set(p, ERR_FIELD_INVALID, "--%s takes no value", option->name);
        return add_value(o, option, "1", true, p);
    }
    if (!joined && *at + 1 >= argc)
        return problem_set(p, ERR_FIELD_INVALID, "Missing value: --%s %s", option->name,
                           option->value != NULL ? option->value : option->choices);
    return add_value(o, option, joined ? value.ptr : argv[++*at], true, p);
}

static enum err unknown_option(const struct options *o, struct str name, struct problem *p)
{
    size_t dashes = 0;
    while (dashes < MIN(name.len, (size_t)2) && name.ptr[dashes] == '-')
        dashes++;
    struct suggestion s = suggest_for((struct str){name.ptr + dashes, name.len - dashes});
    for (size_t l = 0; l < OPTIONS_LISTS_MAX; l++)
        for (const struct option *f = o->lists[l]; f != NULL && f->name != NULL; f++)
            suggest_consider(&s, str_of(f->name));
    suggest_consider(&s, STR("help"));
    if (s.best.len > 0)
        return problem_set(p, ERR_FIELD_INVALID, "Unknown option %.*s. Did you mean --%.*s?",
                           STR_ARG(name), STR_ARG(s.best));
    return problem_set(p, ERR_FIELD_INVALID, "Unknown option %.*s", STR_ARG(name));
}

static enum err parse_argument(struct options *o, const char *value, struct problem *p)
{
    struct str rest = str_of(o->arguments), name;
    for (size_t i = 0; next_word(&rest, ' ', &name); i++) {
        assert(i < OPTIONS_ARGUMENTS_MAX);
        if (o->args[i] == NULL) {
            o->args[i] = value;
            return ERR_OK;
        }
    }
    return problem_set(p, ERR_FIELD_INVALID, "Unexpected argument: %s", value);
}

static enum err read_environment(struct options *o, struct problem *p)
{
    for (size_t l = 0; l < OPTIONS_LISTS_MAX; l++)
        for (const struct option *f = o->lists[l]; f != NULL && f->name != NULL; f++) {
            struct str value = str_of(f->variable != NULL ? getenv(f->variable) : NULL);
            bool is_off = f->kind == OPTION_SWITCH && str_is(value, "0");
            if (value.len == 0 || is_off || last_value(o, f) < o->value_count)
                continue;
            enum err e = add_value(o, f, f->kind == OPTION_SWITCH ? "1" : value.ptr, false, p);
            if (e != ERR_OK)
                return e;
        }
    return ERR_OK;
}

static enum err check_complete(const struct options *o, struct problem *p)
{
    struct str rest = str_of(o->arguments), name;
    for (size_t i = 0; next_word(&rest, ' ', &name); i++)
        if (o->args[i] == NULL && name.ptr[0] != '[')
            return problem_set(p, ERR_FIELD_INVALID, "Missing argument: %.*s", STR_ARG(name));
    for (size_t l = 0; l < OPTIONS_LISTS_MAX; l++)
        for (const struct option *f = o->lists[l]; f != NULL && f->name != NULL; f++)
            if (f->required && options_value(o, f) == NULL)
                return problem_set(p, ERR_FIELD_INVALID, "Missing option: --%s %s", f->name,
                                   f->value != NULL ? f->value : f->choices);
    if (o->command != NULL && o->argv == NULL)
        return problem_set(p, ERR_FIELD_INVALID, "Missing command: end with -- %s", o->command);
    return ERR_OK;
}

/* The next non-empty word of a list; false at its end. */
static bool next_word(struct str *rest, char separator, struct str *ret)
{
    while (rest->len > 0) {
        struct str all = *rest;
        *rest = STR_NONE;
        (void)str_cut(all, separator, ret, rest);
        if (ret->len > 0)
            return true;
    }
    return false;
}

/* --- checking values --- */

static enum err add_value(struct options *o, const struct option *option, const char *value,
                          bool is_given, struct problem *p)
{
    enum err e = check_value(option, value, is_given, p);
    if (e != ERR_OK)
        return e;
    if (o->value_count == OPTIONS_VALUES_MAX)
        return problem_set(p, ERR_FIELD_INVALID, "More than %d options", OPTIONS_VALUES_MAX);
    o->values[o->value_count].option = option;
    o->values[o->value_count].is_given = is_given;
    o->values[o->value_count++].value = value;
    return ERR_OK;
}

/* " of seconds from 1 to 5, or none" */
static void describe_number(const struct option *option, char *out, size_t size)
{
    char range[64];
    const char *unit = option->unit, *word = option->word;
    if (option->max != 0)
        (void)snprintf(range, sizeof(range), " from %lld to %lld", (long long)option->min,
                       (long long)option->max);
    else
        (void)snprintf(range, sizeof(range), ", %lld or more", (long long)option->min);
    (void)snprintf(out, size, "%s%s%s%s%s", unit != NULL ? " of " : "", unit != NULL ? unit : "",
                   range, word != NULL ? ", or " : "", word != NULL ? word : "");
}

static enum err check_number(const struct option *option, const char *source, const char *value,
                             struct problem *p)
{
    int64_t number = 0;
    int64_t max = option->max != 0 ? option->max : INT64_MAX;
    char allowed[192];
    if (option->word != NULL && str_is(str_of(value), option->word))
        return ERR_OK;
    if (str_to_i64(str_of(value), &number) && number >= option->min && number <= max)
        return ERR_OK;
    describe_number(option, allowed, sizeof(allowed));
    return problem_set(p, ERR_FIELD_INVALID, "%s must be a whole number%s, not \"%s\"", source,
                       allowed, value);
}

/* "a, b, c" */
static void list_choices(const char *choices, char *out, size_t size)
{
    struct str rest = str_of(choices), word;
    size_t len = 0;
    out[0] = '\0';
    while (next_word(&rest, '|', &word) && len < size)
        len +=
            (size_t)snprintf(out + len, size - len, "%s%.*s", len > 0 ? ", " : "", STR_ARG(word));
}

static enum err check_choice(const struct option *option, const char *source, const char *value,
                             struct problem *p)
{
    char allowed[256];
    struct str rest = str_of(option->choices), word;
    struct suggestion s = suggest_for(str_of(value));
    while (next_word(&rest, '|', &word)) {
        if (str_is(word, value))
            return ERR_OK;
        suggest_consider(&s, word);
    }
    if (s.best.len > 0)
        return problem_set(p, ERR_FIELD_INVALID, "Unknown %s \"%s\". Did you mean \"%.*s\"?",
                           source, value, STR_ARG(s.best));
    list_choices(option->choices, allowed, sizeof(allowed));
    return problem_set(p, ERR_FIELD_INVALID, "Unknown %s \"%s\". Allowed: %s", source, value,
                       allowed);
}

static enum err check_value(const struct option *option, const char *value, bool is_given,
                            struct problem *p)
{
    char source[80];
    bool is_choice = option->kind == OPTION_CHOICE;
    (void)snprintf(source, sizeof(source), "%s%s", is_given && !is_choice ? "--" : "",
                   is_given ? option->name : option->variable);
    for (char *c = source; is_given && is_choice && *c != '\0'; c++)
        *c = *c == '-' ? ' ' : *c; /* Unknown log level "loud" */
    if (is_choice)
        return check_choice(option, source, value, p);
    return option->kind == OPTION_NUMBER ? check_number(option, source, value, p) : ERR_OK;
}

/* --- help --- */

static const char *value_name(const struct option *option)
{
    if (option->kind == OPTION_SWITCH)
        return NULL;
    return option->value != NULL ? option->value : option->choices;
}

void options_print_usage(FILE *out, const struct options *o)
{
    if (o->arguments != NULL)
        fprintf(out, " %s", o->arguments);
    for (size_t l = 0; l < OPTIONS_LISTS_MAX; l++)
        for (const struct option *f = o->lists[l]; f != NULL && f->name != NULL; f++)
            if (f->required)
                fprintf(out, " --%s %s", f->name, value_name(f));
    fputs(" [OPTIONS]", out);
    if (o->command != NULL)
        fprintf(out, " -- %s", o->command);
    fputc('\n', out);
}

void options_print_description(FILE *out, int column, const char *text)
{
    struct str rest = str_of(text), word;
    if (column + 2 > OPTIONS_HELP_COLUMN) {
        fputc('\n', out);
        column = 0;
    }
    column += fprintf(out, "%*s", OPTIONS_HELP_COLUMN - column, "");
    for (bool first = true; next_word(&rest, ' ', &word); first = false) {
        if (!first && column + 1 + (int)word.len > OPTIONS_HELP_WIDTH) {
            column = fprintf(out, "\n%*s", OPTIONS_HELP_COLUMN, "") - 1;
            first = true;
        }
        column += fprintf(out, "%s%.*s", first ? "" : " ", STR_ARG(word));
    }
    fputc('\n', out);
}

enum { ITEM_INDENT = 9 }; /* of the text of an item */

/* Where the text is printed: the column, and the indent of further lines. */
struct fill {
    FILE *out;
    int column;
    int indent;
};

static void end_line(struct fill *f)
{
    if (f->column > 0)
        fputc('\n', f->out);
    f->column = 0;
}

static void fill_words(struct fill *f, struct str words)
{
    struct str word;
    while (next_word(&words, ' ', &word)) {
        if (f->column > f->indent && f->column + 1 + (int)word.len > OPTIONS_HELP_WIDTH)
            end_line(f);
        if (f->column == 0)
            f->column = fprintf(f->out, "%*s", f->indent, "");
        f->column += fprintf(f->out, "%s%.*s", f->column > f->indent ? " " : "", STR_ARG(word));
    }
}

static void begin_item(struct fill *f, struct str *line)
{
    struct str word;
    end_line(f);
    (void)next_word(line, ' ', &word);
    f->column = f->indent = ITEM_INDENT;
    fprintf(f->out, "  %-*.*s", ITEM_INDENT - 2, STR_ARG(word));
}

void options_print_text(FILE *out, const char *text)
{
    struct fill f = {.out = out};
    struct str rest = str_of(text), line;
    for (bool more = true; more;) {
        more = str_cut(rest, '\n', &line, &rest);
        bool indented = str_starts_with(line, STR("  "));
        bool item = indented && !str_starts_with(line, STR("   "));
        if (item)
            begin_item(&f, &line);
        else if (line.len == 0 || (!indented && f.indent > 0)) {
            end_line(&f);
            f.indent = 0;
        }
        if (line.len == 0 && more && rest.len > 0)
            fputc('\n', out);
        fill_words(&f, line);
    }
    end_line(&f);
}

/* "Help (a, b; required; default x) [VARIABLE]" */
static void describe(const struct option *option, char *out, size_t size)
{
    char choices[256] = "", notes[400] = "";
    if (option->kind == OPTION_CHOICE && option->value != NULL)
        list_choices(option->choices, choices, sizeof(choices));
    const char *const parts[][2] = {
        {choices, ""},
        {option->required ? "required" : "", ""},
        {option->many ? "repeatable" : "", ""},
        {option->fallback != NULL ? "default " : "",
         option->fallback != NULL ? option->fallback : ""},
    };
    size_t len = 0;
    for (size_t i = 0; i < ARRAY_LEN(parts) && len < sizeof(notes); i++)
        if (parts[i][0][0] != '\0')
            len += (size_t)snprintf(notes + len, sizeof(notes) - len, "%s%s%s", len > 0 ? "; " : "",
                                    parts[i][0], parts[i][1]);
    (void)snprintf(out, size, "%s%s%s%s%s%s%s", option->help, len > 0 ? " (" : "", notes,
                   len > 0 ? ")" : "", option->variable != NULL ? " [" : "",
                   option->variable != NULL ? option->variable : "",
                   option->variable != NULL ? "]" : "");
}

void options_print_help(FILE *out, const struct option *list)
{
    for (const struct option *f = list; f != NULL && f->name != NULL; f++) {
        char description[1024];
        const char *value = value_name(f);
        int column = fprintf(out, "  --%s%s%s", f->name, value != NULL ? " " : "",
                             value != NULL ? value : "");
        describe(f, description, sizeof(description));
        options_print_description(out, column, description);
    }
}
