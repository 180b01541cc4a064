import os
import kopf
import functools

API_GROUP = "cloud.example.com"
RESOURCE = "columnstores"
HOUR = 60 * 60
PREFIX = f"operator.{API_GROUP}"

def crd_arguments(fn):
    @functools.wraps(fn)
    async def wrapper(*args, **kwargs):
        return await fn(*args, **kwargs)
    return wrapper

@kopf.on.startup()
async def startup(settings, logger, **_kwargs):
    logger.info("Starting")
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix=PREFIX, key="last-handled-configuration")
    settings.persistence.finalizer = PREFIX + "/finalizer"
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=PREFIX)
    settings.background.cancellation_polling = None

@kopf.on.login()
def login(**kwargs):
    return kopf.login_via_client(**kwargs)

@kopf.on.create(API_GROUP, "v1", RESOURCE, id="create_cluster", errors=kopf.ErrorsMode.PERMANENT)
@crd_arguments
async def cluster_create(namespace, meta, spec, logger, **kwargs):
    kopf.register(fn=make_accounts, id="accounts", backoff=10)
    kopf.register(fn=functools.partial(make_sts, meta), id="statefulset")
    await kopf.execute()

@kopf.on.update(API_GROUP, "v1", RESOURCE, id="update_cluster", timeout=3 * HOUR, backoff=30)
@crd_arguments
async def cluster_update(namespace, name, spec, diff, **kwargs):
    context = {"name": name, "kind": "column"}
    if not diff:
        raise kopf.PermanentError("Nothing changed")

@kopf.on.field(API_GROUP, "v1", RESOURCE, field="spec.cluster.allowed", id="service_cidr")
def ranges(old, new, diff, **kwargs):
    return {"ranges": new}

@kopf.timer(API_GROUP, "v1", RESOURCE, id="ping", interval=float(os.environ.get("PING", 30)), initial_delay=10)
async def ping(name, namespace, patch, **_):
    patch.status["health"] = "GREEN"

@kopf.timer(API_GROUP, "v1", RESOURCE, interval=HOUR / 2, initial_delay=30, sharp=True)
async def snapshot(logger, **_):
    logger.info("Taking a snapshot.")
