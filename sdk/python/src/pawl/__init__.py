"""pawl: client, worker and durable functions.

    import pawl

    client = pawl.Client()
    client.start("refund", {"order": 789}, key="refund-789")

`Client` and `AsyncClient` call the server, `Worker` and `AsyncWorker` do its jobs, `Workflow` builds definitions,
`webhooks.verify` checks what a webhook delivers. See README.md.
"""

from . import errors, models, webhooks
from .client import AsyncClient, Client, FeedEvent
from .definition import Ref, RetryRule, Step, StepOptions, UndoOptions, Workflow
from .retry import Backoff, Budget, Retry

__all__ = [
    "AsyncClient",
    "Backoff",
    "Budget",
    "Client",
    "FeedEvent",
    "Ref",
    "Retry",
    "RetryRule",
    "Step",
    "StepOptions",
    "UndoOptions",
    "Workflow",
    "errors",
    "models",
    "webhooks",
]
__version__ = "0.1.0"
