"""Clusters of schedulers and workers, with groups that scale."""
import asyncio
import kopf
from kopf import on

GROUP = "compute.example.com"

@on.startup()
async def configure(settings: kopf.OperatorSettings, **_):
    settings.watching.server_timeout = 300
    settings.networking.connect_timeout = 5
    settings.posting.level = 30
    settings.persistence.finalizer = "compute.example.com/finalizer"


@on.startup()
async def remember(logger, **_):
    logger.info("The controller is up.")


@on.probe(id="now")
def now(**kwargs):
    return "alive"


@on.create(GROUP, "v1", "computeclusters")
async def cluster_created(name, namespace, logger, patch, spec, **_):
    """Announce a cluster."""
    logger.info(f"Cluster {name} appeared in {namespace}.")
    patch.status["phase"] = "Created"


@on.field(GROUP, "v1", "computeclusters", field="status.phase", new="Created")
async def cluster_components(spec, name, namespace, logger, patch, body, **_):
    async with client() as api:
        scheduler = render(spec["scheduler"], name=name)
        kopf.adopt(scheduler)
        await api.create(scheduler)
    patch.status["phase"] = "Pending"


@on.field("pods", field="status.phase", labels={"compute.example.com/component": "scheduler"}, new="Running")
async def scheduler_runs(meta, new, namespace, logger, **_):
    cluster = await find(meta["labels"]["compute.example.com/cluster-name"])
    await cluster.patch({"status": {"phase": "Running"}})


@on.create(GROUP, "v1", "computegroups")
async def group_created(spec, name, **_):
    if not spec.get("cluster"):
        raise kopf.PermanentError("A group needs a cluster.")
    raise kopf.TemporaryError("The cluster is not ready.", delay=5)


@on.field(GROUP, "v1", "computegroups", field="spec.worker.replicas")
async def group_resized(old, new, name, **_):
    for n in range(new):
        await start_worker(name, n)


@on.delete(GROUP, "v1", "computegroups", optional=True)
async def group_deleted(name, logger, **_):
    logger.info("Group %s is gone", name)


@kopf.timer(GROUP, "v1", "computeautoscalers", interval=5.0)
async def adapt(spec, name, logger, memo, **_):
    wanted = await ask(spec)
    if wanted > memo.get("known", 0):
        memo["known"] = wanted


@kopf.timer(GROUP, "v1", "computeclusters", interval=5, idle=60.5)
async def shut_down_idle(spec, name, **_):
    pass
