"""A run from start to end with the package that openapi-python-client makes of docs/openapi.yaml. usage: client.py URL"""
import importlib
import json
import pkgutil
import sys

import pawl_client
from pawl_client.api.jobs import claim_jobs, complete_job
from pawl_client.api.runs import get_run, start_run
from pawl_client.api.workflows import get_workflow, put_workflow
from pawl_client.models import ClaimJobs, CompleteJob, Definition, StartRun

modules = [m.name for m in pkgutil.walk_packages(pawl_client.__path__, "pawl_client.")]
for name in modules:
    importlib.import_module(name)

client = pawl_client.Client(base_url=sys.argv[1], raise_on_unexpected_status=True)
definition = Definition.from_dict({"steps": [{"name": "say", "type": "task", "queue": "py", "handler": "say"}]})
put_workflow.sync("greet", client=client, body=definition)

start = StartRun(input_={"name": "Ada"})
first, again = (start_run.sync("greet", client=client, body=start, idempotency_key="greet-1") for _ in range(2))

job = claim_jobs.sync(client=client, body=ClaimJobs(worker_id="w", queues=["py"], wait_ms=10000)).jobs[0]
completed = complete_job.sync(job.job_id, client=client, body=CompleteJob(lease_token=job.lease_token, output={"greeting": "Hello, Ada!"}))

run = get_run.sync(first.run_id, client=client)
missing = get_workflow.sync("nothing", client=client)

json.dump({
    "created": [first.created, again.created],
    "same_run": first.run_id == again.run_id,
    "input": getattr(job.input_, "additional_properties", job.input_),
    "completed": completed.status,
    "run": [run.status, run.output],
    "problem": missing.code,
}, sys.stdout)
