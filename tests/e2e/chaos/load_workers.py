"""Workers. Most jobs they complete, one by one or in batches with the next claim; the others come to grief in one way or another."""
import entity_clients
import scene
from client import Client


class Worker(Client):
    queue = scene.QUEUE

    def __init__(self, s, number):
        super().__init__(s.world.port, s.ledger, f"{s.seed}-{self.queue}-worker-{number}")
        self.want = {"worker_id": f"{self.queue}-{number}", "queues": [self.queue], "max": 1 + number % 4, "lease_ms": scene.LEASE_MS}

    def run(self, goes_on):
        jobs = []
        while goes_on():
            jobs = self.work(jobs) if jobs else self.claim()

    def claim(self):
        keyed = self.chance(0.3)
        answer = self.ask("claim", "POST", "/api/v1/jobs/claim", {**self.want, "wait_ms": 400}, "*", self.new_key("claim") if keyed else None, abandon=0.3)
        return answer.json["jobs"] if answer is not None and answer.status == 200 else []

    def work(self, jobs):
        """The next jobs, when the results were handed in together with a claim."""
        results = [self.result(job) for job in jobs]
        if len(jobs) > 1 or self.chance(0.3):
            return self.hand_in(jobs, results)
        self.stumble(jobs[0], results[0])
        return []

    # --- what a handler does ---

    def result(self, job):
        """{"output": …} or {"error": …}, different each time a handler is called."""
        nonce = self.new_key("result")
        self.ledger.note("handled", job=job["job_id"], nonce=nonce)
        if job["handler"] == "doom" or self.chance(0.03):
            return {"error": {"code": "DOOM", "message": nonce, "retryable": False}}
        if self.chance(0.08):
            return {"error": {"code": "SHAKY", "message": nonce}}
        return {"output": {"job": job["job_id"], "nonce": nonce}}

    # --- how it is reported ---

    @staticmethod
    def nonce(result):
        return result["output"]["nonce"] if "output" in result else result["error"]["message"]

    def report(self, job, result):
        verb = "complete" if "output" in result else "fail"
        body = {"lease_token": job["lease_token"], **result}
        return self.ask(verb, "POST", f"/api/v1/jobs/{job['job_id']}/{verb}", body, "*", abandon=0.03, job=job["job_id"], nonce=self.nonce(result))

    def hand_in(self, jobs, results):
        items = [{"job_id": job["job_id"], "lease_token": job["lease_token"], **result} for job, result in zip(jobs, results)]
        claim = {"claim": self.want} if self.chance(0.5) else {}
        answer = self.ask("batch", "POST", "/api/v1/jobs:complete", {"items": items, **claim}, "*", abandon=0.03,
                          jobs=[job["job_id"] for job in jobs], nonces=list(map(self.nonce, results)), fails=["error" in result for result in results])
        return answer.json.get("jobs", []) if answer is not None and answer.status == 200 else []

    def heartbeat(self, job):
        body = {"lease_token": job["lease_token"], "progress": {"at": self.count}}
        return self.ask("heartbeat", "POST", f"/api/v1/jobs/{job['job_id']}/heartbeat", body, "*", job=job["job_id"])

    def stumble(self, job, result):
        luck = self.rng.random()
        if luck < 0.05:  # nobody hears of it again
            return
        if luck < 0.10:
            self.ask("release", "POST", f"/api/v1/jobs/{job['job_id']}/release", {"lease_token": job["lease_token"]}, "*", job=job["job_id"])
            return
        if luck < 0.15:
            self.pause(2 * scene.LEASE_MS / 1000)  # it may come too late
        if luck < 0.30:
            self.heartbeat(job)
        self.report(job, result)
        if luck > 0.90:  # once more
            self.report(job, result)
        elif luck > 0.85:  # another result for what is done
            self.report(job, self.result(job))


class EntityWorker(Worker):
    queue = scene.ENTITY_QUEUE

    def result(self, job):
        if self.chance(0.05):
            return {"error": {"code": "SHAKY", "message": self.new_key("result")}}
        if job["input"]["entity"]["type"] == scene.FLEETING:
            return {"output": self.fleeting(job["input"])}
        given, answer = job["input"], {"results": []}
        state = given["state"] or entity_clients.new_state()
        for s in given["signals"]:
            if s["seq"] != state["seq"] + 1:
                self.ledger.note("gap", entity=given["entity"], seq=s["seq"], after=state["seq"])
            state = entity_clients.apply(state, s["seq"], s["payload"])
            if s.get("update"):
                answer["results"].append({"seq": s["seq"], "result": {"sum": state["sum"], "nonce": self.new_key("decision")}})
        return {"output": {"state": state, **answer}}

    def fleeting(self, given):
        """Sets timers, says and starts something, and is finished now and then."""
        answer = {"state": {"calls": (given["state"] or {"calls": 0})["calls"] + 1}, "emit": [{"event": "fleeting.called", "payload": len(given["signals"])}]}
        if given["signals"]:
            answer["set_timers"] = [{"name": "soon", "in_ms": 100}]
            answer["start"] = [{"workflow_id": "nap", "input": {"n": given["signals"][0]["seq"]}}]
        elif self.chance(0.3):
            answer["finished"] = True
        return answer

    @staticmethod
    def nonce(result):
        return None if "output" in result else result["error"]["message"]
