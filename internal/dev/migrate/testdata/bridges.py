import kopf

@kopf.on.startup()
async def check(logger, memo, **kwargs) -> None:
    logger.info('Ensuring definitions')
    install()

@kopf.on.startup()
def conf(settings, **_):
    settings.admission.managed = 'bridges.example.com'
    if True:
        settings.admission.server = kopf.WebhookAutoServer(port=9443)

@kopf.on.create('bridge.example.com', 'v1', 'clients')
@kopf.on.resume('bridge.example.com', 'v1', 'clients')
async def client_created(body, logger, **kwargs):
    obj = model(body)
    if obj.requested:
        obj.create()

@kopf.on.field('bridge.example.com', 'v1', 'clients', field='providerParameter', id='parameter')
async def client_parameters(body, old, new, **kwargs):
    pass

@kopf.timer('bridge.example.com', 'v1', 'clients', interval=10)
def reconcile(body, **_):
    return None

@kopf.on.validate('bridge.example.com', 'v1', 'clients', id='validate-client-parameters', operations=['CREATE', 'UPDATE'], ignore_failures=True)
def validate(spec, name, operation, dryrun, warnings, userinfo, **_):
    if not spec.get('provider'):
        raise kopf.AdmissionError(f'{name} has no provider.', code=400)
    warnings.append(f'Hello, {name}')
    return True

@kopf.on.validate('bridge.example.com', 'v1', 'mounts', operation='DELETE', subresource='status', field='spec.target')
def mount_deleted(name, **_):
    raise kopf.AdmissionError("Mounts stay.")

@kopf.on.delete('bridge.example.com', 'v1', 'clients')
async def client_deleted(body, **kwargs):
    pass
