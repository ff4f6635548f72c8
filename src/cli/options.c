/* Reading flags against the lists of known ones. */
#include "cli/options.h"

static bool parse_flag(struct options *o, int argc, char **argv, int *at);
static bool check_number(const struct flag *flag, const char *value);
static bool check_required(const struct options *o);
static const struct flag *find_flag(const struct options *o, struct str name);

bool options_parse(struct options *o, int argc, char **argv, int from)
{
    bool flags_over = false;
    for (int i = from; i < argc; i++) {
        struct str word = str_of(argv[i]);
        if (!flags_over && str_is(word, "--") && o->takes_command) {
            o->command = i + 1 < argc ? &argv[i + 1] : NULL;
            break;
        } else if (!flags_over && str_is(word, "--")) {
            flags_over = true;
        } else if (!flags_over && (str_is(word, "--help") || str_is(word, "-h"))) {
            o->help = true;
            return true;
        } else if (!flags_over && word.len > 1 && word.ptr[0] == '-') {
            if (!parse_flag(o, argc, argv, &i))
                return false;
        } else if (o->arg_count < OPTIONS_ARGS_MAX) {
            o->args[o->arg_count++] = argv[i];
        } else {
            fprintf(stderr, "pawl: one argument too many: %s\n", argv[i]);
            return false;
        }
    }
    return check_required(o);
}

const struct flag *options_flag(const struct options *o, const char *name)
{
    const struct flag *flag = find_flag(o, str_of(name));
    assert(flag != NULL);
    return flag;
}

const char *options_text(const struct options *o, const char *name)
{
    const struct flag *flag = options_flag(o, name);
    for (size_t i = o->given_count; i > 0; i--)
        if (o->given[i - 1].flag == flag)
            return o->given[i - 1].value;
    return NULL;
}

bool options_has(const struct options *o, const char *name)
{
    return options_text(o, name) != NULL;
}

int64_t options_number(const struct options *o, const char *name, int64_t fallback)
{
    assert(options_flag(o, name)->number);
    int64_t number = fallback;
    const char *value = options_text(o, name);
    return value != NULL && str_to_i64(str_of(value), &number) ? number : fallback;
}

const char *options_text_or_env(const struct options *o, const char *name, const char *variable)
{
    const char *value = options_text(o, name);
    if (value == NULL)
        value = getenv(variable);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

const char *options_next(const struct options *o, const char *name, size_t *at)
{
    const struct flag *flag = options_flag(o, name);
    assert(flag->many);
    while (*at < o->given_count) {
        size_t i = (*at)++;
        if (o->given[i].flag == flag)
            return o->given[i].value;
    }
    return NULL;
}

void flags_help(FILE *out, const struct flag *list)
{
    for (const struct flag *f = list; f != NULL && f->name != NULL; f++) {
        int width = fprintf(out, "  --%s%s%s", f->name, f->value != NULL ? " " : "",
                            f->value != NULL ? f->value : "");
        fprintf(out, "%*s%s\n", MAX(2, 34 - width), "", f->help);
    }
}

void flags_usage(FILE *out, const struct flag *list)
{
    for (const struct flag *f = list; f != NULL && f->name != NULL; f++)
        fprintf(out, " %s--%s%s%s%s%s", f->required ? "" : "[", f->name,
                f->value != NULL ? " " : "", f->value != NULL ? f->value : "",
                f->required ? "" : "]", f->many ? "..." : "");
}

/* --- one flag --- */

static bool parse_flag(struct options *o, int argc, char **argv, int *at)
{
    const char *word = argv[*at];
    struct str name = str_of(word), value = STR_NONE;
    bool joined = str_cut(str_of(word), '=', &name, &value);
    const struct flag *flag = NULL;
    if (str_starts_with(name, STR("--")))
        flag = find_flag(o, (struct str){name.ptr + 2, name.len - 2});
    if (flag == NULL) {
        fprintf(stderr, "pawl: unknown flag %.*s\n", STR_ARG(name));
        return false;
    }
    const char *text = joined ? value.ptr : "";
    if (flag->value == NULL && joined) {
        fprintf(stderr, "pawl: --%s takes no value\n", flag->name);
        return false;
    }
    if (flag->value != NULL && !joined) {
        if (*at + 1 >= argc) {
            fprintf(stderr, "pawl: --%s needs a value\n", flag->name);
            return false;
        }
        text = argv[++*at];
    }
    if (flag->number && !check_number(flag, text))
        return false;
    if (o->given_count == OPTIONS_GIVEN_MAX) {
        fprintf(stderr, "pawl: more than %d flags\n", OPTIONS_GIVEN_MAX);
        return false;
    }
    o->given[o->given_count].flag = flag;
    o->given[o->given_count++].value = text;
    return true;
}

static bool check_number(const struct flag *flag, const char *value)
{
    int64_t number = 0;
    int64_t max = flag->max != 0 ? flag->max : INT64_MAX;
    if (flag->word != NULL && str_is(str_of(value), flag->word))
        return true;
    if (str_to_i64(str_of(value), &number) && number >= flag->min && number <= max)
        return true;
    fprintf(stderr, "pawl: --%s must be a whole number, at least %lld", flag->name,
            (long long)flag->min);
    if (flag->max != 0)
        fprintf(stderr, " and at most %lld", (long long)flag->max);
    fprintf(stderr, "%s%s\n", flag->word != NULL ? ", or " : "",
            flag->word != NULL ? flag->word : "");
    return false;
}

static bool check_required(const struct options *o)
{
    for (size_t l = 0; l < OPTIONS_LISTS_MAX; l++)
        for (const struct flag *f = o->lists[l]; f != NULL && f->name != NULL; f++)
            if (f->required && !options_has(o, f->name)) {
                fprintf(stderr, "pawl: --%s is needed\n", f->name);
                return false;
            }
    return true;
}

static const struct flag *find_flag(const struct options *o, struct str name)
{
    for (size_t l = 0; l < OPTIONS_LISTS_MAX; l++)
        for (const struct flag *f = o->lists[l]; f != NULL && f->name != NULL; f++)
            if (str_is(name, f->name))
                return f;
    return NULL;
}
