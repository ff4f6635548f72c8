"""The operations by resource. Each is defined once and serves the sync and the asyncio client.

The names of parameters are those of the wire (docs/api.md). In the examples `client` is a `pawl.Client`.
"""

from .admin import Audit, Keys, Server, Tenants
from .entities import Entities
from .events import Schedules, Webhooks
from .jobs import Jobs
from .runs import Approvals, Runs, Workflows

__all__ = [
    "Approvals",
    "Audit",
    "Entities",
    "Jobs",
    "Keys",
    "Runs",
    "Schedules",
    "Server",
    "Tenants",
    "Webhooks",
    "Workflows",
]
