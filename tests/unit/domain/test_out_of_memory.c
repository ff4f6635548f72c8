/* Every allocation fails once: what is read is then either understood or refused for want of
 * memory, never called wrong. */
#include "domain/parsed_definition.h"

#include "domain/entity/entity_answer.h"
#include "domain/expr/expr.h"
#include "domain/progress.h"
#include "domain/schema/regex.h"
#include "domain/schema/schema.h"
#include "fault_support/memory.h"

enum { ALLOCATIONS_MAX = 100000 };

/* Calls `attempt` with the 1st, 2nd, 3rd … allocation and all after it failing, until it gets by
 * without meeting one that fails. It ends with `wanted` or ERR_NO_MEMORY. */
static void sweep(enum err (*attempt)(void *ctx), void *ctx, enum err wanted)
{
    bool met = true;
    for (int64_t nth = 1; met; nth++) {
        assert_true(nth < ALLOCATIONS_MAX);
        memory_arm(nth);
        enum err e = attempt(ctx);
        met = memory_disarm();
        if (e != wanted && !(met && e == ERR_NO_MEMORY))
            fail_msg("allocation %d fails: %s", (int)nth, err_code(e));
    }
}

/* --- definitions --- */

static enum err parse_definition(void *ctx)
{
    struct problem p;
    struct definition *def = NULL;
    problem_init(&p);
    enum err e = definition_parse(ctx, STR("w"), &p, &def);
    if (e == ERR_OK)
        definition_free(def);
    problem_release(&p);
    return e;
}

static void assert_definition(const char *text, enum err wanted)
{
    struct json *json = json_value_of_tree(json_of(text));
    sweep(parse_definition, json, wanted);
    json_free(json);
}

static void a_definition_is_never_called_invalid_for_want_of_memory(void **state)
{
    (void)state;
    assert_definition("{'steps':[{'name':'a','type':'task','handler':'h'}]}", ERR_OK);
    assert_definition(
        "{'description':'all','input_schema':{'type':'object','properties':{'x':{'pattern':"
        "'^[a-z]+[0-9]{2,5}$'},'y':{'$ref':'#/$defs/n'}},'$defs':{'n':{'type':'integer'}}},"
        "'concurrency':[{'limit':3,'key':'${input.x}'}],'timeout_s':9,"
        "'steps':[{'name':'a','type':'task','handler':'h','input':{'v':'${input.x .. \\'!\\'}'},"
        "'compensate':{'handler':'undo'}},"
        "{'name':'b','type':'task','handler':'h','needs':['a'],'when':'steps.a.output.ok',"
        "'for_each':'input.list'},"
        "{'name':'c','type':'sleep','duration_ms':5,'needs':['a']},"
        "{'name':'d','type':'approval','prompt':'${input.x}','needs':['b','c'],'approvers':{'users'"
        ":['x'],'roles':["
        "'admin']}},{'name':'e','type':'wait_signal','signal':'go','needs':['d']},"
        "{'name':'f','type':'transform','output':{'l':['${steps.a.output}',1]},'needs':['e']}]}",
        ERR_OK);
}

static void the_faults_of_a_definition_are_told_or_memory_is_wanting(void **state)
{
    (void)state;
    assert_definition(
        "{'steps':[{'name':'a','type':'task','handler':'h','needs':['b'],'what':1},"
        "{'name':'b','type':'task','handler':'h','needs':['a'],'when':'1 +'},"
        "{'name':'b','type':'odd','input':{'x':'${)}'}}],'input_schema':{'type':'odd',"
        "'pattern':'(','properties':{'a/b~c':{'minLength':-1}}},'more':1}",
        ERR_DEFINITION_INVALID);
}

/* --- schemas --- */

struct checked {
    struct json *schema;
    struct json *value;
};

static enum err check_value(void *ctx)
{
    const struct checked *c = ctx;
    struct buf out;
    struct fault_list faults;
    struct work_budget work = {SCHEMA_WORK_MAX};
    buf_init(&out, 64 * KIB);
    fault_list_init(&faults, &out);
    enum schema_verdict verdict = schema_check_value(c->schema, c->value, &work, &faults);
    enum err e = verdict == SCHEMA_FITS ? ERR_OK : ERR_INPUT_INVALID;
    if (!buf_ok(&out))
        e = ERR_NO_MEMORY;
    fault_list_release(&faults);
    buf_release(&out);
    return e;
}

static void assert_value(const char *schema, const char *value, enum err wanted)
{
    struct checked c = {json_value_of_tree(json_of(schema)), json_value_of_tree(json_of(value))};
    sweep(check_value, &c, wanted);
    json_free(c.schema);
    json_free(c.value);
}

static void a_value_never_fits_or_misfits_for_want_of_memory(void **state)
{
    (void)state;
    static const char SCHEMA[] =
        "{'type':'object','required':['a'],'properties':{'a':{'type':'string','pattern':'^x+$'},"
        "'b':{'$ref':'#/$defs/list'},'c':{'enum':['u','v']},'d':{'const':{'k':1}},"
        "'e':{'anyOf':[{'type':'null'},{'type':'string'}]},'f':{'oneOf':[{'minimum':5},"
        "{'maximum':9}]},'g':{'not':{'type':'string'}}},"
        "'patternProperties':{'^p_':{'type':'integer'}},"
        "'additionalProperties':{'type':'boolean'},"
        "'$defs':{'list':{'type':'array','uniqueItems':true,'items':{'type':'integer'}}}}";
    assert_value(
        SCHEMA, "{'a':'xxx','b':[1,2,3],'c':'u','d':{'k':1},'e':null,'f':3,'g':1,'p_q':1,'z':true}",
        ERR_OK);
    assert_value(SCHEMA,
                 "{'a':'y','b':[1,1,'x'],'c':'w','d':{},'e':1,'f':7,'g':'s','p_q':'s','z':1}",
                 ERR_INPUT_INVALID);
    assert_value(SCHEMA, "{}", ERR_INPUT_INVALID);
}

static enum err compile_pattern(void *ctx)
{
    struct regex_fault fault;
    struct regex *r = regex_compile(str_of(ctx), &fault);
    if (r == NULL)
        return fault.why == NULL ? ERR_NO_MEMORY : ERR_FIELD_INVALID;
    struct work_budget work = {SCHEMA_WORK_MAX};
    bool found = regex_search(r, STR("zzabcabc-99\xC3\xA4"), &work);
    regex_free(r);
    return found ? ERR_OK : ERR_NOT_FOUND;
}

static void a_pattern_is_never_called_wrong_for_want_of_memory(void **state)
{
    (void)state;
    char good[] = "z*(abc|a[b-d]c){1,2}-\\d{2}[^\\x00-\\x7F\\s]$";
    char unicode[] = "\\p{L}\\P{N}|[\\p{Lu}\\w-]+?";
    char bad[] = "(a[b-";
    sweep(compile_pattern, good, ERR_OK);
    sweep(compile_pattern, unicode, ERR_OK);
    sweep(compile_pattern, bad, ERR_FIELD_INVALID);
}

/* --- expressions --- */

static enum err get_root(void *ctx, struct str root, struct str name, const struct json **ret)
{
    (void)name;
    if (str_is(root, "input"))
        *ret = ctx;
    return ERR_OK;
}

struct evaluated {
    struct json *template;
    struct json *input;
};

static enum err fill_template(void *ctx)
{
    const struct evaluated *v = ctx;
    struct expr_vars vars = {v->input, get_root};
    struct problem p;
    struct json *filled = NULL;
    struct expr *x = expr_new();
    if (x == NULL)
        return ERR_NO_MEMORY;
    problem_init(&p);
    enum err e = expr_fill(x, v->template, &vars, &p, &filled);
    if (e == ERR_OK)
        json_free(filled);
    problem_release(&p);
    expr_free(x);
    return e;
}

static void assert_filled(const char *template, enum err wanted)
{
    struct evaluated v = {
        json_value_of_tree(json_of(template)),
        json_value_of_tree(json_of("{'n':3,'s':'abc','l':[3,1,2],'o':{'k':'v'}}")),
    };
    sweep(fill_template, &v, wanted);
    json_free(v.template);
    json_free(v.input);
}

static void an_expression_is_never_called_wrong_for_want_of_memory(void **state)
{
    (void)state;
    assert_filled("{'a':'${input.n + 1}','b':['x ${input.s} ${input.o} $${','${input.l}'],"
                  "'c':{'d':'${ {x = input.o, y = {1, 2}} }'},'e':'${input.none}','f':null}",
                  ERR_OK);
    assert_filled("{'a':['${map(input.l, function(n) return {n = n} end)}'],'b':'x${list(1, 2)}',"
                  "'c':{'d':'${json.decode(\\\"[1,{}]\\\")}'}}",
                  ERR_OK);
    assert_filled("'${string.upper(input.s) .. tostring(input.n) .. #input.l}'", ERR_OK);
    assert_filled("'${input.n +}'", ERR_EXPRESSION);
    assert_filled("'${1 + {}}'", ERR_EXPRESSION);
}

/* --- answers of entities --- */

static enum err parse_answer(void *ctx)
{
    struct problem p;
    struct arena arena;
    struct entity_answer answer;
    problem_init(&p);
    arena_init(&arena, MIB);
    enum err e = entity_answer_parse(ctx, 1000, &arena, &p, &answer);
    arena_release(&arena);
    problem_release(&p);
    return e;
}

static void an_entitys_answer_is_never_called_wrong_for_want_of_memory(void **state)
{
    (void)state;
    struct json *json = json_value_of_tree(
        json_of("{'state':{'n':1},'set_timers':[{'name':'t','in_ms':5}],'cancel_timers':['u'],"
                "'emit':[{'event':'x','payload':1}],'start':[{'workflow_id':'w','input':1}],"
                "'results':[{'seq':1,'result':2}]}"));
    sweep(parse_answer, json, ERR_OK);
    json_free(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_definition_is_never_called_invalid_for_want_of_memory),
        cmocka_unit_test(the_faults_of_a_definition_are_told_or_memory_is_wanting),
        cmocka_unit_test(a_value_never_fits_or_misfits_for_want_of_memory),
        cmocka_unit_test(a_pattern_is_never_called_wrong_for_want_of_memory),
        cmocka_unit_test(an_expression_is_never_called_wrong_for_want_of_memory),
        cmocka_unit_test(an_entitys_answer_is_never_called_wrong_for_want_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
