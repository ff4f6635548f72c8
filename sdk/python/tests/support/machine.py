"""A worker's loops on a virtual clock, with a script as the server."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

from pawl._core import Send, Settings
from pawl._programs import Cancel, Programs, Spawn, Wait
from pawl._worker_state import Held, WorkerState
from pawl.errors import NoAnswer
from script import response

PATHS = {"claimJobs": "/api/v1/jobs/claim", "completeJobs": "/api/v1/jobs:complete"}
VERBS = {"heartbeatJob": "heartbeat", "releaseJob": "release"}


class Loop:
    """One program: what it waits for, and until when."""

    def __init__(self, steps: Generator[Any, Any, None]) -> None:
        self.steps = steps
        self.wait: Wait | None = None
        self.reply: tuple[float, Any] | None = None  # when the answer to its request comes
        self.tag: object = None
        self.ended = False


class Machine:
    """Runs a script's inputs and notes what the worker does: `seen` has (time, entry)."""

    def __init__(self, worker: dict[str, Any], script: list[dict[str, Any]]) -> None:
        self.now_ms = 0.0
        settings = Settings(url="http://script", now=lambda: self.now_ms / 1000, random=lambda: 0.5)
        self.state = WorkerState(**worker)
        self.programs = Programs(settings, self.state, lambda held: iter(()))  # type: ignore[arg-type,return-value]
        self.loops = [Loop(p()) for p in (self.programs.poll, self.programs.report, self.programs.beat)]
        self.answers = [entry for entry in script if "out" in entry]
        self.inputs = [entry for entry in script if {"ends", "stop", "progress"} & entry.keys()]
        self.seen: list[tuple[float, str]] = []
        self.jobs: dict[str, Held] = {}
        self.stopped = False

    def run(self) -> None:
        for loop in self.loops:
            self._advance(loop, None, None)
        while True:
            self._settle()
            times = [t for loop in self.loops for t in self._times(loop)] + [e["at_ms"] for e in self.inputs[:1]]
            if not times or self.stopped:
                return
            self.now_ms = max(self.now_ms, min(times))
            self._settle()
            while self.inputs and self.inputs[0]["at_ms"] <= self.now_ms:
                self._input(self.inputs.pop(0))

    def _times(self, loop: Loop) -> list[float]:
        if loop.ended:
            return []
        if loop.reply:
            return [loop.reply[0]]
        return [loop.wait.until * 1000] if loop.wait and loop.wait.until is not None else []

    def _settle(self) -> None:
        """Let everything happen that can happen now."""
        while sum(self._ready(loop) for loop in self.loops):  # every loop gets its turn
            pass
        if all(loop.ended for loop in self.loops) and not self.stopped:
            self.stopped = True
            self._see({"stopped": True})

    def _ready(self, loop: Loop) -> bool:
        if loop.ended:
            return False
        if loop.reply and loop.reply[0] <= self.now_ms:
            answer = loop.reply[1]
            loop.reply = None
            lost = answer.get("lost")
            self._advance(loop, None if lost else response(answer), NoAnswer("lost") if lost else None)
            return True
        wait = loop.wait
        if wait and (
            wait.version != self.state.version or (wait.until is not None and wait.until * 1000 <= self.now_ms)
        ):
            self._advance(loop, None, None)
            return True
        return False

    def _advance(self, loop: Loop, value: Any, error: BaseException | None) -> None:
        loop.wait = None
        while True:
            try:
                effect = loop.steps.send(value) if error is None else loop.steps.throw(error)
            except StopIteration:
                loop.ended = True
                return
            value, error = None, None
            if isinstance(effect, Wait):
                loop.wait = effect
                return
            if isinstance(effect, Send):
                self._send(loop, effect)
                return
            self._act(effect)

    def _send(self, loop: Loop, effect: Send) -> None:
        body = json.loads(effect.request.content() or b"null")
        for entry in self.answers:
            if entry["at_ms"] == self.now_ms and self._matches(entry["out"], effect.request.path, body):
                self.answers.remove(entry)
                answer = entry["answer"]
                loop.reply = (self.now_ms + answer.get("took_ms", 0), answer)
                loop.tag = effect.tag
                return
        raise AssertionError(f"at {self.now_ms} the worker sends {effect.request.path} {body}")

    @staticmethod
    def _matches(out: dict[str, Any], path: str, body: Any) -> bool:
        wanted = PATHS.get(out["op"]) or f"/api/v1/jobs/{out['job_id']}/{VERBS[out['op']]}"
        return bool(path == wanted and body == out["body"])

    def _act(self, effect: Any) -> None:
        job_id = effect.held.job["job_id"]
        if isinstance(effect, Spawn):
            self.jobs[job_id] = effect.held
            self._see({"begins": job_id})
        elif isinstance(effect, Cancel):
            self._see({"cancelled": job_id})
        else:
            raise AssertionError(effect)

    def _input(self, entry: dict[str, Any]) -> None:
        if "stop" in entry:
            self.state.stop()
            for loop in self.loops:
                if loop.reply and loop.tag is self.programs.poll_tag:
                    loop.reply = (self.now_ms, {"lost": True})
        elif "progress" in entry:
            self.jobs[entry["progress"]["job_id"]].progress = entry["progress"]["value"]
        else:
            result = dict(entry["ends"])
            self.state.finish(self.jobs[result.pop("job_id")], result)
        # Inputs of the same time belong together: results that end at once are reported at once.
        if not self.inputs or self.inputs[0]["at_ms"] > self.now_ms:
            self._settle()

    def _see(self, entry: dict[str, Any]) -> None:
        self.seen.append((self.now_ms, json.dumps(entry)))
