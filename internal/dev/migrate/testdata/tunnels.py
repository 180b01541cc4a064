import kopf

@kopf.on.startup(errors=kopf.ErrorsMode.TEMPORARY, retries=10)
async def connect(logger, **_):
    logger.info("Connecting.")
    await dial()

@kopf.on.validate("tunnel.example.com", "clients")
async def validate(name, spec, operation, **kwargs):
    await check(spec)

@kopf.on.create(kind="Client", group="tunnel.example.com")
@kopf.on.create(plural="reservations", group="tunnel.example.com", version="v1", id="reserve")
def by_keyword(name, **_):
    pass

@kopf.on.event(kopf.EVERYTHING)
def everything(type, name, resource, logger, **_):
    logger.debug("%s %s", type, name)

@kopf.on.event(category="all", group="apps")
def category(**_):
    pass

@kopf.on.event(lambda resource: resource.plural == "x")
def callable(**_):
    pass

@kopf.on.cleanup()
async def close(**_): await hang_up()
