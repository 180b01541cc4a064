import kopf

LCM = ("lcm.example.com", "v1alpha1", "deployments")

class Controller:
    """Methods are handlers in some operators."""
    @staticmethod
    @kopf.on.resume("lcm.example.com", "v1alpha1", "controlplanes")
    @kopf.on.update("lcm.example.com", "v1alpha1", "controlplanes")
    @kopf.on.create("lcm.example.com", "v1alpha1", "controlplanes")
    async def apply(body, meta, spec, logger, event=None, **kwargs):
        # TODO: split
        logger.info(f"Got event {body['metadata']['generation']}")
        await kopf.execute(fns=services(spec))

@kopf.on.delete("lcm.example.com", "v1alpha1", "controlplanes")
async def delete(name, logger, **kwargs):
    logger.info(f"deleting {name}")

@kopf.on.field(*LCM, field="status.ready")
def ready(old, new, **_):
    pass

@kopf.on.field("lcm.example.com", "v1alpha1", "controlplanes", field="status.ready", value=True)
def became_ready(logger, **_):
    logger.info("Ready.")

@kopf.on.update("apps", "v1", "statefulsets", field="status.readyReplicas", old=0, new=lambda value, **_: value == 3)
def quorum(name, **_):
    pass

@kopf.daemon("v1", "nodes", annotations={"lcm.example.com/rack": lambda value, **_: value != "none"})
async def node_watch(name, stopped, logger, **kwargs):
    while True:
        await stopped.wait(60)

@kopf.timer("lcm.example.com", "v1alpha1", "maintenance", interval=60, labels={"lcm.example.com/kind": kopf.not_(kopf.any_(["a", "b"]))})
def maintenance(body, **_):
    pass

def is_locked(spec, **_):
    return spec.get("locked") is True and "owner" not in spec

@kopf.on.create("lcm.example.com", "v1alpha1", "locks", when=is_locked)
@kopf.on.resume("lcm.example.com", "v1alpha1", "locks", when=kopf.not_(is_locked), deleted=True)
def lock(spec, **_):
    pass
