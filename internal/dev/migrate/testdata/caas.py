import kopf

COMMON = {"labels": {"a": "b"}}

@kopf.on.create("caas.example.com", "v1", "appliances", **COMMON)
async def with_common(name, **_):
    pass

for plural in ("clusters", "templates"):
    @kopf.on.resume("caas.example.com", "v1", plural)
    async def looped(name, **_):
        pass

@kopf.daemon("caas.example.com", "v1", "clustertypes", cancellation_timeout=1)
async def fetch(name, stopped, spec, patch, **_):
    while not stopped:
        patch.status["seen"] = name

def register():
    @kopf.on.delete("caas.example.com", "v1", "clusters")
    async def inner(name, logger, **_):
        logger.info("bye")
    return inner

register()
