/* The command line of the load generator; see load_options.h. */
#include "load_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define CONNECTIONS_MAX 4096 /* at 16 KiB each this stays well under 100 MiB */
#define SECONDS_MAX 36000.0  /* a window that is longer was mistyped */
#define REQUESTS_MAX 1e9     /* nobody waits for more */
#define RATE_MAX 1e6         /* more than one client thread can send */
#define WEIGHT_MAX 100

enum option_letter {
    OPT_PORT = 'p',
    OPT_CONNECTIONS = 'n',
    OPT_WARM = 'w',
    OPT_SECONDS = 's',
    OPT_RATE = 'R',
    OPT_SEED = 'r',
    OPT_REQUESTS = 'c',
    OPT_VALUES = 'v',
    OPT_BURST = 'B',
    OPT_NEXT = 'N',
    OPT_NAME = 'l',
    OPT_WEIGHT = 'g',
    OPT_METHOD = 'm',
    OPT_PATH = 'u',
    OPT_HEADER = 'h',
    OPT_BODY = 'b',
};

static const struct option KNOWN[] = {
    {"port", required_argument, NULL, OPT_PORT},
    {"connections", required_argument, NULL, OPT_CONNECTIONS},
    {"warm", required_argument, NULL, OPT_WARM},
    {"seconds", required_argument, NULL, OPT_SECONDS},
    {"rate", required_argument, NULL, OPT_RATE},
    {"seed", required_argument, NULL, OPT_SEED},
    {"requests", required_argument, NULL, OPT_REQUESTS},
    {"values", required_argument, NULL, OPT_VALUES},
    {"burst", no_argument, NULL, OPT_BURST},
    {"next", no_argument, NULL, OPT_NEXT},
    {"name", required_argument, NULL, OPT_NAME},
    {"weight", required_argument, NULL, OPT_WEIGHT},
    {"method", required_argument, NULL, OPT_METHOD},
    {"path", required_argument, NULL, OPT_PATH},
    {"header", required_argument, NULL, OPT_HEADER},
    {"body", required_argument, NULL, OPT_BODY},
    {NULL, 0, NULL, 0},
};

static const char USAGE[] =
    "usage: load --port P [--connections N] [--warm S] [--seconds S] [--rate R] [--requests N]\n"
    "            [--values FILE] [--seed N] [--burst] REQUEST [--next REQUEST]...\n"
    "  REQUEST: [--name X] [--weight N] [--method M] [--path X] [--header 'N: v']... [--body B]\n"
    "  in path, headers and body {u} is unique to the request, {c} the number of the connection\n"
    "  ({c100}: modulo 100), {n100} the number of the request modulo 100, {v} its line of the "
    "values file\n"
    "  without --rate: a closed loop; each connection sends when it has its reply\n"
    "  --rate: an open loop of R requests per second; latencies count from when one was due\n"
    "  --burst: all connections send at once, and again when the last reply is in\n"
    "  --requests: stops when so many are answered, if the window is not over before\n"
    "  --values: as many requests as the file has lines; all lines have one length\n"
    "  --next: another kind of request, mixed with the others by weight";

static double number_of(const char *name, double min, double max)
{
    char *end = NULL;
    double number = strtod(optarg, &end);
    if (end == optarg || *end != '\0' || !(number >= min && number <= max))
        die("--%s needs a number from %g to %g", name, min, max);
    return number;
}

static void next_spec(struct load_options *opt)
{
    static const struct request_spec PLAIN = {
        .name = "request", .weight = 1, .method = "GET", .path = "/"};
    if (opt->spec_count == LOAD_SPECS_MAX)
        die("more than %d kinds of requests", LOAD_SPECS_MAX);
    opt->specs[opt->spec_count++] = PLAIN;
}

static void add_header(struct request_spec *spec)
{
    if (spec->header_count == REQUEST_HEADERS_MAX)
        die("more than %d headers", REQUEST_HEADERS_MAX);
    spec->headers[spec->header_count++] = optarg;
}

/* Of the request that the command line is at; false if the option is none of a request. */
static bool take_request_option(int letter, struct load_options *opt)
{
    struct request_spec *spec = &opt->specs[opt->spec_count - 1];
    switch (letter) {
    case OPT_NAME:
        spec->name = optarg;
        return true;
    case OPT_WEIGHT:
        spec->weight = (unsigned)number_of("weight", 1, WEIGHT_MAX);
        return true;
    case OPT_METHOD:
        spec->method = optarg;
        return true;
    case OPT_PATH:
        spec->path = optarg;
        return true;
    case OPT_BODY:
        spec->body = optarg;
        return true;
    case OPT_HEADER:
        add_header(spec);
        return true;
    case OPT_NEXT:
        next_spec(opt);
        return true;
    default:
        return false;
    }
}

static bool take_option(int letter, struct load_options *opt)
{
    switch (letter) {
    case OPT_PORT:
        opt->port = (uint16_t)number_of("port", 1, 65535);
        return true;
    case OPT_CONNECTIONS:
        opt->connections = (size_t)number_of("connections", 1, CONNECTIONS_MAX);
        return true;
    case OPT_WARM:
        opt->warm_s = number_of("warm", 0, SECONDS_MAX);
        return true;
    case OPT_SECONDS:
        opt->measured_s = number_of("seconds", 0.001, SECONDS_MAX);
        return true;
    case OPT_RATE:
        opt->per_s = number_of("rate", 0.1, RATE_MAX);
        return true;
    case OPT_SEED:
        opt->seed = (uint64_t)number_of("seed", 0, 1e15);
        return true;
    case OPT_REQUESTS:
        opt->requests = (uint64_t)number_of("requests", 1, REQUESTS_MAX);
        return true;
    case OPT_VALUES:
        opt->values = request_values_read(optarg);
        return true;
    case OPT_BURST:
        opt->burst = true;
        return true;
    default:
        return take_request_option(letter, opt);
    }
}

static void check_together(const struct load_options *opt)
{
    if (opt->per_s > 0 && (opt->requests > 0 || opt->burst))
        die("--rate needs a window: not together with --requests, --values or --burst");
}

static void finish_spec(struct request_spec *spec)
{
    bool may_lack_body = strcmp(spec->method, "GET") == 0 || strcmp(spec->method, "HEAD") == 0;
    if (spec->body == NULL && !may_lack_body)
        spec->body = ""; /* a POST without a body still says that its length is 0 */
}

void load_options_parse(int argc, char **argv, struct load_options *ret_opt)
{
    struct load_options opt = {.connections = 64, .warm_s = 1, .measured_s = 5};
    bool wrong = false;
    /* Two runs against one server must not repeat keys, unless --seed asks for the same ones. */
    if (getrandom(&opt.seed, sizeof opt.seed, 0) != sizeof opt.seed)
        die("getrandom: %s", strerror(errno));
    next_spec(&opt);
    for (int letter; (letter = getopt_long(argc, argv, "", KNOWN, NULL)) != -1;)
        wrong = !take_option(letter, &opt) || wrong; /* getopt has said what is wrong */
    if (wrong || optind != argc || opt.port == 0)
        die("%s", USAGE);
    if (opt.values.count > 0 && (opt.requests == 0 || opt.requests > opt.values.count))
        opt.requests = opt.values.count;
    check_together(&opt);
    for (size_t i = 0; i < opt.spec_count; i++)
        finish_spec(&opt.specs[i]);
    *ret_opt = opt;
}
