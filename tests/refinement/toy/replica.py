"""Somebody else's replication: three nodes in one process, a fixed leader, a log of its own. It knows nothing of us.

`python replica.py FILE [SEED] [--hasty]` runs it and writes its log; --hasty is a mistake: the leader does not wait for
a majority.
"""

import hashlib
import random
import sys

NODES, MAJORITY, CLIENTS, REQUESTS = 3, 2, 2, 6


def digest(*parts):
    return hashlib.sha256("|".join(map(str, parts)).encode()).hexdigest()[:12]


class Node:
    def __init__(self, world, number):
        self.world, self.number = world, number
        self.time, self.lines, self.entries = 0, 0, []
        self.applied, self.known, self.sum, self.votes = 0, 0, digest("empty"), {}

    def note(self, what, seen=0, **more):
        """One line of the log; `seen` is the time of the message it is about."""
        self.time = max(self.time, seen) + 1
        self.lines += 1
        head = self.entries[-1]["hash"] if self.entries else "-"
        own = {"top": len(self.entries), "head": head, "applied": self.applied, "known": self.known, "sum": self.sum}
        text = " ".join(f"{key}={value}" for key, value in {**more, **own}.items())
        self.world.log.append(f"{self.time} node{self.number} {self.lines} {what} {text}")
        return {"time": self.time, "line": self.lines, "from": self.number}

    def ask(self, client, number):
        prev = self.entries[-1]["hash"] if self.entries else "-"
        entry = {"client": client, "number": number, "prev": prev, "hash": digest(client, number, prev)}
        self.entries.append(entry)
        sent = self.note("asked", op=len(self.entries), **entry)
        self.world.send(self.number, "entry", sent | {"op": len(self.entries), "known": self.known, **entry})
        self.keep()

    def keep(self):
        op = len(self.entries)
        self.note("kept", op=op)
        vote = self.note("voted", op=op, hash=self.entries[-1]["hash"])
        if self.number:
            self.world.send(self.number, "vote", vote | {"op": op, "hash": self.entries[-1]["hash"]})
        else:
            self.vote(0, op)

    def on_entry(self, m):
        self.entries.append({key: m[key] for key in ("client", "number", "prev", "hash")})
        self.known = max(self.known, m["known"])
        self.note("took", m["time"], op=m["op"], via=f"{m['from']}:{m['line']}", told=m["known"], **self.entries[-1])
        self.keep()
        self.apply()

    def on_vote(self, m):
        self.note("counted", m["time"], op=m["op"], via=f"{m['from']}:{m['line']}", hash=m["hash"])
        self.vote(m["from"], m["op"])

    def vote(self, node, op):
        self.votes.setdefault(op, set()).add(node)
        need = 1 if self.world.hasty else MAJORITY
        while len(self.votes.get(self.known + 1, ())) >= need:
            self.known += 1
            self.note("agreed", op=self.known)
            self.apply()
            told = self.note("tells", told=self.known)
            self.world.send(self.number, "known", told | {"known": self.known})

    def on_known(self, m):
        if m["known"] > self.known and m["known"] <= len(self.entries):
            self.known = m["known"]
            self.note("heard", m["time"], told=m["known"], via=f"{m['from']}:{m['line']}")
            self.apply()

    def apply(self):
        while self.applied < min(self.known, len(self.entries)):
            entry = self.entries[self.applied]
            self.applied += 1
            self.sum = digest(self.sum, entry["hash"])
            answer = digest("answer", self.applied, entry["hash"])
            self.note("applied", op=self.applied, answer=answer, **entry)
            if not self.number:
                self.world.answered(entry, self.time)


class World:
    def __init__(self, seed, hasty):
        self.random, self.hasty, self.log, self.links = random.Random(seed), hasty, [], {}
        self.nodes = [Node(self, number) for number in range(NODES)]
        self.asking = dict.fromkeys(range(1, CLIENTS + 1), 0)

    def send(self, sender, kind, message):
        for to in range(NODES) if not sender else (0,):
            if to != sender:
                self.links.setdefault((sender, to), []).append((kind, message))

    def answered(self, entry, time):
        self.asking[entry["client"]] = entry["number"]

    def run(self):
        for node in self.nodes:
            node.note("up", nodes=NODES, majority=MAJORITY)
        waiting = dict.fromkeys(self.asking, 0)
        while True:
            ready = [c for c, n in self.asking.items() if waiting[c] == n < REQUESTS]
            links = [link for link, queue in self.links.items() if queue]
            if not ready and not links:
                return self.log
            choice = self.random.choice([*ready, *links])
            if choice in ready:
                waiting[choice] += 1
                self.nodes[0].ask(choice, waiting[choice])
            else:
                kind, message = self.links[choice].pop(0)
                getattr(self.nodes[choice[1]], f"on_{kind}")(message)


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--hasty"]
    log = World(int(words[1]) if len(words) > 1 else 0, "--hasty" in sys.argv).run()
    with open(words[0], "w") as out:
        out.write("# toy 1.0\n" + "\n".join(log) + "\n")
