import kopf

def on_create(spec, meta, namespace, name, uid, logger, body, **kwargs):
    logger.info(f"Creating the registry {name} in {namespace}: {spec['listener']}")
    if spec.get("strimziVersion") == "v1beta2":
        version = "v1beta2"
    else:
        version = "v1"
    logger.info(version)

kopf.on.create("registry.example.com", "v1beta1", "schemaregistries", id="create-registry")(on_create)
kopf.on.delete("registry.example.com", "v1beta1", "schemaregistries", optional=True)(gone)

@kopf.on.event("secrets", labels={"registry.example.com/kind": "user"}, when=lambda type, **_: type == "MODIFIED")
def refresh(event, logger, **kwargs):
    pass
