import kopf, datetime as dt

API = f"{'schedule'}.example.com"

@kopf.on.create(API, "leases")
@kopf.on.update(API, "leases", field="spec")
@kopf.on.resume(API, "leases")
async def lease(spec, status, patch, logger, **kwargs):
    ends = dt.datetime.fromisoformat(spec["endsAt"])
    if ends < dt.datetime.now():
        raise kopf.TemporaryError("not yet", delay=dt.timedelta(minutes=1).total_seconds())

@kopf.on.event("v1beta1", "things")
def odd_group(**_):
    pass

@kopf.on.cleanup()
async def on_cleanup(**kwargs):
    """Close clients."""
