import logging
import kopf
import pykube

from . import config

logger = logging.getLogger("training")

@kopf.on.login()
def login_fn(**kwargs): return kopf.login_with_service_account(**kwargs)

@kopf.on.probe(id="heartbeat")
def heartbeat(**_):
    logger.debug("beat")
    return {"ok": True}

@kopf.index("environments", group="training.example.com", version="v1")
def environments_index(name, body, **_):
    return {name: body}

@kopf.index("secrets", labels={"training.example.com/copy": "true"})
def secrets_index(namespace, name, body, **_):
    return {(namespace, name): body}

@kopf.on.resume("training.example.com", "v1", "sessions", id="training")
@kopf.on.create("training.example.com", "v1", "sessions", id="training")
def session_create(name, uid, spec, status, patch, runtime, retry, environments_index, **_):
    if status.get("phase") == "Running":
        logger.info("ignored")
        return {}
    if retry > 5:
        raise kopf.PermanentError(f"gave up after {retry} tries")
    patch["status"] = {}
    patch["status"]["phase"] = "Running"
    patch.setdefault("status", {})["url"] = f"https://{name}.example.com"

@kopf.on.delete("training.example.com", "v1", "sessions", optional=True)
def session_delete(name, logger, **_):
    logger.info("gone", extra={"name": name})

@kopf.on.event("training.example.com", "v1beta1", "copiers", when=lambda event, **_: event["type"] in (None, "ADDED", "MODIFIED"))
def copier_event(type, event, logger, **_):
    pass

@kopf.on.event("v1", "namespaces")
def namespace_event(type, **_):
    if type == "DELETED":
        logger.info("a namespace is gone")

@kopf.daemon("training.example.com", "v1", "copiers", cancellation_timeout=1.0, cancellation_backoff=0.25)
def copier_daemon(stopped, name, namespace, secrets_index, **_):
    while not stopped:
        stopped.wait(10)

@kopf.timer("training.example.com", "v1", "environments", interval=15)
def purge(name, logger, **_):
    logger.warning("Purging " + name)

@kopf.on.update("training.example.com", "v1", "environments")
def environment_update(old, new, diff, **_):
    raise NotImplementedError("later")

@kopf.on.cleanup()
async def cleanup_fn(**_):
    pass
