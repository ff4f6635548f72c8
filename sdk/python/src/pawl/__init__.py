"""pawl: client, worker and durable functions.

    import pawl

    client = pawl.Client()
    client.start("refund", {"order": 789}, key="refund-789")

`Client` and `AsyncClient` call the server, `Worker` and `AsyncWorker` do its jobs, `Workflow` builds definitions,
`webhooks.verify` checks what a webhook delivers. See README.md.
"""

from . import errors, models, webhooks
from ._durable import Approved
from ._version import VERSION
from .client import AsyncClient, Client, FeedEvent
from .context import AsyncContext, Context, JobContext
from .definition import (
    QuestionOptions,
    Ref,
    RetryRule,
    Step,
    StepOptions,
    UndoOptions,
    Workflow,
    WorkflowOptions,
)
from .entity import Entity, EntityContext, EntityOptions
from .errors import JobCancelled, JobError, PawlError, Reject, Rejected, StepFailed, TimedOut
from .retry import Backoff, Budget, Retry
from .worker import AsyncWorker, Worker

__all__ = [
    "Approved",
    "AsyncClient",
    "AsyncContext",
    "AsyncWorker",
    "Backoff",
    "Budget",
    "Client",
    "Context",
    "Entity",
    "EntityContext",
    "EntityOptions",
    "FeedEvent",
    "JobCancelled",
    "JobContext",
    "JobError",
    "PawlError",
    "QuestionOptions",
    "Ref",
    "Reject",
    "Rejected",
    "Retry",
    "RetryRule",
    "Step",
    "StepFailed",
    "StepOptions",
    "TimedOut",
    "UndoOptions",
    "Worker",
    "Workflow",
    "WorkflowOptions",
    "errors",
    "models",
    "webhooks",
]
__version__ = VERSION
