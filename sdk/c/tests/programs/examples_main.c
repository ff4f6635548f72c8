static void apply(struct pawl_workflow *workflow)
{
    json_t *definition = NULL;
    check(pawl_workflow_json(workflow, &definition, &err) == PAWL_OK);
    check(pawl_apply(client, definition, NULL, &err) == PAWL_OK);
    pawl_workflow_free(workflow);
}

/* The workflows that the examples use. */
static void prepare(void)
{
    struct pawl_workflow *greet = pawl_workflow_new("greet", NULL),
                         *waits = pawl_workflow_new("wait", NULL);
    struct pawl_workflow *ask = pawl_workflow_new("ask", NULL),
                         *shouts = pawl_workflow_new("shout", NULL),
                         *stop = pawl_workflow_new("stop", NULL);
    pawl_workflow_step(greet, "transform", "text", "{s:{s:s}}", "output", "text",
                       "Hello, ${input.name}!");
    pawl_workflow_step(waits, "wait_signal", "paid", "{s:s}", "signal", "paid");
    pawl_workflow_approval(ask, "ok", "Go on?", NULL);
    pawl_workflow_task(shouts, "shout", "shout", "{s:s}", "queue", "docs");
    pawl_workflow_task(stop, "stop", "stop", NULL);
    apply(greet);
    apply(waits);
    apply(ask);
    apply(shouts);
    apply(stop);
}

static bool approve(json_t *event, void *run_id)
{
    json_t *data = json_object_get(event, "data");
    const char *type = json_string_value(json_object_get(event, "type"));
    struct pawl_error error = {0};
    if (strcmp(type, "approval.requested") == 0 &&
        strcmp(json_string_value(json_object_get(data, "run_id")), run_id) == 0)
        if (pawl_approve(client, json_string_value(json_object_get(data, "job_id")), NULL, NULL,
                         NULL, &error) != PAWL_OK)
            exit(1);
    const char *subject = json_string_value(json_object_get(event, "subject"));
    return !(strncmp(type, "run.", 4) == 0 && strcmp(subject, run_id) == 0 &&
             strcmp(type, "run.created") != 0 && strcmp(type, "run.started") != 0 &&
             strcmp(type, "run.waiting") != 0);
}

/* An example of a handler as a whole workflow: it gets its signal and its approval. */
static void run_handler(const char *workflow_id)
{
    char run_id[64];
    json_t *run = NULL;
    snprintf(run_id, sizeof run_id, "%s", started(workflow_id));
    check(pawl_signal(client, run_id, "paid", json_pack("{s:i}", "amount", 30), NULL, NULL, &err) ==
              PAWL_OK ||
          err.kind == PAWL_ERR_CONFLICT);
    check(pawl_events(client, "run.*,approval.requested", "0-0", approve, run_id, &err) == PAWL_OK);
    check(pawl_wait(client, run_id, 30000, &run, &err) == PAWL_OK);
    check(strcmp(json_string_value(json_object_get(run, "status")), "succeeded") == 0);
    json_decref(run);
}

static void run_update(const char *name)
{
    json_t *update = NULL;
    check(pawl_update_entity(client, "account", "ada", name, json_null(), name, 30000, &update,
                             &err) == PAWL_OK);
    check(strcmp(json_string_value(json_object_get(update, "status")), "completed") == 0);
    json_decref(update);
}

int main(void)
{
    struct pawl_worker *worker = NULL;
    struct pawl_worker_options options = {.queues = (const char *const[]){"examples", NULL}};
    check(pawl_client_new(NULL, &client, &err) == PAWL_OK);
    prepare();
    check(pawl_worker_new(client, &options, &worker, &err) == PAWL_OK);
    struct pawl_entity_type *account =
        pawl_worker_entity(worker, "account", json_pack("{s:i}", "points", 0), NULL);
    pawl_entity_on(account, "add", add_points, NULL);
    pawl_entity_on_timer(account, "idle", add_points, NULL);
    pawl_entity_on_timer(account, "party", add_points, NULL);
    size_t examples = sizeof all / sizeof *all;
    for (size_t i = 0; i < examples; i++) {
        if (all[i].handler)
            pawl_worker_workflow(worker, all[i].name, all[i].handler, NULL, NULL);
        if (all[i].entity)
            pawl_entity_on(account, all[i].name, all[i].entity, NULL);
    }
    check(pawl_worker_start(worker, &err) == PAWL_OK);
    for (size_t i = 0; i < examples; i++) {
        running = all[i].name;
        if (all[i].plain)
            all[i].plain();
        else if (all[i].handler)
            run_handler(all[i].name);
        else
            run_update(all[i].name);
        pawl_error_clear(&err);
    }
    pawl_worker_stop(worker);
    check(pawl_worker_join(worker, &err) == PAWL_OK);
    pawl_worker_free(worker);
    pawl_client_free(client);
    printf("%zu examples\n", examples);
    return 0;
}
