import kopf
import os
from datetime import timedelta

WORKERS = int(os.environ.get("WORKERS", "10"))

@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_):
    settings.admission.server = kopf.WebhookServer(certfile="/certs/tls.crt", pkeyfile="/certs/tls.key", port=443)
    settings.execution.max_workers = WORKERS
    settings.persistence.progress_storage = kopf.MultiProgressStorage([kopf.AnnotationsProgressStorage(prefix="work.example.com"), kopf.StatusProgressStorage(name="work")])
    settings.process.ultimate_exiting_timeout = timedelta(minutes=5).total_seconds()

@kopf.index("namespaces", labels={"work.example.com/team": kopf.PRESENT}, field="spec.finalizers", id="teams")
def by_team(labels, name, **_):
    return {labels["work.example.com/team"]: name}

@kopf.on.mutate("pods", operation="CREATE", id="apply-settings", labels={"work.example.com/team": lambda value, **_: value is not None})
def apply_settings(body, patch, dryrun, teams: kopf.Index, logger, **_):
    if dryrun:
        return
    patch.metadata.labels["work.example.com/applied"] = "yes"
    patch.meta.annotations["plain"] = "x"
    patch.spec["nodeName"] = "n"

def should_index(labels, **_):
    return "work.example.com/team" in labels

@kopf.on.resume("work.example.com", "v1", "spaces", field="status.state", value=kopf.ABSENT)
@kopf.on.create("work.example.com", "v1", "spaces", field="status.state", value=kopf.ABSENT)
def space(patch, namespace, **_):
    patch["metadata"] = {"labels": {}}
    return "Created"

@kopf.timer("work.example.com", "v1", "spaces", interval=5, field="status.state", value="Ready", when=should_index)
def tick(logger, **_):
    logger.info("tick")

@kopf.on.create("jobs", when=kopf.all_([should_index, lambda name, **_: name != "x"]))
def job(**_): pass
