from logging import getLogger
import kopf
from kopf.structs.bodies import Body
from .constants import DOMAIN, PLURAL

log = getLogger(__name__)

@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, *args, **_):
    settings.admission.server = kopf.WebhookServer(port=9443, host="operator.db.svc")
    settings.peering.standalone = True
    settings.posting.enabled = False
    settings.networking.error_backoffs = [1, 2.5, 10]

@kopf.on.cleanup()
def goodbye(logger, **kwargs):
    logger.info("Bye.")

@kopf.on.create(DOMAIN, "v2", PLURAL)
def on_cluster_create(name, namespace, body: Body, logger, **kwargs):
    cluster = Cluster(body)
    try:
        cluster.parse()
    except ValueError as e:
        raise kopf.TemporaryError(f"invalid: {e}")
    if not cluster.ready:
        cluster.info(action="create", reason="Creating", message="x")

@kopf.on.delete(DOMAIN, "v2", PLURAL)
def on_cluster_delete(name, body, logger, **kwargs):
    raise kopf.TemporaryError(f"{name} still has {body['status']['pods']} pods", delay=15)

@kopf.on.field(DOMAIN, "v2", PLURAL, field="spec.instances")
def on_instances(old, new, body, logger, **kwargs):
    if old is None or new is None:
        return
    resize(body, old, new)

@kopf.on.field(DOMAIN, "v2", PLURAL, field=("spec", "image"))  # a list of keys
def on_image(old, new, **kwargs):
    ...

@kopf.on.create("", "v1", "pods", labels={"component": "db", "tier": kopf.PRESENT, "debug": kopf.ABSENT})
def on_pod_create(body, logger, **kwargs):
    pass

@kopf.on.event("", "v1", "pods", labels={"component": "db"})
def on_pod_event(event, type, body, logger, **kwargs):
    logger.debug(f"{type}: {body['metadata']['name']}")

@kopf.on.update("apps", "v1", "deployments", annotations={"db.example.com/watched": "yes"}, when=lambda diff, **_: bool(diff))
@kopf.on.create("apps", "v1", "deployments", annotations={"db.example.com/watched": "yes"}, when=lambda diff, **_: bool(diff))
def on_router(body, **kwargs):
    pass
