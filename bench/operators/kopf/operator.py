"""The operator under measurement, written with Kopf.

It is run as "$KOPF_COMMAND operator.py --resource … --does …", where the command
is a Python that has Kopf, for example "/path/to/venv/bin/python". It speaks the
same protocol as the others: see ../../proto.
"""
import argparse
import asyncio
import gc
import json
import sys
import threading
import time

import kopf

arguments = argparse.ArgumentParser()
arguments.add_argument("--resource", default="widgets")
arguments.add_argument("--does", default="create")
arguments.add_argument("--interval", type=float, default=60)
options = arguments.parse_args()
does = options.does.split(",")
of = ("bench.gopf.dev", "v1", options.resource)

stats = {}


def reset():
    stats.update(calls=0, seen=0, first=0, last=0, lastSeen=0, latencies=[], mallocs=0, allocated=0)


def called(stamp=0):
    now = time.time_ns()
    stats["calls"] += 1
    stats["first"] = stats["first"] or now
    stats["last"] = now
    if stamp:
        stats["latencies"].append(now - stamp)


reset()

if "create" in does:
    @kopf.on.create(*of, id="create")
    async def create(spec, **_):
        called(spec.get("stamp", 0))
        return {"message": "created", "size": spec.get("size")}

if "update" in does:
    @kopf.on.update(*of, id="update")
    async def update(spec, **_):
        called(spec.get("stamp", 0))

if "delete" in does:
    @kopf.on.delete(*of, id="delete")
    async def delete(**_):
        called()

if "resume" in does:
    @kopf.on.resume(*of, id="resume")
    async def resume(**_):
        stats["seen"] += 1


def serve(loop, stop):
    for line in sys.stdin:
        command = line.split()[0] if line.split() else ""
        answer = {}
        if command == "stats":
            answer = dict(stats)
        elif command == "counts":
            answer = {**stats, "latencies": None}
        elif command == "reset":
            reset()
        elif command == "gc":
            gc.collect()
        else:
            answer = {"error": f"unknown command {command}"}
        print(json.dumps(answer), flush=True)
    loop.call_soon_threadsafe(stop.set)


async def main():
    stop = asyncio.Event()
    threading.Thread(target=serve, args=(asyncio.get_running_loop(), stop), daemon=True).start()
    await kopf.operator(clusterwide=True, standalone=True, stop_flag=stop)


asyncio.run(main())
