import functools
import kopf

def model_handler(model, register_fn, **kwargs):
    """A decorator of the operator's own."""
    def decorator(func):
        @functools.wraps(func)
        async def handler(**handler_kwargs):
            return await func(**handler_kwargs)
        return register_fn("capi.example.com", model, **kwargs)(handler)
    return decorator

def on_cluster(**kwargs):
    return kopf.on.create("capi.example.com", "clusters", **kwargs)

@kopf.on.startup()
async def apply_settings(**kwargs):
    kwargs["settings"].persistence.finalizer = "capi.example.com/finalizer"

@model_handler("clusters", kopf.on.create)
async def cluster_create(instance, **kwargs):
    pass

@on_cluster(id="second")
async def cluster_second(**kwargs):
    pass

@kopf.on.event("cluster.x-k8s.io", "machines", labels={"capi.example.com/cluster": kopf.PRESENT})
async def machine_event(type, body, name, namespace, **kwargs):
    if type == "DELETED":
        return
    await status.update(body)
